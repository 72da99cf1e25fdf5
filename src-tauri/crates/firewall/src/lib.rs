//! The credential firewall: text goes in, sealed text comes out.
//!
//! [`Egress`] can be made only here, and every writer demands one, so that nothing leaves unsealed.
//! The crate is pure: no I/O, no clock, no randomness of its own, and it depends on nothing of ours.
//!
//! A text goes through it in two looks. The quick one hops over everything that leaves and mostly finds nothing to
//! suspect; then the very same text comes out. Only around its suspects is looked closely, and what is found is
//! replaced where it stands, so that the rest stays byte for byte what it was.

mod decode;
mod finding;
mod json;
mod names;
mod rules;
mod sealed;
mod suspects;
mod text;
mod url;

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

pub use crate::finding::{Finding, Surface};
pub use crate::rules::RulesError;
pub use crate::sealed::{Egress, Sealed};

use crate::json::Inside;
use crate::rules::Rules;
use crate::sealed::Hit;
use crate::suspects::Form;

/// The rules, compiled.
pub struct Firewall {
    rules: Rules,
    tag_key: [u64; 2],
}

impl Firewall {
    /// The built-in rules. `tag_key` is random and new for each run.
    pub fn built_in(tag_key: [u64; 2]) -> Result<Self, RulesError> {
        Ok(Self { rules: Rules::read(rules::BUILT_IN)?, tag_key })
    }

    /// Seals one JSON text. The surfaces follow from the fields' names. What is no JSON is sealed as plain text.
    pub fn seal_json(&self, json: String) -> Sealed {
        seal(json, |json| {
            let inside = Inside { path: "", surface: Surface::Text, depth: 0 };
            self.look_into_json(json, inside)
                .unwrap_or_else(|json::NotJson| self.look(json, Form::Prose, Surface::Text))
        })
    }

    /// Seals one plain text.
    pub fn seal_text(&self, surface: Surface, text: &str) -> Sealed {
        let form = if surface == Surface::Url { Form::Address } else { Form::Prose };
        seal(text.to_owned(), |text| self.look(text, form, surface))
    }

    /// The keyed short hash of a secret, the same for all its encodings.
    fn tag(&self, secret: &str) -> u16 {
        let [first, second] = self.tag_key;
        let mut hasher = SipHasher13::new_with_keys(first, second);
        hasher.write(decode::flat(secret).as_bytes());
        let [low, high, ..] = hasher.finish().to_le_bytes();
        u16::from_le_bytes([low, high])
    }
}

/// How often a text is looked at again after something was withheld from it.
const LOOKS: usize = 8;

/// Withholds what `look` finds, until it finds nothing more: with a secret gone, what is left may read otherwise, as
/// where an address ended inside of one. Mostly the second look is the last, and most texts have only one.
fn seal(mut text: String, look: impl Fn(&str) -> Vec<Hit>) -> Sealed {
    let mut findings = Vec::new();
    for _ in 0..LOOKS {
        let hits = look(&text);
        if hits.is_empty() {
            break;
        }
        let hits = sealed::merge(hits);
        text = sealed::withhold(&text, &hits);
        findings.extend(finding::findings(&hits));
    }
    Sealed { egress: Egress::of(text), findings }
}
