//! One layer of encoding taken off, with the way back to the source.
//!
//! Every finding is made in a decoded text but is replaced in the source, so that nothing else of it changes.

use std::ops::Range;

use crate::suspects::DEEPEST;

/// A decoded text that knows where each of its bytes came from.
pub(crate) struct Layer {
    pub(crate) text: String,
    /// Where the two texts drift apart: (offset here, offset in the source), once behind each escape.
    jumps: Vec<(usize, usize)>,
}

impl Layer {
    /// The range of the source that became `range`.
    pub(crate) fn source(&self, range: &Range<usize>) -> Range<usize> {
        self.source_offset(range.start)..self.source_offset(range.end)
    }

    fn source_offset(&self, at: usize) -> usize {
        match self.jumps.partition_point(|&(here, _)| here <= at) {
            0 => at,
            behind => {
                let (here, source) = self.jumps[behind - 1];
                source + (at - here)
            }
        }
    }
}

/// Collects a layer from copied runs and decoded escapes.
struct Peeling<'a> {
    source: &'a str,
    copied: usize,
    layer: Layer,
}

impl<'a> Peeling<'a> {
    fn of(source: &'a str) -> Self {
        Self { source, copied: 0, layer: Layer { text: String::with_capacity(source.len()), jumps: Vec::new() } }
    }

    fn replace(&mut self, escape: Range<usize>, by: char) {
        self.layer.text.push_str(&self.source[self.copied..escape.start]);
        self.layer.text.push(by);
        self.layer.jumps.push((self.layer.text.len(), escape.end));
        self.copied = escape.end;
    }

    fn end(mut self) -> Layer {
        self.layer.text.push_str(&self.source[self.copied..]);
        self.layer
    }
}

/// Takes JSON's escapes off the inside of a string literal. `None` if one of them is not JSON.
pub(crate) fn unescape(literal: &str) -> Option<Layer> {
    let bytes = literal.as_bytes();
    let mut peeling = Peeling::of(literal);
    while let Some(found) = memchr::memchr(b'\\', &bytes[peeling.copied..]) {
        let at = peeling.copied + found;
        let (by, length) = match bytes.get(at + 1)? {
            b'n' => ('\n', 2),
            b't' => ('\t', 2),
            b'r' => ('\r', 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'u' => unicode_escape(&bytes[at..])?,
            &same @ (b'"' | b'\\' | b'/') => (same as char, 2),
            _ => return None,
        };
        peeling.replace(at..at + length, by);
    }
    Some(peeling.end())
}

/// The character of `\uXXXX` (or of a surrogate pair) at the start of `bytes`, and the escape's length.
fn unicode_escape(bytes: &[u8]) -> Option<(char, usize)> {
    let unit = hex(bytes.get(2..6)?)?;
    if let Some(plain) = char::from_u32(unit) {
        return Some((plain, 6));
    }
    let pair = match bytes.get(6..12) {
        Some([b'\\', b'u', low @ ..]) => hex(low),
        _ => None,
    };
    match pair {
        Some(low @ 0xDC00..=0xDFFF) if unit < 0xDC00 => {
            char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)).map(|joined| (joined, 12))
        }
        // A lone half of a pair names no character; the source keeps it as it is.
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

/// Takes one layer of `%XX` and `\u00XX` off. `None` when there is none.
///
/// Only ASCII is decoded: names, separators and tokens are all ASCII, and what is left stays valid UTF-8.
pub(crate) fn peel(text: &str) -> Option<Layer> {
    let bytes = text.as_bytes();
    let mut peeling: Option<Peeling<'_>> = None;
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'%', b'\\', &bytes[from..]) {
        let at = from + found;
        from = at + 1;
        if let Some((by, length)) = ascii_escape(&bytes[at..]) {
            peeling.get_or_insert_with(|| Peeling::of(text)).replace(at..at + length, by as char);
            from = at + length;
        }
    }
    peeling.map(Peeling::end)
}

/// A value without any of its layers, as far as they are taken off at all.
pub(crate) fn flat(value: &str) -> String {
    let mut flat = value.to_owned();
    for _ in 0..DEEPEST {
        match peel(&flat) {
            Some(layer) => flat = layer.text,
            None => break,
        }
    }
    flat
}

/// The ASCII character that an escape at the start of `bytes` stands for, and the escape's length.
pub(crate) fn ascii_escape(bytes: &[u8]) -> Option<(u8, usize)> {
    let (digits, length) = match bytes {
        [b'%', high, low, ..] => ([*high, *low], 3),
        [b'\\', b'u', b'0', b'0', high, low, ..] => ([*high, *low], 6),
        [b'\\', b'x', high, low, ..] => ([*high, *low], 4),
        _ => return None,
    };
    let code = u8::try_from(hex(&digits)?).ok()?;
    code.is_ascii().then_some((code, length))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_leads_back_to_its_escapes() {
        let layer = unescape(r#"a\"b\u00e9\ud83d\ude00z"#).unwrap();
        assert_eq!(layer.text, "a\"bé😀z");
        assert_eq!(layer.source(&(0..1)), 0..1);
        assert_eq!(layer.source(&(1..3)), 1..4);
        assert_eq!(layer.source(&(3..5)), 4..10);
        assert_eq!(layer.source(&(5..9)), 10..22);
        assert_eq!(layer.source(&(9..10)), 22..23);
    }

    #[test]
    fn lone_surrogates_and_broken_escapes() {
        assert_eq!(unescape(r"\ud83dx").unwrap().text, "\u{fffd}x");
        assert_eq!(unescape(r"\ud83d\ud83d").unwrap().text, "\u{fffd}\u{fffd}");
        assert!(unescape(r"\q").is_none());
        assert!(unescape(r"\u12").is_none());
        assert!(unescape("\\").is_none());
    }

    #[test]
    fn one_layer_at_a_time() {
        let once = peel("%2561%D0%BF%zz\\u0062").unwrap();
        assert_eq!(once.text, "%61%D0%BF%zzb");
        assert_eq!(peel(&once.text).unwrap().text, "a%D0%BF%zzb");
        assert!(peel("100% %D0%BF \\n").is_none());
    }
}
