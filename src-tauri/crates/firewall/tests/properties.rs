//! What holds for every text.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;
use tabwarden_firewall::{Firewall, Surface};

/// Compiled once: in a debug build that takes longer than sealing.
fn firewall() -> &'static Firewall {
    static FIREWALL: LazyLock<Firewall> = LazyLock::new(|| Firewall::built_in([1, 2]).expect("the built-in rules"));
    &FIREWALL
}

/// Texts made of what the firewall cares for, and of anything.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("https://".to_owned()),
        Just("?access_token=".to_owned()),
        Just("&token=".to_owned()),
        Just("#id_token=".to_owned()),
        Just("%3Faccess_token%3D".to_owned()),
        Just("user:pw@".to_owned()),
        Just("\"password\": \"".to_owned()),
        Just("eyJ".to_owned()),
        Just("[REDACTED]".to_owned()),
        Just("\\u0061".to_owned()),
        "[a-zA-Z0-9_.%/\\\\-]{0,24}",
        "\\PC{0,12}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,8}|url|title|access_token", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same shape: members, lengths, and everything that is no text.
fn same_shape(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, v), (l, w))| k == l && same_shape(v, w))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(v, w)| same_shape(v, w)),
        // A value under a secret's name may be withheld whatever it is.
        (_, Value::String(_)) => true,
        _ => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sealing_twice_changes_nothing(text in texts()) {
        let firewall = firewall();
        for surface in [Surface::Url, Surface::Text] {
            let once = firewall.seal_text(surface, &text);
            let twice = firewall.seal_text(surface, once.egress.as_str());
            prop_assert_eq!(once.egress.as_str(), twice.egress.as_str());
            prop_assert!(once.egress.as_str().len() <= 12 * text.len() + 12);
            if once.findings.is_empty() {
                prop_assert_eq!(once.egress.as_str(), &text);
            }
        }
    }

    #[test]
    fn json_keeps_its_shape(value in values()) {
        let firewall = firewall();
        let json = value.to_string();
        let sealed = firewall.seal_json(json.clone());
        let after: Value = serde_json::from_str(sealed.egress.as_str()).expect("still JSON");
        prop_assert!(same_shape(&value, &after), "{} became {}", json, sealed.egress.as_str());
        if sealed.findings.is_empty() {
            prop_assert_eq!(sealed.egress.as_str(), &json);
        }
        let twice = firewall.seal_json(sealed.egress.as_str().to_owned());
        prop_assert_eq!(twice.egress.as_str(), sealed.egress.as_str());
    }

    /// A secret planted under a secret's name in an address never comes out, whatever stands around it.
    #[test]
    fn a_planted_secret_does_not_come_out(
        before in "[a-z0-9&=%._-]{0,20}",
        name in prop::sample::select(vec!["access_token", "ACCESS_TOKEN", "access%5Ftoken", "id_token", "refresh-token", "api_key", "apikey", "password", "client_secret"]),
        secret in "[A-Za-z0-9]{12,40}",
        after in "(&[a-z]{1,6}=[a-z0-9]{0,6}){0,3}",
        sign in prop::sample::select(vec!["?", "#"]),
    ) {
        let firewall = firewall();
        let secret = format!("zq{secret}qz");
        let address = format!("https://host.example/path{sign}a={before}&{name}={secret}{after}");
        let sealed = firewall.seal_text(Surface::Url, &address);
        prop_assert!(!sealed.egress.as_str().contains(&secret), "{} became {}", address, sealed.egress.as_str());
        for text in [format!("see {address} now"), format!("\"{address}\"")] {
            let sealed = firewall.seal_text(Surface::Text, &text);
            prop_assert!(!sealed.egress.as_str().contains(&secret), "{} became {}", text, sealed.egress.as_str());
        }
        let json = serde_json::json!({ "error": { "message": address, "data": { "url": [address] } } }).to_string();
        let sealed = firewall.seal_json(json.clone());
        prop_assert!(!sealed.egress.as_str().contains(&secret), "{} became {}", json, sealed.egress.as_str());
    }
}
