//! The link to a browser that runs already, over its DevTools WebSocket.

use std::collections::HashMap;
use std::time::Duration;

use chromiumoxide::Connection;
use chromiumoxide::types::{CallId, EventMessage, Message, Method, MethodId};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::BrowserError;
use crate::link::{InOrder, Link, LinkEvent};

/// How long the browser may take to take the connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

impl Method for LinkEvent {
    fn identifier(&self) -> MethodId {
        self.method.clone()
    }
}

impl EventMessage for LinkEvent {
    fn session_id(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// Connects to a browser's DevTools address.
pub(crate) async fn connect(
    address: &str,
    in_order: InOrder,
) -> Result<(Link, mpsc::UnboundedReceiver<LinkEvent>), BrowserError> {
    let unavailable = |why: &str| BrowserError::Unavailable {
        reason: format!(
            "The browser's address cannot be attached to ({why}). Check the address after --attach: ws://…/devtools/browser/…"
        ),
    };
    if !address.starts_with("ws://") && !address.starts_with("wss://") {
        return Err(unavailable("it does not begin with ws://"));
    }
    let connecting = Connection::<LinkEvent>::connect(address);
    let mut connection = match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(_)) => return Err(unavailable("nothing answers there as a browser does")),
        Err(_) => return Err(unavailable("it does not answer")),
    };
    let (link, mut sent, answering) = Link::new();
    let (events_in, events) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        // The connection numbers the commands itself.
        let mut ours: HashMap<CallId, u64> = HashMap::new();
        loop {
            tokio::select! {
                outgoing = sent.recv() => {
                    let Some(outgoing) = outgoing else { break };
                    let session = outgoing.session.map(Into::into);
                    match connection.submit_command(outgoing.method, session, outgoing.params) {
                        Ok(id) => drop(ours.insert(id, outgoing.id)),
                        Err(_) => break,
                    }
                }
                incoming = connection.next() => match incoming {
                    Some(Ok(Message::Response(response))) => {
                        let Some(id) = ours.remove(&response.id) else { continue };
                        let answer = match response.error {
                            Some(error) => Err(BrowserError::Refused(error.message)),
                            None => Ok(response.result.unwrap_or_default()),
                        };
                        answering.answered(id, answer);
                    }
                    Some(Ok(Message::Event(event))) => {
                        if !in_order(&event) && events_in.send(event).is_err() {
                            break;
                        }
                    }
                    Some(Err(_)) | None => break,
                },
            }
        }
        answering.broken();
    });
    Ok((link, events))
}
