//! What happened, told to whoever watches: the window, the journal, tests.

use std::sync::Arc;
use std::time::SystemTime;

use tabwarden_browser::{Browser, Change};
use tabwarden_domain::Event;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// How many events a watcher may be behind before it loses some and has to look at the whole anew.
const BACKLOG: usize = 16_384;

/// An event and when it happened.
#[derive(Clone, PartialEq, Debug)]
pub struct Stamped {
    /// The time of day.
    pub at: SystemTime,
    /// What happened.
    pub event: Event,
}

/// The one place from which events go out.
#[derive(Clone)]
pub(crate) struct Feed(broadcast::Sender<Arc<Stamped>>);

impl Feed {
    pub fn new() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }

    /// Makes an event and sends it, if anybody watches.
    pub fn publish(&self, event: impl FnOnce() -> Event) {
        if self.0.receiver_count() > 0 {
            let _ = self.0.send(Arc::new(Stamped { at: SystemTime::now(), event: event() }));
        }
    }

    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Stamped>> {
        self.0.subscribe()
    }
}

/// Passes the browser's changes on, until `stop`.
pub(crate) async fn forward_browser(browser: Browser, feed: Feed, stop: CancellationToken) {
    let mut changes = browser.changes();
    // Holding the handle would keep the browser alive for the sake of telling that it lives.
    drop(browser);
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return,
            change = changes.recv() => change,
        };
        match change {
            Ok(Change::Tabs) | Err(RecvError::Lagged(_)) => feed.publish(|| Event::TabsChanged),
            Ok(Change::State(state)) => feed.publish(|| Event::BrowserChanged(state)),
            Err(RecvError::Closed) => return,
        }
    }
}
