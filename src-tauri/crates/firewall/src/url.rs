//! Addresses: where names, values and userinfo begin and end in them.
//!
//! Nothing is parsed and written again: an address is searched for its separators, so that also a broken one,
//! one without a scheme (as in the title of a page that has none), and one inside another are understood.

use std::ops::Range;

use crate::suspects::Form;

/// How far the way back to an address's start is walked.
const LOOK_BACK: usize = 1024;

/// A name is judged by its end, so that no more than this is taken.
const LONGEST_NAME: usize = 64;

/// A `name=value` in a text.
pub(crate) struct Pair {
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
    pub(crate) section: Section,
}

/// Where a pair stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    /// Behind a `?`.
    Query,
    /// Behind a `#`.
    Fragment,
    /// In a path, as `;jsessionid=…`.
    Path,
    /// In no address.
    Bare,
}

impl Section {
    /// The sign that stands before the name in a place.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Query => "?",
            Self::Fragment => "#",
            Self::Path => ";",
            Self::Bare => "",
        }
    }
}

/// Whether an address in prose ends at this byte.
pub(crate) fn ends_prose(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`' | 0x7f)
}

/// Whether an address (or any other token) ends at this byte.
fn ends_token(byte: u8, form: Form) -> bool {
    match form {
        Form::Address | Form::Unclear => false,
        Form::Prose => ends_prose(byte),
        // In raw JSON it is not known yet whether a string is one address as a whole.
        Form::Json => byte == b'"',
    }
}

/// Whether what stands in this address is not a place but a document or a program of its own.
pub(crate) fn holds_a_document(address: &str) -> bool {
    let address = address.trim_start();
    let address = address.strip_prefix("view-source:").unwrap_or(address).as_bytes();
    [&b"data:"[..], b"javascript:"]
        .iter()
        .any(|scheme| address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// The token around `at`, from `floor` on.
pub(crate) fn token(bytes: &[u8], at: usize, floor: usize, form: Form) -> Range<usize> {
    let start = token_start(bytes, at, floor, form);
    let end = bytes[at..].iter().position(|&byte| ends_token(byte, form)).map_or(bytes.len(), |end| at + end);
    start..end
}

fn token_start(bytes: &[u8], at: usize, floor: usize, form: Form) -> usize {
    bytes[floor..at].iter().rposition(|&byte| ends_token(byte, form)).map_or(floor, |end| floor + end + 1)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'[' | b']' | b'$' | b':' | b'~' | b'%')
}

/// The name that ends at `end`, or its last letters.
pub(crate) fn name_before(bytes: &[u8], end: usize) -> Range<usize> {
    let floor = end.saturating_sub(LONGEST_NAME);
    let start = bytes[floor..end].iter().rposition(|&byte| !is_name_byte(byte)).map_or(floor, |last| floor + last + 1);
    start..end
}

/// The pair around the `=` at `equals`.
pub(crate) fn pair(text: &str, equals: usize, form: Form) -> Pair {
    let bytes = text.as_bytes();
    let name = name_before(bytes, equals);
    let section = section(bytes, name.start, form);
    let value = value(bytes, equals + 1, section, form);
    Pair { name, value, section }
}

/// As much of a value as is needed to judge it. Most are not withheld, and each may reach to the end of a long text.
pub(crate) const GLANCE: usize = 512;

/// The pair around the `=` at `equals`, with no more than the beginning of its value.
pub(crate) fn glance(text: &str, equals: usize, form: Form) -> Pair {
    pair(&text[..text.floor_char_boundary(equals + 1 + GLANCE)], equals, form)
}

fn section(bytes: &[u8], name: usize, form: Form) -> Section {
    let floor = name.saturating_sub(LOOK_BACK);
    let before = &bytes[token_start(bytes, name, floor, form)..name];
    match before.last() {
        Some(b'?' | b'&' | b'#' | b';' | b'/' | b'!') => {}
        _ if form == Form::Prose => return Section::Bare,
        _ => {}
    }
    if before.contains(&b'#') || (form == Form::Address && floor > 0) {
        // Too far from the start to know: in a fragment a value may hold more signs, so that more is withheld.
        Section::Fragment
    } else if before.contains(&b'?') || !matches!(before.last(), Some(b';' | b'/')) {
        Section::Query
    } else {
        Section::Path
    }
}

fn value(bytes: &[u8], start: usize, section: Section, form: Form) -> Range<usize> {
    let mut end = start;
    while let Some(&byte) = bytes.get(end) {
        let ends = match byte {
            b'&' => true,
            // What comes behind is not clear yet; the more is taken, the more is suspected.
            _ if form.is_quick() => ends_token(byte, form),
            b'#' => section != Section::Fragment || pair_begins(bytes, end + 1),
            b'?' | b'/' if section == Section::Path => true,
            b'?' | b';' | b',' | b'|' => pair_begins(bytes, end + 1),
            b'\\' if form == Form::Prose => {
                matches!(bytes.get(end + 1), Some(b'"' | b'\'' | b'n' | b'r' | b't' | b'\\'))
            }
            _ => ends_token(byte, form),
        };
        if ends {
            break;
        }
        end += 1;
    }
    if form != Form::Prose {
        return start..end;
    }
    if end == start
        && section == Section::Bare
        && let Some(quoted) = quoted(bytes, start)
    {
        return quoted;
    }
    start..without_punctuation(bytes, start..end)
}

/// Whether a `name=` with a value begins here.
fn pair_begins(bytes: &[u8], at: usize) -> bool {
    let rest = &bytes[at..bytes.len().min(at + LONGEST_NAME)];
    let name = rest.iter().take_while(|&&byte| is_name_byte(byte)).count();
    name > 0 && rest.get(name) == Some(&b'=') && !matches!(rest.get(name + 1), None | Some(b'='))
}

/// Signs that are taken for a sentence's own, at most.
pub(crate) const PUNCTUATION: usize = 8;

/// Where a value in prose ends without the sentence's own punctuation.
fn without_punctuation(bytes: &[u8], value: Range<usize>) -> usize {
    let trailing = |end: &usize| {
        let inside = &bytes[value.start..*end];
        let is_odd = |open: u8, close: u8| {
            let count = |sought: u8| inside.iter().filter(|&&byte| byte == sought).count();
            count(close) > count(open)
        };
        match inside.last() {
            Some(b'.' | b',' | b';' | b':' | b'!' | b'?' | b'*') => true,
            Some(b')') => is_odd(b'(', b')'),
            Some(b']') => is_odd(b'[', b']'),
            Some(b'}') => is_odd(b'{', b'}'),
            _ => false,
        }
    };
    let signs = (value.start..=value.end).rev().take(PUNCTUATION).take_while(trailing).count();
    value.end - signs
}

/// The inside of the quotes that open at `at`, also escaped ones. Without a closing quote, all that is left.
pub(crate) fn quoted(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let escapes = bytes[at..].iter().take_while(|&&byte| byte == b'\\').count();
    let quote = *bytes.get(at + escapes).filter(|&&byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let start = at + escapes + 1;
    let mut end = start;
    let mut escaped = 0;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'\\' => escaped += 1,
            _ if byte == quote && escaped <= escapes => return Some(start..end - escaped),
            _ => escaped = 0,
        }
        end += 1;
    }
    Some(start..end)
}

/// Finds userinfo while walking from one `@` of a text to the next, so that no byte is looked at twice.
pub(crate) struct Authorities<'a> {
    bytes: &'a [u8],
    form: Form,
    looked_at: usize,
    /// Behind the last byte that ends an authority.
    start: usize,
    /// Behind `https:` or the like without slashes, if one stands since `start`.
    behind_scheme: Option<usize>,
    holds_colon: bool,
    /// The last userinfo found ends here.
    done: usize,
}

impl<'a> Authorities<'a> {
    pub(crate) fn of(bytes: &'a [u8], form: Form) -> Self {
        Self { bytes, form, looked_at: 0, start: 0, behind_scheme: None, holds_colon: false, done: 0 }
    }

    fn ends_authority(&self, index: usize) -> bool {
        match self.bytes[index] {
            b'/' | b'?' | b'#' => true,
            // In raw JSON what is escaped may belong to the userinfo; only a bare quote surely ends the string.
            b'\\' => !self.form.is_quick() || matches!(self.bytes.get(index + 1), Some(b'/' | b'\\')),
            b'"' => match self.form {
                Form::Json => !self.bytes[..index].ends_with(b"\\"),
                Form::Prose => true,
                Form::Address | Form::Unclear => false,
            },
            byte => self.form == Form::Prose && ends_prose(byte),
        }
    }

    /// The userinfo that the `@` at `at` belongs to, if it does and is not known yet.
    pub(crate) fn userinfo_at(&mut self, at: usize) -> Option<Range<usize>> {
        for index in self.looked_at..at {
            if self.ends_authority(index) {
                (self.start, self.behind_scheme, self.holds_colon) = (index + 1, None, false);
            } else if self.bytes[index] == b':' {
                self.holds_colon = true;
                if self.behind_scheme.is_none() && is_special(&self.bytes[..index]) {
                    self.behind_scheme = Some(index + 1);
                }
            }
        }
        self.looked_at = at;
        if at <= self.done {
            return None;
        }
        let start = self.authority()?;
        let end = (start..self.bytes.len()).find(|&index| self.ends_authority(index)).unwrap_or(self.bytes.len());
        self.done = start + memchr::memrchr(b'@', &self.bytes[start..end])?;
        Some(start..self.done)
    }

    /// Where the authority that we are in begins, if it is one.
    fn authority(&self) -> Option<usize> {
        let before = &self.bytes[..self.start];
        let slashes = before.iter().rev().take(SLASHES).take_while(|&&byte| matches!(byte, b'/' | b'\\')).count();
        let before = &before[..before.len() - slashes];
        let scheme = before.strip_suffix(b":");
        let is_authority = match slashes {
            0 => false,
            // A browser reads `https:/user@host` and `https:user@host` as if both slashes were there.
            1 => scheme.is_some_and(is_special),
            _ if scheme.is_some() => true,
            // Without a scheme, `//bob@example.com` may be a comment; a password makes it an authority.
            _ => self.holds_colon && before.last().is_none_or(|&byte| ends_prose(byte) || matches!(byte, b'(' | b'=')),
        };
        if is_authority { Some(self.start) } else { self.behind_scheme }
    }
}

/// Slashes (and JSON's backslashes before them) in front of an authority, at most.
const SLASHES: usize = 16;

/// Whether these bytes end with a scheme for which browsers forgive missing slashes.
fn is_special(before: &[u8]) -> bool {
    ["https", "http", "wss", "ws", "ftp"].iter().any(|scheme| {
        before.len() >= scheme.len() && before[before.len() - scheme.len()..].eq_ignore_ascii_case(scheme.as_bytes())
    })
}

/// What makes an address part of a sign-in with OAuth or OpenID Connect.
const SIGN_IN: [&str; 18] = [
    "oauth",
    "openid",
    "oidc",
    "callback",
    "authorize",
    "/cb?",
    "/cb#",
    "/sso",
    "signin",
    "sign-in",
    "/login",
    "/auth",
    "redirect_uri=",
    "response_type=",
    "session_state=",
    "code_challenge=",
    "code_verifier=",
    "id_token=",
];

/// Says of each address whether it takes part in a sign-in, and remembers it for the next pair of the same one.
#[derive(Default)]
pub(crate) struct SignIns {
    token: Range<usize>,
    is_sign_in: bool,
}

impl SignIns {
    /// Whether the address around `at` takes part in a sign-in. Asked in the order of the text.
    ///
    /// The quick look and the close one must agree, so that an address ends at a quote for both.
    pub(crate) fn holds(&mut self, bytes: &[u8], at: usize, form: Form) -> bool {
        if !self.token.contains(&at) {
            let form = if form == Form::Address { Form::Json } else { form };
            self.token = token(bytes, at, self.token.end.min(at), form);
            let address = bytes[self.token.clone()].to_ascii_lowercase();
            let holds = |sign: &&str| memchr::memmem::find(&address, sign.as_bytes()).is_some();
            self.is_sign_in = SIGN_IN.iter().any(holds);
        }
        self.is_sign_in
    }
}
