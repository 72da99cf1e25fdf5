//! The two eras of MCP, as far as they differ on the wire.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tabwarden_domain::{Client, Refusal};

use crate::About;
use crate::arguments::shorten;
use crate::fault::Fault;

/// Versions that begin with `initialize`, oldest first.
const HANDSHAKE: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The version in which every request says who it is.
const STATELESS: &str = "2026-07-28";

/// What a model reads before anything else.
pub(crate) const INSTRUCTIONS: &str = "Tabwarden shares one real Chromium between several agents and its user, who watches. \
     Start with browser_tab_list. Before opening a page, declare the domains that the task needs with \
     browser_set_allowed_domains. Leave tabs alone that you did not open, unless the user asked for it. \
     Every error says what to call next.";

/// In which era one request speaks, and so how it is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// `initialize` opened the conversation.
    Handshake,
    /// The request says who it is.
    Stateless,
}

/// All versions, oldest first.
pub(crate) fn all_versions() -> Vec<&'static str> {
    HANDSHAKE.into_iter().chain([STATELESS]).collect()
}

/// `_meta` of a request. Each part is looked at only where it matters.
#[derive(Deserialize, Default)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
}

/// Any request's parameters, for their `_meta`.
#[derive(Deserialize, Default)]
pub(crate) struct AnyParams<'a> {
    #[serde(borrow, rename = "_meta")]
    pub meta: Option<Meta<'a>>,
}

/// What `tools/call` takes.
#[derive(Deserialize)]
pub(crate) struct CallParams<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(default)]
    pub arguments: Option<Value>,
    #[serde(borrow, rename = "_meta")]
    pub meta: Option<Meta<'a>>,
}

/// How a request introduces itself.
pub(crate) enum Said {
    /// Not at all: what `initialize` said counts, if it was called.
    Nothing,
    /// In its `_meta`, as 2026-07-28 wants it.
    Inline(Client),
}

/// Why a `_meta` does not do.
pub(crate) enum MetaError {
    /// The version is another one.
    Fault(Fault),
    /// Something is missing or mistyped.
    Refusal(Refusal),
}

impl Meta<'_> {
    /// Reads who speaks.
    pub fn said(&self) -> Result<Said, MetaError> {
        let Some(version) = self.version else { return Ok(Said::Nothing) };
        let wrong = |key: &str, expected: &str| {
            MetaError::Refusal(Refusal::InvalidParams {
                argument: format!("_meta io.modelcontextprotocol/{key}"),
                problem: "is missing or mistyped".to_owned(),
                expected: expected.to_owned(),
            })
        };
        let version: Cow<'_, str> =
            serde_json::from_str(version.get()).map_err(|_| wrong("protocolVersion", "a string, as 2026-07-28"))?;
        if HANDSHAKE.contains(&&*version) {
            return Ok(Said::Nothing);
        }
        if version != STATELESS {
            return Err(MetaError::Fault(Fault::UnsupportedVersion { requested: shorten(&version) }));
        }
        if !self.capabilities.is_some_and(|json| json.get().starts_with('{')) {
            return Err(wrong("clientCapabilities", "an object, which may be empty"));
        }
        let client = match self.client {
            None => Client::default(),
            Some(json) => client(json).ok_or_else(|| wrong("clientInfo", "an object with name and version"))?,
        };
        Ok(Said::Inline(client))
    }
}

#[derive(Deserialize, Default)]
struct ClientInfo {
    name: String,
    #[serde(default)]
    version: String,
}

fn client(json: &RawValue) -> Option<Client> {
    let info: ClientInfo = serde_json::from_str(json.get()).ok()?;
    Some(Client { name: shorten(&info.name), version: shorten(&info.version) })
}

/// What `initialize` says: the client, and the version to answer with.
pub(crate) fn read_initialize(params: Option<&RawValue>) -> Result<(Client, &'static str), Refusal> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize<'a> {
        #[serde(borrow)]
        protocol_version: Cow<'a, str>,
        #[serde(borrow)]
        client_info: Option<&'a RawValue>,
    }
    let wrong = |argument: &str, expected: &str| Refusal::InvalidParams {
        argument: argument.to_owned(),
        problem: "is missing or mistyped".to_owned(),
        expected: expected.to_owned(),
    };
    let version_expected = "protocolVersion as a string, as 2025-11-25";
    let params = params.ok_or_else(|| wrong("params", version_expected))?;
    let read: Initialize<'_> =
        serde_json::from_str(params.get()).map_err(|_| wrong("protocolVersion", version_expected))?;
    let client = match read.client_info {
        None => Client::default(),
        Some(json) => {
            client(json).ok_or_else(|| wrong("clientInfo", "clientInfo as an object with name and version"))?
        }
    };
    Ok((client, handshake_version(&read.protocol_version)))
}

/// The version that `initialize` is answered with: the one asked for, or else the latest that has a handshake.
fn handshake_version(asked: &str) -> &'static str {
    HANDSHAKE.into_iter().find(|version| *version == asked).unwrap_or(HANDSHAKE[HANDSHAKE.len() - 1])
}

fn server_info(about: &About) -> Value {
    json!({ "name": "tabwarden", "title": "Tabwarden", "version": about.version })
}

/// The result of `initialize`.
pub(crate) fn initialize_result(version: &str, about: &About) -> String {
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": server_info(about),
        "instructions": INSTRUCTIONS,
    })
    .to_string()
}

/// The result of `server/discover`.
pub(crate) fn discover_result(about: &About) -> String {
    json!({
        "resultType": "complete",
        "supportedVersions": all_versions(),
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info(about) },
    })
    .to_string()
}
