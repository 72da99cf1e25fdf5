//! The sealed text, and the one way to make it.

use std::cmp::Reverse;
use std::ops::Range;

use crate::finding::{Finding, Surface, findings};

/// What stands in a secret's place.
pub(crate) const WITHHELD: &str = "[REDACTED]";

/// What may leave. Only [`Firewall`](crate::Firewall) makes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Egress(
    /// Private to this file: whoever could set it could let a secret out.
    String,
);

impl Egress {
    /// The sealed text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sealed text, for a writer.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Sealed text and what was withheld from it.
pub struct Sealed {
    /// The text that may leave.
    pub egress: Egress,
    /// What was withheld.
    pub findings: Vec<Finding>,
}

/// A secret found: where in the text, by which rule, in which part of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hit {
    pub(crate) range: Range<usize>,
    pub(crate) rule: String,
    /// The kind of place, once it is known.
    pub(crate) surface: Surface,
    /// The path to the text, as `tabs[3].url`. Empty for a plain text.
    pub(crate) path: String,
    /// The part of the text, as `?access_token`. Empty where the path says it all.
    pub(crate) part: String,
    pub(crate) tag: u16,
    /// Whether the text around it reads the same with the mark in its place. A shape may end in the middle of a name
    /// or a value, and a decoded text may be cut otherwise than its source.
    pub(crate) is_settled: bool,
}

impl Sealed {
    /// Withholds all that `look` finds in `text`.
    pub(crate) fn of(mut text: String, look: impl Fn(&str) -> Vec<Hit>) -> Self {
        let mut withheld = Vec::new();
        for _ in 0..ROUNDS {
            let hits = look(&text);
            if hits.is_empty() {
                break;
            }
            let (hits, settled) = merge(hits);
            text = withhold(&text, &hits);
            withheld.extend(hits);
            if settled {
                break;
            }
        }
        Self { findings: findings(&withheld), egress: Egress(text) }
    }
}

/// How often a text is looked at, at most.
const ROUNDS: usize = 8;

/// Orders hits and joins those that touch, so that each run is replaced once. The widest one names it.
/// Also says whether that settles it, or the result must be looked at again.
///
/// Neighbours are joined as well: two marks side by side would be sealed into one the next time.
fn merge(mut hits: Vec<Hit>) -> (Vec<Hit>, bool) {
    hits.sort_by_key(|hit| (hit.range.start, Reverse(hit.range.end)));
    let mut merged: Vec<Hit> = Vec::with_capacity(hits.len());
    let settled = hits.iter().all(|hit| hit.is_settled);
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.range.start <= last.range.end => {
                let joined = last.range.start..last.range.end.max(hit.range.end);
                if hit.range.len() > last.range.len() {
                    *last = hit;
                }
                last.range = joined;
            }
            _ => merged.push(hit),
        }
    }
    (merged, settled)
}

/// The text with the mark in place of each hit. `hits` are merged.
fn withhold(text: &str, hits: &[Hit]) -> String {
    let mut sealed = String::with_capacity(text.len());
    let mut copied = 0;
    for hit in hits {
        sealed.push_str(&text[copied..hit.range.start]);
        sealed.push_str(WITHHELD);
        copied = hit.range.end;
    }
    sealed.push_str(&text[copied..]);
    sealed
}
