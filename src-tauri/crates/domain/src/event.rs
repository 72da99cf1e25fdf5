//! What happened. Events carry no page's words except in [`Redaction`]'s places, which name a spot and never a value.

use std::time::Duration;

use crate::{CallId, SessionId, TabId};

/// Everything that the journal and the window hear of.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A session was opened.
    SessionOpened(SessionId),
    /// A session's label, domains or presence changed.
    SessionChanged(SessionId),
    /// A session ended.
    SessionClosed(SessionId, ClosedBecause),
    /// A call began.
    CallStarted(CallRecord),
    /// A call was answered.
    CallEnded(CallRecord, Outcome, Duration),
    /// Something was withheld from what left.
    Redacted(Redaction),
    /// The browser started, stopped or failed.
    BrowserChanged(BrowserState),
    /// Tabs or windows changed; the mirror holds how they are now.
    TabsChanged,
}

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClosedBecause {
    /// The agent closed it.
    Asked,
    /// Its connection did not come back.
    ConnectionLost,
    /// The server stops.
    Shutdown,
}

/// One call, as far as it concerns those who watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallRecord {
    /// Its number.
    pub id: CallId,
    /// The session that called; `None` if the connection had none.
    pub session: Option<SessionId>,
    /// The tool.
    pub tool: String,
    /// The tab that it names.
    pub tab: Option<TabId>,
}

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was carried out.
    Done,
    /// It was refused or failed.
    Refused {
        /// The error code on the wire.
        code: i32,
        /// The slug on the wire, as `domain_not_allowed`.
        slug: &'static str,
    },
    /// The client cancelled it or went away.
    Cancelled,
}

/// The kind of place from which something was withheld.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Surface {
    /// An address.
    Url,
    /// A title.
    Title,
    /// Any other text.
    Text,
    /// An error's message or data.
    Error,
}

/// One thing that was withheld: where and by which rule, never what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redaction {
    /// The session whose answer it was; `None` for what went to the window.
    pub session: Option<SessionId>,
    /// The tool that answered.
    pub tool: Option<String>,
    /// The tab that the call named.
    pub tab: Option<TabId>,
    /// The kind of place.
    pub surface: Surface,
    /// The place, as `tabs[3].url ?access_token`.
    pub place: String,
    /// The rule.
    pub rule: String,
    /// How often in that place.
    pub count: u32,
    /// A keyed short hash, as `#a3f1`: the same secret has the same tag during one run.
    pub tag: String,
}

/// How the browser is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BrowserState {
    /// Not started, or stopped; the next call starts it.
    Stopped,
    /// Starting.
    Starting,
    /// Running.
    Running {
        /// What it calls itself, as `Chromium 156.0.8078.114`.
        product: String,
        /// Its process id, unless it was attached to.
        pid: Option<u32>,
        /// Whether the companion extension is loaded. Without it, sound and muting are unknown.
        companion: bool,
        /// Whether it runs without its sandbox, as it must for root.
        no_sandbox: bool,
    },
    /// It could not be started, or died.
    Failed {
        /// What happened and what to do.
        reason: String,
    },
}
