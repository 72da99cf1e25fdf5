//! The stdio bridge: what an MCP client starts, between its own pipes and the socket of the app.
//!
//! It outlives the app. When the app goes away, what was in flight is answered with an error, and the next request
//! finds the app again (or starts it). The client's `initialize` is repeated for it, so that the client notices nothing.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use crate::answer::{self, Failure};
use crate::connection::Incoming;
use crate::fault::Fault;
use crate::framing::{Frame, Lines};
use crate::message::{Id, Message};
use crate::socket::{ClientRead, ClientWrite, SocketPath, Stream, connect, split};

/// How long the app may take to start, until its socket answers.
const START_LIMIT: Duration = Duration::from_secs(15);

/// How long a request waits for an app that somebody else restarts.
const RESTART_LIMIT: Duration = Duration::from_secs(5);

/// How often the socket is tried while it does not answer.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// How long the app may take to greet back.
const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// The longest line that is taken from the app. It is ours, so this only guards against a mistake.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// How much may wait on one side before no more is read on the other.
const FULL: usize = 8 * 1024 * 1024;

/// How the bridge finds the app.
#[derive(Debug)]
pub struct BridgeConfig {
    /// The app's socket.
    pub socket: SocketPath,
    /// What starts the app if none runs; `None` if it is not to be started.
    pub start: Option<Command>,
}

/// Why the bridge ended before its client was done.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The client's end of stdin or stdout broke.
    #[error("The client's pipes broke ({0}). Start the client again.")]
    Stdio(#[from] io::Error),
}

/// Bridges stdin and stdout to the app, until stdin closes and what was sent is answered.
pub async fn run(config: BridgeConfig) -> Result<(), BridgeError> {
    between(config, tokio::io::stdin(), tokio::io::stdout()).await
}

/// The same between any two pipes.
pub async fn between<R, W>(config: BridgeConfig, from_client: R, to_client: W) -> Result<(), BridgeError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let secret: [u8; 32] = rand::random();
    let mut bridge = Bridge {
        config,
        secret: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
        initialize: None,
        in_flight: Vec::new(),
        app: None,
        to_client: Sink::new(to_client),
    };
    bridge.serve(from_client).await
}

/// Bytes on their way to a stream, so that neither side waits for the other to read.
struct Sink<W> {
    stream: W,
    waiting: BytesMut,
}

impl<W: AsyncWrite + Unpin> Sink<W> {
    fn new(stream: W) -> Self {
        Self { stream, waiting: BytesMut::new() }
    }

    fn push(&mut self, line: &[u8]) {
        self.waiting.extend_from_slice(line);
        self.waiting.extend_from_slice(b"\n");
    }

    fn is_full(&self) -> bool {
        self.waiting.len() > FULL
    }

    /// Writes some of what waits; forever pending if nothing does. May be dropped at any point.
    async fn write_some(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        let written = self.stream.write(&self.waiting).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.waiting.advance(written);
        if self.waiting.is_empty() {
            self.stream.flush().await?;
        }
        Ok(())
    }

    async fn write_all(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            self.write_some().await?;
        }
        self.stream.flush().await
    }
}

/// The connection to the app.
struct App {
    lines: Lines<ClientRead>,
    sink: Sink<ClientWrite>,
}

struct Bridge<W> {
    config: BridgeConfig,
    /// By which the app knows that we are the same when we come back.
    secret: String,
    /// The client's `initialize`, to be repeated to an app that has not heard it.
    initialize: Option<Value>,
    /// The requests that the app has not answered yet.
    in_flight: Vec<Id>,
    app: Option<App>,
    to_client: Sink<W>,
}

enum Happened {
    FromClient(io::Result<Option<Frame>>),
    FromApp(io::Result<Option<Frame>>),
    Written(io::Result<()>),
    AppGone,
}

impl<W: AsyncWrite + Unpin> Bridge<W> {
    async fn serve<R: AsyncRead + Unpin>(&mut self, from_client: R) -> Result<(), BridgeError> {
        let mut client = Lines::new(from_client);
        let mut open = true;
        while open || !self.in_flight.is_empty() {
            match self.next(&mut client, open).await {
                Happened::FromClient(Ok(Some(frame))) => self.take(frame).await,
                Happened::FromClient(Ok(None)) => {
                    open = false;
                    self.end_requests().await;
                }
                Happened::FromClient(Err(error)) => return Err(error.into()),
                Happened::FromApp(Ok(Some(Frame::Line(line)))) => self.pass_on(&line),
                Happened::FromApp(Ok(Some(Frame::TooLong) | None) | Err(_)) | Happened::AppGone => self.lose_app(),
                Happened::Written(written) => written?,
            }
        }
        self.to_client.write_all().await?;
        Ok(())
    }

    async fn next<R: AsyncRead + Unpin>(&mut self, client: &mut Lines<R>, open: bool) -> Happened {
        let Self { app, to_client, .. } = self;
        let may_ask = open && app.as_ref().is_none_or(|app| !app.sink.is_full());
        let may_answer = !to_client.is_full();
        let app_there = app.is_some();
        let with_app = async {
            let Some(App { lines, sink }) = app else { return std::future::pending().await };
            tokio::select! {
                frame = lines.next(), if may_answer => Happened::FromApp(frame),
                written = sink.write_some() => match written {
                    Ok(()) => Happened::Written(Ok(())),
                    Err(_) => Happened::AppGone,
                },
            }
        };
        tokio::select! {
            biased;
            happened = with_app, if app_there => happened,
            written = to_client.write_some() => Happened::Written(written),
            frame = client.next(), if may_ask => Happened::FromClient(frame),
        }
    }

    /// Takes a line of the client to the app, looking for the app first if it is not there.
    async fn take(&mut self, frame: Frame) {
        let Frame::Line(line) = frame else {
            return self.answer_fault(None, &Fault::TooLong);
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let (id, initialize) = match Message::read(&line) {
            Ok(Message::Request { id, method, .. }) => (Some(id), method == "initialize"),
            Ok(Message::Notification { .. } | Message::Answer) if self.app.is_none() => return,
            Ok(Message::Notification { .. } | Message::Answer) | Err(_) => (None, false),
        };
        // Asked before each request, so that none is lost to an app that is gone already.
        if self.app.as_ref().is_some_and(|app| app.lines.stream().hung_up()) {
            self.lose_app();
        }
        if self.app.is_none() {
            if initialize {
                // It goes out as itself right after; an earlier one is not to be repeated before it.
                self.initialize = None;
            }
            self.find_app().await;
        }
        let Some(app) = &mut self.app else {
            return self
                .answer_fault(id.as_ref(), &Fault::NoApp { path: self.config.socket.as_path().display().to_string() });
        };
        app.sink.push(&line);
        self.in_flight.extend(id);
        if initialize {
            self.initialize = serde_json::from_slice(&line).ok();
        }
    }

    /// Passes a line of the app on.
    fn pass_on(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            method: Option<IgnoredAny>,
        }
        let answer = serde_json::from_slice::<Answer<'_>>(line).ok().filter(|answer| answer.method.is_none());
        if let Some(id) = answer.and_then(|answer| Id::read(answer.id?.get()))
            && let Some(at) = self.in_flight.iter().position(|waiting| *waiting == id)
        {
            self.in_flight.swap_remove(at);
        }
        self.to_client.push(line);
    }

    /// The app is gone: nobody will answer what was with it.
    fn lose_app(&mut self) {
        self.app = None;
        for id in std::mem::take(&mut self.in_flight) {
            self.answer_fault(Some(&id), &Fault::AppGone);
        }
    }

    fn answer_fault(&mut self, id: Option<&Id>, fault: &Fault) {
        self.to_client.push(answer::error(id, &Failure::from(fault)).as_bytes());
    }

    /// The client sends nothing more. The app hears that, and answers what it has.
    async fn end_requests(&mut self) {
        if let Some(app) = &mut self.app {
            let ended = async {
                app.sink.write_all().await?;
                app.sink.stream.shutdown().await
            };
            if ended.await.is_err() {
                self.lose_app();
            }
        }
    }

    /// Connects to the app, starting it if that is wanted. Leaves `app` empty if there is none.
    async fn find_app(&mut self) {
        let socket = self.config.socket.as_path().to_owned();
        let mut limit = RESTART_LIMIT;
        let mut stream = connect(&socket).await;
        if stream.is_err()
            && let Some(start) = &mut self.config.start
            && start_detached(start).is_ok()
        {
            limit = START_LIMIT;
        }
        let until = Instant::now() + limit;
        while stream.is_err() && Instant::now() < until {
            tokio::time::sleep(TRY_EVERY).await;
            stream = connect(&socket).await;
        }
        if let Ok(stream) = stream {
            let greeting = App::greet(stream, &self.secret, self.initialize.as_ref());
            self.app = tokio::time::timeout(GREETING_LIMIT, greeting).await.ok().and_then(Result::ok);
        }
    }
}

impl App {
    /// Says who we are, and repeats what the client said of itself.
    async fn greet(stream: Stream, secret: &str, initialize: Option<&Value>) -> io::Result<Self> {
        let (reader, writer) = split(stream);
        let mut app = Self { lines: Lines::with_limit(reader, MAX_ANSWER), sink: Sink::new(writer) };
        let hello = json!({
            "jsonrpc": "2.0",
            "id": "bridge",
            "method": "tabwarden/bridge",
            "params": { "secret": secret },
        });
        app.exchange(hello).await?;
        if let Some(initialize) = initialize {
            let mut initialize = initialize.clone();
            initialize["id"] = "bridge".into();
            app.exchange(initialize).await?;
            app.sink.push(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        Ok(app)
    }

    /// Sends a request and swallows its answer.
    async fn exchange(&mut self, request: Value) -> io::Result<()> {
        self.sink.push(request.to_string().as_bytes());
        self.sink.write_all().await?;
        match self.lines.next().await? {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Starts the app so that it outlives us and shares none of our pipes.
fn start_detached(command: &mut Command) -> io::Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut app = command.spawn()?;
    // Somebody has to take notice of its end, or it stays behind as a zombie.
    std::thread::spawn(move || app.wait());
    Ok(())
}
