//! What is withheld, what passes, and where it is said to have stood.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use tabwarden_firewall::{Firewall, Surface};

fn firewall() -> Firewall {
    Firewall::built_in([1, 2]).expect("the built-in rules")
}

/// A value that no rule of shape knows.
fn canary() -> String {
    format!("canary{}", "x7q".repeat(5))
}

/// A JSON Web Token, put together from parts.
fn jwt() -> String {
    format!("eyJ{}.eyJ{}.{}", "hbGciOiJIUzI1NiJ9", "zdWIiOiJhbGljZSJ9", "4Kz9".repeat(10))
}

#[test]
fn addresses_lose_their_secrets_and_nothing_else() {
    let firewall = firewall();
    // `*` stands for a secret.
    let check = |address: &str| {
        let secret = canary();
        let sealed = firewall.seal_text(Surface::Url, &address.replace('*', &secret));
        assert_eq!(sealed.egress.as_str(), address.replace('*', "[REDACTED]"), "{address}");
        assert_eq!(sealed.findings.is_empty(), !address.contains('*'), "{address}");
        // Sealed once is sealed for good.
        let again = firewall.seal_text(Surface::Url, sealed.egress.as_str());
        assert_eq!((again.egress.as_str(), again.findings.len()), (sealed.egress.as_str(), 0), "{address}");
    };
    for address in [
        "https://app.example/cb?access_token=*&page=2",
        "https://app.example/cb#access_token=*&expires_in=3600",
        "https://app.example/?a=1&ACCESS_TOKEN=*",
        "https://app.example/?access%5Ftoken=*",
        "https://app.example/#/route?access_token=*&x=1",
        "https://app.example/a;jsessionid=*?x=1",
        "https://app.example/?access_token%20=*",
        "https://app.example/?access_token%00=*&x=1",
        "https://app.example/?id_token=*&refresh_token=*",
        "https://app.example/?api_key=*#top",
        "https://app.example/?password=*",
        "https://*@app.example/path",
        "http://localhost:3000/?token=*",
        "https://app.example/?next=https%3A%2F%2Fother.example%2F%3Faccess_token%3D*%26x%3D1",
        "view-source:https://app.example/?access_token=*",
        // Nothing to withhold: byte for byte, also where an address would be written otherwise.
        "HTTPS://App.Example:443/a b/%7e?key=piano&state=CA&code=US",
        "https://app.example/?token_type=bearer&author=x&monkey=y&primary_key=z",
        "https://app.example/?access_token=&page=2",
        "https://app.example/assets/index-4f2b9c1e.js?v=3f786850e387550fdab836ed7e6dc881de23001b",
        "https://app.example/o/9b2d4f5e-3c1a-4e6f-8a7b-2c3d4e5f6a7b/edit",
        "about:blank",
        "chrome://newtab/",
        "",
    ] {
        check(address);
    }
}

#[test]
fn texts_lose_addresses_and_tokens() {
    let firewall = firewall();
    let check = |text: &str, expect: &str| {
        for surface in [Surface::Text, Surface::Title, Surface::Error] {
            let filled = text.replace("JWT", &jwt()).replace('*', &canary());
            assert_eq!(firewall.seal_text(surface, &filled).egress.as_str(), expect, "{text}");
        }
    };
    check("see https://a.example/?access_token=* .", "see https://a.example/?access_token=[REDACTED] .");
    check("(https://a.example/?access_token=*)", "(https://a.example/?access_token=[REDACTED])");
    check("failed: https://bob:*@a.example/", "failed: https://[REDACTED]@a.example/");
    check("signed in with JWT today", "signed in with [REDACTED] today");
    check("app.example/cb?access_token=*", "app.example/cb?access_token=[REDACTED]");
}

#[test]
fn what_is_no_secret_passes_unchanged() {
    let firewall = firewall();
    for text in [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC",
        "Your password must have at least 12 characters.",
        "The token: what it is and how to renew it",
        "Set YOUR_API_KEY or ${TOKEN} first; it is shown as ****.",
        "export API_KEY=<your key>",
        "How to reset a password – Help centre",
        "primary_key=id, foreign_key=user_id, author=alice",
        "monkey=1 turkey=2 hockey=3",
        "Contact bob@example.com or @alice",
        "12:30 – 13:45: tokens & keys",
        "Zeichen: äöü 漢字 🔑 key",
        r"C:\Users\bob\key.txt",
        "[REDACTED]",
    ] {
        let sealed = firewall.seal_text(Surface::Text, text);
        assert_eq!((sealed.egress.as_str(), sealed.findings.len()), (text, 0));
    }
    for json in [
        r#"{"jsonrpc":"2.0","id":7,"method":"notifications/progress","params":{"progressToken":"abc123","progress":1.50}}"#,
        r#"{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"token":{"type":"string","description":"a token"}}}}]}"#,
        r#"{"session":{"id":"ses_4k2j9x1m","label":"codex"},"tab_id":"tab_1a2b3c4d","nextCursor":"eyJh"}"#,
        "{ \"a\" : 1.00 , \"b\":[true,null,1e5], \"\\u00e9\": \"\\/\" }",
        r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"tabwarden"}}"#,
    ] {
        let sealed = firewall.seal_json(json.to_owned());
        assert_eq!((sealed.egress.as_str(), sealed.findings.len()), (json, 0));
    }
}

#[test]
fn json_stays_json_and_places_are_named() {
    let firewall = firewall();
    let address = format!("https://a.example/?access_token={}&x=1", canary());
    let object = format!(
        r#"{{"tabs":[{{"id":"tab_1","title":"One","url":"https://b.example/"}},{{"id":"tab_2","title":"{}","url":"{address}"}}]}}"#,
        jwt()
    );
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{}}}],"isError":false,"structuredContent":{object}}}}}"#,
        serde_json::Value::from(object.as_str())
    );
    let sealed = firewall.seal_json(answer.clone());
    let said: serde_json::Value = serde_json::from_str(sealed.egress.as_str()).expect("JSON");
    let text: serde_json::Value =
        serde_json::from_str(said["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON in the text");
    assert_eq!(text, said["result"]["structuredContent"]);
    assert_eq!(text["tabs"][1]["url"], "https://a.example/?access_token=[REDACTED]&x=1");
    assert_eq!(text["tabs"][1]["title"], "[REDACTED]");
    assert_eq!(text["tabs"][0], serde_json::json!({ "id": "tab_1", "title": "One", "url": "https://b.example/" }));
    // Once for the text and the object together.
    let mut places: Vec<&str> = sealed.findings.iter().map(|finding| finding.place.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places.len(), 2, "{places:?}");
    assert!(places[0].starts_with("tabs[1].title"), "{places:?}");
    assert_eq!(places[1], "tabs[1].url ?access_token");
    assert!(sealed.findings.iter().all(|finding| finding.tag.starts_with('#') && finding.tag.len() == 5));

    let hidden = format!(r#"{{"note":"https:\/\/a.example\/?\u0061ccess_token={}"}}"#, canary());
    let sealed = firewall.seal_json(hidden);
    assert!(!sealed.egress.as_str().contains(&canary()), "{}", sealed.egress.as_str());
    serde_json::from_str::<serde_json::Value>(sealed.egress.as_str()).expect("JSON");
}

#[test]
fn the_same_secret_has_the_same_tag_and_another_run_another() {
    let address = format!("https://a.example/?access_token={}", canary());
    let tag = |firewall: &Firewall| firewall.seal_text(Surface::Url, &address).findings[0].tag.clone();
    let one = firewall();
    let in_json = one.seal_json(format!(r#"{{"url":"{address}"}}"#)).findings[0].tag.clone();
    assert_eq!(tag(&one), in_json);
    assert_ne!(tag(&one), tag(&Firewall::built_in([3, 4]).expect("rules")));
}
