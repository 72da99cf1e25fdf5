//! The HTTP address of the real program: its token, its checks, its seal.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod common;

use common::{Instance, PATIENCE, Site};
use serde_json::{Value, json};

/// An answer's status and body; of a stream, the JSON of its last event.
struct Answer {
    status: u16,
    session: Option<String>,
    body: Value,
}

struct Http {
    agent: ureq::Agent,
    url: String,
    token: String,
}

impl Http {
    fn new(instance: &Instance, token: &str) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build();
        let url = instance.status()["http"].as_str().expect("an HTTP address").to_owned();
        Self { agent: ureq::Agent::new_with_config(config), url, token: token.to_owned() }
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let mut request = self.agent.post(&self.url).header("Accept", "application/json, text/event-stream");
        if headers.iter().all(|(name, _)| *name != "Authorization") {
            request = request.header("Authorization", &bearer);
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let mut answer = request.send_json(message).expect("an answer");
        let session = answer.headers().get("mcp-session-id").and_then(|v| v.to_str().ok()).map(str::to_owned);
        let text = answer.body_mut().read_to_string().expect("text");
        let last = text.lines().filter_map(|line| line.strip_prefix("data:")).rfind(|data| !data.trim().is_empty());
        let body = serde_json::from_str(last.unwrap_or(&text)).unwrap_or(Value::Null);
        Answer { status: answer.status().as_u16(), session, body }
    }
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "http", "version": "1" } } })
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

/// Walks an agent's whole way over HTTP.
fn works(http: &Http) {
    let site = Site::start();
    let hello = http.post(&[], &hello());
    assert_eq!((hello.status, &hello.body["result"]["protocolVersion"]), (200, &json!("2025-06-18")));
    let session = hello.session.expect("a session id");
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(http.post(&headers, &initialized).status, 202);
    http.post(&headers, &call("browser_set_allowed_domains", json!({ "domains": ["localhost"] })));
    let canary = format!("canary{}", "x7q".repeat(6));
    let url = site.url("app", &format!("/cb?access_token={canary}"));
    let opened = http.post(&headers, &call("browser_tab_new", json!({ "url": url })));
    let said = opened.body.to_string();
    assert!(said.contains("access_token=[REDACTED]") && !said.contains(&canary), "{said}");
    let listed = http.post(&headers, &call("browser_tab_list", json!({}))).body.to_string();
    assert!(listed.contains("access_token=[REDACTED]") && !listed.contains(&canary), "{listed}");
}

#[test]
fn http_with_a_token_file() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("token");
    let instance = Instance::serve(&["--http", "0", "--token-file", path.to_str().expect("path")]);
    let token = std::fs::read_to_string(&path).expect("token");
    let http = Http::new(&instance, token.trim());
    works(&http);

    let check = |headers: &[(&str, &str)], expect: u16| {
        let answer = http.post(headers, &hello());
        assert_eq!(answer.status, expect, "{headers:?}");
        assert!(answer.body["result"].is_null(), "{headers:?}");
    };
    check(&[("Authorization", "")], 401);
    check(&[("Authorization", "Bearer wrong")], 401);
    check(&[("Authorization", &format!("Basic {}", token.trim()))], 401);
    check(&[("Origin", "https://evil.example")], 403);
    check(&[("Origin", "null")], 403);
    check(&[("Host", "evil.example")], 403);
    // A call without a session is no way in.
    assert_ne!(http.post(&[], &call("browser_tab_list", json!({}))).status, 200);
}

#[test]
fn http_with_a_token_in_the_keyring() {
    assert!(
        std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some(),
        "this test needs a session bus with a keyring: run `cargo xtask test`"
    );
    let folder = tempfile::tempdir().expect("folder");
    let instance = Instance::serve_in(folder.path(), &["--http", "0"]);
    let user = format!("http token of {}", instance.data_dir.display());
    let output = std::process::Command::new("secret-tool")
        .args(["lookup", "service", "tabwarden", "username", &user])
        .output()
        .expect("secret-tool runs");
    let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(token.len(), 64, "the token is in the keyring");
    works(&Http::new(&instance, &token));
    drop(instance);
    // The next start finds the same token.
    let again = Instance::serve_in(folder.path(), &["--http", "0"]);
    works(&Http::new(&again, &token));
}

#[test]
fn http_without_a_keyring_says_what_to_do() {
    let folder = tempfile::tempdir().expect("folder");
    let output = common::command(&folder.path().join("s"), &folder.path().join("d"))
        .args(["serve", "--headless", "--http", "0"])
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--token-file PATH"), "{said}");
}
