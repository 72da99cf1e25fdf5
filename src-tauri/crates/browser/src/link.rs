//! The link to a browser: CDP commands out, answers and events in, over a pipe or a WebSocket.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chromiumoxide::types::Command;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use crate::{BrowserError, ENDED};

/// How long the browser may take to answer a command.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The longest message that is taken, in bytes. Chromium's own are far below it.
const MAX_MESSAGE: usize = 256 * 1024 * 1024;

/// Something that the browser tells unasked.
#[derive(Debug, Deserialize)]
pub(crate) struct LinkEvent {
    pub(crate) method: Cow<'static, str>,
    #[serde(default)]
    pub(crate) params: Value,
    /// The target's session that it came from; `None` for the browser itself.
    #[serde(rename = "sessionId")]
    pub(crate) session: Option<String>,
}

/// Takes an event at once, in the order in which the browser sent it among its answers; says whether that was all.
/// What it leaves goes to the channel, whose reader may lag behind the answers.
pub(crate) type InOrder = Box<dyn Fn(&LinkEvent) -> bool + Send>;

/// A command on its way out.
pub(crate) struct Outgoing {
    pub(crate) id: u64,
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Value,
    pub(crate) session: Option<String>,
}

impl Outgoing {
    fn to_json(&self) -> String {
        let mut message = json!({ "id": self.id, "method": self.method, "params": self.params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        message.to_string()
    }
}

/// The commands' side. Cloning it is cheap.
#[derive(Clone)]
pub(crate) struct Link {
    out: mpsc::UnboundedSender<Outgoing>,
    waiting: Arc<Waiting>,
}

/// The answers' side, for the task that reads. It does not keep the link alive: when the last [`Link`] goes, the
/// connection closes.
pub(crate) struct Answering(Arc<Waiting>);

/// Where the answer to each command goes.
type Answers = HashMap<u64, oneshot::Sender<Result<Value, BrowserError>>>;

/// Who waits for which answer. `None` once the link is broken: nobody may wait any more.
struct Waiting {
    next_id: AtomicU64,
    answers: Mutex<Option<Answers>>,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Option<Answers>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Incoming {
    Answer {
        id: u64,
        #[serde(default)]
        result: Value,
        error: Option<IncomingError>,
    },
    Event(LinkEvent),
}

#[derive(Deserialize)]
struct IncomingError {
    message: String,
}

/// A command's answer is awaited no longer.
struct Forget<'a> {
    id: u64,
    waiting: &'a Waiting,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if let Some(answers) = self.waiting.lock().as_mut() {
            answers.remove(&self.id);
        }
    }
}

impl Answering {
    /// Takes a message: an answer goes to who waits for it, an event is returned.
    fn incoming(&self, bytes: &[u8]) -> Option<LinkEvent> {
        match serde_json::from_slice::<Incoming>(bytes) {
            Ok(Incoming::Answer { id, result, error }) => {
                self.answered(id, error.map_or(Ok(result), |error| Err(BrowserError::Refused(error.message))));
                None
            }
            Ok(Incoming::Event(event)) => Some(event),
            Err(_) => {
                tracing::warn!("the browser sent a message that is not understood");
                None
            }
        }
    }

    /// Hands an answer to who waits for it.
    pub(crate) fn answered(&self, id: u64, answer: Result<Value, BrowserError>) {
        let waiting = self.0.lock().as_mut().and_then(|answers| answers.remove(&id));
        if let Some(waiting) = waiting {
            // Who waited may have given up.
            let _ = waiting.send(answer);
        }
    }

    /// The link is broken: nobody waits in vain.
    pub(crate) fn broken(&self) {
        self.0.lock().take();
    }
}

impl Link {
    /// A link whose commands somebody sends, who hands over what comes in.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Outgoing>, Answering) {
        let (out, sent) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting { next_id: AtomicU64::new(1), answers: Mutex::new(Some(HashMap::new())) });
        (Self { out, waiting: waiting.clone() }, sent, Answering(waiting))
    }

    /// A link over a pair of pipes, each message ending in a NUL byte. The events end when the browser closes its side.
    pub(crate) fn over_pipes(
        reader: impl AsyncRead + Unpin + Send + 'static,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
        in_order: InOrder,
    ) -> (Self, mpsc::UnboundedReceiver<LinkEvent>) {
        let (link, mut sent, answering) = Self::new();
        let (events_in, events) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(message) = sent.recv().await {
                let mut bytes = message.to_json().into_bytes();
                bytes.push(0);
                if writer.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(async move {
            let mut reader = BufReader::with_capacity(64 * 1024, reader);
            let mut bytes = Vec::new();
            loop {
                bytes.clear();
                match reader.read_until(0, &mut bytes).await {
                    Ok(count) if count > 0 && bytes.len() <= MAX_MESSAGE => {}
                    _ => break,
                }
                if bytes.last() == Some(&0) {
                    bytes.pop();
                }
                if let Some(event) = answering.incoming(&bytes)
                    && !in_order(&event)
                    && events_in.send(event).is_err()
                {
                    break;
                }
            }
            answering.broken();
        });
        (link, events)
    }

    /// The link is broken: nobody waits in vain.
    pub(crate) fn broken(&self) {
        self.waiting.lock().take();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.waiting.lock().is_none()
    }

    /// Sends a command and waits for its answer. `session` names a target's session; `None` is the browser itself.
    pub(crate) async fn send<C: Command>(
        &self,
        session: Option<&str>,
        command: C,
    ) -> Result<C::Response, BrowserError> {
        self.send_within(ANSWER_LIMIT, session, command).await
    }

    /// The same with a limit of its own.
    pub(crate) async fn send_within<C: Command>(
        &self,
        limit: Duration,
        session: Option<&str>,
        command: C,
    ) -> Result<C::Response, BrowserError> {
        let method = command.identifier();
        let answer = self.exchange(limit, session, method.clone(), json!(command)).await?;
        serde_json::from_value(answer)
            .map_err(|error| BrowserError::Refused(format!("its answer to {method} is not understood: {error}")))
    }

    async fn exchange(
        &self,
        limit: Duration,
        session: Option<&str>,
        method: Cow<'static, str>,
        params: Value,
    ) -> Result<Value, BrowserError> {
        let gone = || BrowserError::Unavailable { reason: ENDED.to_owned() };
        let id = self.waiting.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        match self.waiting.lock().as_mut() {
            Some(answers) => answers.insert(id, sender),
            None => return Err(gone()),
        };
        let _forget = Forget { id, waiting: &self.waiting };
        let outgoing = Outgoing { id, method, params, session: session.map(str::to_owned) };
        self.out.send(outgoing).map_err(|_| gone())?;
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(BrowserError::TimedOut(limit)),
        }
    }
}
