//! The real Chromium: started, watched and driven.
//!
//! [`Browser`] is the handle that everybody holds. Questions about tabs are answered from the mirror, a model in memory
//! that follows the browser's events; only changes go to the browser.

#![cfg_attr(not(unix), allow(dead_code, unused_imports, reason = "there a browser is attached to, not started"))]

mod companion;
mod fake;
mod find;
mod idle;
mod launch;
mod link;
mod mirror;
mod profile;
mod running;
mod targets;
mod websocket;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use tabwarden_domain::{BrowserState, NavPermit, Raw, Tab, TabId, Window, WindowId, WritePermit};
use tokio::sync::{broadcast, watch};

use crate::fake::Fake;
use crate::mirror::{Mirror, OutOfStep, Report};
use crate::running::Running;

pub use crate::fake::Control;

/// How to get at a browser.
#[derive(Clone, Debug)]
pub struct BrowserConfig {
    /// Start one (the usual way), or attach to one that runs.
    pub source: Source,
    /// Whether to start it without a window.
    pub headless: bool,
    /// More arguments for it. Tests keep it off the network with them.
    pub extra_args: Vec<String>,
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
        /// Whether it runs on this machine, so that it can load the companion from here.
        local: bool,
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
    TimedOut(Duration),
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
pub struct Browser {
    shared: Arc<Shared>,
    driver: Driver,
}

/// What stands behind the handle.
#[derive(Clone)]
enum Driver {
    /// A real browser.
    Real(Arc<BrowserConfig>),
    /// One in memory.
    Fake(Arc<Fake>),
}

/// What the handle and the tasks behind it share.
pub(crate) struct Shared {
    mirror: RwLock<Mirror>,
    state: Mutex<BrowserState>,
    running: Mutex<Option<Arc<Running>>>,
    /// Held while the browser starts or stops, so that several callers at once start one.
    starting: tokio::sync::Mutex<()>,
    /// Counts the starts that came to an end, well or not.
    starts: AtomicU64,
    changes: broadcast::Sender<Change>,
    /// Counts the mirror's changes, for those who wait for one.
    changed: watch::Sender<u64>,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mirror: RwLock::default(),
            state: Mutex::new(BrowserState::Stopped),
            running: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            starts: AtomicU64::new(0),
            changes: broadcast::Sender::new(CHANGES),
            changed: watch::Sender::new(0),
        })
    }

    pub(crate) fn mirror(&self) -> RwLockReadGuard<'_, Mirror> {
        self.mirror.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a driver's report into the mirror.
    pub(crate) fn reported(&self, report: Report) -> Result<(), OutOfStep> {
        let different = self.mirror.write().unwrap_or_else(PoisonError::into_inner).apply(report)?;
        if different {
            self.tell(Change::Tabs);
        }
        Ok(())
    }

    /// Waits until something is so in the mirror; says whether it came to be in time.
    pub(crate) async fn until(&self, limit: Duration, so: impl Fn() -> bool) -> bool {
        // Subscribed first, so that no change falls between looking and waiting.
        let mut changed = self.changed.subscribe();
        let waiting = async { while !so() && changed.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(limit, waiting).await;
        so()
    }

    fn tell(&self, change: Change) {
        self.changed.send_modify(|count| *count += 1);
        // Nobody may be listening.
        let _ = self.changes.send(change);
    }

    fn state(&self) -> BrowserState {
        lock(&self.state).clone()
    }

    fn set_state(&self, state: BrowserState) {
        *lock(&self.state) = state.clone();
        self.tell(Change::State(state));
    }

    /// The browser is no more: its tabs are gone, and so are their ids.
    pub(crate) fn stopped(&self, state: BrowserState) {
        self.mirror.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.tell(Change::Tabs);
        self.set_state(state);
    }

    /// A launch can be used from now on, unless it has ended already.
    fn started(&self, launched: Option<Arc<Running>>, state: BrowserState) {
        let mut running = lock(&self.running);
        running.clone_from(&launched);
        // With the launch held, so that nobody sees a browser that runs and cannot be found, and its end comes after.
        self.set_state(state);
        drop(running);
        if let Some(launched) = launched.filter(|launched| launched.is_over()) {
            self.ended(&Arc::downgrade(&launched), false);
        }
    }

    /// A launch ended. A later one, which may have begun meanwhile, is not touched.
    pub(crate) fn ended(&self, which: &Weak<Running>, in_order: bool) {
        let mut running = lock(&self.running);
        if running.as_ref().is_some_and(|running| std::ptr::eq(Arc::as_ptr(running), which.as_ptr())) {
            *running = None;
            self.stopped(match in_order {
                true => BrowserState::Stopped,
                false => BrowserState::Failed { reason: ENDED.to_owned() },
            });
        }
    }
}

/// What is said of a browser that died.
pub(crate) const ENDED: &str = "The browser ended unexpectedly. The next call starts it again.";

/// How many changes a slow listener may be behind before it reads the mirror anew.
const CHANGES: usize = 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Browser {
    /// Makes the handle. Nothing is started yet.
    pub fn new(config: BrowserConfig) -> Self {
        Self { shared: Shared::new(), driver: Driver::Real(Arc::new(config)) }
    }

    /// A browser in memory, for tests.
    pub fn fake() -> Self {
        Self::fake_with_control().0
    }

    /// A browser in memory, and what a test does to it from outside.
    pub fn fake_with_control() -> (Self, Control) {
        let (shared, fake) = (Shared::new(), Arc::new(Fake::new()));
        let browser = Self { shared: shared.clone(), driver: Driver::Fake(fake.clone()) };
        (browser, Control { shared, fake })
    }

    /// Starts the browser if it does not run. Several callers at once start one.
    pub async fn ensure_running(&self) -> Result<(), BrowserError> {
        if let BrowserState::Running { .. } = self.state() {
            return Ok(());
        }
        // On a task of its own: a caller that gives up must not stop a start that others wait for.
        let this = self.clone();
        let started = tokio::spawn(async move { this.start().await });
        started.await.unwrap_or_else(|_| {
            Err(BrowserError::Unavailable { reason: "The browser's start was cut off.".to_owned() })
        })
    }

    async fn start(&self) -> Result<(), BrowserError> {
        let starts = self.shared.starts.load(Ordering::SeqCst);
        let _one_at_a_time = self.shared.starting.lock().await;
        match self.state() {
            BrowserState::Running { .. } => return Ok(()),
            // A start that failed while this caller waited is its answer too; or each of many would wait for its own.
            BrowserState::Failed { reason } if self.shared.starts.load(Ordering::SeqCst) != starts => {
                return Err(BrowserError::Unavailable { reason });
            }
            BrowserState::Stopped | BrowserState::Starting | BrowserState::Failed { .. } => {}
        }
        self.shared.set_state(BrowserState::Starting);
        let started = match &self.driver {
            Driver::Fake(fake) => fake.start(&self.shared).map(|state| (None, state)),
            Driver::Real(config) => {
                Running::start(config, &self.shared).await.map(|(running, state)| (Some(running), state))
            }
        };
        let outcome = match started {
            Ok((running, state)) => {
                self.shared.started(running, state);
                Ok(())
            }
            Err(error) => {
                self.shared.stopped(BrowserState::Failed { reason: error.to_string() });
                Err(error)
            }
        };
        self.shared.starts.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    /// How it is now.
    pub fn state(&self) -> BrowserState {
        self.shared.state()
    }

    /// Tells of each change. A receiver that lags reads the mirror anew.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// All windows with their tabs, from the mirror. Costs no round trip.
    pub fn windows(&self) -> Result<Raw<Vec<Window>>, BrowserError> {
        self.check_running()?;
        Ok(Raw::new(self.shared.mirror().windows().to_vec()))
    }

    /// One tab, from the mirror.
    pub fn tab(&self, id: &TabId) -> Result<Raw<Tab>, BrowserError> {
        self.check_running()?;
        let found = self.shared.mirror().tab_by_id(id).cloned();
        found.map(Raw::new).ok_or_else(|| BrowserError::NoSuchTab(id.clone()))
    }

    /// Whether the tab is the last one of the last window.
    pub fn is_last_tab(&self, id: &TabId) -> bool {
        matches!(self.shared.mirror().windows(), [window] if matches!(window.tabs.as_slice(), [tab] if tab.id == *id))
    }

    /// Opens a tab. Answers when the tab exists, and the mirror holds it.
    pub async fn open_tab(&self, open: OpenTab) -> Result<Raw<Tab>, BrowserError> {
        match &self.driver {
            Driver::Real(_) => self.running()?.open(&self.shared, open).await,
            Driver::Fake(fake) => fake.open(&self.shared, open).await,
        }
    }

    /// Closes a tab, also one whose page objects or hangs. Answers when it is gone from the mirror.
    pub async fn close_tab(&self, permit: WritePermit) -> Result<(), BrowserError> {
        match &self.driver {
            Driver::Real(_) => self.running()?.close(&self.shared, permit.tab()).await,
            Driver::Fake(fake) => fake.close(&self.shared, permit.tab()).await,
        }
    }

    /// Selects a tab and raises its window: for the person only.
    pub async fn focus_tab(&self, tab: &TabId) -> Result<(), BrowserError> {
        match &self.driver {
            Driver::Real(_) => self.running()?.focus(&self.shared, tab).await,
            Driver::Fake(fake) => fake.focus(&self.shared, tab).await,
        }
    }

    /// Mutes or unmutes a tab.
    pub async fn mute_tab(&self, permit: WritePermit, muted: bool) -> Result<(), BrowserError> {
        match &self.driver {
            Driver::Real(_) => self.running()?.mute(&self.shared, permit.tab(), muted).await,
            Driver::Fake(fake) => fake.change(&self.shared, permit.tab(), |tab| tab.muted = Some(muted)).await,
        }
    }

    /// Closes the browser (or detaches from it), and waits until it is gone.
    pub async fn shutdown(&self) {
        let _not_while_it_starts = self.shared.starting.lock().await;
        let running = lock(&self.shared.running).clone();
        match running {
            Some(running) => running.end().await,
            None => self.shared.stopped(BrowserState::Stopped),
        }
    }

    /// Runs an expression in the companion, for tests that act as the person would.
    #[cfg(feature = "test-support")]
    pub async fn evaluate(&self, expression: &str) -> Result<serde_json::Value, BrowserError> {
        self.running()?.evaluate(expression).await
    }

    fn check_running(&self) -> Result<(), BrowserError> {
        match self.state() {
            BrowserState::Running { .. } => Ok(()),
            BrowserState::Stopped => Err(BrowserError::Unavailable { reason: "The browser does not run.".to_owned() }),
            BrowserState::Starting => {
                Err(BrowserError::Unavailable { reason: "The browser is still starting.".to_owned() })
            }
            BrowserState::Failed { reason } => Err(BrowserError::Unavailable { reason }),
        }
    }

    fn running(&self) -> Result<Arc<Running>, BrowserError> {
        self.check_running()?;
        lock(&self.shared.running).clone().ok_or_else(|| BrowserError::Unavailable { reason: ENDED.to_owned() })
    }
}
