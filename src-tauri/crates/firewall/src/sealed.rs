//! The sealed text, and the one way to make it.

use std::cmp::Reverse;
use std::ops::Range;

use crate::finding::{Finding, Surface};

/// What stands in a secret's place.
pub(crate) const WITHHELD: &str = "[REDACTED]";

/// What may leave. Only [`Firewall`](crate::Firewall) makes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Egress(String);

impl Egress {
    /// Private to the crate: whoever can call this can let a secret out.
    pub(crate) fn of(text: String) -> Self {
        Self(text)
    }

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
}

/// Orders hits and joins those that touch, so that each run is replaced once. The widest one names it.
///
/// Neighbours are joined as well: two marks side by side would be sealed into one the next time.
pub(crate) fn merge(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.range.start, Reverse(hit.range.end)));
    let mut merged: Vec<Hit> = Vec::with_capacity(hits.len());
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
    merged
}

/// The text with the mark in place of each hit. `hits` are merged.
pub(crate) fn withhold(text: &str, hits: &[Hit]) -> String {
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
