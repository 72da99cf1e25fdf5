//! A gateway on a real socket in a folder of its own, and a client that speaks bytes.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]
#![allow(clippy::disallowed_methods, reason = "tests look at what pages say")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tabwarden_browser::{Browser, Control};
use tabwarden_domain::{BrowserState, Event};
use tabwarden_firewall::Firewall;
use tabwarden_gateway::{About, Asked, Asker, BoundSocket, Gateway, SocketPath, Stamped};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take before a test gives up on it. No test waits for it to pass.
const GIVE_UP: Duration = Duration::from_secs(300);

/// A gateway that is served.
pub struct Served {
    pub gateway: Gateway,
    pub control: Control,
    pub asked: Option<Asked>,
    pub cancel: CancellationToken,
    pub serving: JoinHandle<()>,
    pub path: PathBuf,
    pub folder: TempDir,
}

/// Serves a gateway with a fake browser and somebody to ask.
pub async fn served() -> Served {
    let (asker, asked) = Asker::channel();
    let mut served = serve(Some(asker), tempfile::tempdir().expect("a folder"));
    served.asked = Some(asked);
    served
}

/// Serves one with nobody to ask.
pub async fn served_alone() -> Served {
    serve(None, tempfile::tempdir().expect("a folder"))
}

pub fn gateway(asker: Option<Asker>) -> (Gateway, Control) {
    let firewall = Arc::new(Firewall::built_in([1, 2]).expect("rules"));
    let (browser, control) = Browser::fake_with_control();
    (Gateway::new(browser, firewall, asker, About { version: "0.0.0-test" }), control)
}

pub fn serve(asker: Option<Asker>, folder: TempDir) -> Served {
    let (gateway, control) = gateway(asker);
    let path = folder.path().join("mcp.sock");
    let bound = BoundSocket::bind(&SocketPath::resolve(Some(&path)).expect("a path")).expect("a socket");
    let cancel = CancellationToken::new();
    let serving = tokio::spawn(gateway.clone().serve_socket(bound, cancel.clone()));
    Served { gateway, control, asked: None, cancel, serving, path, folder }
}

impl Served {
    /// A connection that has said nothing.
    pub async fn connect(&self) -> Client {
        Client::of(UnixStream::connect(&self.path).await.expect("connected"))
    }

    /// A connection that has called `initialize`.
    pub async fn agent(&self, name: &str) -> Client {
        let mut client = self.connect().await;
        client.initialize(name).await;
        client
    }

    /// The JSON of `tabwarden/status`.
    pub async fn status(&self) -> Value {
        self.connect().await.request("tabwarden/status", json!({})).await["result"].take()
    }

    /// Ends it and waits until the socket is gone.
    pub async fn stop(self) -> TempDir {
        self.cancel.cancel();
        self.gateway.shutdown();
        self.serving.await.expect("ended");
        self.folder
    }

    /// Whether the browser runs.
    pub fn browser_runs(&self) -> bool {
        matches!(self.gateway.browser().state(), BrowserState::Running { .. })
    }

    /// Ids of all tabs, by what the browser itself says.
    pub fn tabs(&self) -> Vec<String> {
        let windows = self.gateway.browser().windows().expect("a running browser");
        windows.expose().iter().flat_map(|window| &window.tabs).map(|tab| tab.id.as_str().to_owned()).collect()
    }
}

/// One end of a connection.
pub struct Client {
    pub reader: BufReader<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
    next_id: u64,
}

impl Client {
    pub fn of(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: BufReader::new(reader), writer, next_id: 100 }
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.expect("written");
    }

    pub async fn send(&mut self, message: Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    /// The next line; `None` at the end.
    pub async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(GIVE_UP, self.reader.read_line(&mut line)).await.expect("an answer in time");
        match read {
            // So a connection ends whose server had not read everything.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            read => (read.expect("readable") > 0).then(|| line.trim_end().to_owned()),
        }
    }

    /// The next message.
    pub async fn receive(&mut self) -> Value {
        let line = self.line().await.expect("a message and not the end");
        serde_json::from_str(&line).expect("JSON")
    }

    /// All that still comes until the end.
    pub async fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.reader.read_to_string(&mut rest).await.expect("readable");
        rest
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub async fn initialize(&mut self, name: &str) -> Value {
        let answer = self.request("initialize", initialize_params("2025-11-25", name)).await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        answer
    }

    /// Calls a tool; the whole answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool that succeeds; its object.
    pub async fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().expect("text");
        let object: Value = serde_json::from_str(text).expect("the text is JSON");
        assert_eq!(object, answer["result"]["structuredContent"]);
        object
    }

    /// Calls a tool that is refused; the error.
    pub async fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.call(tool, arguments).await;
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].take()
    }
}

pub fn initialize_params(version: &str, name: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": name, "version": "1.0" } })
}

/// The `_meta` of a 2026-07-28 request.
pub fn meta(name: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": name, "version": "1.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Asserts that `have` holds what `want` does. Objects in `want` may leave fields out; `"…"` stands for any string.
pub fn assert_holds(have: &Value, want: &Value, whole: &Value) {
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => {
            for (name, want) in want {
                assert_holds(have.get(name).unwrap_or(&json!("(missing)")), want, whole);
            }
        }
        (Value::Array(have), Value::Array(want)) => {
            assert_eq!(have.len(), want.len(), "{whole}");
            have.iter().zip(want).for_each(|(have, want)| assert_holds(have, want, whole));
        }
        (Value::String(have), Value::String(want)) if want == "…" => assert!(!have.is_empty(), "{whole}"),
        _ => assert_eq!(have, want, "{whole}"),
    }
}

/// Sends these bytes on a new connection, says that nothing follows, and compares what comes back, line by line.
pub async fn check(served: &Served, sent: &str, expect: &[Value]) {
    let mut client = served.connect().await;
    client.send_bytes(sent.as_bytes()).await;
    client.writer.shutdown().await.expect("half-closed");
    let rest = client.rest().await;
    let have: Vec<Value> = rest.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_holds(&Value::Array(have.clone()), &Value::Array(expect.to_vec()), &json!({ "sent": sent, "got": have }));
}

/// Waits for an event.
pub async fn wait_for(events: &mut broadcast::Receiver<Arc<Stamped>>, wanted: impl Fn(&Event) -> bool) -> Event {
    loop {
        let stamped = tokio::time::timeout(GIVE_UP, events.recv()).await.expect("an event in time").expect("an event");
        if wanted(&stamped.event) {
            return stamped.event.clone();
        }
    }
}
