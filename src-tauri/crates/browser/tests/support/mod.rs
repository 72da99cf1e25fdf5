//! What the tests with a real Chromium share.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "tests look at what pages say")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;
use tabwarden_browser::{Browser, BrowserConfig, OpenTab, Source};
use tabwarden_domain::{
    AllowedDomains, Client, Desk, Era, Introduction, OpenUrl, PrincipalId, SessionId, Tab, TabId, Via, Window, WindowId,
};

/// How long a test waits for something that must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps Chromium off the network, and lets pages play sound unasked.
pub fn quiet() -> Vec<String> {
    [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--password-store=basic",
        "--autoplay-policy=no-user-gesture-required",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A browser on a profile below a folder; headless unless `window`.
pub fn browser(folder: &Path, window: bool) -> Browser {
    if window {
        assert!(std::env::var_os("DISPLAY").is_some(), "this test needs a display: run `cargo xtask test`");
    }
    Browser::new(BrowserConfig {
        source: Source::Launch { executable: None, profile: folder.join("profile") },
        headless: !window,
        extra_args: quiet(),
    })
}

/// Waits until `look` finds something.
pub async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
}

/// The windows, as the mirror has them.
pub fn windows(browser: &Browser) -> Vec<Window> {
    browser.windows().expect("it runs").expose().clone()
}

/// The tabs of all windows.
pub fn tabs(browser: &Browser) -> Vec<Tab> {
    windows(browser).into_iter().flat_map(|window| window.tabs).collect()
}

pub fn tab(browser: &Browser, id: &TabId) -> Tab {
    browser.tab(id).expect("the tab").expose().clone()
}

/// Opens a tab, with a desk's permit for every local host.
pub async fn open_in(browser: &Browser, url: Option<&str>, active: bool, window: Option<WindowId>) -> Tab {
    let mut desk = Desk::new();
    let id = SessionId::from_random(1);
    desk.open(
        id.clone(),
        Introduction {
            principal: PrincipalId(1),
            label: None,
            client: Client::default(),
            era: Era::Handshake,
            via: Via::Socket,
            peer: None,
            since: std::time::SystemTime::UNIX_EPOCH,
        },
    );
    desk.set_domains(&id, AllowedDomains::parse(&["localhost"]).expect("list"));
    let permit = desk.authorize_open(&id, url.map(|url| OpenUrl::parse(url).expect("url"))).expect("allowed");
    browser.open_tab(OpenTab { permit, active, window }).await.expect("opened").expose().clone()
}

pub async fn open(browser: &Browser, url: &str) -> Tab {
    open_in(browser, Some(url), true, None).await
}

/// Waits until a tab has this title and is loaded.
pub async fn titled(browser: &Browser, id: &TabId, title: &str) -> Tab {
    wait_for(&format!("the title {title}"), || {
        let tab = browser.tab(id).ok()?.expose().clone();
        (tab.title == title && !tab.loading).then_some(tab)
    })
    .await
}

/// A tab's title and address, and whether it is selected, loading, discarded.
type Line = (String, String, bool, bool, bool);

/// The companion's view of everything, asked for anew: what the mirror must equal.
pub async fn truth(browser: &Browser) -> Vec<Vec<Line>> {
    let answer = browser
        .evaluate(
            "chrome.windows.getAll({populate: true, windowTypes: ['normal', 'popup']}).then(ws => ws.sort((a, b) => a.id - b.id)
                .map(w => w.tabs.map(t => [t.title, t.url || t.pendingUrl, t.active, t.status === 'loading', t.discarded])))",
        )
        .await
        .expect("the companion answers");
    serde_json::from_value(answer).expect("its form")
}

/// The same of the mirror.
pub fn mirrored(browser: &Browser) -> Vec<Vec<Line>> {
    let line = |t: Tab| (t.title, t.url, t.active, t.loading, t.discarded);
    windows(browser).into_iter().map(|window| window.tabs.into_iter().map(line).collect()).collect()
}

/// Waits until the mirror equals the browser; both may still be moving.
pub async fn settled(browser: &Browser) {
    let agreed = tokio::time::timeout(PATIENCE, async {
        while truth(browser).await != mirrored(browser) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    if agreed.await.is_err() {
        assert_eq!(mirrored(browser), truth(browser).await, "the mirror differs from the browser");
    }
}

/// Acts in the browser as the person would.
pub async fn act(browser: &Browser, expression: &str) -> Value {
    browser.evaluate(expression).await.unwrap_or_else(|error| panic!("{error} in {expression}"))
}

/// A web server on the loopback interface: `/title/NAME` is a page of that title, the others are named in `answer`.
pub struct Site {
    pub port: u16,
    held: Held,
}

/// Whether `/held` is still kept waiting.
type Held = Arc<(Mutex<bool>, Condvar)>;

impl Site {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("address").port();
        let held: Held = Arc::new((Mutex::new(true), Condvar::new()));
        let for_all = held.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let held = for_all.clone();
                std::thread::spawn(move || answer(stream, &held));
            }
        });
        Self { port, held }
    }

    /// Lets `/held` be answered.
    pub fn release(&self) {
        *self.held.0.lock().expect("lock") = false;
        self.held.1.notify_all();
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://app.localhost:{}{path}", self.port)
    }
}

fn answer(mut stream: TcpStream, held: &Held) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/");
    if path == "/held" {
        drop(held.1.wait_while(held.0.lock().expect("lock"), |held| *held).expect("lock"));
    }
    let page = match path {
        "/asks-before-leaving" => "<title>Asks</title><script>onbeforeunload = e => { e.preventDefault(); return 'no' }</script>".to_owned(),
        "/never-idle" => "<title>Busy</title><script>setTimeout(() => { for (;;) {} }, 300)</script>".to_owned(),
        "/asks" => "<title>Alerts</title><script>setTimeout(() => alert('stop'), 50)</script>".to_owned(),
        "/half-a-character" => "<title>x</title><script>document.title = 'half \\ud800'</script>".to_owned(),
        "/restless" => "<script>let i = 0; setInterval(() => { document.title = 'title ' + i++ })</script>".to_owned(),
        "/late-frame" => "<title>Late</title><script>onload = () => setTimeout(() => {
            document.body.append(Object.assign(document.createElement('iframe'), { src: '/held' }));
            document.title = 'Later';
        }, 100)</script>".to_owned(),
        "/sounds" => "<title>Sounds</title><script>const c = new AudioContext(); const o = c.createOscillator(); o.connect(c.destination); o.start()</script>".to_owned(),
        _ => format!("<title>{}</title>", path.rsplit('/').next().unwrap_or_default()),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
}

/// Whether a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
}

pub fn kill(pid: u32) {
    signal(pid, "KILL");
}

pub fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{name} to {pid}");
}

/// The process in which a browser runs its extensions, if it runs.
pub fn extension_process(browser: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let runs_extensions = |pid: u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("--extension-process")
    };
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let below = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|above| above == browser);
    numbers.find(|pid| runs_extensions(*pid) && below(*pid))
}
