//! What the tests and the benchmark share: a running Tabwarden, a plain MCP client on its socket, a small web server.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a test waits for something that must come before it fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test.
pub const TABWARDEN: &str = env!("CARGO_BIN_EXE_tabwarden");

/// Waits until `look` finds something, and fails with `what` if it never does.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited {PATIENCE:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A Tabwarden of a test's own, with its own socket, data folder and browser; ended when dropped.
pub struct Instance {
    pub child: Child,
    pub socket: PathBuf,
    pub data_dir: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Instance {
    /// Starts `tabwarden serve`, headless, in a new folder, and waits for its line.
    pub fn serve(extra: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("temp folder");
        let mut instance = Self::serve_in(folder.path(), extra);
        instance._folder = Some(folder);
        instance
    }

    /// The same in a folder that outlives it.
    pub fn serve_in(folder: &Path, extra: &[&str]) -> Self {
        let socket = folder.join("run/mcp.sock");
        let data_dir = folder.join("data");
        let mut child = command(&socket, &data_dir)
            .args(["serve", "--headless"])
            .args(extra)
            .stdout(Stdio::piped())
            .spawn()
            .expect("tabwarden starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, format!("ready {}\n", socket.display()));
        Self { child, socket, data_dir, _folder: None }
    }

    /// A client that has initialized.
    pub fn client(&self, name: &str) -> Client {
        let mut client = Client::connect(&self.socket);
        client.initialize(name);
        client
    }

    /// What `tabwarden status --json` says.
    pub fn status(&self) -> Value {
        let output = command(&self.socket, &self.data_dir).args(["status", "--json"]).output().expect("status runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The browser's process id, once it runs.
    pub fn browser_pid(&self) -> u32 {
        wait_for("the browser to run", || {
            self.status()["browser"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Asks a process to stop, and makes it after a while.
pub fn stop(child: &mut Child) {
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    signal(child.id(), "TERM");
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
}

/// Whether a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
}

/// `tabwarden` for a socket and a data folder.
pub fn command(socket: &Path, data_dir: &Path) -> Command {
    let mut command = Command::new(TABWARDEN);
    command.env_remove("TABWARDEN_SOCKET").env_remove("RUST_LOG");
    command.arg("--socket").arg(socket).arg("--data-dir").arg(data_dir).args(["--log", "warn"]);
    // Off the network, and not waiting for a keyring that a test has not unlocked.
    for argument in
        ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--password-store=basic"]
    {
        command.arg(format!("--browser-arg={argument}"));
    }
    command
}

/// A plain MCP client on the socket.
pub struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    next_id: u64,
    /// Notifications that came meanwhile.
    pub notifications: Vec<Value>,
}

impl Client {
    pub fn connect(socket: &Path) -> Self {
        Self::try_connect(socket).expect("the socket takes a connection")
    }

    pub fn try_connect(socket: &Path) -> std::io::Result<Self> {
        let writer = UnixStream::connect(socket)?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(writer.try_clone()?);
        Ok(Self { reader, writer, next_id: 1, notifications: Vec::new() })
    }

    /// Sends a line as it is.
    pub fn send(&mut self, message: &Value) {
        // In one piece, as clients do: formatting straight into the socket would write each token by itself.
        self.send_raw(&format!("{message}\n"));
    }

    /// Sends text as it is.
    pub fn send_raw(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).expect("the socket takes text");
    }

    /// The next line, as it is.
    pub fn receive_raw(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line within time");
        line
    }

    /// The next line.
    pub fn receive(&mut self) -> Value {
        let line = self.receive_raw();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    /// Sends a request and returns the whole answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub fn initialize(&mut self, name: &str) -> Value {
        let answer = self.request(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "1.0" } }),
        );
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// Calls a tool and returns the whole answer.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool that must succeed, and returns what its text says.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{tool}: {answer}"));
        let said: Value = serde_json::from_str(text).expect("JSON in the text");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert_eq!(answer["result"]["structuredContent"], said, "{answer}");
        said
    }

    /// Calls a tool that must be refused, and returns the error.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        assert!(answer["error"].is_object(), "{tool}: {answer}");
        assert!(answer["error"]["data"]["hint"].is_string(), "{tool}: {answer}");
        answer["error"].clone()
    }

    /// The tab list, by id.
    pub fn tabs(&mut self) -> Vec<Value> {
        self.ok("browser_tab_list", json!({}))["tabs"].as_array().expect("tabs").clone()
    }
}

/// A web server on the loopback interface that answers every address with a small page titled by its path.
pub struct Site {
    pub port: u16,
    /// The request lines that reached it, with their Host header.
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("address").port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let log = Arc::clone(&log);
                std::thread::spawn(move || answer(stream, &log));
            }
        });
        Self { port, requests }
    }

    /// The address of a path on one of its hosts: every name below `localhost` is one.
    pub fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}.localhost:{}{path}", self.port)
    }
}

fn answer(mut stream: std::net::TcpStream, log: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let title = path.split(['?', '#']).next().unwrap_or("/").trim_start_matches('/').to_owned();
    log.lock().expect("log").push(head.lines().next().unwrap_or_default().to_owned());
    let page = format!("<!doctype html><title>Page {title}</title><p>{title}");
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
}
