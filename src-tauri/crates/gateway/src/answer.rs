//! The one place where results and refusals become what stands on the wire.
//!
//! Everything here is still unsealed text in [`Raw`]; [`crate::transport`] seals it and is the only one to write.
#![expect(clippy::disallowed_methods, reason = "this is where answers are written, for the transport to seal")]

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tabwarden_browser::BrowserError;
use tabwarden_domain::{Raw, Refusal, Tab, TabId, Window};

use crate::arguments::shorten;
use crate::fault::Fault;
use crate::message::Id;
use crate::protocol::Dialect;

/// What a tool hands back: a JSON object, and the tab that it turned out to be about.
pub(crate) struct Reply {
    /// The object's JSON text, its fields in the documented order.
    pub json: Raw<String>,
    /// The tab, if the call made one.
    pub tab: Option<TabId>,
    /// Why what was asked for was not done, where the answer says so itself: the user was asked.
    pub kept: Option<&'static str>,
}

impl Reply {
    /// An object that holds nothing of a page.
    pub fn of(value: &Value) -> Self {
        Self { json: Raw::new(value.to_string()), tab: None, kept: None }
    }

    /// An object that was written field by field.
    pub fn written(json: String) -> Self {
        Self { json: Raw::new(json), tab: None, kept: None }
    }
}

/// `{"tabs": […]}`, in window order and then strip order.
pub(crate) fn tab_list(windows: Raw<Vec<Window>>) -> Reply {
    let mut json = String::with_capacity(2048);
    json.push_str("{\"tabs\":[");
    let mut first = true;
    for tab in windows.expose().iter().flat_map(|window| &window.tabs) {
        if !std::mem::take(&mut first) {
            json.push(',');
        }
        write_tab(&mut json, tab, "");
    }
    json.push_str("]}");
    Reply::written(json)
}

/// `{"tab": {…}}` with sound and loading.
pub(crate) fn tab_details(tab: &Raw<Tab>) -> Reply {
    let tab = tab.expose();
    let flag = |flag: Option<bool>| flag.map_or("null", |on| if on { "true" } else { "false" });
    let more = format!(
        ",\"audible\":{},\"muted\":{},\"loading\":{}",
        flag(tab.audible),
        flag(tab.muted),
        flag(Some(tab.loading))
    );
    one_tab(tab, &more)
}

/// `{"tab": {…}}` with loading.
pub(crate) fn opened_tab(tab: &Raw<Tab>) -> Reply {
    let tab = tab.expose();
    let mut reply = one_tab(tab, if tab.loading { ",\"loading\":true" } else { ",\"loading\":false" });
    reply.tab = Some(tab.id.clone());
    reply
}

fn one_tab(tab: &Tab, more: &str) -> Reply {
    let mut json = String::with_capacity(512);
    json.push_str("{\"tab\":");
    write_tab(&mut json, tab, more);
    json.push('}');
    Reply::written(json)
}

fn write_tab(json: &mut String, tab: &Tab, more: &str) {
    json.push_str("{\"id\":");
    write_string(json, tab.id.as_str());
    json.push_str(",\"title\":");
    write_string(json, &tab.title);
    json.push_str(",\"url\":");
    write_string(json, &tab.url);
    json.push_str(if tab.active { ",\"active\":true" } else { ",\"active\":false" });
    json.push_str(",\"window_id\":");
    write_string(json, tab.window.as_str());
    json.push_str(more);
    json.push('}');
}

/// Writes a JSON string. By hand, since this is what a tab list costs; it escapes what JSON demands and nothing else.
fn write_string(json: &mut String, text: &str) {
    json.push('"');
    let mut clean_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        json.push_str(&text[clean_from..at]);
        clean_from = at + 1;
        match byte {
            b'"' => json.push_str("\\\""),
            b'\\' => json.push_str("\\\\"),
            b'\n' => json.push_str("\\n"),
            b'\r' => json.push_str("\\r"),
            b'\t' => json.push_str("\\t"),
            _ => drop(write!(json, "\\u{byte:04x}")),
        }
    }
    json.push_str(&text[clean_from..]);
    json.push('"');
}

/// A tool's result as one JSON-RPC response. The text is the object's JSON as a string, and `structuredContent` the
/// same object.
pub(crate) fn tool_result(id: &Id, reply: &Reply, dialect: Dialect) -> String {
    let object = reply.json.expose();
    let mut line = String::with_capacity(2 * object.len() + object.len() / 4 + 200);
    let _ = write!(line, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":");
    write_string(&mut line, object);
    line.push_str("}],\"isError\":false,\"structuredContent\":");
    line.push_str(object);
    if dialect == Dialect::Stateless {
        line.push_str(",\"resultType\":\"complete\"");
    }
    line.push_str("}}");
    line
}

/// Any other result as one JSON-RPC response. `result` is JSON text.
pub(crate) fn result(id: &Id, result: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

/// An error response; its id is null where none could be made out.
pub(crate) fn error(id: Option<&Id>, failure: &Failure) -> String {
    let id = id.map_or("null", Id::as_json);
    let error = json!({ "code": failure.code, "message": failure.message, "data": failure.data() });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}")
}

/// A JSON-RPC error in its parts.
pub(crate) struct Failure {
    /// The code.
    pub code: i32,
    /// Its name, as it stands in `data.code`.
    pub slug: &'static str,
    /// One sentence: what happened, and the call to make next.
    pub message: String,
    retryable: bool,
    hint: String,
    more: Map<String, Value>,
}

impl Failure {
    fn new(code: i32, slug: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, slug, message: message.into(), retryable: false, hint: hint.into(), more: Map::new() }
    }

    fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// What stands under `data`.
    pub fn data(&self) -> Value {
        let mut data = Map::new();
        data.insert("code".to_owned(), self.slug.into());
        data.insert("retryable".to_owned(), self.retryable.into());
        data.insert("hint".to_owned(), self.hint.as_str().into());
        data.extend(self.more.clone());
        data.into()
    }
}

impl From<&Refusal> for Failure {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NotInitialized => Self::new(
                -32001,
                "not_initialized",
                "This connection has no session: call initialize first.",
                "Call initialize, then send notifications/initialized, then repeat this call. Clients of MCP 2026-07-28 \
                 send their _meta with every request instead.",
            ),
            Refusal::UnknownTool { name } => Self::new(
                -32602,
                "invalid_params",
                format!("There is no tool '{name}': call tools/list for the tools there are."),
                "Call tools/list and use one of its names.",
            )
            .with("argument", "name")
            .with("expected", "a tool from tools/list"),
            Refusal::InvalidParams { argument, problem, expected } => Self::new(
                -32602,
                "invalid_params",
                format!("{argument} {problem}: call again with {expected}."),
                format!("Call again with {expected}."),
            )
            .with("argument", argument.as_str())
            .with("expected", expected.as_str()),
            Refusal::Internal { what } => Self::new(
                -32603,
                "internal",
                format!("Tabwarden failed inside ({what}): call again, and tell the user if it fails again."),
                "Call again once; if it fails again, tell the user.",
            )
            .retryable(),
            Refusal::TabBusy { tab } => Self::new(
                -32603,
                "tab_busy",
                format!("Tab {tab} is between two states: make the same call again in a moment."),
                "Make the same call again after retry_after_ms.",
            )
            .retryable()
            .with("retry_after_ms", 100),
            Refusal::TabNotFound { tab } => Self::new(
                -32020,
                "tab_not_found",
                format!("There is no tab '{tab}': call browser_tab_list for the tabs that are open."),
                "Call browser_tab_list and use one of its ids; ids of closed tabs and of earlier browser launches are gone.",
            )
            .with("tab_id", tab.as_str()),
            Refusal::DomainNotAllowed { host, allowed } => Self::new(
                -32010,
                "domain_not_allowed",
                format!("{host} is not in this session's allowed domains: call browser_set_allowed_domains first."),
                "Call browser_set_allowed_domains with the whole list that this task needs, then repeat this call.",
            )
            .with("host", host.as_str())
            .with("allowed_domains", allowed.clone()),
            Refusal::TimedOut { limit } => {
                let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                Self::new(
                    -32014,
                    "timed_out",
                    format!("The browser did not answer within {limit} ms: call browser_tab_list to see how things stand."),
                    "Call browser_tab_list to see whether it happened, then try again.",
                )
                .retryable()
                .with("limit_ms", limit)
            }
            Refusal::BrowserUnavailable { reason } => Self::new(
                -32015,
                "browser_unavailable",
                format!(
                    "The browser is not running and could not be started ({}): tell the user, then call again.",
                    reason.trim_end_matches('.')
                ),
                "Tell the user what the reason says; the next call tries to start the browser again.",
            )
            .retryable()
            .with("reason", reason.as_str()),
        }
    }
}

/// An error that the HTTP library made by itself, with what every error of ours carries. Other messages pass as they are.
pub(crate) fn with_data(json: String) -> String {
    if !json.contains("\"error\"") {
        return json;
    }
    let Ok(mut message) = serde_json::from_str::<Value>(&json) else { return json };
    let Some(error) = message.get_mut("error").filter(|error| error["data"]["hint"].is_null()) else { return json };
    let said = error["message"].as_str().unwrap_or_default().to_owned();
    let failure = match error["code"].as_i64() {
        Some(-32700) => Failure::from(&Fault::NotJson),
        Some(-32600) => Failure::from(&Fault::NotAMessage),
        // Here the library's whole message is the method's name.
        Some(-32601) => Failure::from(&Fault::UnknownMethod { method: shorten(&said) }),
        Some(-32602) => Failure::new(-32602, "invalid_params", said, "Call tools/list for each tool's arguments.")
            .with("argument", "params")
            .with("expected", "what the method's schema says"),
        Some(code) => {
            let code = i32::try_from(code).unwrap_or(-32603);
            Failure::new(code, "invalid_request", said, "Mend the request as the message says and send it again.")
        }
        None => return json,
    };
    error["message"] = failure.message.as_str().into();
    // What the library says there stays: clients choose another version by it.
    let mut data = failure.data();
    if let (Some(ours), Some(theirs)) = (data.as_object_mut(), error["data"].as_object()) {
        ours.extend(theirs.clone());
    }
    error["data"] = data;
    message.to_string()
}

impl From<&Fault> for Failure {
    fn from(fault: &Fault) -> Self {
        let parse = |message: &str| {
            Self::new(-32700, "parse_error", message, "Send one JSON-RPC message per line, as UTF-8 JSON.")
        };
        let invalid = |message: &str, hint: &str| Self::new(-32600, "invalid_request", message, hint);
        match fault {
            Fault::NotUtf8 => parse("The line is not UTF-8: send one JSON-RPC message per line, as UTF-8 JSON."),
            Fault::NotJson => parse("The line is not JSON: send one JSON-RPC message per line."),
            Fault::NotAMessage => invalid(
                "The line is not a JSON-RPC 2.0 message: send \"jsonrpc\":\"2.0\" with a method, and an id for an answer.",
                "Send {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"…\",\"params\":{…}}.",
            ),
            Fault::Batch => invalid(
                "Batches are not taken: send each message on a line of its own.",
                "Send each message on a line of its own.",
            ),
            Fault::BadId => invalid(
                "The id is not a number or a short string: send the request again with another id.",
                "Use a number, or a string of up to 250 bytes, as the id.",
            ),
            Fault::BadParams => Self::new(
                -32602,
                "invalid_params",
                "params is not an object: call again with params as an object.",
                "Call again with params as an object.",
            )
            .with("argument", "params")
            .with("expected", "an object"),
            Fault::TooLong => {
                invalid("message larger than 4 MiB", "Send messages of up to 4 MiB, newline not counted.")
            }
            Fault::UnknownMethod { method } => Self::new(
                -32601,
                "method_not_found",
                format!("There is no method '{method}': this server has tools/list and tools/call."),
                "Use tools/list and tools/call.",
            ),
            // MCP 2026-07-28 itself gives this code that meaning, and its clients choose another version by it.
            Fault::UnsupportedVersion { requested } => Self::new(
                -32022,
                "unsupported_protocol_version",
                format!(
                    "Protocol version '{requested}' is not spoken here: use 2026-07-28 in _meta, or call initialize."
                ),
                "Use one of the supported versions.",
            )
            .with("requested", requested.as_str())
            .with("supported", crate::protocol::all_versions()),
            Fault::TooManyConnections => Self::new(
                -32603,
                "internal",
                "All connections are in use: close one and connect again.",
                "Close a connection that is not needed, then connect again.",
            )
            .retryable(),
            Fault::AppGone => Self::new(
                -32603,
                "internal",
                "Tabwarden stopped before it answered: make the call again.",
                "Call browser_tab_list to see how things stand, then make the call again.",
            )
            .retryable(),
            Fault::NoApp { path } => Self::new(
                -32603,
                "internal",
                format!("No Tabwarden answers on {path}: ask the user to start it, then call again."),
                "Ask the user to start Tabwarden, then make the call again.",
            )
            .retryable(),
        }
    }
}

/// Why the browser did not do it, as a refusal.
pub(crate) fn refusal(error: BrowserError) -> Refusal {
    match error {
        BrowserError::Unavailable { reason } => Refusal::BrowserUnavailable { reason },
        BrowserError::NoSuchTab(tab) => Refusal::TabNotFound { tab },
        BrowserError::NoSuchWindow(window) => Refusal::InvalidParams {
            argument: "window_id".to_owned(),
            problem: format!("'{window}' is no open window"),
            expected: "the window_id of an open tab, or none".to_owned(),
        },
        BrowserError::Busy(tab) => Refusal::TabBusy { tab },
        BrowserError::TimedOut(limit) => Refusal::TimedOut { limit },
        BrowserError::Refused(what) => Refusal::Internal { what },
    }
}

/// Milliseconds for people and JSON.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_written_so_that_json_reads_them_back(text in any::<String>()) {
            let mut json = String::new();
            write_string(&mut json, &text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
        }
    }
}
