//! The gateway: what all connections share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use tabwarden_browser::Browser;
use tabwarden_domain::{BrowserState, CallId, ClosedBecause, Era, Presence, PrincipalId, Session, SessionId, Via};
use tabwarden_firewall::Firewall;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::answer::millis;
use crate::desk::DeskRoom;
use crate::events::{Feed, Stamped, forward_browser};
use crate::question::{Asker, Closing};
use crate::resume::{Bridges, Secret};
use crate::transport::Seal;

/// How many clients may be connected to the socket at once.
pub const MAX_CONNECTIONS: usize = 256;

/// What the server says of itself.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its version.
    pub version: &'static str,
}

/// What all connections share: desk, browser, firewall and events. Cloning it is cheap.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    browser: Browser,
    seal: Seal,
    desk: DeskRoom,
    closing: Closing,
    about: About,
    principals: AtomicU64,
    calls: AtomicU64,
    bridges: Mutex<Bridges>,
    addresses: Mutex<Addresses>,
    show: broadcast::Sender<()>,
    connections: Arc<Semaphore>,
    stop: CancellationToken,
    /// Ends the tasks when the last handle is dropped.
    _stop_on_drop: DropGuard,
}

/// Where the gateway is served.
#[derive(Default)]
struct Addresses {
    socket: Option<PathBuf>,
    http: Option<String>,
}

/// Requests to bring the window to the front.
pub struct ShowRequests(broadcast::Receiver<()>);

impl ShowRequests {
    /// The next request; `None` when the gateway is gone.
    pub async fn recv(&mut self) -> Option<()> {
        match self.0.recv().await {
            Ok(()) | Err(RecvError::Lagged(_)) => Some(()),
            Err(RecvError::Closed) => None,
        }
    }
}

impl Gateway {
    /// Makes the gateway and its two small tasks, inside a tokio runtime. Without an `asker`, nobody can be asked, and
    /// the last window stays open.
    pub fn new(browser: Browser, firewall: Arc<Firewall>, asker: Option<Asker>, about: About) -> Self {
        let feed = Feed::new();
        let desk = DeskRoom::new(feed.clone());
        let stop = CancellationToken::new();
        tokio::spawn(desk.clone().keep_time(stop.clone()));
        tokio::spawn(forward_browser(browser.clone(), feed.clone(), stop.clone()));
        Self(Arc::new(Shared {
            browser,
            seal: Seal { firewall, feed },
            desk,
            closing: Closing::new(asker),
            about,
            principals: AtomicU64::new(1),
            calls: AtomicU64::new(1),
            bridges: Mutex::default(),
            addresses: Mutex::default(),
            show: broadcast::Sender::new(1),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }))
    }

    /// What happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Arc<Stamped>> {
        self.0.seal.feed.subscribe()
    }

    /// The open sessions, in the order of their opening.
    pub fn sessions(&self) -> Vec<Session> {
        self.0.desk.visit(|desk| desk.sessions().cloned().collect())
    }

    /// One open session.
    pub fn session(&self, id: &SessionId) -> Option<Session> {
        self.0.desk.visit(|desk| desk.session(id.as_str()).cloned())
    }

    /// The browser.
    pub fn browser(&self) -> &Browser {
        &self.0.browser
    }

    /// The firewall.
    pub fn firewall(&self) -> &Firewall {
        &self.0.seal.firewall
    }

    /// A text that an agent gave, sealed before it is cut to a size that can be shown: half a secret is still one, but no
    /// rule knows it.
    pub(crate) fn sealed(&self, text: &str) -> String {
        self.firewall().seal_text(tabwarden_firewall::Surface::Text, text).egress.into_string()
    }

    /// Requests to bring the window to the front. From the first call on, clients are told that there is a window.
    pub fn show_requests(&self) -> ShowRequests {
        ShowRequests(self.0.show.subscribe())
    }

    /// Ends all sessions and connections and accepts no more.
    pub fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.desk.visit(|desk| {
            let ids: Vec<SessionId> = desk.sessions().map(|session| session.id.clone()).collect();
            for id in ids {
                desk.close(&id, ClosedBecause::Shutdown);
            }
        });
    }

    pub(crate) fn about(&self) -> &About {
        &self.0.about
    }

    pub(crate) fn desk(&self) -> &DeskRoom {
        &self.0.desk
    }

    pub(crate) fn closing(&self) -> &Closing {
        &self.0.closing
    }

    pub(crate) fn seal(&self) -> &Seal {
        &self.0.seal
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.0.seal.feed
    }

    pub(crate) fn connections(&self) -> &Arc<Semaphore> {
        &self.0.connections
    }

    /// Cancelled when the gateway shuts down.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    pub(crate) fn next_call(&self) -> CallId {
        CallId(self.0.calls.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn next_principal(&self) -> PrincipalId {
        PrincipalId(self.0.principals.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn served_on_socket(&self, path: PathBuf) {
        lock(&self.0.addresses).socket = Some(path);
    }

    pub(crate) fn served_on_http(&self, address: String) {
        lock(&self.0.addresses).http = Some(address);
    }

    /// Asks the window to come to the front. Says whether there is one.
    pub(crate) fn show(&self) -> bool {
        self.0.show.send(()).is_ok()
    }

    /// A bridge is here. Gives it the principal that its secret stands for, with the sessions that are still open.
    pub(crate) fn resume(
        &self,
        secret: Secret,
        fresh: PrincipalId,
        connection: CancellationToken,
    ) -> (PrincipalId, Vec<SessionId>) {
        let has_sessions =
            |principal| self.0.desk.visit(|desk| desk.sessions().any(|session| session.principal == principal));
        let principal = lock(&self.0.bridges).arrive(secret, fresh, connection, has_sessions);
        let sessions = self.0.desk.visit(|desk| {
            desk.connection_back(principal, Instant::now().into_std());
            desk.sessions().filter(|session| session.principal == principal).map(|session| session.id.clone()).collect()
        });
        (principal, sessions)
    }

    /// A bridge's connection has ended.
    pub(crate) fn bridge_left(&self, secret: Secret, connection: &CancellationToken) {
        if let Some(principal) = lock(&self.0.bridges).leave(secret, connection) {
            self.0.desk.connection_lost(principal);
        }
    }

    /// How things stand, for `tabwarden status`.
    pub(crate) fn status(&self) -> Value {
        let (tabs, windows) = match self.0.browser.windows() {
            Ok(windows) => {
                #[expect(clippy::disallowed_methods, reason = "only counted")]
                let windows = windows.expose();
                (windows.iter().map(|window| window.tabs.len()).sum(), windows.len())
            }
            Err(_) => (0, 0),
        };
        let sessions: Vec<Value> = self.sessions().iter().map(session).collect();
        let addresses = lock(&self.0.addresses);
        json!({
            "version": self.0.about.version,
            "pid": std::process::id(),
            "socket": addresses.socket,
            "http": addresses.http,
            "browser": browser(&self.0.browser.state()),
            "windows": windows,
            "tabs": tabs,
            "sessions": sessions,
        })
    }
}

fn browser(state: &BrowserState) -> Value {
    match state {
        BrowserState::Stopped => json!({ "state": "stopped" }),
        BrowserState::Starting => json!({ "state": "starting" }),
        BrowserState::Running { product, pid, companion, no_sandbox } => json!({
            "state": "running",
            "product": product,
            "pid": pid,
            "companion": companion,
            "no_sandbox": no_sandbox,
        }),
        BrowserState::Failed { reason } => json!({ "state": "failed", "reason": reason }),
    }
}

fn session(session: &Session) -> Value {
    json!({
        "id": session.id.as_str(),
        "label": session.label,
        "client": session.client.name,
        "client_version": session.client.version,
        "era": match session.era {
            Era::Handshake => "handshake",
            Era::Stateless => "stateless",
        },
        "via": match session.via {
            Via::Socket => "socket",
            Via::Http => "http",
        },
        "pid": session.peer.as_ref().map(|peer| peer.pid),
        "executable": session.peer.as_ref().and_then(|peer| peer.executable.as_ref()).map(|path| path.to_string_lossy()),
        "since_ms": millis(session.since.duration_since(UNIX_EPOCH).unwrap_or_default()),
        "domains": session.domains.to_strings(),
        "connected": session.presence == Presence::Connected,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
