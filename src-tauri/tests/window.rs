//! The real window, driven through WebKit's own WebDriver, while real agents work in a real Chromium.
//!
//! Needs a display and a session bus; `cargo xtask test` brings both.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod common;

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{Client, PATIENCE, Site, command, stop, wait_for};
use serde_json::{Value, json};

/// One window at a time: keys go to the one in front, and a dialog's button is found by its name.
static THE_DISPLAY: Mutex<()> = Mutex::new(());

/// A WebDriver session with the app's window.
struct Window {
    driver: Child,
    agent: ureq::Agent,
    session: String,
    socket: PathBuf,
    data_dir: PathBuf,
    _folder: tempfile::TempDir,
    _display: MutexGuard<'static, ()>,
}

impl Window {
    fn open() -> Self {
        let display = THE_DISPLAY.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(std::env::var_os("DISPLAY").is_some(), "this test needs a display: run `cargo xtask test`");
        let folder = tempfile::tempdir().expect("folder");
        let (socket, data_dir) = (folder.path().join("run/mcp.sock"), folder.path().join("data"));
        let port = free_port();
        let driver = Command::new("WebKitWebDriver")
            .arg(format!("--port={port}"))
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("XDG_CONFIG_HOME", folder.path().join("config"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("WebKitWebDriver starts");
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build();
        let agent = ureq::Agent::new_with_config(config);
        let base = format!("http://127.0.0.1:{port}");
        wait_for("WebKitWebDriver", || agent.get(format!("{base}/status")).call().ok().map(drop));
        let mut window = Self { driver, agent, session: base, socket, data_dir, _folder: folder, _display: display };
        let options = json!({
            "binary": env!("CARGO_BIN_EXE_tabwarden-window"),
            "args": ["--socket", window.socket, "--data-dir", window.data_dir, "--log", "warn", "--browser-arg=--password-store=basic"],
        });
        let capabilities = json!({ "capabilities": { "alwaysMatch": { "webkitgtk:browserOptions": options } } });
        let started = window.post("session", &capabilities);
        let id = started["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {started}")).to_owned();
        window.session = format!("{}/session/{id}", window.session);
        window.find(".header, header");
        window
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let mut answer =
            self.agent.post(format!("{}/{path}", self.session)).send_json(body).expect("WebDriver answers");
        let body: Value = answer.body_mut().read_json().expect("JSON");
        body["value"].clone()
    }

    /// Runs a function body in the page and returns what it returns.
    fn script(&self, body: &str, arguments: Value) -> Value {
        self.post("execute/sync", &json!({ "script": body, "args": arguments }))
    }

    /// Waits until a selector finds something.
    fn find(&self, selector: &str) {
        wait_for(selector, || {
            (self.script("return !!document.querySelector(arguments[0])", json!([selector])) == true).then_some(())
        });
    }

    /// The text of the page's part under a selector.
    fn text(&self, selector: &str) -> String {
        let body = "const e = document.querySelector(arguments[0]); return e ? e.innerText : ''";
        self.script(body, json!([selector])).as_str().unwrap_or_default().to_owned()
    }

    fn wait_for_text(&self, selector: &str, text: &str) {
        wait_for(&format!("'{text}' in {selector}; it holds: {}", self.text(selector)), || {
            self.text(selector).contains(text).then_some(())
        });
    }

    fn wait_without_text(&self, selector: &str, text: &str) {
        wait_for(&format!("'{text}' to leave {selector}"), || (!self.text(selector).contains(text)).then_some(()));
    }

    /// Presses keys in the page.
    fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })])
            .collect();
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }));
    }

    fn client(&self, name: &str) -> Client {
        let mut client = wait_for("the socket", || Client::try_connect(&self.socket).ok());
        client.initialize(name);
        client
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = self.agent.delete(&self.session).call();
        stop(&mut self.driver);
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

const SESSIONS: &str = "[data-pane=sessions]";
const TABS: &str = "[data-pane=tabs]";
const ACTIVITY: &str = "[data-pane=activity]";

#[test]
fn the_window_shows_what_agents_do_and_acts_on_it() {
    let window = Window::open();
    let site = Site::start();

    // Nobody is there yet: the page says how to connect.
    window.wait_for_text(SESSIONS, "Claude Code");

    let mut codex = window.client("codex");
    window.wait_for_text(SESSIONS, "codex");
    let mut claude = window.client("Claude Code");
    window.wait_for_text(SESSIONS, "Claude Code");

    codex.ok("browser_set_allowed_domains", json!({ "domains": ["localhost"] }));
    let opened = codex.ok("browser_tab_new", json!({ "url": site.url("app", "/garden") }));
    window.wait_for_text(TABS, "Page garden");
    window.wait_for_text(TABS, "app.localhost");
    window.wait_for_text(ACTIVITY, "opened a tab");

    // What is withheld from the agent is listed, and not shown in the window either.
    let canary = format!("canary{}", "x7q".repeat(6));
    codex.ok("browser_tab_new", json!({ "url": site.url("app", &format!("/cb?access_token={canary}")) }));
    claude.tabs();
    window.wait_for_text(ACTIVITY, "access_token");
    assert!(!window.script("return document.documentElement.outerHTML", json!([])).to_string().contains(&canary));

    claude.refused("browser_tab_new", json!({ "url": "https://elsewhere.example/" }));
    window.wait_for_text(ACTIVITY, "the domain is not allowed");

    // The person closes the tab with the keyboard: the agent finds it gone.
    let row = format!("[data-tab=\"{}\"]", opened["tab"]["id"].as_str().expect("id"));
    window.find(&row);
    window.script(
        "const e = document.querySelector(arguments[0]); e.scrollIntoView(); e.focus(); e.click()",
        json!([row]),
    );
    window.press("m");
    wait_for("the tab to be muted", || {
        let tab = codex.ok("browser_tab_get", json!({ "tab_id": opened["tab"]["id"] }));
        (tab["tab"]["muted"] == true).then_some(())
    });
    window.press("x");
    wait_for("the tab to be closed", || {
        (codex.call("browser_tab_get", json!({ "tab_id": opened["tab"]["id"] }))["error"]["code"] == -32020)
            .then_some(())
    });

    drop(claude);
    window.wait_without_text(SESSIONS, "Claude Code");
}

#[test]
fn a_second_start_shows_the_first_window_and_ends() {
    let window = Window::open();
    let mut second = command(&window.socket, &window.data_dir).stdout(Stdio::null()).spawn().expect("starts");
    let ended = wait_for("the second one to end", || second.try_wait().expect("status"));
    assert!(ended.success(), "{ended}");
    assert!(window.script("return document.visibilityState", json!([])) == "visible");
}

/// Presses a button of the native dialog that must appear, and returns the dialog's text.
fn press_button(name: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src-tauri/tests/press_button.py");
    // Debian's own Python has the accessibility bindings.
    let output = Command::new("/usr/bin/python3").args([script, name]).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Closes all tabs but one and asks to close that one; the answer comes when the person has decided.
fn close_the_last(window: &Window, button: &str) -> (Client, Value, Value, String) {
    let mut codex = window.client("codex");
    let tabs = codex.tabs();
    let (last, others) = tabs.split_last().expect("a tab");
    for tab in others {
        codex.ok("browser_tab_close", json!({ "tab_id": tab["id"] }));
    }
    let id = last["id"].clone();
    let (answer, said) = std::thread::scope(|scope| {
        let pressed = scope.spawn(|| press_button(button));
        let answer = codex.ok("browser_tab_close", json!({ "tab_id": id }));
        (answer, pressed.join().expect("pressed"))
    });
    assert!(said.contains("codex wants to close the last browser window"), "{said}");
    (codex, id, answer, said)
}

#[test]
fn the_person_keeps_the_last_window() {
    let window = Window::open();
    let (mut codex, id, answer, _) = close_the_last(&window, "Keep it open");
    assert_eq!(answer, json!({ "closed": false, "tab_id": id, "reason": "kept_by_user" }));
    assert_eq!(codex.tabs().len(), 1);
}

#[test]
fn the_person_closes_the_last_tab_and_keeps_the_browser() {
    let window = Window::open();
    let (mut codex, id, answer, _) = close_the_last(&window, "Close the tab, keep the browser");
    assert_eq!(answer, json!({ "closed": true, "tab_id": id }));
    let tabs = codex.tabs();
    assert_eq!(tabs.len(), 1, "a new-tab page takes its place");
    assert_ne!(tabs[0]["id"], id);
}

#[test]
fn the_person_quits_the_browser() {
    let window = Window::open();
    let (mut codex, id, answer, _) = close_the_last(&window, "Close and quit the browser");
    assert_eq!(answer, json!({ "closed": true, "tab_id": id }));
    let status = command(&window.socket, &window.data_dir).args(["status", "--json"]).output().expect("status");
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    assert_eq!(status["browser"]["state"], "stopped");
    assert!(!codex.tabs().is_empty(), "the next call starts it again");
}
