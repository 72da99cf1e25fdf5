//! A browser in memory, for tests of what stands above.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tabwarden_domain::{BrowserState, Raw, Tab, TabId, WindowId};
use tokio::sync::watch;

use crate::mirror::{Key, Report, ReportedTab, ReportedWindow};
use crate::{BrowserError, ENDED, OpenTab, Shared};

/// The windows and tabs of a fake browser.
#[derive(Default)]
struct World {
    next_key: Key,
    windows: Vec<ReportedWindow>,
    tabs: Vec<ReportedTab>,
    /// Why it cannot be started; `None` if it can.
    broken: Option<String>,
    starts: u32,
}

/// The fake behind a [`crate::Browser`].
pub(crate) struct Fake {
    world: Mutex<World>,
    /// Acts wait while this is true.
    hangs: watch::Sender<bool>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self { world: Mutex::default(), hangs: watch::Sender::new(false) }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts it with one window and one tab.
    pub(crate) fn start(&self, shared: &Shared) -> Result<BrowserState, BrowserError> {
        {
            let mut world = self.world();
            if let Some(reason) = &world.broken {
                return Err(BrowserError::Unavailable { reason: reason.clone() });
            }
            world.starts += 1;
            world.windows.clear();
            world.tabs.clear();
            world.add_window("New Tab", "chrome://newtab/");
        }
        self.report(shared);
        Ok(BrowserState::Running { product: "Fake 1".to_owned(), pid: Some(1), companion: true, no_sandbox: false })
    }

    fn report(&self, shared: &Shared) {
        let world = self.world();
        let windows = world.windows.iter().map(|w| ReportedWindow { tabs: w.tabs.clone(), ..*w }).collect();
        let report = Report { sequence: 0, windows, changed: world.tabs.clone(), replaced: Vec::new() };
        // With the world held, so that no older report overtakes a newer one.
        let _ = shared.reported(report);
    }

    /// Waits while it hangs.
    async fn answers(&self) {
        let _ = self.hangs.subscribe().wait_for(|hangs| !hangs).await;
    }

    pub(crate) async fn open(&self, shared: &Shared, open: OpenTab) -> Result<Raw<Tab>, BrowserError> {
        self.answers().await;
        let window = match &open.window {
            None => None,
            Some(id) => Some(shared.mirror().window_key(id).ok_or_else(|| BrowserError::NoSuchWindow(id.clone()))?),
        };
        let url = open.permit.url().map_or("chrome://newtab/", |url| url.as_str()).to_owned();
        let key = {
            let mut world = self.world();
            match window.or_else(|| world.windows.first().map(|w| w.id)) {
                Some(window) => world.add_tab(window, "", &url, open.active),
                None => world.add_window("", &url),
            }
        };
        self.report(shared);
        let tab = shared.mirror().tab_by_key(key).cloned();
        tab.map(Raw::new).ok_or_else(|| BrowserError::Refused("the tab closed as soon as it opened".to_owned()))
    }

    pub(crate) async fn close(&self, shared: &Shared, tab: &TabId) -> Result<(), BrowserError> {
        self.answers().await;
        let key = shared.mirror().key(tab).ok_or_else(|| BrowserError::NoSuchTab(tab.clone()))?;
        self.world().remove(key);
        self.report(shared);
        Ok(())
    }

    /// Changes a tab.
    pub(crate) async fn change(
        &self,
        shared: &Shared,
        tab: &TabId,
        change: impl FnOnce(&mut ReportedTab),
    ) -> Result<(), BrowserError> {
        self.answers().await;
        let key = shared.mirror().key(tab).ok_or_else(|| BrowserError::NoSuchTab(tab.clone()))?;
        if let Some(tab) = self.world().tabs.iter_mut().find(|t| t.id == key) {
            change(tab);
        }
        self.report(shared);
        Ok(())
    }

    pub(crate) async fn focus(&self, shared: &Shared, tab: &TabId) -> Result<(), BrowserError> {
        self.answers().await;
        let key = shared.mirror().key(tab).ok_or_else(|| BrowserError::NoSuchTab(tab.clone()))?;
        self.world().select(key);
        self.report(shared);
        Ok(())
    }
}

impl World {
    fn key(&mut self) -> Key {
        self.next_key += 1;
        self.next_key
    }

    fn add_window(&mut self, title: &str, url: &str) -> Key {
        let id = self.key();
        self.windows.push(ReportedWindow { id, popup: false, focused: self.windows.is_empty(), tabs: Vec::new() });
        self.add_tab(id, title, url, true)
    }

    fn add_tab(&mut self, window: Key, title: &str, url: &str, active: bool) -> Key {
        let id = self.key();
        self.tabs.push(ReportedTab {
            id,
            title: title.to_owned(),
            url: url.to_owned(),
            favicon: None,
            active: false,
            loading: true,
            audible: Some(false),
            muted: Some(false),
            discarded: false,
        });
        if let Some(window) = self.windows.iter_mut().find(|w| w.id == window) {
            window.tabs.push(id);
        }
        if active {
            self.select(id);
        }
        id
    }

    fn select(&mut self, key: Key) {
        let Some(window) = self.windows.iter().find(|w| w.tabs.contains(&key)) else { return };
        for tab in self.tabs.iter_mut().filter(|tab| window.tabs.contains(&tab.id)) {
            tab.active = tab.id == key;
        }
    }

    fn remove(&mut self, key: Key) {
        self.tabs.retain(|tab| tab.id != key);
        self.windows.iter_mut().for_each(|window| window.tabs.retain(|tab| *tab != key));
        self.windows.retain(|window| !window.tabs.is_empty());
    }
}

/// What a test does to a fake browser from outside: the person's acts, and misfortunes.
#[derive(Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
    pub(crate) fake: Arc<Fake>,
}

impl Control {
    /// Opens a window with one tab, as the person would, and returns the tab.
    pub fn open_window(&self, title: &str, url: &str) -> TabId {
        let key = self.fake.world().add_window(title, url);
        self.fake.report(&self.shared);
        self.id(key)
    }

    /// Opens a tab in a window, as the person would.
    pub fn open_tab(&self, window: &WindowId, title: &str, url: &str) -> TabId {
        let window = self.shared.mirror().window_key(window).unwrap_or_default();
        let key = self.fake.world().add_tab(window, title, url, false);
        self.fake.report(&self.shared);
        self.id(key)
    }

    /// A page loaded: its title and its address.
    pub fn loaded(&self, tab: &TabId, title: &str, url: &str) {
        let key = self.shared.mirror().key(tab);
        if let Some(tab) = self.fake.world().tabs.iter_mut().find(|t| Some(t.id) == key) {
            tab.title = title.to_owned();
            tab.url = url.to_owned();
            tab.loading = false;
        }
        self.fake.report(&self.shared);
    }

    /// Closes a tab, as the person would.
    pub fn close_tab(&self, tab: &TabId) {
        if let Some(key) = self.shared.mirror().key(tab) {
            self.fake.world().remove(key);
        }
        self.fake.report(&self.shared);
    }

    /// The browser dies.
    pub fn die(&self) {
        self.shared.stopped(BrowserState::Failed { reason: ENDED.to_owned() });
    }

    /// From now on it cannot be started, for this reason; or it can again.
    pub fn cannot_start(&self, reason: Option<&str>) {
        self.fake.world().broken = reason.map(str::to_owned);
    }

    /// From now on its acts wait, or wait no longer.
    pub fn hang(&self, hangs: bool) {
        self.fake.hangs.send_replace(hangs);
    }

    /// How often it was started.
    pub fn starts(&self) -> u32 {
        self.fake.world().starts
    }

    fn id(&self, key: Key) -> TabId {
        let mirror = self.shared.mirror();
        mirror.tab_by_key(key).map_or_else(|| TabId::from_wire(""), |tab| tab.id.clone())
    }
}
