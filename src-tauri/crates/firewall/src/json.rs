//! JSON, string by string.
//!
//! The text is walked as it is written, never parsed into values and written again: numbers, order, spaces and
//! escapes of what leaves are those of what came. Only strings that hold a suspect are looked at.

use std::ops::Range;

use crate::Firewall;
use crate::decode;
use crate::finding::{Surface, shown};
use crate::names;
use crate::sealed::Hit;
use crate::suspects::Form;

/// JSON in strings of JSON is walked to this depth. Deeper, it is looked at as any other text.
const DEEPEST: usize = 4;

/// The text is not one JSON value.
#[derive(Debug)]
pub(crate) struct NotJson;

/// Where the text stands whose JSON is walked.
#[derive(Clone, Copy)]
pub(crate) struct Inside<'a> {
    pub(crate) path: &'a str,
    pub(crate) surface: Surface,
    pub(crate) depth: usize,
}

impl Firewall {
    /// All secrets in a JSON text, or that it is none. `None` hits means that not even a suspect is in it.
    pub(crate) fn look_into_json(&self, json: &str, inside: Inside<'_>) -> Result<Vec<Hit>, NotJson> {
        let mut suspects: Vec<usize> = self.suspects(json, Form::Json, 0).iter().map(|found| found.offset()).collect();
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        suspects.sort_unstable();
        let mut walk = Walk {
            firewall: self,
            json,
            inside,
            suspects: suspects.into_iter().peekable(),
            frames: Vec::new(),
            hits: Vec::new(),
        };
        walk.all()?;
        Ok(walk.hits)
    }
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// An object or an array that is open.
struct Frame {
    is_object: bool,
    /// The current member's name in the source, without its quotes.
    key: Range<usize>,
    /// Whether that name, or the one that the array belongs to, makes strings secret.
    is_secret: bool,
    index: usize,
}

struct Walk<'a> {
    firewall: &'a Firewall,
    json: &'a str,
    inside: Inside<'a>,
    suspects: std::iter::Peekable<std::vec::IntoIter<usize>>,
    frames: Vec<Frame>,
    hits: Vec<Hit>,
}

impl Walk<'_> {
    fn all(&mut self) -> Result<(), NotJson> {
        let bytes = self.json.as_bytes();
        let mut next = Next::Value;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            next = match (byte, next) {
                (b' ' | b'\n' | b'\r' | b'\t', _) => next,
                (b'"', Next::Value | Next::ValueOrEnd) => {
                    let end = self.string_end(at)?;
                    self.value(at..end)?;
                    at = end + 1;
                    self.behind_value()
                }
                (b'"', Next::Key | Next::KeyOrEnd) => {
                    let end = self.string_end(at)?;
                    self.key(at..end)?;
                    at = end + 1;
                    Next::Colon
                }
                (b':', Next::Colon) => Next::Value,
                (b',', Next::CommaOrEnd) => self.behind_comma()?,
                (b'{' | b'[', Next::Value | Next::ValueOrEnd) => self.open(byte == b'{'),
                (b'}', Next::KeyOrEnd | Next::CommaOrEnd) => self.close(true)?,
                (b']', Next::ValueOrEnd | Next::CommaOrEnd) => self.close(false)?,
                (_, Next::Value | Next::ValueOrEnd) => {
                    let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
                    let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |end| at + end);
                    if !is_scalar(&bytes[at - 1..end]) {
                        return Err(NotJson);
                    }
                    at = end;
                    self.behind_value()
                }
                _ => return Err(NotJson),
            };
        }
        if next == Next::Nothing { Ok(()) } else { Err(NotJson) }
    }

    /// Where the string that begins at `start` has its closing quote.
    fn string_end(&self, start: usize) -> Result<usize, NotJson> {
        let bytes = self.json.as_bytes();
        let mut at = start;
        loop {
            at += memchr::memchr2(b'"', b'\\', bytes.get(at..).ok_or(NotJson)?).ok_or(NotJson)?;
            if bytes[at] == b'"' {
                return Ok(at);
            }
            at += 2;
        }
    }

    fn open(&mut self, is_object: bool) -> Next {
        let is_secret = !is_object && self.frames.last().is_some_and(|outer| outer.is_secret);
        self.frames.push(Frame { is_object, key: 0..0, is_secret, index: 0 });
        if is_object { Next::KeyOrEnd } else { Next::ValueOrEnd }
    }

    fn close(&mut self, is_object: bool) -> Result<Next, NotJson> {
        match self.frames.pop() {
            Some(frame) if frame.is_object == is_object => Ok(self.behind_value()),
            _ => Err(NotJson),
        }
    }

    fn behind_value(&self) -> Next {
        if self.frames.is_empty() { Next::Nothing } else { Next::CommaOrEnd }
    }

    fn behind_comma(&mut self) -> Result<Next, NotJson> {
        let frame = self.frames.last_mut().ok_or(NotJson)?;
        frame.index += 1;
        Ok(if frame.is_object { Next::Key } else { Next::Value })
    }

    /// Whether a suspect stands before `end`; those before it are done with.
    fn is_suspected(&mut self, end: usize) -> bool {
        let mut suspected = false;
        while self.suspects.next_if(|&at| at < end).is_some() {
            suspected = true;
        }
        suspected
    }

    fn key(&mut self, range: Range<usize>) -> Result<(), NotJson> {
        let bytes = self.json.as_bytes();
        // The colon is where the quick look reports a telling name.
        let colon = range.end + 1 + bytes[range.end + 1..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let mut is_secret = false;
        if self.is_suspected(colon + 1) {
            let layer = decode::unescape(&self.json[range.clone()]).ok_or(NotJson)?;
            is_secret = names::is_secret_field(&decode::flat(&layer.text));
            let hits = self.firewall.look(&layer.text, Form::Prose, Surface::Text);
            self.found(hits, &layer, range.start, "");
        }
        let frame = self.frames.last_mut().ok_or(NotJson)?;
        frame.key = range;
        frame.is_secret = is_secret;
        Ok(())
    }

    fn value(&mut self, range: Range<usize>) -> Result<(), NotJson> {
        let is_suspected = self.is_suspected(range.end);
        let is_secret = self.frames.last().is_some_and(|frame| frame.is_secret);
        if !is_suspected && !is_secret {
            return Ok(());
        }
        let layer = decode::unescape(&self.json[range.clone()]).ok_or(NotJson)?;
        let place = self.place();
        let hits = if is_secret {
            let all = 0..layer.text.len();
            self.firewall.field_hit(&layer.text, all, place.surface).into_iter().collect()
        } else {
            self.look_into_string(&layer.text, &place)
        };
        self.found(hits, &layer, range.start, &place.path);
        Ok(())
    }

    fn look_into_string(&self, text: &str, place: &Place) -> Vec<Hit> {
        let depth = self.inside.depth + 1;
        if depth < DEEPEST && text.trim_start().starts_with(['{', '[']) {
            let inside = Inside { path: &place.path, surface: place.surface, depth };
            if let Ok(hits) = self.firewall.look_into_json(text, inside) {
                return hits;
            }
        }
        let form = if place.is_address { Form::Address } else { Form::Prose };
        self.firewall.look(text, form, place.surface)
    }

    /// Takes over what was found in a string's text.
    fn found(&mut self, hits: Vec<Hit>, layer: &decode::Layer, start: usize, path: &str) {
        for mut hit in hits {
            let source = layer.source(&hit.range);
            hit.range = start + source.start..start + source.end;
            if hit.path.is_empty() {
                path.clone_into(&mut hit.path);
            }
            self.hits.push(hit);
        }
    }

    /// The place of the current string.
    fn place(&self) -> Place {
        let mut path = self.inside.path.to_owned();
        if !path.is_empty() {
            path.push('→');
        }
        let mut named = None;
        let mut is_error = self.inside.surface == Surface::Error;
        for (depth, frame) in self.frames.iter().enumerate() {
            if frame.is_object {
                let key = &self.json[frame.key.clone()];
                is_error |= key == "error";
                named = Some(key);
                if depth > 0 {
                    path.push('.');
                }
                path.push_str(shown(key));
            } else {
                path.push_str(&format!("[{}]", frame.index));
            }
        }
        let is_address = named.is_some_and(names::is_address_field);
        let surface = match named {
            _ if is_error => Surface::Error,
            Some(_) if is_address => Surface::Url,
            Some(name) if names::is_title_field(name) => Surface::Title,
            _ => Surface::Text,
        };
        Place { path, surface, is_address }
    }
}

/// Where a string stands, and what follows from it.
struct Place {
    path: String,
    surface: Surface,
    is_address: bool,
}

fn is_scalar(text: &[u8]) -> bool {
    matches!(text, b"true" | b"false" | b"null")
        || text.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))
}
