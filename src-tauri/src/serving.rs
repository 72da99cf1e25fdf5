//! Serving agents: the socket, the HTTP address and the browser, from start to stop.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tabwarden_browser::{Browser, BrowserConfig, Source};
use tabwarden_firewall::Firewall;
use tabwarden_gateway::{About, Asker, BoundSocket, Gateway, SocketError, SocketPath, Token};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cli::{PlaceArgs, ServingArgs};
use crate::places::{DataDir, DataDirError};
use crate::token::{self, TokenError};

/// How long stopping may take before what still hangs is left behind.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Why serving did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another Tabwarden serves on the socket, or it cannot be made.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// There is no HTTP token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The HTTP port cannot be used.
    #[error(
        "Port {port} on 127.0.0.1 cannot be used ({source}). Name another with --http PORT, or 0 for any free one."
    )]
    Port {
        /// The port.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
}

/// What is needed before anything is served.
pub struct Ground {
    /// The socket, bound but not answered yet.
    pub socket: BoundSocket,
    /// The data folder.
    pub data_dir: DataDir,
}

impl Ground {
    /// Takes the socket and the data folder. Only one Tabwarden gets past this for a socket.
    pub fn take(places: &PlaceArgs) -> Result<Self, StartError> {
        let socket = BoundSocket::bind(&socket_path(places)?)?;
        let data_dir = DataDir::open(places.data_dir.as_deref())?;
        Ok(Self { socket, data_dir })
    }
}

/// The socket's path: as named, or the usual one.
pub fn socket_path(places: &PlaceArgs) -> Result<SocketPath, SocketError> {
    SocketPath::resolve(places.socket.as_deref())
}

/// A server at work.
pub struct Serving {
    /// The gateway.
    pub gateway: Gateway,
    /// The socket's path.
    pub socket: PathBuf,
    /// The HTTP address, if that is on.
    pub http: Option<SocketAddr>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Serving {
    /// Answers on the socket (and over HTTP where asked), and starts the browser. Inside a tokio runtime.
    pub async fn start(
        ground: Ground,
        args: &ServingArgs,
        headless: bool,
        firewall: Arc<Firewall>,
        asker: Option<Asker>,
    ) -> Result<Self, StartError> {
        let Ground { socket, data_dir } = ground;
        let extra_args = args.browser_arg.clone();
        let browser = Browser::new(BrowserConfig { source: source(args, &data_dir), headless, extra_args });
        let about = About { version: env!("CARGO_PKG_VERSION") };
        let gateway = Gateway::new(browser.clone(), firewall, asker, about);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let socket_path = socket.path().to_owned();
        let http = match args.http {
            None => None,
            Some(port) => {
                let token = http_token(args.token_file.clone(), data_dir.path().to_owned()).await?;
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
                    .await
                    .map_err(|source| StartError::Port { port, source })?;
                let address = listener.local_addr().map_err(|source| StartError::Port { port, source })?;
                tasks.spawn(gateway.clone().serve_http(listener, Token::new(token), stop.clone()));
                tracing::info!("HTTP on http://{address}/mcp");
                Some(address)
            }
        };
        tasks.spawn(gateway.clone().serve_socket(socket, stop.clone()));
        tracing::info!("socket {}", socket_path.display());
        // Its failure is a state of its own, which status, window and every call show.
        tokio::spawn(async move {
            if let Err(error) = browser.ensure_running().await {
                tracing::warn!("{error}");
            }
        });
        Ok(Self { gateway, socket: socket_path, http, tasks, stop })
    }

    /// Stops accepting, ends sessions, closes the browser and removes the socket.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let all = async {
            self.gateway.shutdown();
            self.gateway.browser().shutdown().await;
            while self.tasks.join_next().await.is_some() {}
        };
        if tokio::time::timeout(STOP_LIMIT, all).await.is_err() {
            tracing::warn!("something did not stop within {} s and was left behind", STOP_LIMIT.as_secs());
        }
    }
}

/// Ends when the user or the system asks the process to.
pub async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = async {
            match signal(SignalKind::terminate()) {
                Ok(mut terminate) => drop(terminate.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminate => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = tokio::signal::ctrl_c().await;
    }
}

fn source(args: &ServingArgs, data_dir: &DataDir) -> Source {
    match &args.attach {
        Some(address) => Source::Attach { address: address.clone(), local: is_local(address) },
        None => Source::Launch { executable: args.browser.clone(), profile: data_dir.profile() },
    }
}

/// Whether a browser's address is on this machine.
fn is_local(address: &str) -> bool {
    use url::Host;
    match url::Url::parse(address).ok().and_then(|url| url.host().map(|host| host.to_owned())) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The keyring may wait for the user to unlock it, so it is asked on a thread of its own.
async fn http_token(file: Option<PathBuf>, data_dir: PathBuf) -> Result<String, TokenError> {
    let asked = tokio::task::spawn_blocking(move || token::token(file.as_deref(), Path::new(&data_dir)));
    asked.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}
