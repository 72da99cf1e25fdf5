//! The quick look: which places of a text are worth a closer one.
//!
//! It runs over everything that leaves, and most of it is clean; so it hops from one telling byte to the next.
//! What it does not report nobody looks at again, so it must report too much rather than too little.

use std::ops::Range;

use memchr::{memchr2_iter, memchr3_iter, memmem};

use crate::Firewall;
use crate::decode;
use crate::names::{self, Weight};
use crate::text::rule_for;
use crate::url;

/// Layers of encoding that are taken off.
pub(crate) const DEEPEST: usize = 5;

/// How a text is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// It is one address as a whole.
    Address,
    /// Addresses may stand in it.
    Prose,
    /// It is JSON, with its escapes.
    Json,
}

/// A place worth a closer look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Suspect {
    /// `name=value` with a telling name.
    Pair { equals: usize, weight: Weight },
    /// `"name": "value"` with a secret's name.
    Member { colon: usize },
    /// `//userinfo@`.
    Userinfo { userinfo: Range<usize> },
    /// Something encoded that is worth decoding.
    Encoded { at: usize },
    /// A keyword of a rule.
    Keyword { at: usize, keyword: usize },
}

impl Suspect {
    /// The offset by which a suspect is placed.
    pub(crate) fn offset(&self) -> usize {
        match *self {
            Self::Pair { equals, .. } => equals,
            Self::Member { colon } => colon,
            Self::Encoded { at } | Self::Keyword { at, .. } => at,
            Self::Userinfo { ref userinfo } => userinfo.start,
        }
    }
}

impl Firewall {
    /// The suspects of `text`, each kind in order.
    pub(crate) fn suspects(&self, text: &str, form: Form, depth: usize) -> Vec<Suspect> {
        let bytes = text.as_bytes();
        let mut suspects = Vec::new();
        for at in memchr2_iter(b'=', b':', bytes) {
            if bytes[at] == b'=' {
                if let Some(weight) = weigh_before(bytes, at)
                    && (form != Form::Json || is_worth_a_look(text, at, weight))
                {
                    suspects.push(Suspect::Pair { equals: at, weight });
                }
            } else if let Some(end) = quoted_name_end(bytes, at)
                && weigh_before(bytes, end) == Some(Weight::Secret)
            {
                suspects.push(Suspect::Member { colon: at });
            }
        }
        let mut userinfo = 0..0;
        let mut decoded = 0;
        let mut look = |at: usize, suspects: &mut Vec<Suspect>| {
            if bytes[at] == b'@' {
                if at >= userinfo.end
                    && let Some(found) = url::userinfo(bytes, at, userinfo.end, form)
                {
                    userinfo = found.clone();
                    suspects.push(Suspect::Userinfo { userinfo: found });
                }
            } else if at >= decoded && decode::ascii_escape(&bytes[at..]).is_some() {
                let token = if form == Form::Json { url::token(bytes, at, decoded, form) } else { 0..bytes.len() };
                decoded = token.end;
                let is_quoted_name =
                    || bytes.get(decoded + 1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"));
                if form != Form::Json || is_quoted_name() || self.is_worth_decoding(&text[token], depth) {
                    suspects.push(Suspect::Encoded { at });
                }
            }
        };
        if form == Form::Json {
            memchr2_iter(b'@', b'%', bytes).for_each(|at| look(at, &mut suspects));
            // Its own escapes may hide anything, so that such a text must be unescaped before it can be judged.
            suspects.extend(memmem::find_iter(bytes, br"\u").map(|at| Suspect::Encoded { at }));
        } else {
            memchr3_iter(b'@', b'%', b'\\', bytes).for_each(|at| look(at, &mut suspects));
        }
        self.rules.keywords_in(bytes, |at, keyword| suspects.push(Suspect::Keyword { at, keyword }));
        suspects
    }

    fn is_worth_decoding(&self, token: &str, depth: usize) -> bool {
        // Decoded, it is JSON no longer: a quote in it ends nothing.
        let suspicious = |text: &str, form| !self.suspects(text, form, depth + 1).is_empty();
        depth >= DEEPEST
            || decode::peel(token)
                .is_some_and(|layer| suspicious(&layer.text, Form::Json) || suspicious(&layer.text, Form::Address))
    }
}

/// Whether a pair in raw JSON may be a secret. Words such as `key` and `state` are too common to suspect them all.
fn is_worth_a_look(text: &str, equals: usize, weight: Weight) -> bool {
    match weight {
        Weight::Secret | Weight::InAddress => true,
        Weight::Suspicious | Weight::SignIn => {
            rule_for(text, &url::pair(text, equals, Form::Json), weight, Form::Json).is_some()
        }
    }
}

/// What the name that ends at `end` says.
fn weigh_before(bytes: &[u8], end: usize) -> Option<Weight> {
    let name = url::name_before(bytes, end);
    match (&bytes[..name.start], &bytes[name]) {
        // The first letter may belong to an escape: `\ncode=`.
        ([.., b'\\'], name @ [b'n' | b'r' | b't' | b'b' | b'f', rest @ ..]) => {
            names::weigh(rest).or_else(|| names::weigh(name))
        }
        (_, name) => names::weigh(name),
    }
}

/// Where the quoted name before a colon ends.
pub(crate) fn quoted_name_end(bytes: &[u8], colon: usize) -> Option<usize> {
    let before = bytes[..colon].trim_ascii_end();
    let name = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'"))?;
    let escapes = name.iter().rev().take_while(|&&byte| byte == b'\\').count();
    Some(name.len() - escapes)
}
