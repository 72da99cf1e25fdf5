//! The real Chromium: started, watched and driven.
//!
//! [`Browser`] is the handle that everybody holds. Questions about tabs are answered from the mirror, a model in memory
//! that follows the browser's events; only changes go to the browser.

use std::path::PathBuf;

use tabwarden_domain::{BrowserState, NavPermit, Raw, Tab, TabId, Window, WindowId, WritePermit};

/// How to get at a browser.
#[derive(Clone, Debug)]
pub struct BrowserConfig {
    /// Start one (the usual way), or attach to one that runs.
    pub source: Source,
    /// Whether to start it without a window.
    pub headless: bool,
}

/// Where the browser comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Start one.
    Launch {
        /// The executable; found if `None`.
        executable: Option<PathBuf>,
        /// Its profile folder; made if it does not exist.
        profile: PathBuf,
    },
    /// Attach to a CDP address, `ws://…`.
    Attach {
        /// The address.
        address: String,
    },
}

/// Why the browser did not do it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BrowserError {
    /// It does not run and could not be started.
    #[error("{reason}")]
    Unavailable {
        /// What happened and what to do.
        reason: String,
    },
    /// There is no such tab.
    #[error("there is no such tab")]
    NoSuchTab(TabId),
    /// There is no such window.
    #[error("there is no such window")]
    NoSuchWindow(WindowId),
    /// The tab is between two states.
    #[error("the tab is between two states")]
    Busy(TabId),
    /// It did not answer in time.
    #[error("the browser did not answer in time")]
    TimedOut(std::time::Duration),
    /// It answered with an error.
    #[error("the browser refused: {0}")]
    Refused(String),
}

/// What happens to the mirror, for those who follow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Tabs or windows changed.
    Tabs,
    /// The browser started, stopped or failed.
    State(BrowserState),
}

/// A new tab.
#[derive(Debug)]
pub struct OpenTab {
    /// Leave to open its address.
    pub permit: NavPermit,
    /// Whether it should be selected. When the person is at work in the browser, it is not.
    pub active: bool,
    /// The window; the one used last if `None`.
    pub window: Option<WindowId>,
}

/// The handle. Cloning it is cheap.
#[derive(Clone)]
pub struct Browser {}

impl Browser {
    /// Makes the handle and the task behind it, inside a tokio runtime. Nothing is started yet.
    pub fn new(_config: BrowserConfig) -> Self {
        Self {}
    }

    /// A browser in memory, for tests.
    pub fn fake() -> Self {
        Self {}
    }

    /// Starts the browser if it does not run. Several callers at once start one.
    pub async fn ensure_running(&self) -> Result<(), BrowserError> {
        unimplemented!()
    }

    /// How it is now.
    pub fn state(&self) -> BrowserState {
        unimplemented!()
    }

    /// Tells of each change. A receiver that lags reads the mirror anew.
    pub fn changes(&self) -> tokio::sync::broadcast::Receiver<Change> {
        unimplemented!()
    }

    /// All windows with their tabs, from the mirror. Costs no round trip.
    pub fn windows(&self) -> Result<Raw<Vec<Window>>, BrowserError> {
        unimplemented!()
    }

    /// One tab, from the mirror.
    pub fn tab(&self, _id: &TabId) -> Result<Raw<Tab>, BrowserError> {
        unimplemented!()
    }

    /// Whether the tab is the last one of the last window.
    pub fn is_last_tab(&self, _id: &TabId) -> bool {
        unimplemented!()
    }

    /// Opens a tab. Answers when the tab exists.
    pub async fn open_tab(&self, _open: OpenTab) -> Result<Raw<Tab>, BrowserError> {
        unimplemented!()
    }

    /// Closes a tab, also one whose page objects or hangs. Answers when it is gone from the mirror.
    pub async fn close_tab(&self, _permit: WritePermit) -> Result<(), BrowserError> {
        unimplemented!()
    }

    /// Selects a tab and raises its window: for the person only.
    pub async fn focus_tab(&self, _tab: &TabId) -> Result<(), BrowserError> {
        unimplemented!()
    }

    /// Mutes or unmutes a tab.
    pub async fn mute_tab(&self, _permit: WritePermit, _muted: bool) -> Result<(), BrowserError> {
        unimplemented!()
    }

    /// Closes the browser (or detaches from it), and waits until it is gone.
    pub async fn shutdown(&self) {
        unimplemented!()
    }
}
