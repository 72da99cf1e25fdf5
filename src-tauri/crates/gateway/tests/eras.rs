//! Both eras of MCP on one socket.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use common::{assert_holds, check, initialize_params, meta, served};
use serde_json::{Value, json};

fn call_list(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "browser_tab_list", "arguments": {} } })
}

fn stateless(method: &str, mut params: Value) -> Value {
    params["_meta"] = meta("stateless");
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn not_initialized(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": {
        "code": -32001, "message": "…", "data": { "code": "not_initialized", "retryable": false, "hint": "…" },
    } })
}

#[tokio::test]
async fn every_handshake_version_is_echoed_and_others_get_the_latest() {
    let served = served().await;
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let mut client = served.connect().await;
        let answer = client.request("initialize", initialize_params(asked, "x")).await;
        assert_holds(
            &answer["result"],
            &json!({
                "protocolVersion": answered,
                "capabilities": { "tools": { "listChanged": false } },
                "serverInfo": { "name": "tabwarden", "version": "0.0.0-test" },
                "instructions": "…",
            }),
            &answer,
        );
        assert!(client.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    }
}

#[tokio::test]
async fn initialize_wants_a_version_and_a_sensible_client() {
    let served = served().await;
    let mut client = served.connect().await;
    for (params, argument) in [
        (json!({}), "protocolVersion"),
        (json!({ "protocolVersion": 3 }), "protocolVersion"),
        (json!({ "protocolVersion": "2025-11-25", "clientInfo": "x" }), "clientInfo"),
        (json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": 3 } }), "clientInfo"),
    ] {
        let answer = client.request("initialize", params).await;
        assert_holds(
            &answer["error"],
            &json!({ "code": -32602, "message": "…", "data": { "code": "invalid_params", "argument": argument, "expected": "…" } }),
            &answer,
        );
    }
    // It may leave out what it is.
    assert!(client.request("initialize", json!({ "protocolVersion": "2025-11-25" })).await["result"].is_object());
}

#[tokio::test]
async fn whoever_has_not_said_who_it_is_is_refused_and_may_still_say_it() {
    let served = served().await;
    let mut client = served.connect().await;
    for params in
        [json!({ "name": "browser_tab_list" }), json!({ "name": "no_such_tool" }), json!({}), json!({ "name": 1 })]
    {
        let answer = client.request("tools/call", params).await;
        assert_holds(&answer["error"], &not_initialized(0)["error"], &answer);
    }
    let answer = client.request("tools/list", json!({})).await;
    assert_holds(&answer["error"], &not_initialized(0)["error"], &answer);
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    client.initialize("late").await;
    assert!(client.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    // A notification before `initialize` does no harm either.
    let early = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let initialize =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": initialize_params("2025-11-25", "x") });
    let sent = format!("{early}\n{}\n{initialize}\n{}\n", call_list(1), call_list(3));
    check(&served, &sent, &[not_initialized(1), json!({ "id": 2, "result": {} }), json!({ "id": 3, "result": {} })])
        .await;
}

#[tokio::test]
async fn a_stateless_client_says_who_it_is_with_every_request() {
    let served = served().await;
    let list = stateless("tools/list", json!({}));
    let hints = json!({ "result": { "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "public" } });
    check(&served, &list.to_string(), &[hints]).await;
    let mut client = served.connect().await;
    let call = stateless("tools/call", json!({ "name": "browser_tab_list", "arguments": {} }));
    for _ in 0..2 {
        client.send(call.clone()).await;
        let answer = client.receive().await;
        assert_holds(&answer, &json!({ "id": 1, "result": { "resultType": "complete", "isError": false } }), &answer);
        // The `_meta` of an earlier request does not count for a later one.
        client.send(call_list(2)).await;
        let answer = client.receive().await;
        assert_holds(&answer, &not_initialized(2), &answer);
    }
    assert_eq!(served.gateway.sessions().len(), 2, "one for each connection");
}

#[tokio::test]
async fn discover_says_what_is_spoken_and_opens_no_session() {
    let served = served().await;
    let mut client = served.connect().await;
    let answer = client.request("server/discover", json!({ "_meta": meta("curious") })).await;
    assert_holds(
        &answer["result"],
        &json!({
            "resultType": "complete",
            "supportedVersions": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
            "capabilities": { "tools": {} },
            "instructions": "…",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "tabwarden" } },
        }),
        &answer,
    );
    assert_eq!(served.gateway.sessions().len(), 0);
}

#[tokio::test]
async fn a_meta_that_does_not_do_is_refused_with_what_is_missing() {
    let served = served().await;
    let mut client = served.connect().await;
    let with = |key: &str, value: Value| {
        let mut meta = meta("x");
        meta[format!("io.modelcontextprotocol/{key}")] = value;
        json!({ "name": "browser_tab_list", "_meta": meta })
    };
    let answer = client.request("tools/call", with("protocolVersion", json!("2099-01-01"))).await;
    assert_holds(
        &answer["error"],
        &json!({ "code": -32022, "data": { "code": "unsupported_protocol_version", "requested": "2099-01-01",
            "supported": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] } }),
        &answer,
    );
    for (key, value) in [("protocolVersion", json!(1)), ("clientCapabilities", json!(null)), ("clientInfo", json!("x"))]
    {
        let answer = client.request("tools/call", with(key, value)).await;
        assert_holds(&answer["error"], &json!({ "code": -32602, "data": { "code": "invalid_params" } }), &answer);
        assert!(answer["error"]["data"]["argument"].as_str().expect("argument").ends_with(key), "{answer}");
    }
    assert_eq!(served.gateway.sessions().len(), 0);
}

#[tokio::test]
async fn a_connection_that_began_inline_may_initialize_and_keeps_its_session() {
    let served = served().await;
    let mut client = served.connect().await;
    let answer = client.request("tools/call", json!({ "name": "browser_tab_list", "_meta": meta("both") })).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    let session = served.gateway.sessions()[0].id.clone();
    client.initialize("both").await;
    let answer = client.call("browser_tab_list", json!({})).await;
    assert_eq!(answer["result"]["isError"], false);
    assert_eq!(answer["result"].get("resultType"), None, "a handshake client gets what its version knows");
    let answer = client.request("tools/call", json!({ "name": "browser_tab_list", "_meta": meta("both") })).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    let sessions: Vec<_> = served.gateway.sessions().into_iter().map(|session| session.id).collect();
    assert_eq!(sessions, [session]);
}

#[tokio::test]
async fn initializing_twice_keeps_the_session() {
    let served = served().await;
    let mut client = served.agent("twice").await;
    client.initialize("twice").await;
    assert_eq!(served.gateway.sessions().len(), 1);
}
