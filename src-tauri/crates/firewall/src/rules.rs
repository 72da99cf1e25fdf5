//! The rules of shape: known formats of secrets, from `rules.toml`.

use aho_corasick::{AhoCorasick, Input, MatchKind};
use regex::Regex;
use serde::Deserialize;

use crate::finding::Surface;

/// Why the rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The rules file is not the TOML that it should be.
    #[error("the firewall's rules cannot be used: {0}")]
    Unreadable(#[from] toml::de::Error),
    /// A rule's expression does not compile.
    #[error("the firewall's rule \"{rule}\" cannot be used: {error}")]
    Expression {
        /// The rule's id.
        rule: String,
        /// What is wrong with it.
        error: Box<regex::Error>,
    },
    /// The keywords cannot be searched for.
    #[error("the firewall's keywords cannot be used: {0}")]
    Keywords(#[from] aho_corasick::BuildError),
}

/// The built-in rules' file.
pub(crate) const BUILT_IN: &str = include_str!("rules.toml");

/// The rules as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RulesFile {
    pub(crate) rule: Vec<WrittenRule>,
}

/// One rule as it is written. The examples are for the tests, which refuse a rule without them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "examples and sources are read by the tests"))]
pub(crate) struct WrittenRule {
    pub(crate) id: String,
    pub(crate) class: Class,
    /// Where it applies. Everywhere, if not said.
    #[serde(default)]
    pub(crate) surfaces: Vec<WrittenSurface>,
    /// One of them stands in every text that the rule hits.
    pub(crate) keywords: Vec<String>,
    /// Whether a keyword counts only where a word begins.
    #[serde(default)]
    pub(crate) word: bool,
    /// The group `secret`, or all of it, is withheld.
    pub(crate) regex: String,
    /// The least entropy of the secret in bits a character.
    #[serde(default)]
    pub(crate) entropy: f64,
    /// Texts that it must hit. `⟦…⟧` is the secret, `{hex:32}` stands for 32 random hexadecimal digits.
    pub(crate) hits: Vec<String>,
    /// Texts that it must leave alone.
    pub(crate) leaves: Vec<String>,
    /// Where the format is described.
    pub(crate) source: String,
}

/// The layer that a rule belongs to.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// A known format.
    Shape,
    /// A telling name beside a random value.
    Name,
}

/// A surface as the file names it.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WrittenSurface {
    Url,
    Title,
    Text,
    Error,
}

impl From<WrittenSurface> for Surface {
    fn from(written: WrittenSurface) -> Self {
        match written {
            WrittenSurface::Url => Self::Url,
            WrittenSurface::Title => Self::Title,
            WrittenSurface::Text => Self::Text,
            WrittenSurface::Error => Self::Error,
        }
    }
}

/// One rule, compiled.
pub(crate) struct Rule {
    pub(crate) id: String,
    surfaces: Vec<Surface>,
    word: bool,
    pub(crate) regex: Regex,
    pub(crate) entropy: f64,
}

impl Rule {
    pub(crate) fn applies_to(&self, surface: Surface) -> bool {
        self.surfaces.is_empty() || self.surfaces.contains(&surface)
    }
}

/// All rules, compiled, behind one search for their keywords.
pub(crate) struct Rules {
    rules: Vec<Rule>,
    keywords: AhoCorasick,
    /// For each keyword, the rules that it calls for.
    called: Vec<Vec<usize>>,
}

impl Rules {
    pub(crate) fn read(toml: &str) -> Result<Self, RulesError> {
        let written: RulesFile = toml::from_str(toml)?;
        let mut keywords: Vec<&str> =
            written.rule.iter().flat_map(|rule| rule.keywords.iter().map(String::as_str)).collect();
        keywords.sort_unstable();
        keywords.dedup();
        // The search reports the longest keyword only, so that one also calls the rules of those inside it.
        let called = keywords
            .iter()
            .map(|keyword| {
                let calls = |rule: &WrittenRule| rule.keywords.iter().any(|own| keyword.contains(own.as_str()));
                (0..written.rule.len()).filter(|&index| calls(&written.rule[index])).collect()
            })
            .collect();
        let keywords = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&keywords)?;
        let rules = written.rule.into_iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { rules, keywords, called })
    }

    /// Calls `found` with the offset and the index of each keyword in `text` that some rule cares for.
    pub(crate) fn keywords_in(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let mut from = 0;
        while let Some(keyword) = self.keywords.find(Input::new(text).range(from..)) {
            let index = keyword.pattern().as_usize();
            let begins_word = begins_word(text, keyword.start());
            if self.called[index].iter().any(|&rule| begins_word || !self.rules[rule].word) {
                found(keyword.start(), index);
            }
            // Another one may begin inside this one and end behind it.
            from = keyword.start() + 1;
        }
    }

    /// The rules that these keywords call for.
    pub(crate) fn called_by(&self, keywords: &[usize]) -> impl Iterator<Item = &Rule> {
        let mut rules: Vec<usize> = keywords.iter().flat_map(|&keyword| self.called[keyword].iter().copied()).collect();
        rules.sort_unstable();
        rules.dedup();
        rules.into_iter().map(|rule| &self.rules[rule])
    }
}

/// Whether a word begins at `at`, also behind an escape as in `\nword`.
fn begins_word(text: &[u8], at: usize) -> bool {
    match text[..at] {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., before] => !before.is_ascii_alphanumeric(),
        [] => true,
    }
}

fn compile(written: WrittenRule) -> Result<Rule, RulesError> {
    let regex = Regex::new(&written.regex)
        .map_err(|error| RulesError::Expression { rule: written.id.clone(), error: Box::new(error) })?;
    Ok(Rule {
        id: written.id,
        surfaces: written.surfaces.into_iter().map(Surface::from).collect(),
        word: written.word,
        regex,
        entropy: written.entropy,
    })
}

/// Shannon's entropy of a text in bits a byte.
pub(crate) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for &byte in text {
        counts[usize::from(byte)] += 1;
    }
    let length = text.len() as f64;
    let share = |&count: &u32| f64::from(count) / length;
    counts.iter().filter(|&&count| count > 0).map(share).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Firewall;
    use crate::sealed::WITHHELD;

    /// A text from a template of `rules.toml`, and what it must become. The random parts differ from seed to seed.
    fn expand(template: &str, mut seed: u64) -> (String, String) {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            text.push_str(before);
            let part = behind.split_once('}').and_then(|(part, rest)| Some((part.split_once(':')?, rest)));
            let Some(((kind, length), after)) = part else {
                text.push('{');
                rest = behind;
                continue;
            };
            let letters = match kind {
                "alnum" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                "hex" => "0123456789abcdef",
                "upper" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                "digits" => "0123456789",
                "base32" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
                "b64url" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
                unknown => panic!("no such random part: {unknown}"),
            };
            for _ in 0..length.parse().expect("a length") {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(char::from(letters.as_bytes()[(seed >> 33) as usize % letters.len()]));
            }
            rest = after;
        }
        text.push_str(rest);
        let mut expected = text.clone();
        while let (Some(open), Some(close)) = (expected.find('⟦'), expected.find('⟧')) {
            expected.replace_range(open..close + '⟧'.len_utf8(), WITHHELD);
        }
        (text.replace(['⟦', '⟧'], ""), expected)
    }

    #[test]
    fn every_rule_hits_and_leaves_what_it_says() {
        let firewall = Firewall::built_in([1, 2]).expect("the built-in rules");
        let file: RulesFile = toml::from_str(BUILT_IN).expect("rules.toml");
        for rule in &file.rule {
            let id = &rule.id;
            assert!(rule.hits.len() >= 3 && rule.leaves.len() >= 3, "{id} needs three examples of each kind");
            assert!(!rule.source.is_empty() && !rule.keywords.is_empty(), "{id} needs a source and a keyword");
            assert!(rule.class == Class::Shape || rule.entropy > 0.0, "{id}: a name alone says too little");
            for hit in &rule.hits {
                assert!(hit.contains('⟦'), "{id} has a hit without a secret: {hit}");
                for seed in 0..50 {
                    let (text, expected) = expand(hit, seed);
                    let sealed = firewall.seal_text(Surface::Text, &text);
                    assert_eq!(sealed.egress.as_str(), expected, "{id}");
                    assert!(sealed.findings.iter().any(|finding| finding.rule == *id), "{id}: {:?}", sealed.findings);
                }
            }
            for text in &rule.leaves {
                let sealed = firewall.seal_text(Surface::Text, text);
                assert!(sealed.egress.as_str() == text, "{id} must leave alone: {text}\n{:?}", sealed.findings);
            }
        }
    }

    #[test]
    fn ids_are_unique() {
        let file: RulesFile = toml::from_str(BUILT_IN).expect("rules.toml");
        for (index, rule) in file.rule.iter().enumerate() {
            assert!(file.rule[..index].iter().all(|other| other.id != rule.id), "{} is there twice", rule.id);
        }
    }

    #[test]
    fn broken_rules_are_named() {
        let rule = |regex: &str| {
            format!(
                "[[rule]]\nid = \"x\"\nclass = \"shape\"\nkeywords = [\"k\"]\nregex = '{regex}'\nhits = []\nleaves = []\nsource = \"s\"\n"
            )
        };
        assert!(Rules::read(&rule("k+")).is_ok());
        let message = |toml: &str| Rules::read(toml).err().expect("an error").to_string();
        assert!(message(&rule("(")).contains("\"x\""));
        assert!(message(&rule("k+").replace("source", "sauce")).contains("line 8"));
    }
}
