//! The tools: one file per surface, each tool one value.

mod domains;
mod sessions;
mod tabs;

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tabwarden_domain::Refusal;

use crate::answer::Reply;
use crate::arguments::{self, Argument, Arguments};
use crate::pipeline::Call;
use crate::protocol::Dialect;

/// One tool: what a client is told of it, and what it does.
pub(crate) struct Tool {
    /// Its name.
    pub name: &'static str,
    /// For the model.
    pub about: &'static str,
    /// What it takes, with [`arguments::SESSION`].
    pub arguments: &'static [Argument],
    /// The schema of what it hands back.
    pub output: fn() -> Value,
    /// What it does to the world.
    pub effect: Effect,
    /// Does it.
    pub run: for<'a> fn(&'a Call, Arguments) -> BoxFuture<'a, Result<Reply, Refusal>>,
}

/// What a tool does to the world, for the annotations.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// Adds something; a second call adds another.
    Adds,
    /// Sets something; a second call changes nothing more.
    Sets,
    /// Ends something for good.
    Ends,
}

impl Effect {
    fn annotations(self, open_world: bool) -> Value {
        let (reads, destructive, idempotent) = match self {
            Self::Reads => (true, false, true),
            Self::Adds => (false, false, false),
            Self::Sets => (false, false, true),
            Self::Ends => (false, true, true),
        };
        json!({
            "readOnlyHint": reads,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        })
    }
}

/// All tools, in the order in which they are listed.
static ALL: [&Tool; 8] = [
    &tabs::LIST,
    &tabs::GET,
    &tabs::NEW,
    &tabs::CLOSE,
    &domains::SET,
    &domains::GET,
    &sessions::OPEN,
    &sessions::CLOSE,
];

/// The tool of a name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    ALL.into_iter().find(|tool| tool.name == name)
}

/// Each tool as a client is told of it.
pub(crate) fn descriptions() -> Vec<Value> {
    ALL.into_iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.about,
                "inputSchema": arguments::schema(tool.arguments),
                "outputSchema": (tool.output)(),
                "annotations": tool.effect.annotations(tool.name == tabs::NEW.name),
            })
        })
        .collect()
}

/// The result of `tools/list` as JSON text, made once.
pub(crate) fn list(dialect: Dialect) -> &'static str {
    static HANDSHAKE: LazyLock<String> = LazyLock::new(|| json!({ "tools": descriptions() }).to_string());
    static STATELESS: LazyLock<String> = LazyLock::new(|| {
        json!({ "tools": descriptions(), "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public" })
            .to_string()
    });
    match dialect {
        Dialect::Handshake => &HANDSHAKE,
        Dialect::Stateless => &STATELESS,
    }
}

/// The schema of an object in which all these fields stand.
fn object(properties: Value) -> Value {
    let required: Vec<String> = properties.as_object().into_iter().flat_map(|fields| fields.keys().cloned()).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_list_is_small() {
        for dialect in [Dialect::Handshake, Dialect::Stateless] {
            let size = list(dialect).len();
            assert!(size < 7500, "tools/list has {size} bytes");
        }
    }

    #[test]
    fn every_tool_takes_a_session_and_requires_only_what_it_declares() {
        for tool in descriptions() {
            let input = &tool["inputSchema"];
            assert!(input["properties"]["session_id"].is_object(), "{tool}");
            for name in input["required"].as_array().into_iter().flatten() {
                assert!(input["properties"][name.as_str().expect("a name")].is_object(), "{tool}");
            }
            assert_eq!(tool["outputSchema"]["type"], "object");
        }
    }
}
