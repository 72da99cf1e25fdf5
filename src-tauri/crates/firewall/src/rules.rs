//! The rules of shape: known formats of secrets, from `rules.toml`.

use aho_corasick::{AhoCorasick, MatchKind};
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
        for keyword in self.keywords.find_iter(text) {
            let index = keyword.pattern().as_usize();
            let begins_word = begins_word(text, keyword.start());
            if self.called[index].iter().any(|&rule| begins_word || !self.rules[rule].word) {
                found(keyword.start(), index);
            }
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
    use std::collections::HashSet;

    use super::*;
    use crate::Firewall;

    /// Deterministic characters that look random: the same in every run, so that a failure comes again.
    struct Random(u64);

    impl Random {
        fn text(&mut self, alphabet: &str, length: usize) -> String {
            let letters: Vec<char> = alphabet.chars().collect();
            let mut next = || {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                letters[(self.0 % letters.len() as u64) as usize]
            };
            (0..length).map(|_| next()).collect()
        }
    }

    /// Puts random characters where an example wants them.
    fn expand(example: &str, random: &mut Random) -> String {
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        let upper = LOWER.to_uppercase();
        let mut text = String::new();
        let mut rest = example;
        while let Some((before, after)) = rest.split_once('{') {
            let wish = after.split_once('}').and_then(|(wish, after)| Some((wish.split_once(':')?, after)));
            let parsed = wish.and_then(|((kind, length), after)| Some((kind, length.parse::<usize>().ok()?, after)));
            let Some((kind, length, after)) = parsed else {
                text.push_str(before);
                text.push('{');
                rest = after;
                continue;
            };
            let alphabet = match kind {
                "alnum" => format!("{LOWER}{upper}0123456789"),
                "hex" => "0123456789abcdef".to_owned(),
                "upper" => format!("{upper}0123456789"),
                "digits" => "0123456789".to_owned(),
                "b64url" => format!("{LOWER}{upper}0123456789-_"),
                "base32" => format!("{upper}234567"),
                other => panic!("unknown kind {other} in {example}"),
            };
            text.push_str(before);
            // No sign at an end, where it would belong to the sentence around.
            let inner = random.text(&alphabet, length);
            text.push_str(&inner.replace(['-', '_'], "x"));
            rest = after;
        }
        text + rest
    }

    #[test]
    fn every_rule_hits_its_examples_and_leaves_the_others_alone() {
        let firewall = Firewall::built_in([1, 2]).expect("the built-in rules");
        let file: RulesFile = toml::from_str(BUILT_IN).expect("the built-in rules");
        let mut ids = HashSet::new();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for rule in &file.rule {
            let id = &rule.id;
            assert!(ids.insert(id.clone()), "two rules {id}");
            assert!(rule.hits.len() >= 3 && rule.leaves.len() >= 3, "{id} needs three hits and three leaves at least");
            assert!(!rule.source.trim().is_empty() && !rule.keywords.is_empty(), "{id} needs a source and a keyword");
            assert!(rule.class == Class::Shape || rule.entropy > 0.0, "{id}: a name needs randomness beside it");
            for hit in &rule.hits {
                assert!(hit.contains('⟦') && hit.contains('⟧'), "{id}: no secret is marked in {hit}");
                let text = expand(hit, &mut random);
                let (before, rest) = text.split_once('⟦').expect("marked");
                let (_, after) = rest.split_once('⟧').expect("marked");
                let sealed = firewall.seal_text(Surface::Text, &text.replace(['⟦', '⟧'], ""));
                assert_eq!(sealed.egress.as_str(), format!("{before}[REDACTED]{after}"), "{id}: {hit}");
                // Another layer may have withheld the same place under its own name; the rule must hit all the same.
                let own = Regex::new(&rule.regex).expect("it compiles");
                assert!(own.is_match(&text.replace(['⟦', '⟧'], "")), "{id} does not hit {hit}");
            }
            for leave in &rule.leaves {
                let sealed = firewall.seal_text(Surface::Text, leave);
                assert_eq!(sealed.egress.as_str(), leave, "{id} must leave it alone");
            }
        }
    }

    #[test]
    fn broken_rules_are_refused_with_their_place() {
        fn check(toml: &str, expect: &str) {
            let error = Rules::read(toml).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(expect), "'{expect}' is not in: {error}");
        }
        let rule = |regex: &str, more: &str| {
            format!(
                "[[rule]]\nid = \"x\"\nclass = \"shape\"\nkeywords = [\"k\"]\nregex = '{regex}'\nhits = []\nleaves = []\nsource = \"s\"\n{more}"
            )
        };
        check("rule = 3", "line 1");
        check(&rule("k(", ""), "\"x\"");
        check(&rule("k", "colour = 1"), "colour");
        assert!(Rules::read(&rule("k", "")).is_ok());
    }
}
