//! A tool's arguments: declared once, and from that both described to the client and checked.

use serde_json::{Map, Value, json};
use tabwarden_domain::{Refusal, TabId, WindowId};

/// One argument of a tool.
pub(crate) struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it must be.
    pub kind: Kind,
    /// Whether a call without it is refused.
    pub required: bool,
    /// For the model.
    pub about: &'static str,
}

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Text,
    Flag,
    Texts,
}

/// The argument that every tool takes: which of the caller's own sessions calls.
pub(crate) const SESSION: Argument =
    Argument { name: "session_id", kind: Kind::Text, required: false, about: "Your session, if not the main one" };

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Texts => "an array of strings",
        }
    }

    fn schema(self, about: &str) -> Value {
        match self {
            Self::Text => json!({ "type": "string", "description": about }),
            Self::Flag => json!({ "type": "boolean", "description": about }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" }, "description": about }),
        }
    }
}

/// The JSON schema of a tool's arguments.
pub(crate) fn schema(declared: &[Argument]) -> Value {
    let properties: Map<String, Value> =
        declared.iter().map(|argument| (argument.name.to_owned(), argument.kind.schema(argument.about))).collect();
    let required: Vec<&str> =
        declared.iter().filter(|argument| argument.required).map(|argument| argument.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Arguments that are what the tool declared.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks what came against what the tool declared.
    pub fn read(sent: Option<Value>, declared: &[Argument]) -> Result<Self, Refusal> {
        let invalid = |argument: &str, problem: &str, expected: String| Refusal::InvalidParams {
            argument: argument.to_owned(),
            problem: problem.to_owned(),
            expected,
        };
        let given = match sent {
            None => Map::new(),
            Some(Value::Object(given)) => given,
            Some(_) => return Err(invalid("arguments", "is not an object", "arguments as an object".to_owned())),
        };
        for argument in declared {
            let expected = || format!("{} as {}", argument.name, argument.kind.in_words());
            match given.get(argument.name) {
                None if argument.required => return Err(invalid(argument.name, "is missing", expected())),
                Some(value) if !argument.kind.fits(value) => {
                    return Err(invalid(argument.name, &format!("is not {}", argument.kind.in_words()), expected()));
                }
                _ => {}
            }
        }
        if let Some(unknown) = given.keys().find(|name| declared.iter().all(|argument| argument.name != name.as_str()))
        {
            let names: Vec<&str> = declared.iter().map(|argument| argument.name).collect();
            let expected = format!("only {}", names.join(", "));
            return Err(invalid(&shorten(unknown), "is no argument of this tool", expected));
        }
        Ok(Self(given))
    }

    /// A string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name).and_then(Value::as_bool)
    }

    /// An array of strings.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The tab that `tab_id` names.
    pub fn tab(&self) -> Option<TabId> {
        self.text("tab_id").map(|text| TabId::from_wire(&shorten(text)))
    }

    /// The window that `window_id` names.
    pub fn window(&self) -> Option<WindowId> {
        self.text("window_id").map(|text| WindowId::from_wire(&shorten(text)))
    }
}

/// A text that came from outside and goes back in an error, if it is short enough to be read. A longer one is only
/// counted: cut off, a secret in it might no longer be known as one.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.chars().count() {
        ..=LONGEST => text.to_owned(),
        count => format!("(a text of {count} characters)"),
    }
}
