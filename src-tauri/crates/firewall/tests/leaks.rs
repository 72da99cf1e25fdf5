//! No planted secret gets out.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(missing_docs)]

mod canaries;

use canaries::Canary;
use tabwarden_firewall::{Firewall, Surface};

fn firewall() -> Firewall {
    Firewall::built_in([1, 2]).expect("the built-in rules")
}

fn check(canary: &Canary, carrier: &str, input: &str, output: &str) {
    if let Some(piece) = canary.leak_in(output) {
        panic!("{} got out by {carrier}: {piece}\n in: {input}\nout: {output}", canary.name);
    }
}

#[test]
fn the_canaries_sing() {
    for canary in canaries::all(1) {
        for (carrier, json) in canaries::carriers(&canary) {
            assert!(canary.leak_in(&json).is_some(), "{} would not be seen in {carrier}", canary.name);
        }
    }
}

#[test]
fn no_message_carries_a_canary_out() {
    let firewall = firewall();
    for seed in 0..2 {
        for canary in canaries::all(seed) {
            for (carrier, json) in canaries::carriers(&canary) {
                let sealed = firewall.seal_json(json.clone());
                check(&canary, carrier, &json, sealed.egress.as_str());
                assert!(!sealed.findings.is_empty());
                for finding in sealed.findings {
                    check(&canary, "a finding", &json, &format!("{finding:?}"));
                }
                let again = firewall.seal_json(sealed.egress.as_str().to_owned());
                assert_eq!(again.egress.as_str(), sealed.egress.as_str(), "sealed twice");
                // Broken JSON is sealed as what it may be.
                let broken = &json[..json.len() - 1];
                check(&canary, "broken JSON", broken, firewall.seal_json(broken.to_owned()).egress.as_str());
            }
        }
    }
}

#[test]
fn no_plain_text_carries_a_canary_out() {
    let firewall = firewall();
    for canary in canaries::all(7) {
        let surfaces: &[Surface] = if canary.is_address {
            &[Surface::Url, Surface::Text]
        } else {
            &[Surface::Title, Surface::Text, Surface::Error]
        };
        for &surface in surfaces {
            let sealed = firewall.seal_text(surface, &canary.text);
            check(&canary, "plain text", &canary.text, sealed.egress.as_str());
        }
    }
}
