//! MCP over HTTP: who is let in, and that the same calls have the same answers.
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use common::{assert_holds, gateway, initialize_params, meta, wait_for};
use serde_json::{Value, json};
use tabwarden_browser::Control;
use tabwarden_domain::{Era, Event, Via};
use tabwarden_gateway::{Answer, Asked, Asker, Gateway, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// No secret: it guards nothing but these tests.
const TOKEN: &str = "let me in";

struct Http {
    gateway: Gateway,
    _control: Control,
    port: u16,
    cancel: CancellationToken,
    serving: JoinHandle<()>,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

async fn http() -> (Http, Asked) {
    let (asker, asked) = Asker::channel();
    let (gateway, control) = gateway(Some(asker));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let cancel = CancellationToken::new();
    let serving = tokio::spawn(gateway.clone().serve_http(listener, Token::new(TOKEN.to_owned()), cancel.clone()));
    (Http { gateway, _control: control, port, cancel, serving }, asked)
}

impl Http {
    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("connected");
        let mut request = format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.expect("written");
        let mut response = String::new();
        stream.read_to_string(&mut response).await.expect("readable");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunk(body) } else { body.to_owned() };
        Response { status, head: head.to_owned(), body }
    }

    /// A POST of somebody who may come in, with more headers.
    async fn post(&self, more: &[(&str, &str)], message: &Value) -> Response {
        let host = format!("127.0.0.1:{}", self.port);
        let authorization = format!("Bearer {TOKEN}");
        let mut headers = vec![
            ("Host", host.as_str()),
            ("Authorization", &authorization),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
        ];
        headers.extend(more);
        self.send("POST", &headers, &message.to_string()).await
    }

    /// A handshake; the headers of the session.
    async fn initialize(&self, name: &str) -> String {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params("2025-11-25", name) });
        let response = self.post(&[], &message).await;
        assert_eq!(response.status, 200, "{}", response.body);
        assert_holds(
            &response.answer(),
            &json!({ "id": 1, "result": { "protocolVersion": "2025-11-25" } }),
            &json!(name),
        );
        let session = response.header("mcp-session-id").expect("a session id");
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&[("Mcp-Session-Id", &session)], &done).await.status, 202);
        session
    }

    async fn call(&self, session: &str, tool: &str, arguments: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        self.post(&[("Mcp-Session-Id", session)], &message).await.answer()
    }

    async fn stateless(&self, name: &str, method: &str, mut params: Value) -> Response {
        params["_meta"] = meta(name);
        let tool = params["name"].as_str().unwrap_or_default().to_owned();
        let message = json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": params });
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !tool.is_empty() {
            headers.push(("Mcp-Name", &tool));
        }
        self.post(&headers, &message).await
    }
}

impl Response {
    fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    }

    /// All messages in the body.
    fn messages(&self) -> Vec<Value> {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let texts: Vec<&str> = match self.body.starts_with('{') {
            true => vec![&self.body],
            false => events.map(str::trim).filter(|text| !text.is_empty()).collect(),
        };
        texts.into_iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
    }

    /// The last message, which is the answer.
    fn answer(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no answer in {} {}", self.head, self.body))
    }
}

fn unchunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}

#[tokio::test]
async fn strangers_are_turned_away_before_anything_is_parsed() {
    let (http, _asked) = http().await;
    let host = format!("127.0.0.1:{}", http.port);
    let authorization = format!("Bearer {TOKEN}");
    let (host, token) = (("Host", host.as_str()), ("Authorization", authorization.as_str()));
    for (headers, expect) in [
        (vec![host], 401),
        (vec![host, ("Authorization", "Bearer nonsense")], 401),
        (vec![("Host", "evil.example"), token], 403),
        (vec![host, token, ("Origin", "https://evil.example")], 403),
        (vec![("Host", "evil.example")], 403),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            // The body is no MCP at all, which nobody notices.
            let response = http.send(method, &headers, "{").await;
            assert_eq!(response.status, expect, "{method} {headers:?}");
            assert!(!response.body.contains("jsonrpc"), "{}", response.body);
        }
    }
    assert_eq!(http.gateway.sessions().len(), 0);
}

#[tokio::test]
async fn a_handshake_client_has_a_session_from_initialize_to_delete() {
    let (http, mut asked) = http().await;
    let session = http.initialize("over http").await;
    let sessions = http.gateway.sessions();
    assert_eq!((sessions.len(), sessions[0].label.as_str(), sessions[0].via), (1, "over http", Via::Http));
    let list = http.call(&session, "browser_tab_list", json!({})).await;
    let text = list["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.starts_with("{\"tabs\":[{\"id\":\"tab_"), "{text}");
    assert_eq!(list["result"]["structuredContent"], serde_json::from_str::<Value>(text).expect("JSON"));
    assert_eq!(list["result"]["isError"], false);
    for (tool, arguments, code) in [
        ("browser_tab_get", json!({}), -32602),
        ("browser_tab_get", json!({ "tab_id": "tab_no" }), -32020),
        ("browser_tab_new", json!({ "url": "https://example.com/" }), -32010),
        ("browser_no_such_tool", json!({}), -32602),
    ] {
        let answer = http.call(&session, tool, arguments).await;
        let expect = json!({ "id": 2, "error": { "code": code, "message": "…", "data": { "code": "…", "retryable": false, "hint": "…" } } });
        assert_holds(&answer, &expect, &answer);
    }
    let tools =
        http.post(&[("Mcp-Session-Id", &session)], &json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/list" })).await;
    assert_eq!(tools.answer()["result"]["tools"].as_array().map(Vec::len), Some(8));
    // The person is asked here too, with progress for who wants it.
    let tab = list["result"]["structuredContent"]["tabs"][0]["id"].clone();
    let close = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "browser_tab_close", "arguments": { "tab_id": tab }, "_meta": { "progressToken": 1 } } });
    let headers = [("Mcp-Session-Id", session.as_str())];
    let answering = async { asked.next().await.expect("a question").answer(Answer::Keep) };
    let (closed, ()) = tokio::join!(http.post(&headers, &close), answering);
    let messages = closed.messages();
    assert_holds(
        &messages[0],
        &json!({ "method": "notifications/progress", "params": { "progressToken": 1 } }),
        &closed.answer(),
    );
    assert_eq!(closed.answer()["result"]["structuredContent"]["reason"], "kept_by_user");
    let mut events = http.gateway.events();
    let host = format!("127.0.0.1:{}", http.port);
    let authorization = format!("Bearer {TOKEN}");
    let delete = [("Host", host.as_str()), ("Authorization", &authorization), ("Mcp-Session-Id", &session)];
    assert!(http.send("DELETE", &delete, "").await.status < 300);
    wait_for(&mut events, |event| matches!(event, Event::SessionClosed(..))).await;
    assert_eq!(http.gateway.sessions().len(), 0);
}

#[tokio::test]
async fn a_stateless_client_keeps_its_session_from_request_to_request() {
    let (http, _asked) = http().await;
    let discovered = http.stateless("curious", "server/discover", json!({})).await.answer();
    assert_eq!(discovered["result"]["resultType"], "complete", "{discovered}");
    assert_eq!(http.gateway.sessions().len(), 0);
    let set = json!({ "name": "browser_set_allowed_domains", "arguments": { "domains": ["example.com"] } });
    let answer = http.stateless("one", "tools/call", set).await.answer();
    assert_holds(&answer, &json!({ "id": 3, "result": { "isError": false, "resultType": "complete" } }), &answer);
    let get = json!({ "name": "browser_get_allowed_domains", "arguments": {} });
    let answer = http.stateless("one", "tools/call", get.clone()).await.answer();
    assert_eq!(answer["result"]["structuredContent"], json!({ "domains": ["example.com"] }));
    let answer = http.stateless("two", "tools/call", get).await.answer();
    assert_eq!(answer["result"]["structuredContent"], json!({ "domains": [] }));
    let tools = http.stateless("two", "tools/list", json!({})).await.answer();
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(8), "{tools}");
    let sessions = http.gateway.sessions();
    assert_eq!(sessions.iter().map(|session| session.label.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert!(sessions.iter().all(|session| session.era == Era::Stateless));
    // One token is one principal: its agents may name each other's sessions.
    let list = json!({ "name": "browser_get_allowed_domains", "arguments": { "session_id": sessions[0].id.as_str() } });
    let answer = http.stateless("two", "tools/call", list).await.answer();
    assert_eq!(answer["result"]["structuredContent"], json!({ "domains": ["example.com"] }));
}

#[tokio::test]
async fn calls_without_a_session_are_refused() {
    let (http, _asked) = http().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "browser_tab_list" } });
    for headers in [vec![], vec![("Mcp-Session-Id", "no-such-session")]] {
        let response = http.post(&headers, &call).await;
        assert!((400..500).contains(&response.status), "{}", response.status);
    }
    assert_eq!(http.gateway.sessions().len(), 0);
}

#[tokio::test]
async fn secrets_do_not_leave_over_http_either() {
    let (http, _asked) = http().await;
    let session = http.initialize("x").await;
    http.call(&session, "browser_set_allowed_domains", json!({ "domains": ["example.com"] })).await;
    let canary = format!("ya29{}", "Zk3v".repeat(8));
    let mut events = http.gateway.events();
    let opened = http
        .call(
            &session,
            "browser_tab_new",
            json!({ "url": format!("https://example.com/?access_token={canary}&page=2") }),
        )
        .await;
    assert_eq!(
        opened["result"]["structuredContent"]["tab"]["url"],
        "https://example.com/?access_token=[REDACTED]&page=2"
    );
    let Event::Redacted(redaction) = wait_for(&mut events, |event| matches!(event, Event::Redacted(_))).await else {
        unreachable!("just matched")
    };
    assert_eq!(redaction.tool.as_deref(), Some("browser_tab_new"));
    assert_eq!(
        redaction.tab.as_ref().map(|tab| tab.as_str()),
        opened["result"]["structuredContent"]["tab"]["id"].as_str()
    );
    // What the protocol library itself quotes passes the same way.
    let token = format!("access_token={canary}");
    let odd = json!({ "jsonrpc": "2.0", "id": 9, "method": format!("no/such?{token}"), "params": {} });
    for response in [
        http.post(&[("Mcp-Session-Id", &session)], &odd).await,
        http.post(&[], &json!({ "jsonrpc": "2.0", "id": format!("x?{token}"), "method": "tools/list" })).await,
    ] {
        assert!(!response.body.contains(&canary), "{}", response.body);
    }
}

#[tokio::test]
async fn the_librarys_own_errors_say_what_to_do_too() {
    let (http, _) = http().await;
    let session = http.initialize("codex").await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let unknown = json!({ "jsonrpc": "2.0", "id": 5, "method": "prompts/list", "params": {} });
    let error = http.post(&headers, &unknown).await.answer()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32601), &json!("method_not_found")));
    assert!(error["data"]["hint"].is_string() && error["data"]["retryable"] == false, "{error}");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("'prompts/list'")), "{error}");
}

#[tokio::test]
async fn stopping_ends_http() {
    let (http, _asked) = http().await;
    http.initialize("x").await;
    let status = http.gateway.clone();
    http.cancel.cancel();
    http.serving.await.expect("ended");
    assert!(TcpStream::connect(("127.0.0.1", http.port)).await.is_err());
    status.shutdown();
    assert_eq!(status.sessions().len(), 0);
}
