//! Sessions: whose they are, how long they live, and how a bridge gets them back.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use std::time::Duration;

use common::{Client, Served, assert_holds, initialize_params, meta, served, wait_for};
use serde_json::json;
use tabwarden_domain::{ClosedBecause, Era, Event, Presence, Via};
use tokio::time::Instant;

fn labels(served: &Served) -> Vec<String> {
    served.gateway.sessions().into_iter().map(|session| session.label).collect()
}

/// A bridge's connection that has said its secret.
async fn bridge(served: &Served, secret: &str) -> (Client, serde_json::Value) {
    let mut client = served.connect().await;
    let answer = client.request("tabwarden/bridge", json!({ "secret": secret })).await;
    (client, answer)
}

#[tokio::test]
async fn a_session_knows_its_client_and_the_process_behind_it() {
    let served = served().await;
    let _handshake = served.agent("codex").await;
    let mut stateless = served.connect().await;
    stateless.request("tools/list", json!({ "_meta": meta("codex") })).await;
    let sessions = served.gateway.sessions();
    assert_eq!(labels(&served), ["codex", "codex 2"]);
    assert_eq!((sessions[0].era, sessions[1].era), (Era::Handshake, Era::Stateless));
    for session in &sessions {
        assert_eq!((session.client.name.as_str(), session.client.version.as_str()), ("codex", "1.0"));
        assert_eq!((session.via, session.presence), (Via::Socket, Presence::Connected));
        let peer = session.peer.as_ref().expect("a peer");
        assert_eq!((peer.pid, peer.executable.clone()), (std::process::id(), std::env::current_exe().ok()));
        assert_eq!(served.gateway.session(&session.id).as_ref(), Some(session));
    }
}

#[tokio::test]
async fn sub_agents_get_sessions_of_their_own_behind_one_connection() {
    let served = served().await;
    let mut main = served.agent("main").await;
    let mut other = served.agent("other").await;
    let opened = main.call("browser_session_open", json!({ "label": "researcher" })).await;
    let session = opened["result"]["structuredContent"]["session"].clone();
    let id = session["id"].clone();
    assert_eq!(session["label"], "researcher");
    assert_eq!(
        opened["result"]["content"][0]["text"].as_str().expect("text"),
        format!("{{\"session\":{{\"id\":{id},\"label\":\"researcher\"}}}}"),
    );
    // Its domains are its own.
    main.ok("browser_set_allowed_domains", json!({ "domains": ["example.com"], "session_id": id })).await;
    assert_eq!(main.ok("browser_get_allowed_domains", json!({})).await, json!({ "domains": [] }));
    let page = json!({ "url": "https://example.com/" });
    assert_eq!(main.refused("browser_tab_new", page).await["code"], -32010);
    main.ok("browser_tab_new", json!({ "url": "https://example.com/", "session_id": id })).await;
    // Nobody else may use it or end it.
    for tool in ["browser_get_allowed_domains", "browser_session_close"] {
        let error = other.refused(tool, json!({ "session_id": id })).await;
        assert_holds(&error, &json!({ "code": -32602, "data": { "argument": "session_id" } }), &error);
    }
    let closed = main.ok("browser_session_close", json!({ "session_id": id })).await;
    assert_eq!(closed, json!({ "closed": true, "session_id": id }));
    assert_eq!(labels(&served), ["main", "other"]);
    assert_eq!(main.refused("browser_tab_list", json!({ "session_id": id })).await["code"], -32602);
    assert!(main.ok("browser_tab_list", json!({})).await["tabs"].is_array());
}

#[tokio::test]
async fn whoever_ends_its_main_session_has_to_begin_anew() {
    let served = served().await;
    let mut agent = served.agent("brief").await;
    let id = served.gateway.sessions()[0].id.as_str().to_owned();
    agent.ok("browser_session_close", json!({ "session_id": id })).await;
    assert_eq!(agent.refused("browser_tab_list", json!({})).await["code"], -32001);
    agent.initialize("brief").await;
    assert!(agent.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    assert_ne!(served.gateway.sessions()[0].id.as_str(), id);
}

#[tokio::test]
async fn a_connection_may_have_64_sessions_and_not_one_more() {
    let served = served().await;
    let mut agent = served.agent("many").await;
    for _ in 1..64 {
        agent.ok("browser_session_open", json!({ "label": "one" })).await;
    }
    let error = agent.refused("browser_session_open", json!({ "label": "one" })).await;
    assert_holds(&error, &json!({ "code": -32602, "data": { "argument": "label" } }), &error);
    assert_eq!(served.gateway.sessions().len(), 64);
    let id = served.gateway.sessions()[5].id.as_str().to_owned();
    agent.ok("browser_session_close", json!({ "session_id": id })).await;
    agent.ok("browser_session_open", json!({ "label": "one" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_keeps_its_sessions_for_5_seconds() {
    let served = served().await;
    let mut events = served.gateway.events();
    let mut agent = served.agent("gone").await;
    agent.ok("browser_session_open", json!({ "label": "with it" })).await;
    drop(agent);
    let lost = |event: &Event| matches!(event, Event::SessionChanged(_));
    wait_for(&mut events, lost).await;
    let began = Instant::now();
    let closed = wait_for(&mut events, |event| matches!(event, Event::SessionClosed(..))).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    assert!(matches!(closed, Event::SessionClosed(_, ClosedBecause::ConnectionLost)));
    wait_for(&mut events, |event| matches!(event, Event::SessionClosed(..))).await;
    assert_eq!(served.gateway.sessions().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bridge_that_comes_back_in_time_has_its_sessions_again() {
    let served = served().await;
    let mut events = served.gateway.events();
    let secret = "5a".repeat(32);
    let (mut client, answer) = bridge(&served, &secret).await;
    assert_eq!(answer["result"], json!({ "resumed": false, "sessions": [] }));
    client.initialize("bridged").await;
    client.ok("browser_set_allowed_domains", json!({ "domains": ["example.com"] })).await;
    let sub = client.ok("browser_session_open", json!({ "label": "sub" })).await["session"]["id"].clone();
    let ids: Vec<String> = served.gateway.sessions().iter().map(|session| session.id.as_str().to_owned()).collect();
    drop(client);
    wait_for(&mut events, |event| matches!(event, Event::SessionChanged(_))).await;
    tokio::time::sleep(Duration::from_millis(4900)).await;
    // Another secret gets nothing.
    let (_other, answer) = bridge(&served, &"6b".repeat(32)).await;
    assert_eq!(answer["result"], json!({ "resumed": false, "sessions": [] }));
    let (mut client, answer) = bridge(&served, &secret.to_uppercase()).await;
    assert_eq!(answer["result"], json!({ "resumed": true, "sessions": ids }));
    // Repeating `initialize` opens no second session.
    client.initialize("bridged").await;
    assert_eq!(client.ok("browser_get_allowed_domains", json!({})).await, json!({ "domains": ["example.com"] }));
    client.ok("browser_tab_list", json!({ "session_id": sub })).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(labels(&served), ["bridged", "sub"]);
    // Too late is too late.
    drop(client);
    wait_for(&mut events, |event| matches!(event, Event::SessionClosed(..))).await;
    let (_late, answer) = bridge(&served, &secret).await;
    assert_eq!(answer["result"], json!({ "resumed": false, "sessions": [] }));
}

#[tokio::test]
async fn a_bridge_that_is_back_before_it_was_missed_takes_over_from_its_old_connection() {
    let served = served().await;
    let secret = "5a".repeat(32);
    let (mut old, _) = bridge(&served, &secret).await;
    old.initialize("bridged").await;
    let (mut new, answer) = bridge(&served, &secret).await;
    assert_eq!(answer["result"]["resumed"], true);
    assert_eq!(old.line().await, None, "the old connection is ended");
    new.initialize("bridged").await;
    assert!(new.ok("browser_tab_list", json!({})).await["tabs"].is_array());
    assert_eq!(served.gateway.sessions()[0].presence, Presence::Connected);
}

#[tokio::test]
async fn a_bridge_says_its_secret_first_and_properly() {
    let served = served().await;
    for params in [json!({}), json!({ "secret": "5a" }), json!({ "secret": "x".repeat(64) }), json!({ "secret": 5 })] {
        let answer = served.connect().await.request("tabwarden/bridge", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let mut late = served.agent("late").await;
    let answer = late.request("tabwarden/bridge", json!({ "secret": "5a".repeat(32) })).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn status_tells_how_things_stand_without_opening_a_session() {
    let served = served().await;
    let status = served.status().await;
    assert_holds(
        &status,
        &json!({
            "version": "0.0.0-test", "pid": std::process::id(), "socket": served.path, "http": null,
            "browser": { "state": "stopped" }, "windows": 0, "tabs": 0, "sessions": [],
        }),
        &status,
    );
    let mut agent = served.agent("codex").await;
    agent.ok("browser_set_allowed_domains", json!({ "domains": ["example.com"] })).await;
    agent.ok("browser_tab_new", json!({})).await;
    let status = served.status().await;
    assert_holds(
        &status,
        &json!({
            "browser": { "state": "running", "product": "…", "companion": true, "no_sandbox": false },
            "windows": 1, "tabs": 2,
            "sessions": [{
                "id": "…", "label": "codex", "client": "codex", "client_version": "1.0", "era": "handshake",
                "via": "socket", "pid": std::process::id(), "domains": ["example.com"], "connected": true,
            }],
        }),
        &status,
    );
    served.control.die();
    let status = served.status().await;
    assert_holds(&status, &json!({ "browser": { "state": "failed", "reason": "…" }, "tabs": 0 }), &status);
}

#[tokio::test]
async fn show_reaches_the_window_if_there_is_one() {
    let served = served().await;
    let mut client = served.connect().await;
    assert_eq!(client.request("tabwarden/show", json!({})).await["result"], json!({ "shown": false }));
    let mut requests = served.gateway.show_requests();
    assert_eq!(client.request("tabwarden/show", json!({})).await["result"], json!({ "shown": true }));
    assert_eq!(requests.recv().await, Some(()));
}

#[tokio::test]
async fn a_name_that_hides_something_is_made_plain() {
    let served = served().await;
    let mut client = served.connect().await;
    client.request("initialize", initialize_params("2025-11-25", "co\u{200b}dex\u{202e}\n")).await;
    assert_eq!(labels(&served), ["co dex"]);
}
