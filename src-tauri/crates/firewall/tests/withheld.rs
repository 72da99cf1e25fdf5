//! What is withheld, and that nothing else of the text changes.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(missing_docs)]

use tabwarden_firewall::{Finding, Firewall, Surface};

fn firewall() -> Firewall {
    Firewall::built_in([1, 2]).expect("the built-in rules")
}

/// Each text with `⟦secrets⟧` must come out with exactly these withheld, from a field of JSON too.
fn check(surface: Surface, texts: &[&str]) {
    let firewall = firewall();
    for text in texts {
        let mut expected = (*text).to_owned();
        while let (Some(open), Some(close)) = (expected.find('⟦'), expected.find('⟧')) {
            expected.replace_range(open..close + '⟧'.len_utf8(), "[REDACTED]");
        }
        let text = text.replace(['⟦', '⟧'], "");
        let sealed = firewall.seal_text(surface, &text);
        assert_eq!(sealed.egress.as_str(), expected, "{text}");
        assert!(!sealed.findings.is_empty());
        let again = firewall.seal_text(surface, sealed.egress.as_str());
        assert_eq!(again.egress.as_str(), expected, "sealed twice: {:?}", again.findings);
        let field = if surface == Surface::Url { "url" } else { "text" };
        let json = |value: &str| serde_json::json!({ "list": [{ field: value, "n": 1 }] }).to_string();
        assert_eq!(firewall.seal_json(json(&text)).egress.as_str(), json(&expected), "{text}");
        let answer = |value: &str| serde_json::json!({ "content": [{ "text": json(value) }] }).to_string();
        assert_eq!(firewall.seal_json(answer(&text)).egress.as_str(), answer(&expected), "{text}");
    }
}

fn jwt() -> String {
    format!("{}{}.{}{}.{}", "ey", "J0123456789abcdef", "ey", "Jabcdefghijklmnop", "signature-0123")
}

#[test]
fn parameters() {
    check(
        Surface::Url,
        &[
            "https://app.example/cb?access_token=⟦s3cr3t⟧&page=2",
            "https://app.example/cb#access_token=⟦s3cr3t⟧&expires_in=3600",
            "https://app.example/#/route?access_token=⟦s3cr3t⟧&tab=1",
            "https://app.example/#/route/access_token=⟦s3cr3t⟧",
            "https://app.example/#!access_token=⟦s3cr3t⟧",
            "https://app.example/?a=1;access_token=⟦s3cr3t⟧;b=2",
            "https://app.example/?a=1&amp;access_token=⟦s3cr3t⟧&amp;b=2",
            "https://app.example/a;jsessionid=⟦0123456789ABCDEF⟧/b?x=1",
            "https://app.example/?ACCESS_TOKEN=⟦s⟧&Access-Token=⟦s⟧&accesstoken=⟦s⟧&my.accessToken=⟦s⟧",
            "https://app.example/?token=⟦s⟧&id_token=⟦s⟧&refresh_token=⟦s⟧&x-csrf-token=⟦s⟧&token[]=⟦s⟧",
            "https://app.example/?api_key=⟦s⟧&apikey=⟦s⟧&x-api-key=⟦s⟧&client_secret=⟦s⟧&user[password]=⟦s⟧",
            "https://app.example/?access%5Ftoken=⟦s3cr3t⟧&%61ccess_token=⟦s3cr3t⟧&%2561ccess_token=⟦s3cr3t⟧",
            "https://app.example/?access_token=⟦a%26b%3Dc⟧&x=1",
            "https://app.example/?access_token=⟦a=b==⟧&x=1",
            "https://app.example/#access_token=⟦a#b?c;d,e f'g\"h\\i⟧",
            "https://app.example/?access_token=⟦a;b⟧#top",
            "https://app.example/?token=⟦a⟧?page=2",
            "https://app.example/?access_token=[REDACTED]&id_token=⟦s⟧",
            "https://app.example/?key=⟦0f9e8d7c6b5a4f3e2d1c⟧&sig=⟦aB3dE6gH9jK2%2Bm%2F5n8p1r4t7w0z%3D⟧&page=1",
            "https://bucket.example/o?X-Amz-Signature=⟦0f9e8d7c⟧&X-Amz-Expires=60&X-Amz-Security-Token=⟦IQoJ%2Fb3J⟧",
            "https://bucket.example/o?X-Goog-Signature=⟦0f9e8d7c⟧&Expires=60&Signature=⟦a~b-c⟧&Key-Pair-Id=K1",
        ],
    );
}

#[test]
fn sign_ins() {
    check(
        Surface::Url,
        &[
            "https://app.example/oauth/callback?code=⟦abc123⟧&state=⟦xyz789⟧",
            "https://app.example/cb?code=⟦abc123⟧&scope=email",
            "https://login.example/authorize?response_type=code&client_id=app&state=⟦xyz789⟧&nonce=⟦n0n⟧",
            "https://app.example/auth#code=⟦4%2F0AX4XfWh⟧&state=⟦xyz789⟧",
        ],
    );
}

#[test]
fn nested_addresses() {
    check(
        Surface::Url,
        &[
            "https://a.example/?next=https://b.example/?access_token=⟦s3cr3t⟧&x=1",
            "https://a.example/?next=https%3A%2F%2Fb.example%2F%3Faccess_token%3D⟦s3cr3t⟧%26x%3D1&page=2",
            "https://a.example/r/https%253A%252F%252Fb.example%252F%253Faccess_token%253D⟦s3cr3t⟧%2526x%253D1",
            "https://a.example/?next=https%3A%2F%2F⟦ann%3As3cr3t⟧%40b.example%2F",
            "https://a.example/?data=%7B%22access_token%22%3A%22⟦s3cr3t⟧%22%7D",
            "view-source:https://app.example/?access_token=⟦s3cr3t⟧",
            "blob:https://⟦ann:pw⟧@app.example/1",
            "data:text/html,<a href=https://b.example/?access_token=⟦s3cr3t⟧>",
        ],
    );
}

#[test]
fn beyond_the_cap_the_value_goes_whole() {
    let mut value = String::from("a&access_token=deep");
    for _ in 0..8 {
        value = value.replace('%', "%25").replace('&', "%26").replace('=', "%3D");
    }
    check(Surface::Url, &[&format!("https://a.example/?page=2&q=⟦{value}⟧&x=1")]);
}

#[test]
fn userinfo() {
    check(
        Surface::Url,
        &[
            "https://⟦ann:pw⟧@example.com/a",
            "https://⟦token⟧@example.com/",
            "https://⟦ann:p@w⟧@example.com/@bob",
            "https:⟦ann:pw⟧@example.com/",
            "https:/⟦ann:pw⟧@example.com/",
            "https:\\\\⟦ann:pw⟧@example.com/",
            "//⟦ann:pw⟧@example.com/",
            "postgres://⟦ann:pw⟧@db.example/app",
            "ssh://⟦git:pw⟧@github.com/a.git",
        ],
    );
}

#[test]
fn prose() {
    check(
        Surface::Text,
        &[
            "See https://app.example/cb?access_token=⟦s3cr3t⟧, then go on.",
            "(https://app.example/cb?access_token=⟦s3cr3t⟧).",
            "[link](https://app.example/cb#access_token=⟦s3cr3t⟧) and more",
            "app.example/cb?access_token=⟦s3cr3t⟧&page=2 - Chromium",
            "invalid access_token=⟦s3cr3t⟧",
            "[token=⟦s3cr3t⟧] refused",
            "password=\"⟦correct horse⟧\" and token='⟦s3cr3t⟧'",
            "upstream said {\"access_token\":\"⟦s3cr3t⟧\",\"expires_in\":3600",
            "upstream said {\\\"access_token\\\": \\\"⟦s3cr3t⟧\\\", \\\"n\\\": 1",
            "upstream said {\"\\u0061ccess_token\":\"⟦s3cr3t⟧\"",
            "could not reach https://⟦ann:pw⟧@example.com/a",
            "first\naccess_token=⟦s3cr3t⟧\nlast",
        ],
    );
    let jwt = jwt();
    check(Surface::Error, &[&format!("bad token ⟦{jwt}⟧ for https://x.example/⟦{jwt}⟧/a")]);
    let encoded = jwt.replace('e', "%65").replace('.', "%2E");
    check(Surface::Text, &[&format!("see https://x.example/⟦{encoded}⟧/a")]);
}

#[test]
fn json_keeps_everything_else() {
    let check = |input: &str, expected: &str| {
        let sealed = firewall().seal_json(input.to_owned());
        assert_eq!(sealed.egress.as_str(), expected);
        let again = firewall().seal_json(expected.to_owned());
        assert_eq!(again.egress.as_str(), expected, "sealed twice: {:?}", again.findings);
    };
    check(
        r#" {"b":1.50 ,"access_token" : "s3cr\"3t","a":"\u00e9\/ https:\/\/x.example\/?\u0061ccess_token=abc\u0026p=\u0032"} "#,
        r#" {"b":1.50 ,"access_token" : "[REDACTED]","a":"\u00e9\/ https:\/\/x.example\/?\u0061ccess_token=[REDACTED]\u0026p=\u0032"} "#,
    );
    check(r#"{"\u0061ccess_token":"s3cr3t"}"#, r#"{"\u0061ccess_token":"[REDACTED]"}"#);
    check(r#"{"access_token":["a","b",1,null]}"#, r#"{"access_token":["[REDACTED]","[REDACTED]",1,null]}"#);
    check(r#"{"url":"https:\/\/ann:pw@x.example\/"}"#, r#"{"url":"https:\/\/[REDACTED]@x.example\/"}"#);
    check(
        r#"{"text":"line\ncode: x\naccess_token=abc\nend"}"#,
        r#"{"text":"line\ncode: x\naccess_token=[REDACTED]\nend"}"#,
    );
    check(r#"{"a":"b" access_token=abc}"#, r#"{"a":"b" access_token=[REDACTED]}"#);
    check(r#"{"?access_token=abc":1}"#, r#"{"?access_token=[REDACTED]":1}"#);
    let jwt = jwt();
    check(&format!(r#"{{"{jwt}":1}}"#), r#"{"[REDACTED]":1}"#);
    check(
        &serde_json::json!({ "text": serde_json::json!({ "text": serde_json::json!({ "password": "p w" }).to_string() }).to_string() }).to_string(),
        &serde_json::json!({ "text": serde_json::json!({ "text": serde_json::json!({ "password": "[REDACTED]" }).to_string() }).to_string() }).to_string(),
    );
}

fn told(json: &serde_json::Value) -> Vec<(Surface, String, String, u32)> {
    let told = |found: Finding| (found.surface, found.place, found.rule, found.count);
    firewall().seal_json(json.to_string()).findings.into_iter().map(told).collect()
}

#[test]
fn findings_name_the_place() {
    let list = serde_json::json!({ "tabs": [
        { "title": "x.example/?access_token=abc", "url": "https://x.example/?access_token=abc&a=1#id_token=def" },
        { "password": "p", "url": "https://ann:pw@x.example/" },
    ]});
    let answer = serde_json::json!({
        "result": { "content": [{ "type": "text", "text": list.to_string() }], "structuredContent": list },
    });
    let expected = [
        (Surface::Title, "tabs[0].title ?access_token", "sensitive-parameter"),
        (Surface::Url, "tabs[0].url ?access_token", "sensitive-parameter"),
        (Surface::Url, "tabs[0].url #id_token", "sensitive-parameter"),
        (Surface::Text, "tabs[1].password", "sensitive-field"),
        (Surface::Url, "tabs[1].url userinfo", "userinfo"),
    ]
    .map(|(surface, place, rule)| (surface, place.to_owned(), rule.to_owned(), 1));
    assert_eq!(told(&answer), expected);
    let error =
        serde_json::json!({ "error": { "data": { "url": "//a:b@c" }, "message": format!("{0} and {0}", jwt()) } });
    let expected =
        [(Surface::Error, "error.data.url userinfo", "userinfo", 1), (Surface::Error, "error.message jwt", "jwt", 2)]
            .map(|(surface, place, rule, count)| (surface, place.to_owned(), rule.to_owned(), count));
    assert_eq!(told(&error), expected);
}

#[test]
fn a_tag_knows_a_secret_again_in_any_encoding_but_only_within_a_run() {
    let tag = |firewall: &Firewall, text: &str| firewall.seal_text(Surface::Url, text).findings[0].tag.clone();
    let (one, other) = (firewall(), Firewall::built_in([3, 4]).expect("the built-in rules"));
    let plain = tag(&one, "https://x.example/?access_token=s3cr3t~1");
    assert_eq!(plain, tag(&one, "https://y.example/#token=s%33cr3t%7E1"));
    assert_ne!(plain, tag(&one, "https://x.example/?access_token=s3cr3t~2"));
    assert_ne!(plain, tag(&other, "https://x.example/?access_token=s3cr3t~1"));
    assert!(plain.len() == 5 && plain.starts_with('#'));
}

#[test]
fn a_place_is_no_way_out() {
    let secret = jwt();
    let json = serde_json::json!({ secret.clone(): { "url": format!("https://x.example/?{secret}_token=abc") } });
    for finding in firewall().seal_json(json.to_string()).findings {
        assert!(!finding.place.contains(&secret), "{finding:?}");
    }
}
