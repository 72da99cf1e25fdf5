//! The stdio bridge between in-memory pipes and a real socket.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use common::{Served, assert_holds, initialize_params, serve, served, served_alone, wait_for};
use serde_json::{Value, json};
use tabwarden_domain::Event;
use tabwarden_gateway::SocketPath;
use tabwarden_gateway::bridge::{BridgeConfig, BridgeError, between};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// A client's ends of the bridge's pipes.
struct Bridged {
    stdin: Option<DuplexStream>,
    stdout: BufReader<DuplexStream>,
    running: JoinHandle<Result<(), BridgeError>>,
}

fn bridge(socket: &std::path::Path) -> Bridged {
    let (stdin, from_client) = duplex(1024);
    let (to_client, stdout) = duplex(1024);
    let config = BridgeConfig { socket: SocketPath::resolve(Some(socket)).expect("a path"), start: None };
    let running = tokio::spawn(between(config, from_client, to_client));
    Bridged { stdin: Some(stdin), stdout: BufReader::new(stdout), running }
}

impl Bridged {
    async fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }

    async fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).await.expect("readable");
        (read > 0).then(|| serde_json::from_str(&line).expect("nothing but JSON on stdout"))
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let answer = self.receive().await.expect("an answer");
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn initialize(&mut self) {
        let answer = self.request(1, "initialize", initialize_params("2025-06-18", "stdio")).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Closes stdin; all that still comes.
    async fn finish(mut self) -> Vec<Value> {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        while let Some(message) = self.receive().await {
            rest.push(message);
        }
        self.running.await.expect("no panic").expect("a quiet end");
        rest
    }
}

/// Ends the app and starts another on the same socket.
async fn restart(served: Served) -> Served {
    serve(None, served.stop().await)
}

fn labels(served: &Served) -> Vec<String> {
    served.gateway.sessions().into_iter().map(|session| session.label).collect()
}

#[tokio::test]
async fn messages_pass_both_ways_and_the_end_of_stdin_ends_it() {
    let served = served().await;
    let mut bridged = bridge(&served.path);
    bridged.initialize().await;
    let list = bridged.call(2, "browser_tab_list", json!({})).await;
    assert_eq!(list["result"]["isError"], false);
    assert_eq!(labels(&served), ["stdio"]);
    // What is no message is answered by the app, what is too long for it by the bridge.
    for line in ["{".to_owned(), "x".repeat(5 * 1024 * 1024)] {
        let stdin = bridged.stdin.as_mut().expect("open");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("written");
        let answer = bridged.receive().await.expect("an answer");
        assert!(answer["id"].is_null() && answer["error"]["code"].is_i64(), "{answer}");
    }
    assert_eq!(bridged.finish().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_was_sent_is_answered_before_the_bridge_ends() {
    let served = served().await;
    let mut bridged = bridge(&served.path);
    bridged.initialize().await;
    bridged.call(2, "browser_tab_list", json!({})).await;
    served.control.hang(true);
    let mut events = served.gateway.events();
    bridged
        .send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "browser_tab_new" } }))
        .await;
    wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    let finishing = tokio::spawn(bridged.finish());
    served.control.hang(false);
    let rest = finishing.await.expect("no panic");
    assert_holds(&json!(rest), &json!([{ "id": 3, "result": { "isError": false } }]), &json!(rest));
}

#[tokio::test]
async fn an_app_that_restarts_is_found_again_and_hears_the_same_initialize() {
    let served = served_alone().await;
    let mut bridged = bridge(&served.path);
    bridged.initialize().await;
    let served = restart(served).await;
    let list = bridged.call(2, "browser_tab_list", json!({})).await;
    assert_eq!(list["result"]["isError"], false, "{list}");
    assert_eq!(labels(&served), ["stdio"]);
    assert_eq!(bridged.finish().await, Vec::<Value>::new(), "the repeated handshake is not to be seen");
}

#[tokio::test]
async fn what_was_in_flight_when_the_app_went_is_answered_with_an_error() {
    let served = served_alone().await;
    let mut bridged = bridge(&served.path);
    bridged.initialize().await;
    bridged.call(2, "browser_tab_list", json!({})).await;
    served.control.hang(true);
    let mut events = served.gateway.events();
    for id in ["\"a\"", "4"] {
        let id: Value = serde_json::from_str(id).expect("JSON");
        bridged
            .send(
                &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "browser_tab_new" } }),
            )
            .await;
        wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    }
    let _served = restart(served).await;
    let error =
        json!({ "code": -32603, "message": "…", "data": { "code": "internal", "retryable": true, "hint": "…" } });
    for id in [json!("a"), json!(4)] {
        let answer = bridged.receive().await.expect("an answer");
        assert_holds(&answer, &json!({ "jsonrpc": "2.0", "id": id, "error": error }), &answer);
    }
    assert_eq!(bridged.call(5, "browser_tab_list", json!({})).await["result"]["isError"], false);
}

#[tokio::test]
async fn a_dropped_connection_to_the_same_app_gives_the_session_back() {
    let served = served_alone().await;
    let mut bridged = bridge(&served.path);
    bridged.initialize().await;
    bridged.call(2, "browser_set_allowed_domains", json!({ "domains": ["example.com"] })).await;
    let session = served.gateway.sessions()[0].id.clone();
    // The same gateway, served anew: the connection drops, the desk stays.
    served.cancel.cancel();
    let Served { gateway, serving, path, folder, control, .. } = served;
    serving.await.expect("ended");
    let bound =
        tabwarden_gateway::BoundSocket::bind(&SocketPath::resolve(Some(&path)).expect("a path")).expect("a socket");
    let cancel = tokio_util::sync::CancellationToken::new();
    let _serving = tokio::spawn(gateway.clone().serve_socket(bound, cancel));
    let answer = bridged.call(3, "browser_get_allowed_domains", json!({})).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "domains": ["example.com"] }));
    assert_eq!(gateway.sessions().into_iter().map(|session| session.id).collect::<Vec<_>>(), [session]);
    drop((folder, control));
}

#[tokio::test(start_paused = true)]
async fn without_an_app_every_request_is_answered_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bridged = bridge(&folder.path().join("mcp.sock"));
    for id in 1..3 {
        let answer = bridged.request(id, "initialize", initialize_params("2025-11-25", "x")).await;
        let expect =
            json!({ "code": -32603, "message": "…", "data": { "code": "internal", "retryable": true, "hint": "…" } });
        assert_holds(&answer["error"], &expect, &answer);
        assert!(answer["error"]["message"].as_str().expect("a message").contains("start"), "{answer}");
    }
    // It is there from the moment on in which one is started.
    let served = serve(None, folder);
    bridged.initialize().await;
    assert_eq!(labels(&served), ["stdio"]);
    assert_eq!(bridged.finish().await, Vec::<Value>::new());
}

#[tokio::test]
async fn the_app_is_started_when_it_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = folder.path().join("started");
    let mut start = std::process::Command::new("touch");
    start.arg(&started);
    let (mut stdin, from_client) = duplex(1024);
    let (to_client, stdout) = duplex(1024);
    let path = folder.path().join("mcp.sock");
    let config = BridgeConfig { socket: SocketPath::resolve(Some(&path)).expect("a path"), start: Some(start) };
    let running = tokio::spawn(between(config, from_client, to_client));
    let request =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params("2025-11-25", "x") });
    stdin.write_all(format!("{request}\n").as_bytes()).await.expect("written");
    while !started.exists() {
        tokio::task::yield_now().await;
    }
    let served = serve(None, folder);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.expect("readable");
    assert!(line.contains("\"protocolVersion\":\"2025-11-25\""), "{line}");
    drop(stdin);
    running.await.expect("no panic").expect("a quiet end");
    drop(served);
}
