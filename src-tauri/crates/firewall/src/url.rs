//! Addresses: where names, values and userinfo begin and end in them.
//!
//! Nothing is parsed and written again: an address is searched for its separators, so that also a broken one,
//! one without a scheme (as in the title of a page that has none), and one inside another are understood.

use std::ops::Range;

use crate::suspects::Form;

/// How far the way back to an address's start is walked.
const LOOK_BACK: usize = 4096;

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
        Form::Address => false,
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
    let start = bytes[floor..at].iter().rposition(|&byte| ends_token(byte, form)).map_or(floor, |end| floor + end + 1);
    let end = bytes[at..].iter().position(|&byte| ends_token(byte, form)).map_or(bytes.len(), |end| at + end);
    start..end
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

fn section(bytes: &[u8], name: usize, form: Form) -> Section {
    let floor = name.saturating_sub(LOOK_BACK);
    let before = &bytes[token(bytes, name, floor, form).start.min(name)..name];
    match before.last() {
        None if form == Form::Prose => return Section::Bare,
        Some(b'?' | b'&' | b'#' | b';' | b'/' | b'!') | None => {}
        Some(_) => return Section::Bare,
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
            b'#' => section != Section::Fragment || pair_begins(bytes, end + 1),
            b'?' | b'/' if section == Section::Path => true,
            b'?' | b';' | b',' | b'|' => pair_begins(bytes, end + 1),
            b'\\' if form != Form::Address => {
                matches!(bytes.get(end + 1), Some(b'"' | b'\'' | b'n' | b'r' | b't' | b'\\'))
            }
            _ => ends_token(byte, form),
        };
        if ends {
            break;
        }
        end += 1;
    }
    if form == Form::Address {
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

/// Where a value in prose ends without the sentence's own punctuation.
fn without_punctuation(bytes: &[u8], value: Range<usize>) -> usize {
    let mut end = value.end;
    while end > value.start {
        let inside = &bytes[value.start..end];
        let count = |sought: u8| inside.iter().filter(|&&byte| byte == sought).count();
        let trailing = match inside[inside.len() - 1] {
            b'.' | b',' | b';' | b':' | b'!' | b'?' | b'*' => true,
            b')' => count(b')') > count(b'('),
            b']' => count(b']') > count(b'['),
            b'}' => count(b'}') > count(b'{'),
            _ => false,
        };
        if !trailing {
            break;
        }
        end -= 1;
    }
    end
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

/// The userinfo of the authority that the `@` at `at` stands in. Nothing before `floor` is looked at.
pub(crate) fn userinfo(bytes: &[u8], at: usize, floor: usize, form: Form) -> Option<Range<usize>> {
    let ends_authority = |byte: u8| match byte {
        b'/' | b'\\' | b'?' | b'#' => true,
        b'"' => form != Form::Address,
        _ => form == Form::Prose && ends_prose(byte),
    };
    let stop = bytes[floor..at].iter().rposition(|&byte| ends_authority(byte)).map(|stop| floor + stop);
    let mut start = stop.map_or(floor, |stop| stop + 1);
    let slashes = bytes[floor..start].iter().rev().take_while(|&&byte| matches!(byte, b'/' | b'\\')).count();
    let before = &bytes[floor..start - slashes];
    let after_scheme = before.ends_with(b":");
    let is_authority = match slashes {
        // A browser reads `https:user@host` and `https:/user@host` as if both slashes were there.
        0 => {
            let run = &bytes[start..at];
            let scheme = run.iter().position(|&byte| byte == b':').filter(|&colon| is_special(&run[..colon]));
            start += scheme.map_or(0, |colon| colon + 1);
            scheme.is_some()
        }
        1 => after_scheme && is_special(&before[..before.len() - 1]),
        _ if after_scheme => true,
        // Without a scheme, `//bob@example.com` may be a comment; a password makes it an authority.
        _ => !before.last().is_some_and(u8::is_ascii_alphanumeric) && bytes[start..at].contains(&b':'),
    };
    if !is_authority {
        return None;
    }
    let authority = bytes[start..].iter().position(|&byte| ends_authority(byte)).map_or(bytes.len(), |end| start + end);
    let last = memchr::memrchr(b'@', &bytes[start..authority])?;
    Some(start..start + last)
}

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

/// Whether the address around `at` takes part in a sign-in.
pub(crate) fn is_sign_in(text: &str, at: usize, form: Form) -> bool {
    let bytes = text.as_bytes();
    let token = token(bytes, at, at.saturating_sub(LOOK_BACK), form);
    let near = bytes[token.start..token.end.min(at + LOOK_BACK)].to_ascii_lowercase();
    let holds = |sought: &str| memchr::memmem::find(&near, sought.as_bytes()).is_some();
    SIGN_IN.iter().any(|sign| holds(sign))
}
