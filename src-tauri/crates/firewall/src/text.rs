//! The closer look at any text.

use std::ops::Range;

use crate::Firewall;
use crate::decode;
use crate::finding::{Surface, shown};
use crate::names::Weight;
use crate::rules;
use crate::sealed::{Hit, WITHHELD};
use crate::suspects::{DEEPEST, Form, Suspect, quoted_name_end};
use crate::url::{self, Pair, Section};

/// The rules that the place alone decides.
mod by_place {
    pub(crate) const PARAMETER: &str = "sensitive-parameter";
    pub(crate) const RANDOM_PARAMETER: &str = "random-parameter";
    pub(crate) const SIGN_IN_PARAMETER: &str = "sign-in-parameter";
    pub(crate) const USERINFO: &str = "userinfo";
    pub(crate) const FIELD: &str = "sensitive-field";
    pub(crate) const TOO_DEEP: &str = "encoded-too-deep";
}

impl Firewall {
    /// All secrets in `text`. They may overlap.
    pub(crate) fn look(&self, text: &str, form: Form, surface: Surface) -> Vec<Hit> {
        let form = if form == Form::Address && url::holds_a_document(text) { Form::Prose } else { form };
        let mut look = Look { firewall: self, surface, hits: Vec::new() };
        look.at(text, form, 0);
        look.hits
    }

    /// The hit of a field whose name makes it secret, if there is something to withhold.
    pub(crate) fn field_hit(&self, text: &str, range: Range<usize>, surface: Surface) -> Option<Hit> {
        let look = Look { firewall: self, surface, hits: Vec::new() };
        (!is_placeholder(&text[range.clone()])).then(|| look.hit(text, range, by_place::FIELD, String::new()))
    }
}

struct Look<'f> {
    firewall: &'f Firewall,
    surface: Surface,
    hits: Vec<Hit>,
}

impl Look<'_> {
    fn at(&mut self, text: &str, form: Form, depth: usize) {
        let mut keywords = Vec::new();
        let mut withheld = 0;
        for suspect in self.firewall.suspects(text, form, depth) {
            match suspect {
                Suspect::Pair { equals, weight } if equals >= withheld => {
                    withheld = self.pair(text, equals, weight, form).unwrap_or(withheld);
                }
                Suspect::Pair { .. } => {}
                Suspect::Member { colon } => self.member(text, colon),
                Suspect::Userinfo { userinfo } => self.userinfo(text, userinfo),
                Suspect::Encoded { .. } => self.encoded(text, form, depth),
                Suspect::Keyword { keyword, .. } => keywords.push(keyword),
            }
        }
        if !keywords.is_empty() {
            self.shapes(text, &keywords);
        }
    }

    fn hit(&self, text: &str, range: Range<usize>, rule: &str, part: String) -> Hit {
        let tag = self.firewall.tag(&text[range.clone()]);
        Hit { range, rule: rule.to_owned(), surface: self.surface, path: String::new(), part, tag }
    }

    /// Looks at a `name=value`, and says where the withheld value ends.
    fn pair(&mut self, text: &str, equals: usize, weight: Weight, form: Form) -> Option<usize> {
        let pair = url::pair(text, equals, form);
        let rule = rule_for(text, &pair, weight, form)?;
        let end = pair.value.end;
        let part = format!("{}{}", pair.section.sign(), shown(&text[pair.name]));
        self.hits.push(self.hit(text, pair.value, rule, part));
        Some(end)
    }

    /// Looks at a `"name": "value"` in prose, such as JSON that an error text quotes.
    fn member(&mut self, text: &str, colon: usize) {
        let bytes = text.as_bytes();
        let value = colon + 1 + bytes[colon + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let (Some(value), Some(name)) = (url::quoted(bytes, value), quoted_name_end(bytes, colon)) else {
            return;
        };
        if !is_placeholder(&text[value.clone()]) {
            let part = shown(&text[url::name_before(bytes, name)]).to_owned();
            self.hits.push(self.hit(text, value, by_place::FIELD, part));
        }
    }

    fn userinfo(&mut self, text: &str, userinfo: Range<usize>) {
        let value = &text[userinfo.clone()];
        // The user of every `ssh://git@…` address is no secret.
        if value != "git" && !is_placeholder(value) {
            self.hits.push(self.hit(text, userinfo, by_place::USERINFO, by_place::USERINFO.to_owned()));
        }
    }

    /// Takes one layer of encoding off and looks again.
    fn encoded(&mut self, text: &str, form: Form, depth: usize) {
        if depth == DEEPEST {
            for range in encoded_segments(text) {
                self.hits.push(self.hit(text, range, by_place::TOO_DEEP, by_place::TOO_DEEP.to_owned()));
            }
        } else if let Some(layer) = decode::peel(text) {
            let outer = self.hits.len();
            self.at(&layer.text, form, depth + 1);
            for hit in &mut self.hits[outer..] {
                hit.range = layer.source(&hit.range);
            }
        }
    }

    fn shapes(&mut self, text: &str, keywords: &[usize]) {
        for rule in self.firewall.rules.called_by(keywords) {
            if !rule.applies_to(self.surface) {
                continue;
            }
            for found in rule.regex.captures_iter(text) {
                let Some(secret) = found.name("secret").or_else(|| found.get(0)) else { continue };
                if rules::entropy(secret.as_str().as_bytes()) >= rule.entropy && !is_placeholder(secret.as_str()) {
                    self.hits.push(self.hit(text, secret.range(), &rule.id, rule.id.clone()));
                }
            }
        }
    }
}

/// The rule by which a pair's value is withheld.
pub(crate) fn rule_for(text: &str, pair: &Pair, weight: Weight, form: Form) -> Option<&'static str> {
    let value = &text[pair.value.clone()];
    let in_address = pair.section != Section::Bare;
    let rule = match weight {
        Weight::Secret if in_address || !is_code(&text[pair.name.clone()], value) => by_place::PARAMETER,
        Weight::InAddress if in_address => by_place::PARAMETER,
        Weight::Suspicious if in_address && looks_random(value) => by_place::RANDOM_PARAMETER,
        // `state=CA` and `code=US` are no secrets even there.
        Weight::SignIn if in_address && value.len() > 2 && url::is_sign_in(text, pair.name.start, form) => {
            by_place::SIGN_IN_PARAMETER
        }
        _ => return None,
    };
    (!is_placeholder(value)).then_some(rule)
}

/// The runs of a text that are still encoded, up to the separators around them.
fn encoded_segments(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let separates = |&byte: &u8| matches!(byte, b'/' | b'?' | b'&' | b'#' | b'=' | b';') || url::ends_prose(byte);
    let mut segments: Vec<Range<usize>> = Vec::new();
    for at in memchr::memchr2_iter(b'%', b'\\', bytes) {
        let known = segments.last().map_or(0, |segment| segment.end);
        if at >= known && decode::ascii_escape(&bytes[at..]).is_some() {
            let start = bytes[known..at].iter().rposition(separates).map_or(known, |last| known + last + 1);
            let end = bytes[at..].iter().position(separates).map_or(bytes.len(), |end| at + end);
            segments.push(start..end);
        }
    }
    segments
}

/// Whether a bare `name=value` is a line of a program rather than a setting: `token==other`, `token=read()`, `PWD=/home`.
fn is_code(name: &str, value: &str) -> bool {
    let name = name.as_bytes();
    let is_folder =
        || value.starts_with(['/', '~']) && name[name.len().saturating_sub(3)..].eq_ignore_ascii_case(b"pwd");
    value.starts_with('=') || value.contains('(') || is_folder()
}

/// Whether a value only stands for one: nothing, the mark itself, `****`, `${TOKEN}`, `YOUR_API_KEY`, `null`.
fn is_placeholder(value: &str) -> bool {
    let decoded = decode::flat(value);
    let value = decoded.replace(WITHHELD, "");
    let value = value.trim();
    let made_of = |allowed: &[char]| value.chars().all(|sign| allowed.contains(&sign));
    let within = |open: &str, close: &str| {
        let inside = value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inside.is_some_and(|name| name.len() <= 64 && !name.contains(['{', '}', '<', '>', '%', '$']))
    };
    let is_name = |name: &str| name.chars().all(|sign| sign.is_ascii_alphabetic() || matches!(sign, '_' | '-' | ' '));
    made_of(&['*', '•', '.', '…'])
        || made_of(&['x'])
        || made_of(&['X'])
        || within("${", "}")
        // What follows in braces with spaces is not seen in prose.
        || matches!(value, "{{" | "${{")
        || within("{", "}")
        || within("{{", "}}")
        || within("${{", "}}")
        || within("<", ">")
        || within("%", "%")
        || value.strip_prefix('$').is_some_and(|name| is_name(name) && name == name.to_ascii_uppercase())
        || ["your_", "your-", "your "].iter().any(|lead| starts_with_ignoring_case(value, lead)) && is_name(value)
        || ["true", "false", "null", "undefined", "none"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn starts_with_ignoring_case(text: &str, lead: &str) -> bool {
    text.as_bytes().get(..lead.len()).is_some_and(|start| start.eq_ignore_ascii_case(lead.as_bytes()))
}

/// Values longer than this are judged by their beginning.
const JUDGED: usize = 512;

/// Whether a value looks made by a machine: a long run of letters and digits mixed, not `piano-sonata-no-14`.
fn looks_random(value: &str) -> bool {
    let value = &value.as_bytes()[..value.len().min(JUDGED)];
    let is_mixed = |run: &[u8]| {
        let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
        let upper = run.iter().filter(|byte| byte.is_ascii_uppercase()).count();
        let letters = run.len() - digits;
        (run.len() >= 8 && digits >= 2 && letters >= 2) || (run.len() >= 20 && upper >= 4 && letters - upper >= 4)
    };
    value.len() >= 16 && rules::entropy(value) >= 3.0 && value.split(|byte| !byte.is_ascii_alphanumeric()).any(is_mixed)
}
