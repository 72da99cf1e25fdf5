//! `tabwarden serve` as a user meets it: the real program, the real socket, a real Chromium.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod common;

use std::process::Stdio;

use common::{Client, Instance, Site, command, is_alive, signal, wait_for};
use serde_json::{Value, json};

/// Waits until a tab's page has loaded, and returns the tab.
fn loaded(client: &mut Client, id: &Value) -> Value {
    wait_for("the page to load", || {
        let tab = client.ok("browser_tab_get", json!({ "tab_id": id }))["tab"].clone();
        (tab["loading"] == false && tab["title"].as_str().is_some_and(|t| t.starts_with("Page"))).then_some(tab)
    })
}

#[test]
fn an_agent_lists_opens_gets_and_closes_tabs() {
    let site = Site::start();
    let instance = Instance::serve(&[]);
    let mut client = instance.client("codex");
    let before = client.tabs();
    assert!(!before.is_empty(), "the browser starts with a tab");

    let url = site.url("app", "/hello");
    let refused = client.refused("browser_tab_new", json!({ "url": url }));
    assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32010), &json!("domain_not_allowed")));
    assert_eq!(client.tabs(), before, "a refused address opens no tab");
    assert!(site.requests.lock().expect("log").is_empty(), "nothing was sent to the refused host");

    client.ok("browser_set_allowed_domains", json!({ "domains": ["App.localhost"] }));
    assert_eq!(client.ok("browser_get_allowed_domains", json!({})), json!({ "domains": ["app.localhost"] }));
    let opened = client.ok("browser_tab_new", json!({ "url": url }))["tab"].clone();
    let fields: Vec<&String> = opened.as_object().expect("tab").keys().collect();
    assert_eq!(fields, ["id", "title", "url", "active", "window_id", "loading"]);
    assert_eq!((&opened["url"], &opened["active"]), (&json!(url), &json!(true)));

    let tab = loaded(&mut client, &opened["id"]);
    let fields: Vec<&String> = tab.as_object().expect("tab").keys().collect();
    assert_eq!(fields, ["id", "title", "url", "active", "window_id", "audible", "muted", "loading"]);
    assert_eq!((&tab["title"], &tab["audible"], &tab["muted"]), (&json!("Page hello"), &json!(false), &json!(false)));
    let listed = client.tabs();
    let listed = listed.iter().find(|t| t["id"] == opened["id"]).expect("listed");
    let fields: Vec<&String> = listed.as_object().expect("tab").keys().collect();
    assert_eq!(fields, ["id", "title", "url", "active", "window_id"]);

    let closed = client.ok("browser_tab_close", json!({ "tab_id": opened["id"] }));
    assert_eq!(closed, json!({ "closed": true, "tab_id": opened["id"] }));
    assert_eq!(client.tabs().len(), before.len());
    let gone = client.refused("browser_tab_get", json!({ "tab_id": opened["id"] }));
    assert_eq!((&gone["code"], &gone["data"]["tab_id"]), (&json!(-32020), &opened["id"]));
    let gone = client.refused("browser_tab_close", json!({ "tab_id": opened["id"] }));
    assert_eq!(gone["code"], -32020);
}

#[test]
fn a_token_in_an_address_does_not_leave() {
    let site = Site::start();
    let instance = Instance::serve(&[]);
    let mut client = instance.client("codex");
    client.ok("browser_set_allowed_domains", json!({ "domains": ["localhost"] }));
    let canary = format!("canary{}", "x7q".repeat(6));
    let url = site.url("app", &format!("/cb?access_token={canary}&page=2#access_token={canary}&expires_in=3600"));
    let sealed = site.url("app", "/cb?access_token=[REDACTED]&page=2#access_token=[REDACTED]&expires_in=3600");
    let opened = client.call("browser_tab_new", json!({ "url": url }));
    assert_eq!(opened["result"]["structuredContent"]["tab"]["url"], sealed);
    let id = opened["result"]["structuredContent"]["tab"]["id"].clone();
    assert_eq!(loaded(&mut client, &id)["url"], sealed);
    for tool in ["browser_tab_list", "browser_tab_get"] {
        let arguments = if tool == "browser_tab_get" { json!({ "tab_id": id }) } else { json!({}) };
        let answer = client.call(tool, arguments).to_string();
        assert!(answer.contains("access_token=[REDACTED]&page=2#access_token=[REDACTED]&expires_in=3600"), "{answer}");
        assert!(!answer.contains(&canary), "{tool} lets the token out");
    }
    let refused = client.refused("browser_tab_new", json!({ "url": format!("https://u:{canary}@other.example/") }));
    assert_eq!(refused["code"], -32010);
    assert!(!refused.to_string().contains(&canary), "an error lets the password out");
}

#[test]
fn the_last_window_stays_open_where_nobody_can_be_asked() {
    let instance = Instance::serve(&[]);
    let mut client = instance.client("codex");
    let tabs = client.tabs();
    let (last, others) = tabs.split_last().expect("a tab");
    for tab in others {
        client.ok("browser_tab_close", json!({ "tab_id": tab["id"] }));
    }
    let kept = client.ok("browser_tab_close", json!({ "tab_id": last["id"] }));
    assert_eq!(kept, json!({ "closed": false, "tab_id": last["id"], "reason": "no_user" }));
    assert_eq!(client.tabs().len(), 1);
}

#[test]
fn a_browser_that_dies_is_started_again_and_its_ids_are_gone() {
    let instance = Instance::serve(&[]);
    let mut client = instance.client("codex");
    let old = client.tabs()[0]["id"].clone();
    let pid = instance.browser_pid();
    signal(pid, "KILL");
    wait_for("the death to be noticed", || (instance.status()["browser"]["pid"] != pid).then_some(()));
    assert!(!client.tabs().is_empty(), "the next call starts the browser");
    assert_ne!(instance.browser_pid(), pid);
    assert_eq!(client.refused("browser_tab_get", json!({ "tab_id": old }))["code"], -32020);
}

#[test]
fn a_killed_tabwarden_leaves_nothing_that_stops_the_next() {
    let folder = tempfile::tempdir().expect("folder");
    for _again in 0..3 {
        let mut instance = Instance::serve_in(folder.path(), &[]);
        let mut client = instance.client("codex");
        assert!(!client.tabs().is_empty());
        let browser = instance.browser_pid();
        signal(instance.child.id(), "KILL");
        instance.child.wait().expect("killed");
        wait_for("the browser to end with it", || (!is_alive(browser)).then_some(()));
        assert!(instance.socket.exists(), "a killed process removes nothing");
    }
}

#[test]
fn an_orderly_stop_leaves_no_socket_and_no_browser() {
    let folder = tempfile::tempdir().expect("folder");
    let mut instance = Instance::serve_in(folder.path(), &[]);
    let browser = instance.browser_pid();
    signal(instance.child.id(), "TERM");
    let status = instance.child.wait().expect("stopped");
    assert!(status.success(), "{status}");
    assert!(!instance.socket.exists());
    wait_for("the browser to end", || (!is_alive(browser)).then_some(()));
}

#[test]
fn instances_run_side_by_side_and_a_socket_has_one() {
    let (one, two) = (Instance::serve(&[]), Instance::serve(&[]));
    let ids = |instance: &Instance| instance.client("a").tabs().iter().map(|t| t["id"].clone()).collect::<Vec<_>>();
    assert!(ids(&one).iter().all(|id| !ids(&two).contains(id)));
    let second = command(&one.socket, &one.data_dir).args(["serve", "--headless"]).output().expect("runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(second.stdout.is_empty());
    assert!(said.contains("--socket PATH"), "{said}");
    assert!(!ids(&one).is_empty(), "the first one lives on");
}

#[test]
fn what_cannot_work_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("file");
    let check = |socket: std::path::PathBuf, data_dir: std::path::PathBuf, extra: &[&str], expect: &str| {
        let output = command(&socket, &data_dir).args(["serve", "--headless"]).args(extra).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("tabwarden: ") && said.contains(expect), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    let socket = folder.path().join("s.sock");
    check(socket.clone(), file.join("data"), &[], "--data-dir DIR");
    check(folder.path().join("x".repeat(200)), folder.path().join("d"), &[], "this system takes");
    check(file.join("s.sock"), folder.path().join("d"), &[], "--socket PATH");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
    let port = taken.local_addr().expect("address").port().to_string();
    let token = folder.path().join("token").display().to_string();
    check(socket, folder.path().join("d"), &["--http", &port, "--token-file", &token], "--http PORT");
}

#[test]
fn without_a_browser_every_call_says_what_to_do() {
    let instance = Instance::serve(&["--browser", "/no/such/browser"]);
    let mut client = instance.client("codex");
    let refused = client.refused("browser_tab_list", json!({}));
    assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32015), &json!("browser_unavailable")));
    let said = refused["message"].as_str().expect("message");
    assert!(said.contains("/no/such/browser") && said.contains("--browser"), "{said}");
    assert_eq!(instance.status()["browser"]["state"], "failed");
}

#[test]
fn the_bridge_starts_tabwarden_and_speaks_nothing_but_mcp() {
    use std::io::{BufRead, BufReader, Write};
    let folder = tempfile::tempdir().expect("folder");
    let (socket, data_dir) = (folder.path().join("run/mcp.sock"), folder.path().join("data"));
    let mut bridge = command(&socket, &data_dir)
        .arg("mcp")
        // Without a display the bridge starts `serve --headless`.
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bridge starts");
    let mut stdin = bridge.stdin.take().expect("stdin");
    let mut lines = BufReader::new(bridge.stdout.take().expect("stdout")).lines();
    let mut exchange = |request: Value| -> Value {
        writeln!(stdin, "{request}").expect("written");
        serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON")
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    assert_eq!(exchange(hello)["result"]["protocolVersion"], "2025-06-18");
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "browser_tab_list", "arguments": {} } });
    assert!(exchange(list)["result"]["structuredContent"]["tabs"].is_array());
    drop(stdin);
    assert!(bridge.wait().expect("ends with stdin").success());
    // What the bridge started belongs to the user: it is still there, and this test ends it.
    let status = command(&socket, &data_dir).args(["status", "--json"]).output().expect("status");
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let browser = status["browser"]["pid"].as_u64().expect("browser's pid");
    let pid = status["pid"].as_u64().expect("pid");
    signal(u32::try_from(pid).expect("pid"), "TERM");
    wait_for("it to stop", || (!socket.exists()).then_some(()));
    wait_for("its browser to stop", || (!is_alive(u32::try_from(browser).expect("pid"))).then_some(()));
}
