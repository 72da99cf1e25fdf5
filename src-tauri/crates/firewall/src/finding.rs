//! What the user is told of a withheld secret: where and by which rule, never what.

use std::collections::HashMap;

use crate::sealed::Hit;

/// The kind of place in which a text stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Surface {
    /// An address.
    Url,
    /// A title.
    Title,
    /// Any other text.
    Text,
    /// An error's message or data.
    Error,
}

/// One thing that was withheld: where and by which rule, never what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The kind of place.
    pub surface: Surface,
    /// The place, as `tabs[3].url ?access_token`.
    pub place: String,
    /// The rule's id.
    pub rule: String,
    /// How often in that place.
    pub count: u32,
    /// A keyed short hash, as `#a3f1`.
    pub tag: String,
}

/// An MCP answer carries its payload twice: as an object, and as text for older clients.
const COPIES: [&str; 2] = ["result.structuredContent.", "result.content[0].text→"];

/// Names in a place are shown up to this length. A page can choose them, and a place is no way out for a secret.
const LONGEST_NAME: usize = 40;

/// A name as it may be shown.
pub(crate) fn shown(name: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'$');
    if name.len() <= LONGEST_NAME && name.bytes().all(plain) { name } else { "…" }
}

/// One finding for each place, rule and secret. What stands in both copies of a payload counts once.
pub(crate) fn findings(hits: &[Hit]) -> Vec<Finding> {
    let mut findings: Vec<(Finding, [u32; COPIES.len() + 1])> = Vec::new();
    let mut known: HashMap<(String, &str, u16), usize> = HashMap::new();
    for hit in hits {
        let copy = COPIES.iter().position(|prefix| hit.path.starts_with(prefix));
        let path = copy.map_or(hit.path.as_str(), |copy| &hit.path[COPIES[copy].len()..]);
        let space = if path.is_empty() || hit.part.is_empty() { "" } else { " " };
        let place = format!("{path}{space}{}", hit.part);
        let index = *known.entry((place.clone(), &hit.rule, hit.tag)).or_insert_with(|| {
            let tag = format!("#{:04x}", hit.tag);
            let finding = Finding { surface: hit.surface, place, rule: hit.rule.clone(), count: 0, tag };
            findings.push((finding, [0; COPIES.len() + 1]));
            findings.len() - 1
        });
        let (finding, counts) = &mut findings[index];
        let count = &mut counts[copy.unwrap_or(COPIES.len())];
        *count += 1;
        finding.count = finding.count.max(*count);
    }
    findings.into_iter().map(|(finding, _)| finding).collect()
}
