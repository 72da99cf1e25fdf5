//! What must pass unchanged, byte for byte.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(missing_docs)]

use tabwarden_firewall::{Firewall, Surface};

fn check(surface: Surface, texts: &[&str]) {
    let firewall = Firewall::built_in([1, 2]).expect("the built-in rules");
    for text in texts {
        let sealed = firewall.seal_text(surface, text);
        assert_eq!(sealed.egress.as_str(), *text, "{:?}", sealed.findings);
        assert!(sealed.findings.is_empty(), "{text}: {:?}", sealed.findings);
        let field = if surface == Surface::Url { "url" } else { "title" };
        let json = serde_json::json!({ field: text, "text": text }).to_string();
        let sealed = firewall.seal_json(json.clone());
        assert_eq!(sealed.egress.as_str(), json, "{:?}", sealed.findings);
    }
}

#[test]
fn addresses() {
    check(
        Surface::Url,
        &[
            "",
            "about:blank",
            "chrome://newtab/",
            "https://example.com/",
            "https://example.com/?key=piano",
            "https://example.com/?key=piano-sonata-no-14-moonlight-sonata",
            "https://example.com/stores?state=CA",
            "https://example.com/stores?code=US&state=CA",
            "https://example.com/login?state=CA",
            "https://example.com/promo?code=WINTER2026SALE",
            "https://example.com/?token_type=bearer&author=ann&monkey=1&primary_key=42",
            "https://example.com/?max_tokens=400&nextPageToken=CAUQAA&tokens=3",
            "https://example.com/?response_type=none&country_code=49",
            "https://example.com/?access_token=",
            "https://example.com/?access_token=&page=2#access_token=",
            "https://example.com/cb?access_token=[REDACTED]&page=2",
            "https://example.com/cb?access_token=%5BREDACTED%5D&page=2",
            "https://[REDACTED]@example.com/",
            "https://example.com/?forgot_password=true",
            "https://example.com/?api_key=YOUR_API_KEY&b=${TOKEN}",
            "https://example.com/?token=${TOKEN}&password=****",
            "https://example.com/?token=%24%7BTOKEN%7D",
            "https://github.com/rust-lang/rust/commit/3f5fd8dd41153bc5fdca9427e9e05be2c767ba23",
            "https://example.com/0b8f2f5a-6d5e-4d1c-9a43-2f6a5c1f0e11/edit",
            "https://cdn.example.com/assets/index-DiwrgTda.4f1b2c3d4e5f60718293a4b5c6d7e8f9.js?v=3f5fd8dd41153bc5",
            "https://medium.com/@ann/a-story-0123456789ab",
            "https://unpkg.com/react@18.3.1/umd/react.production.min.js",
            "https://www.google.com/maps/@48.8583701,2.2922926,17z",
            "https://example.com/?email=ann@example.com",
            "mailto:ann@example.com",
            "ssh://git@github.com/example/repo.git",
            "https://de.wikipedia.org/wiki/M%C3%BCnchen?q=%D0%BF%D1%80%D0%B8",
            "https://example.com/search?q=100%25%20pure%26simple&next=https%3A%2F%2Fa.example%2F%3Fpage%3D2",
            "https://example.com/a;v=1.2/b;lang=en?x=1",
            "https://example.com/docs#authentication-and-tokens",
            "data:text/plain,hello%20world",
            "view-source:https://example.com/",
            "blob:https://example.com/0b8f2f5a-6d5e-4d1c-9a43-2f6a5c1f0e11",
        ],
    );
}

#[test]
fn prose() {
    check(
        Surface::Text,
        &[
            "Your password must have at least 8 characters. Never share your access_token or API key.",
            "Pass the token in the Authorization header, or set ?access_token= in the query.",
            "Set API_KEY=YOUR_API_KEY, token=${TOKEN}, secret=$SECRET, password=****, pwd=%PASSWORD%",
            "export TOKEN=<your token>; export API_KEY={{ api_key }}",
            "if (token==null) return; const password = readPassword(); token=next(stream)",
            "PWD=/srv/ann/project",
            "3f5fd8dd41153bc5fdca9427e9e05be2c767ba23 Merge pull request #42",
            "integrity=\"sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC\"",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "ann@example.com wrote: see // note @bob, and https://example.com/@ann.",
            "Inbox (3): ann@example.com",
            "C:\\new_folder\\token.txt and \\u0041 and 50% off, 100%25",
            "the task-runner, disk-usage and risk-free sk-learn",
            "Tokenizer: max_tokens=512, temperature=0.7, progressToken: \"abc-1\"",
            "key=value; author=ann; monkey=see",
            "Bearer of good news: https://example.com/?q=bearer",
            "✓ naïve “quotes” — dashes … and 😀",
        ],
    );
}

#[test]
fn messages() {
    let firewall = Firewall::built_in([1, 2]).expect("the built-in rules");
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"tabwarden","version":"0.1.0"},"instructions":"Lists, opens and closes tabs. Secrets are shown as [REDACTED]."}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"browser_tab_get","description":"One tab. Tokens and passwords in its url are withheld.","inputSchema":{"type":"object","properties":{"tab_id":{"type":"string","description":"From browser_tab_list"},"session_id":{"type":"string"},"access_token":{"type":"string"},"password":{"type":"string","minLength":8}},"required":["tab_id","password"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}],"nextCursor":"eyJwYWdlIjoyfQ=="}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"3b241101-e2bb-4255-8caf-4136c566a962","progress":1,"message":"waiting for the user"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32020,"message":"There is no tab tab_1a2b. Call browser_tab_list for the open ones.","data":{"code":"tab_not_found","retryable":false,"hint":"Call browser_tab_list.","tab_id":"tab_1a2b"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"{\"session\":{\"id\":\"ses_8f3k2m9x1q7z4w5v\",\"label\":\"sub-agent\"},\"session_id\":\"ses_8f3k2m9x1q7z4w5v\"}"}],"isError":false}}"#,
        r#"{ "numbers" : [1.50, -0.0, 1E+9, 12345678901234567890], "token_type":"bearer", "password": 7, "token": null, "secret": {}, "caf\u00e9": "\ud83d\ude00 \/ \u0041" }"#,
        "  [ ]  ",
        "\"a\"",
        "not json, but plain: token_type=bearer",
        "{\"a\":",
        "",
    ] {
        let sealed = firewall.seal_json(message.to_owned());
        assert_eq!(sealed.egress.as_str(), message, "{:?}", sealed.findings);
        assert!(sealed.findings.is_empty());
    }
}

#[test]
fn a_clean_text_is_the_very_same_string() {
    let firewall = Firewall::built_in([1, 2]).expect("the built-in rules");
    let json = String::from(r#"{"tabs":[{"url":"https://example.com/?page=2"}]}"#);
    let address = json.as_ptr();
    assert_eq!(firewall.seal_json(json).egress.as_str().as_ptr(), address);
}
