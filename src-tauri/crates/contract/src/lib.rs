//! What the window sees: the types that cross from Rust to TypeScript, and nothing else.
//!
//! `cargo test -p tabwarden-contract` writes them to `ui/src/lib/contract/`. The feed seals each snapshot and update as a
//! whole on its way out, so that no text of a page or an agent reaches the window unsealed.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Everything at one moment: what a window asks for when it opens, or after it was asleep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Snapshot {
    /// Counts up with each [`Update`]; an update that does not follow on means: ask for a snapshot.
    #[ts(type = "number")]
    pub revision: u64,
    /// The browser.
    pub browser: BrowserView,
    /// The server.
    pub server: ServerView,
    /// Windows in order, each with the ids of its tabs in strip order.
    pub windows: Vec<WindowView>,
    /// Every tab, in no order.
    pub tabs: Vec<TabView>,
    /// The sessions, in the order of their opening.
    pub sessions: Vec<SessionView>,
    /// The latest activity, oldest first.
    pub activity: Vec<ActivityRow>,
    /// How often something was withheld since the local midnight or the start, whichever is later.
    pub withheld_today: u32,
}

/// What changed since the revision before. A part that is missing did not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Update {
    /// One more than that of the update or snapshot before.
    #[ts(type = "number")]
    pub revision: u64,
    /// The browser, if it changed.
    pub browser: Option<BrowserView>,
    /// Windows and tabs, if any changed.
    pub tabs: Option<TabsUpdate>,
    /// All sessions, if any changed.
    pub sessions: Option<Vec<SessionView>>,
    /// New rows, and rows that a call's end replaces (same id), oldest first.
    pub activity: Vec<ActivityRow>,
    /// See [`Snapshot::withheld_today`].
    pub withheld_today: u32,
}

/// Changed tabs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TabsUpdate {
    /// All windows, in order.
    pub windows: Vec<WindowView>,
    /// Tabs that are new or changed.
    pub changed: Vec<TabView>,
    /// Ids of tabs that are gone.
    pub removed: Vec<String>,
}

/// The browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BrowserView {
    /// Not started; the first call or the person's click starts it.
    Stopped,
    /// Starting.
    Starting,
    /// Running.
    Running {
        /// As `Chromium 156.0.8078.114`.
        product: String,
        /// Its process id, unless it was attached to.
        pid: Option<u32>,
        /// Whether sound and muting are known.
        companion: bool,
        /// Whether it runs without its sandbox.
        no_sandbox: bool,
    },
    /// It could not be started, or died.
    Failed {
        /// What happened and what to do.
        reason: String,
    },
}

/// The server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ServerView {
    /// Tabwarden's version.
    pub version: String,
    /// The socket's path.
    pub socket: String,
    /// The HTTP address, if that is on.
    pub http: Option<String>,
}

/// One window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct WindowView {
    /// Its id.
    pub id: String,
    /// Whether it is a window without a tab strip.
    pub popup: bool,
    /// Whether it has the keyboard.
    pub focused: bool,
    /// The ids of its tabs, in strip order.
    pub tabs: Vec<String>,
}

/// One tab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct TabView {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// The address's host, empty if it has none.
    pub domain: String,
    /// The page's icon as a `data:` URL; other addresses are left out, since the window fetches nothing.
    pub favicon: Option<String>,
    /// Whether it is selected in its window.
    pub active: bool,
    /// Whether it is loading.
    pub loading: bool,
    /// Whether it plays sound; null where that is unknown.
    pub audible: Option<bool>,
    /// Whether it is muted; null where that is unknown.
    pub muted: Option<bool>,
    /// Whether the browser put the page out of memory.
    pub discarded: bool,
    /// The session that opened it, by label; null for the person's own.
    pub opened_by: Option<String>,
    /// The last call on it.
    pub last: Option<LastCall>,
    /// How often something was withheld from what left of it.
    pub withheld: u32,
}

/// The last call on a tab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct LastCall {
    /// The tool.
    pub tool: String,
    /// The session's label.
    pub session: String,
    /// When, in milliseconds since 1970.
    #[ts(type = "number")]
    pub at_ms: u64,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct SessionView {
    /// Its id.
    pub id: String,
    /// Its label, unique among the open ones.
    pub label: String,
    /// What the client calls itself.
    pub client: String,
    /// The client's version.
    pub client_version: String,
    /// `handshake` or `stateless`.
    pub era: EraView,
    /// `socket` or `http`.
    pub via: ViaView,
    /// The process behind it.
    pub pid: Option<u32>,
    /// That process's executable.
    pub executable: Option<String>,
    /// Since when, in milliseconds since 1970.
    #[ts(type = "number")]
    pub since_ms: u64,
    /// The domains that it may reach.
    pub domains: Vec<String>,
    /// Whether its connection is there; one that dropped is kept for some seconds.
    pub connected: bool,
    /// Calls since it was opened.
    pub calls: u32,
    /// Calls that were refused or failed.
    pub refused: u32,
    /// Tabs that it opened and that still exist.
    pub tabs: u32,
}

/// The protocol era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
#[serde(rename_all = "snake_case")]
pub enum EraView {
    /// `initialize` opens the conversation.
    Handshake,
    /// Every request says who it is.
    Stateless,
}

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
#[serde(rename_all = "snake_case")]
pub enum ViaView {
    /// The local socket.
    Socket,
    /// HTTP.
    Http,
}

/// One line of the activity list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ActivityRow {
    /// Its number; a later row with the same number takes its place.
    #[ts(type = "number")]
    pub id: u64,
    /// When, in milliseconds since 1970.
    #[ts(type = "number")]
    pub at_ms: u64,
    /// The session's label, if one was concerned.
    pub session: Option<String>,
    /// The tab's id, if one was concerned.
    pub tab: Option<String>,
    /// What happened.
    pub what: ActivityKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ActivityKind {
    /// A tool was called.
    Call {
        /// The tool.
        tool: String,
        /// How it ended.
        outcome: OutcomeView,
    },
    /// Something was withheld.
    Redaction {
        /// The tool that answered; null if it was the window's own view.
        tool: Option<String>,
        /// The kind of place: `url`, `title`, `text` or `error`.
        surface: String,
        /// The place, as `tabs[3].url ?access_token`.
        place: String,
        /// The rule.
        rule: String,
        /// How often.
        count: u32,
        /// A keyed short hash, as `#a3f1`.
        tag: String,
    },
    /// A session opened.
    SessionOpened,
    /// A session ended.
    SessionClosed {
        /// `asked`, `connection_lost` or `shutdown`.
        because: String,
    },
    /// The browser started, stopped or failed.
    Browser {
        /// How it is now.
        browser: BrowserView,
    },
}

/// How a call stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutcomeView {
    /// It runs.
    Running,
    /// It was carried out.
    Done {
        /// Its duration.
        duration_ms: f64,
    },
    /// It was refused or failed.
    Refused {
        /// The error code.
        code: i32,
        /// The slug, as `domain_not_allowed`.
        slug: String,
        /// Its duration.
        duration_ms: f64,
    },
    /// It was cancelled.
    Cancelled {
        /// Its duration.
        duration_ms: f64,
    },
}

/// How to connect one client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ClientSnippet {
    /// As `claude-code`.
    pub id: String,
    /// As `Claude Code`.
    pub name: String,
    /// A command to run or a text to put into a file.
    pub text: String,
    /// The file that the text belongs in; null if it is a command.
    pub file: Option<String>,
}

/// Why an act of the person failed: a code to decide by, and a sentence to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ActError {
    /// `tab_not_found`, `browser_unavailable`, `timed_out`, `refused_by_user` or `internal`.
    pub code: String,
    /// What happened and what to do.
    pub message: String,
}
