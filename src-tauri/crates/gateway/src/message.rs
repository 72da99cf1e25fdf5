//! One line as a JSON-RPC message.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::Fault;

/// The longest id that is taken, in bytes of JSON. It stands in every answer, so it must not be a way to fill memory.
const MAX_ID: usize = 256;

/// A request's id, as the JSON text that came: it goes back byte for byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Id(Box<str>);

impl Id {
    /// Takes a string or a number; anything else is no id.
    pub fn read(json: &str) -> Option<Self> {
        let first = json.bytes().next()?;
        let kind = first == b'"' || first == b'-' || first.is_ascii_digit();
        (kind && json.len() <= MAX_ID).then(|| Self(json.into()))
    }

    /// The JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message that came.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// Its id.
        id: Id,
        /// What is asked.
        method: Cow<'a, str>,
        /// With which parameters, as JSON.
        params: Option<&'a RawValue>,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: Cow<'a, str>,
        /// With which parameters, as JSON.
        params: Option<&'a RawValue>,
    },
    /// An answer to something. We ask nothing of clients, so it belongs to nothing.
    Answer,
}

/// A line that is no message, and the id under which to say so, if it had one.
#[derive(Debug)]
pub struct Malformed {
    /// The id, if one could be made out.
    pub id: Option<Id>,
    /// What is wrong.
    pub fault: Fault,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    // A missing id and a null one differ: the one is a notification, the other a mistake.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(json: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

impl<'a> Message<'a> {
    /// Reads one line.
    pub fn read(line: &'a [u8]) -> Result<Self, Malformed> {
        let Ok(text) = std::str::from_utf8(line) else {
            return Err(Malformed { id: None, fault: Fault::NotUtf8 });
        };
        // serde would take an array for the same fields in their order.
        let read = text.trim_start().starts_with('{').then(|| serde_json::from_str::<Envelope<'_>>(text));
        let Some(Ok(envelope)) = read else { return Err(Malformed::not_an_envelope(text)) };
        let id = match envelope.id {
            None => None,
            Some(json) => match Id::read(json.get()) {
                Some(id) => Some(id),
                // An error that could not name its request has a null id, and needs no error in return.
                None if envelope.error.is_some() => return Ok(Self::Answer),
                None => return Err(Malformed { id: None, fault: Fault::BadId }),
            },
        };
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(Malformed { id, fault: Fault::NotAMessage });
        }
        let params = envelope.params;
        if params.is_some_and(|params| !params.get().starts_with('{')) && envelope.method.is_some() {
            return Err(Malformed { id, fault: Fault::BadParams });
        }
        match (envelope.method, id) {
            (Some(method), Some(id)) => Ok(Self::Request { id, method, params }),
            (Some(method), None) => Ok(Self::Notification { method, params }),
            (None, _) if envelope.result.is_some() || envelope.error.is_some() => Ok(Self::Answer),
            (None, id) => Err(Malformed { id, fault: Fault::NotAMessage }),
        }
    }
}

impl Malformed {
    /// What is wrong with a text that does not even have a message's fields. Its id may still be good, and an error
    /// without one helps nobody.
    fn not_an_envelope(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Err(_) => Self { id: None, fault: Fault::NotJson },
            Ok(Value::Array(_)) => Self { id: None, fault: Fault::Batch },
            Ok(value) => {
                let id = value.get("id").and_then(|id| Id::read(&id.to_string()));
                Self { id, fault: Fault::NotAMessage }
            }
        }
    }
}

/// Whether a first line was meant for a web server.
pub fn looks_like_http(line: &[u8]) -> bool {
    let method = line.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let version = |part: &[u8]| part.eq_ignore_ascii_case(b" HTTP/");
    method > 0 && line.get(method) == Some(&b' ') && line.windows(6).any(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_a_notification_an_answer_or_a_fault() {
        fn check(line: &str, expect: &str) {
            let read = match Message::read(line.as_bytes()) {
                Ok(Message::Request { id, method, .. }) => format!("request {id} {method}"),
                Ok(Message::Notification { method, .. }) => format!("notification {method}"),
                Ok(Message::Answer) => "answer".to_owned(),
                Err(Malformed { id, fault }) => format!("{} {fault:?}", id.as_ref().map_or("null", Id::as_json)),
            };
            assert_eq!(read, expect, "{line}");
        }
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping");
        check(r#"{"jsonrpc":"2.0","id":"\u00e4","method":"p\u0069ng"}"#, r#"request "\u00e4" ping"#);
        check(r#"{"jsonrpc":"2.0","method":"ping"}"#, "notification ping");
        check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "answer");
        check(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "answer");
        check(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "null BadId");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "null BadId");
        check(&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(300)), "null BadId");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "1 NotAMessage");
        check(r#"{"id":1,"method":"ping"}"#, "1 NotAMessage");
        check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1 NotAMessage");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "1 NotAMessage");
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "null Batch");
        check(r#"["2.0",1,"ping",{}]"#, "null Batch");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, "1 BadParams");
        check(r#"{"id":{},"method":}"#, "null NotJson");
        check("7", "null NotAMessage");
        check("{", "null NotJson");
        check("hello", "null NotJson");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, "null NotJson");
        check(&format!("{}{}", "[".repeat(200), "]".repeat(200)), "null NotJson");
        assert!(matches!(Message::read(b"\xff"), Err(Malformed { fault: Fault::NotUtf8, .. })));
    }

    #[test]
    fn http_is_told_from_everything_else() {
        assert!(looks_like_http(b"GET /mcp HTTP/1.1"));
        assert!(looks_like_http(b"PRI * HTTP/2.0"));
        assert!(looks_like_http(b"PROPFIND / HTTP/1.1"));
        assert!(looks_like_http(b"get / http/1.1"));
        assert!(!looks_like_http(br#"{"method":"GET / HTTP/1.1"}"#));
        assert!(!looks_like_http(b"GET lost"));
    }
}
