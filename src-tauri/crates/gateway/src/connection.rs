//! One connection: reads requests, runs calls side by side, writes answers. One task each.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tabwarden_domain::Peer;
use tabwarden_firewall::Egress;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, Step};
use crate::fault::Fault;
use crate::framing::{Frame, Lines};
use crate::gateway::Gateway;
use crate::message::{Id, looks_like_http};
use crate::socket::{BoundSocket, WriteHalf};
use crate::transport::{Origin, Outbox};

/// How many calls of one connection may run at once. The next one waits, and behind it nothing is read.
const MAX_CALLS: usize = 64;

/// How many notices may wait to be put into the outbox.
const NOTICES: usize = 64;

/// How often a client that only listens is looked after, since nothing wakes us for a hang-up alone.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(250);

/// What can be read from, and tells when the other end is gone for good.
pub(crate) trait Incoming: AsyncRead + Unpin + Send + 'static {
    /// Whether the other end can no longer hear us. An end of the stream alone does not say so: a client may have sent
    /// its last request and still wait for answers.
    fn hung_up(&self) -> bool;
}

impl Gateway {
    /// Serves agents on a socket until `cancel` or [`Gateway::shutdown`]. Removes the socket when it ends.
    pub async fn serve_socket(self, socket: BoundSocket, cancel: CancellationToken) {
        self.served_on_socket(socket.path().to_owned());
        let mut listener = match socket.listen() {
            Ok(listener) => listener,
            Err(error) => {
                tracing::error!("the socket cannot be listened on: {error}");
                return;
            }
        };
        let ending = cancel.child_token();
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = cancel.cancelled() => break,
                () = self.stop().cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((reader, writer, peer)) => match self.connections().clone().try_acquire_owned() {
                    Ok(place) => {
                        let connection = serve(self.clone(), reader, writer, peer, ending.child_token());
                        connections.spawn(async move {
                            connection.await;
                            drop(place);
                        });
                    }
                    Err(_) => turn_away(&self, writer).await,
                },
                Err(error) => {
                    // Out of file handles, most likely: some will come back when connections end.
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
        drop(listener);
        ending.cancel();
        while connections.join_next().await.is_some() {}
    }
}

/// One line for whoever is one too many. It fits into the socket's own buffer, so that nobody is waited for.
async fn turn_away(gateway: &Gateway, mut writer: WriteHalf) {
    let failure = crate::answer::Failure::from(&Fault::TooManyConnections);
    let line = gateway.seal().seal(crate::answer::error(None, &failure), &Origin::default());
    let mut outbox = Outbox::new(&mut writer);
    outbox.push(&line);
    let _ = outbox.write_some().now_or_never();
    let _ = writer.shutdown().now_or_never();
}

/// Serves one connection to its end.
async fn serve<R: Incoming, W: AsyncWrite + Unpin + Send>(
    gateway: Gateway,
    reader: R,
    writer: W,
    peer: Option<Peer>,
    hang_up: CancellationToken,
) {
    let (sender, mut notices) = mpsc::channel(NOTICES);
    let stop = gateway.stop().clone();
    let mut agent = Agent::new(gateway, peer, sender, hang_up.clone());
    let mut lines = Lines::new(reader);
    let mut outbox = Outbox::new(writer);
    let mut calls = Calls::default();
    let mut held: Option<Frame> = None;
    let (mut first, mut reading) = (true, true);
    loop {
        // All that came together is answered before anything is written, so that the answers leave together too.
        while calls.have_room() && !outbox.is_full() {
            let Some(frame) = held.take() else { break };
            take(&mut agent, frame, &mut outbox, &mut calls);
            held = lines.buffered();
        }
        if !reading && calls.is_empty() && held.is_none() {
            outbox.finish().await;
            break;
        }
        let gives_up_at = outbox.gives_up_at();
        tokio::select! {
            biased;
            () = hang_up.cancelled() => break,
            () = stop.cancelled() => break,
            () = until(gives_up_at) => {
                tracing::warn!("disconnected a client that does not read its answers");
                break;
            }
            written = outbox.write_some(), if !outbox.is_empty() => if written.is_err() { break },
            Some(notice) = notices.recv() => outbox.push(&notice),
            Some(answer) = calls.next() => outbox.push(&answer),
            frame = lines.next(), if reading && held.is_none() && !outbox.is_full() => match frame {
                Ok(Some(Frame::Line(line))) if std::mem::take(&mut first) && looks_like_http(&line) => break,
                Ok(Some(frame)) => held = Some(frame),
                Ok(None) => reading = false,
                Err(_) => break,
            },
            () = tokio::time::sleep(LOOK_EVERY), if !reading => {}
        }
        if !reading && lines.stream().hung_up() {
            break;
        }
    }
    // Dropping the calls cancels them.
    drop(calls);
    agent.leave();
}

fn take<W: AsyncWrite + Unpin>(agent: &mut Agent, frame: Frame, outbox: &mut Outbox<W>, calls: &mut Calls) {
    let line: Bytes = match frame {
        Frame::Line(line) => line,
        Frame::TooLong => return outbox.push(&agent.fault(None, &Fault::TooLong)),
    };
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    match agent.take(&line) {
        Step::Nothing => {}
        Step::Answer(answer) => outbox.push(&answer),
        Step::Call(id, call) => {
            if let Some(answer) = calls.begin(id, call) {
                outbox.push(&answer);
            }
        }
        Step::Cancel(id) => calls.cancel(&id),
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The calls of one connection that run.
#[derive(Default)]
struct Calls {
    tasks: JoinSet<Egress>,
    /// By task, since two calls may bear the same id: each gets its answer.
    ids: HashMap<tokio::task::Id, (Id, AbortHandle)>,
}

impl Calls {
    fn have_room(&self) -> bool {
        self.tasks.len() < MAX_CALLS
    }

    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Begins a call. Most are done at the first look, since the mirror answers them without waiting for anything; only
    /// the others are worth a task.
    fn begin(&mut self, id: Id, mut call: BoxFuture<'static, Egress>) -> Option<Egress> {
        if let Some(answer) = (&mut call).now_or_never() {
            return Some(answer);
        }
        let task = self.tasks.spawn(call);
        self.ids.insert(task.id(), (id, task));
        None
    }

    /// The next answer; `None` if no call runs, or one ended without an answer.
    async fn next(&mut self) -> Option<Egress> {
        loop {
            let (task, answer) = match self.tasks.join_next_with_id().await? {
                Ok((task, answer)) => (task, Some(answer)),
                Err(error) => (error.id(), None),
            };
            self.ids.remove(&task);
            if answer.is_some() {
                return answer;
            }
        }
    }

    /// Ends a call. MCP wants no answer to a cancelled request.
    fn cancel(&self, id: &Id) {
        for (_, task) in self.ids.values().filter(|(running, _)| running == id) {
            task.abort();
        }
    }
}
