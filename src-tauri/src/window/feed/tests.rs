//! The feed against a page that does nothing but apply its updates.

use std::collections::BTreeMap;

use serde_json::json;
use tabwarden_browser::{Browser, Control};
use tabwarden_firewall::Firewall;
use tabwarden_gateway::{About, BoundSocket, SocketPath};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;

/// A gateway on a socket of its own, with a browser in memory, and the feed behind it.
struct House {
    feed: Arc<Feed>,
    gateway: Gateway,
    control: Control,
    socket: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let (browser, control) = Browser::fake_with_control();
        let firewall = Arc::new(Firewall::built_in([1, 2]).expect("rules"));
        let gateway = Gateway::new(browser, firewall, None, About { version: "0" });
        let socket = folder.path().join("run/s.sock");
        let bound = BoundSocket::bind(&SocketPath::resolve(Some(&socket)).expect("path")).expect("bound");
        tokio::spawn(gateway.clone().serve_socket(bound, CancellationToken::new()));
        let server = ServerView { version: "0".into(), socket: String::new(), http: None };
        let feed = Feed::new(gateway.clone(), server);
        tokio::spawn(feed.clone().run());
        Self { feed, gateway, control, socket, _folder: folder }
    }

    /// An agent that asks one thing after the other.
    async fn agent(&self, name: &str) -> Agent {
        let stream = UnixStream::connect(&self.socket).await.expect("connected");
        let mut agent = Agent { stream: BufReader::new(stream) };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } });
        agent.ask("initialize", hello).await;
        agent
    }
}

struct Agent {
    stream: BufReader<UnixStream>,
}

impl Agent {
    async fn ask(&mut self, method: &str, params: serde_json::Value) -> serde_json::Value {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string() + "\n";
        self.stream.get_mut().write_all(line.as_bytes()).await.expect("written");
        let mut answer = String::new();
        self.stream.read_line(&mut answer).await.expect("answered");
        serde_json::from_str(&answer).expect("JSON")
    }

    async fn call(&mut self, tool: &str, arguments: serde_json::Value) -> serde_json::Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }
}

/// What a page knows.
#[derive(Debug, PartialEq)]
struct Page {
    revision: u64,
    browser: BrowserView,
    windows: Vec<WindowView>,
    tabs: BTreeMap<String, String>,
    sessions: Vec<SessionView>,
    activity: BTreeMap<u64, String>,
    withheld_today: u32,
}

impl Page {
    fn new(snapshot: &Egress) -> Self {
        let snapshot: Snapshot = serde_json::from_str(snapshot.as_str()).expect("a snapshot");
        Self {
            revision: snapshot.revision,
            browser: snapshot.browser,
            windows: snapshot.windows,
            tabs: snapshot.tabs.iter().map(|tab| (tab.id.clone(), format!("{tab:?}"))).collect(),
            sessions: snapshot.sessions,
            activity: snapshot.activity.iter().map(|row| (row.id, format!("{row:?}"))).collect(),
            withheld_today: snapshot.withheld_today,
        }
    }

    fn browser_runs(&self) -> bool {
        matches!(self.browser, BrowserView::Running { .. })
    }

    fn apply(&mut self, update: Update) {
        // What the snapshot holds already.
        if update.revision <= self.revision {
            return;
        }
        assert_eq!(update.revision, self.revision + 1, "an update was lost");
        self.revision = update.revision;
        self.browser = update.browser.unwrap_or(self.browser.clone());
        if let Some(tabs) = update.tabs {
            self.windows = tabs.windows;
            tabs.removed.iter().for_each(|id| assert!(self.tabs.remove(id).is_some(), "{id} was never there"));
            self.tabs.extend(tabs.changed.iter().map(|tab| (tab.id.clone(), format!("{tab:?}"))));
        }
        self.sessions = update.sessions.unwrap_or(std::mem::take(&mut self.sessions));
        self.activity.extend(update.activity.iter().map(|row| (row.id, format!("{row:?}"))));
        self.withheld_today = update.withheld_today;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_lead_to_what_a_snapshot_says() {
    let house = House::new();
    let (sender, mut updates) = mpsc::unbounded_channel();
    house.feed.subscribe(Box::new(move |update| sender.send(update.clone()).is_ok()));
    let mut page = Page::new(&house.feed.snapshot());

    let canary = format!("canary{}", "x7q".repeat(6));
    let mut codex = house.agent("codex").await;
    let mut claude = house.agent("claude").await;
    codex.call("browser_set_allowed_domains", json!({ "domains": ["example.com"] })).await;
    for round in 0..30 {
        let url = format!("https://example.com/{round}?access_token={canary}");
        let opened = codex.call("browser_tab_new", json!({ "url": url })).await;
        let id = TabId::from_wire(opened["result"]["structuredContent"]["tab"]["id"].as_str().expect("id"));
        house.control.loaded(&id, &format!("Page {round}"), &url);
        claude.call("browser_tab_get", json!({ "tab_id": id.as_str() })).await;
        claude.call("browser_tab_new", json!({ "url": "https://refused.example/" })).await;
        match round % 4 {
            0 => house.control.close_tab(&id),
            1 => drop(claude.call("browser_tab_close", json!({ "tab_id": id.as_str() })).await),
            2 => drop(house.control.open_window("By hand", "https://hand.example/")),
            _ => {}
        }
    }
    drop(claude);
    house.control.die();
    codex.call("browser_tab_list", json!({})).await;

    // The last call's end, and the session that waits to be given up, are the last that is heard of.
    let heard = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let update = updates.recv().await.expect("the feed lives");
            assert!(!update.as_str().contains(&canary), "the window is told a secret");
            page.apply(serde_json::from_str(update.as_str()).expect("an update"));
            let quiet = page.sessions.iter().any(|session| !session.connected) && page.browser_runs();
            if quiet && page.revision >= Page::new(&house.feed.snapshot()).revision {
                return;
            }
        }
    });
    heard.await.expect("the updates lead to the snapshot");
    let snapshot = house.feed.snapshot();
    assert!(!snapshot.as_str().contains(&canary));
    while let Ok(update) = updates.try_recv() {
        page.apply(serde_json::from_str(update.as_str()).expect("an update"));
    }
    assert_eq!(page, Page::new(&snapshot));

    let codex = page.sessions.iter().find(|session| session.label == "codex").expect("codex");
    assert_eq!((codex.calls, codex.refused), (32, 0));
    let claude = page.sessions.iter().find(|session| session.label == "claude").expect("claude");
    assert_eq!((claude.refused, claude.connected), (30, false));
    assert!(page.withheld_today >= 30, "{}", page.withheld_today);
    assert_eq!(house.gateway.sessions().len(), 2);
}
