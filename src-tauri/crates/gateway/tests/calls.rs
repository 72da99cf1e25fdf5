//! What happens around calls: events, cancelling, limits, and a browser that does not play along.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use common::{assert_holds, served, wait_for};
use serde_json::{Value, json};
use tabwarden_domain::{Event, Outcome};

fn open(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "browser_tab_new", "arguments": {} } })
}

fn ended(event: &Event) -> bool {
    matches!(event, Event::CallEnded(..))
}

#[tokio::test]
async fn each_call_is_told_with_its_beginning_and_its_outcome() {
    let served = served().await;
    let mut agent = served.agent("codex").await;
    let session = served.gateway.sessions()[0].id.clone();
    let mut events = served.gateway.events();
    let tab = agent.ok("browser_tab_new", json!({})).await["tab"]["id"].clone();
    let Event::CallStarted(started) = wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await
    else {
        unreachable!("just matched")
    };
    assert_eq!(
        (started.session.as_ref(), started.tool.as_str(), &started.tab),
        (Some(&session), "browser_tab_new", &None)
    );
    let Event::CallEnded(record, outcome, _) = wait_for(&mut events, ended).await else { unreachable!("just matched") };
    assert_eq!((record.id, outcome), (started.id, Outcome::Done));
    assert_eq!(record.tab.as_ref().map(|tab| tab.as_str()), tab.as_str(), "the tab that it opened");
    agent.refused("browser_tab_get", json!({ "tab_id": "tab_no" })).await;
    let Event::CallEnded(record, outcome, _) = wait_for(&mut events, ended).await else { unreachable!("just matched") };
    assert_eq!(record.tab.as_ref().map(|tab| tab.as_str()), Some("tab_no"));
    assert_eq!(outcome, Outcome::Refused { code: -32020, slug: "tab_not_found" });
    agent.refused("browser_tab_get", json!({})).await;
    let Event::CallEnded(_, outcome, _) = wait_for(&mut events, ended).await else { unreachable!("just matched") };
    assert_eq!(outcome, Outcome::Refused { code: -32602, slug: "invalid_params" });
}

#[tokio::test]
async fn the_browsers_changes_are_passed_on() {
    let served = served().await;
    let mut events = served.gateway.events();
    let mut agent = served.agent("codex").await;
    agent.ok("browser_tab_list", json!({})).await;
    wait_for(&mut events, |event| matches!(event, Event::BrowserChanged(_))).await;
    served.control.open_window("News", "https://news.example/");
    wait_for(&mut events, |event| *event == Event::TabsChanged).await;
}

#[tokio::test]
async fn a_cancelled_call_ends_without_an_answer() {
    let served = served().await;
    let mut agent = served.agent("codex").await;
    agent.ok("browser_tab_list", json!({})).await;
    let mut events = served.gateway.events();
    served.control.hang(true);
    agent.send(open(1)).await;
    wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    // Cancelling what does not run does nothing.
    agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "1" } })).await;
    assert_eq!(agent.request("ping", json!({})).await["result"], json!({}));
    agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    let Event::CallEnded(_, outcome, _) = wait_for(&mut events, ended).await else { unreachable!("just matched") };
    assert_eq!(outcome, Outcome::Cancelled);
    served.control.hang(false);
    assert_eq!(agent.request("ping", json!({})).await["result"], json!({}), "and nothing came before it");
    assert_eq!(served.tabs().len(), 1);
}

#[tokio::test]
async fn a_dropped_connection_cancels_its_calls() {
    let served = served().await;
    let mut agent = served.agent("codex").await;
    agent.ok("browser_tab_list", json!({})).await;
    let mut events = served.gateway.events();
    served.control.hang(true);
    agent.send(open(1)).await;
    wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    drop(agent);
    let Event::CallEnded(_, outcome, _) = wait_for(&mut events, ended).await else { unreachable!("just matched") };
    assert_eq!(outcome, Outcome::Cancelled);
}

#[tokio::test]
async fn calls_run_side_by_side_and_a_hung_one_delays_no_other() {
    let served = served().await;
    let mut agent = served.agent("codex").await;
    agent.ok("browser_tab_list", json!({})).await;
    let mut events = served.gateway.events();
    served.control.hang(true);
    agent.send(open(1)).await;
    wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    assert!(agent.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    served.control.hang(false);
    let answer = agent.receive().await;
    assert_holds(&answer, &json!({ "id": 1, "result": { "isError": false } }), &answer);
}

#[tokio::test]
async fn at_most_64_calls_run_and_the_next_ones_wait() {
    let served = served().await;
    let mut agent = served.agent("busy").await;
    let mut other = served.agent("other").await;
    agent.ok("browser_tab_list", json!({})).await;
    served.control.hang(true);
    let mut events = served.gateway.events();
    let lines: String = (0..70).map(|id| format!("{}\n", open(id))).collect();
    agent.send_bytes(lines.as_bytes()).await;
    for _ in 0..64 {
        wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    }
    // Another client is served meanwhile, and the waiting ones still have not begun.
    assert_eq!(other.request("ping", json!({})).await["result"], json!({}));
    assert!(
        !std::iter::from_fn(|| events.try_recv().ok()).any(|stamped| matches!(stamped.event, Event::CallStarted(_)))
    );
    served.control.hang(false);
    let mut ids: Vec<u64> = Vec::new();
    for _ in 0..70 {
        let answer = agent.receive().await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        ids.push(answer["id"].as_u64().expect("an id"));
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..70).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_browser_that_cannot_be_started_is_told_with_its_reason() {
    let served = served().await;
    let mut agent = served.agent("codex").await;
    served.control.cannot_start(Some("No Chromium was found. Install one."));
    for (tool, arguments) in [
        ("browser_tab_list", json!({})),
        ("browser_tab_new", json!({})),
        ("browser_tab_get", json!({ "tab_id": "tab_1" })),
        ("browser_tab_close", json!({ "tab_id": "tab_1" })),
    ] {
        let error = agent.refused(tool, arguments).await;
        assert_holds(
            &error,
            &json!({ "code": -32015, "message": "…", "data": {
                "code": "browser_unavailable", "retryable": true, "hint": "…", "reason": "No Chromium was found. Install one.",
            } }),
            &error,
        );
    }
    served.control.cannot_start(None);
    assert!(agent.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    // It dies: the next call starts it again.
    served.control.die();
    assert!(agent.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    assert_eq!(served.control.starts(), 2);
}

#[tokio::test]
async fn several_first_calls_start_one_browser() {
    let served = served().await;
    let mut agents = Vec::new();
    for _ in 0..8 {
        agents.push(served.agent("codex").await);
    }
    let calls = agents.iter_mut().map(|agent| agent.ok("browser_tab_list", json!({})));
    futures_util::future::join_all(calls).await;
    assert_eq!(served.control.starts(), 1);
}
