//! Raw bytes on the socket: what is taken, what is refused, and that a connection survives it.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use common::{Client, check, initialize_params, served, served_alone};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

fn pong() -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "result": {} })
}

fn error(id: Value, code: i32, slug: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": {
        "code": code, "message": "…", "data": { "code": slug, "retryable": false, "hint": "…" },
    } })
}

#[tokio::test]
async fn broken_messages_are_answered_and_the_connection_lives_on() {
    let served = served().await;
    for (line, expect) in [
        ("{", error(json!(null), -32700, "parse_error")),
        ("hello", error(json!(null), -32700, "parse_error")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#, error(json!(null), -32700, "parse_error")),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, error(json!(null), -32600, "invalid_request")),
        ("[]", error(json!(null), -32600, "invalid_request")),
        ("7", error(json!(null), -32600, "invalid_request")),
        ("{}", error(json!(null), -32600, "invalid_request")),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, error(json!(1), -32600, "invalid_request")),
        (r#"{"jsonrpc":"2.0","id":1,"method":{}}"#, error(json!(1), -32600, "invalid_request")),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, error(json!(null), -32600, "invalid_request")),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, error(json!(null), -32600, "invalid_request")),
        (r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#, error(json!("a"), -32601, "method_not_found")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, error(json!(1), -32601, "method_not_found")),
    ] {
        check(&served, &format!("{line}\n{PING}\n"), &[expect, pong()]).await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_answered() {
    let served = served().await;
    let mut client = served.connect().await;
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n").await;
    common::assert_holds(&client.receive().await, &error(json!(null), -32700, "parse_error"), &json!("UTF-8"));
    client.send_bytes(format!("{PING}\n").as_bytes()).await;
    assert_eq!(client.receive().await, pong());
}

#[tokio::test]
async fn lines_are_taken_however_they_come() {
    let served = served().await;
    check(&served, "", &[]).await;
    check(&served, "\n\r\n  \n", &[]).await;
    check(&served, &format!("{PING}\r\n"), &[pong()]).await;
    // The last line has no newline.
    check(&served, PING, &[pong()]).await;
    check(&served, &format!("{PING}\n{PING}\n{PING}"), &[pong(), pong(), pong()]).await;
    // Answers and notifications, known or not, need no answer.
    let quiet = r#"{"jsonrpc":"2.0","id":1,"result":{}}
{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}
{"jsonrpc":"2.0","method":"notifications/cancelled"}
{"jsonrpc":"2.0","method":"no/such"}
"#;
    check(&served, &format!("{quiet}{PING}\n"), &[pong()]).await;
}

#[tokio::test]
async fn half_a_line_waits_for_its_other_half() {
    let served = served().await;
    let mut client = served.connect().await;
    let (front, back) = PING.split_at(11);
    client.send_bytes(front.as_bytes()).await;
    // Another client is served meanwhile.
    check(&served, PING, &[pong()]).await;
    client.send_bytes(format!("{back}\n").as_bytes()).await;
    assert_eq!(client.receive().await, pong());
}

#[tokio::test]
async fn ids_come_back_as_they_were_sent() {
    let served = served().await;
    let mut client = served.connect().await;
    for id in ["1", "-5", "1.50", "9007199254740993", r#""x""#, r#""\u00e4\"""#] {
        client.send_bytes(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes()).await;
        assert_eq!(
            client.line().await.expect("an answer"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}")
        );
    }
}

#[tokio::test]
async fn two_requests_with_one_id_are_both_answered() {
    let served = served().await;
    check(&served, &format!("{PING}\n{PING}\n"), &[pong(), pong()]).await;
    let mut client = served.agent("twin").await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "browser_tab_new", "arguments": {} } });
    client.send_bytes(format!("{call}\n{call}\n").as_bytes()).await;
    for _ in 0..2 {
        let answer = client.receive().await;
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(false)));
    }
}

#[tokio::test]
async fn a_line_over_4_mib_is_skipped_and_the_connection_lives_on() {
    let served = served().await;
    let too_large = json!({ "jsonrpc": "2.0", "id": null, "error": {
        "code": -32600, "message": "message larger than 4 MiB",
        "data": { "code": "invalid_request", "retryable": false, "hint": "…" },
    } });
    for size in [4 * 1024 * 1024 + 1, 20 * 1000 * 1000] {
        let sent = format!("{}\n{PING}\n", "x".repeat(size));
        let mut client = served.connect().await;
        let Client { reader, writer, .. } = &mut client;
        let ((), ()) = tokio::join!(async { writer.write_all(sent.as_bytes()).await.expect("written") }, async {
            let mut line = String::new();
            tokio::io::AsyncBufReadExt::read_line(reader, &mut line).await.expect("readable");
            let answer = serde_json::from_str(&line).expect("JSON");
            common::assert_holds(&answer, &too_large, &answer);
        },);
        assert_eq!(client.receive().await, pong());
    }
    // 4 MiB exactly is taken.
    let frame = r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":""}}"#;
    let full = frame.replace("\"\"", &format!("\"{}\"", "x".repeat(4 * 1024 * 1024 - frame.len())));
    assert_eq!(full.len(), 4 * 1024 * 1024);
    check(&served, &format!("{full}\n"), &[pong()]).await;
}

#[tokio::test]
async fn http_on_the_socket_closes_the_connection() {
    let served = served().await;
    for request in ["GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.0\r\n\r\n{}", "PRI * HTTP/2.0\r\n\r\n"] {
        let mut client = served.connect().await;
        client.send_bytes(request.as_bytes()).await;
        assert_eq!(client.line().await, None, "{request}");
    }
    check(&served, PING, &[pong()]).await;
}

#[tokio::test]
async fn a_thousand_connections_at_once_are_served_or_told_that_they_are_too_many() {
    let served = served_alone().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let path = served.path.clone();
        tasks.spawn(async move {
            let mut client = Client::of(UnixStream::connect(path).await.expect("connected"));
            // One that was turned away may find its connection closed before it has written.
            let _ = client.writer.write_all(format!("{PING}\n").as_bytes()).await;
            let answer = client.receive().await;
            (client, answer)
        });
    }
    let (mut pongs, mut turned_away) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (mut client, answer) = done.expect("no panic");
        if answer == pong() {
            pongs.push(client);
        } else {
            assert_eq!(answer["error"]["data"]["retryable"], true, "{answer}");
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32603)));
            turned_away += 1;
            assert_eq!(client.line().await, None, "closed");
        }
    }
    assert_eq!((pongs.len(), turned_away), (256, 744));
    // All the places are taken; a place that becomes free is given to the next.
    drop(pongs.pop());
    loop {
        let mut client = served.connect().await;
        let _ = client.writer.write_all(format!("{PING}\n").as_bytes()).await;
        if client.receive().await == pong() {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_disconnected_and_only_that_one() {
    let served = served().await;
    let mut other = served.agent("other").await;
    let mut deaf = served.connect().await;
    deaf.initialize("deaf").await;
    let request = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let flood = request.repeat(64);
    // It writes until the server reads no more, and then until the server hangs up.
    let began = tokio::time::Instant::now();
    while deaf.writer.write_all(flood.as_bytes()).await.is_ok() {}
    assert!(began.elapsed() >= std::time::Duration::from_secs(30), "not before its time: {:?}", began.elapsed());
    assert!(began.elapsed() < std::time::Duration::from_secs(31), "at its time: {:?}", began.elapsed());
    assert_eq!(other.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_call_in_flight_is_answered_after_the_client_has_sent_its_last() {
    let served = served().await;
    let initialize =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params("2025-11-25", "x") });
    let open = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "browser_tab_new", "arguments": {} } });
    check(
        &served,
        &format!("{initialize}\n{open}"),
        &[json!({ "id": 1, "result": {} }), json!({ "id": 2, "result": { "isError": false } })],
    )
    .await;
}

#[tokio::test]
async fn stopping_ends_connections_and_removes_the_socket() {
    let served = served().await;
    let mut client = served.agent("one").await;
    let path = served.path.clone();
    let folder = served.stop().await;
    assert_eq!(client.line().await, None);
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 0, "no lock stays behind either");
}
