//! The mirror: windows and tabs as the browser has them, in memory.
//!
//! A driver tells it the browser's own numbers; it gives each window and tab an id of ours, random and never used again
//! during one launch.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use tabwarden_domain::{Tab, TabId, Window, WindowId, WindowKind};

/// Random numbers below this make ids of at most eight characters.
const IDS: u64 = 36_u64.pow(8);

/// A driver's own key for a tab or a window.
pub(crate) type Key = i64;

/// What a driver reports: the order of everything, and the tabs that changed.
#[derive(Deserialize, Debug)]
pub(crate) struct Report {
    pub(crate) sequence: u64,
    pub(crate) windows: Vec<ReportedWindow>,
    pub(crate) changed: Vec<ReportedTab>,
    /// Tabs that the browser gave another key, the old one first. To everybody else each is the tab that it was.
    #[serde(default)]
    pub(crate) replaced: Vec<(Key, Key)>,
}

#[derive(Deserialize, Debug)]
pub(crate) struct ReportedWindow {
    pub(crate) id: Key,
    pub(crate) popup: bool,
    pub(crate) focused: bool,
    pub(crate) tabs: Vec<Key>,
}

#[derive(Deserialize, Debug, Clone)]
pub(crate) struct ReportedTab {
    pub(crate) id: Key,
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) favicon: Option<String>,
    pub(crate) active: bool,
    pub(crate) loading: bool,
    pub(crate) audible: Option<bool>,
    pub(crate) muted: Option<bool>,
    pub(crate) discarded: bool,
}

/// A report does not follow on the one before: something was lost, and everything must be asked for again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfStep;

/// Windows and tabs, and which of the driver's keys each id stands for.
#[derive(Default)]
pub(crate) struct Mirror {
    windows: Vec<Window>,
    window_ids: HashMap<Key, WindowId>,
    tab_ids: HashMap<Key, TabId>,
    /// Where each tab stands: its driver's key, its window's place and its own.
    places: HashMap<TabId, (Key, usize, usize)>,
    used: HashSet<u64>,
    next_sequence: u64,
}

impl Mirror {
    /// Takes in a report. Says whether anything is different from before.
    pub(crate) fn apply(&mut self, report: Report) -> Result<bool, OutOfStep> {
        // A sequence that begins anew holds everything.
        if report.sequence != 0 && report.sequence != self.next_sequence {
            return Err(OutOfStep);
        }
        let mut known: HashMap<Key, Tab> = HashMap::new();
        for tab in self.windows.iter().flat_map(|window| &window.tabs) {
            if let Some((key, ..)) = self.places.get(&tab.id) {
                known.insert(*key, tab.clone());
            }
        }
        for (old, new) in report.replaced {
            if let Some(id) = self.tab_ids.remove(&old) {
                self.tab_ids.insert(new, id);
            }
        }
        let mut changed: HashMap<Key, ReportedTab> = report.changed.into_iter().map(|tab| (tab.id, tab)).collect();
        let mut windows = Vec::with_capacity(report.windows.len());
        let mut places = HashMap::with_capacity(known.len());
        for reported in report.windows {
            let id = self.window_id(reported.id);
            let mut tabs = Vec::with_capacity(reported.tabs.len());
            for key in reported.tabs {
                let tab = match (changed.remove(&key), known.remove(&key)) {
                    (Some(tab), _) => self.tab(tab, id.clone()),
                    (None, Some(tab)) => Tab { window: id.clone(), ..tab },
                    (None, None) => return Err(OutOfStep),
                };
                places.insert(tab.id.clone(), (key, windows.len(), tabs.len()));
                tabs.push(tab);
            }
            let kind = if reported.popup { WindowKind::Popup } else { WindowKind::Normal };
            windows.push(Window { id, kind, focused: reported.focused, tabs });
        }
        self.next_sequence = report.sequence + 1;
        let different = windows != self.windows;
        self.windows = windows;
        self.places = places;
        self.tab_ids.retain(|_, id| self.places.contains_key(id));
        let windows = &self.windows;
        self.window_ids.retain(|_, id| windows.iter().any(|window| window.id == *id));
        Ok(different)
    }

    /// Forgets everything: the browser is gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    pub(crate) fn tab_by_id(&self, id: &TabId) -> Option<&Tab> {
        let (_, window, place) = self.places.get(id)?;
        self.windows.get(*window)?.tabs.get(*place)
    }

    /// The driver's key for a tab.
    pub(crate) fn key(&self, id: &TabId) -> Option<Key> {
        self.places.get(id).map(|(key, ..)| *key)
    }

    /// The tab behind a driver's key.
    pub(crate) fn tab_by_key(&self, key: Key) -> Option<&Tab> {
        self.tab_by_id(self.tab_ids.get(&key)?)
    }

    /// The driver's key for a window.
    pub(crate) fn window_key(&self, id: &WindowId) -> Option<Key> {
        self.window_ids.iter().find(|(_, known)| *known == id).map(|(key, _)| *key)
    }

    fn tab(&mut self, tab: ReportedTab, window: WindowId) -> Tab {
        Tab {
            id: self.tab_id(tab.id),
            window,
            title: tab.title,
            url: tab.url,
            favicon: tab.favicon,
            active: tab.active,
            loading: tab.loading,
            audible: tab.audible,
            muted: tab.muted,
            discarded: tab.discarded,
        }
    }

    fn tab_id(&mut self, key: Key) -> TabId {
        if let Some(id) = self.tab_ids.get(&key) {
            return id.clone();
        }
        let id = TabId::from_random(self.unused());
        self.tab_ids.insert(key, id.clone());
        id
    }

    fn window_id(&mut self, key: Key) -> WindowId {
        if let Some(id) = self.window_ids.get(&key) {
            return id.clone();
        }
        let id = WindowId::from_random(self.unused());
        self.window_ids.insert(key, id.clone());
        id
    }

    fn unused(&mut self) -> u64 {
        loop {
            let number = rand::random_range(0..IDS);
            if self.used.insert(number) {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tab(id: Key, title: &str) -> ReportedTab {
        ReportedTab {
            id,
            title: title.to_owned(),
            url: format!("https://{id}.example/"),
            favicon: None,
            active: false,
            loading: false,
            audible: Some(false),
            muted: Some(false),
            discarded: false,
        }
    }

    fn report(sequence: u64, windows: &[(Key, &[Key])], changed: Vec<ReportedTab>) -> Report {
        let window =
            |(id, tabs): &(Key, &[Key])| ReportedWindow { id: *id, popup: false, focused: false, tabs: tabs.to_vec() };
        Report { sequence, windows: windows.iter().map(window).collect(), changed, replaced: Vec::new() }
    }

    fn titles(mirror: &Mirror) -> Vec<Vec<String>> {
        mirror.windows().iter().map(|w| w.tabs.iter().map(|t| t.title.clone()).collect()).collect()
    }

    #[test]
    fn reports_build_on_each_other() {
        let mut mirror = Mirror::default();
        assert_eq!(mirror.apply(report(0, &[(1, &[10, 11])], vec![tab(10, "a"), tab(11, "b")])), Ok(true));
        let (a, b) = (mirror.windows()[0].tabs[0].id.clone(), mirror.windows()[0].tabs[1].id.clone());
        assert_eq!(mirror.apply(report(1, &[(1, &[10, 11])], vec![])), Ok(false));
        // `b` moves to a window of its own and keeps its id; `a` gets another title.
        assert_eq!(mirror.apply(report(2, &[(1, &[10]), (2, &[11])], vec![tab(10, "a2")])), Ok(true));
        assert_eq!(titles(&mirror), [["a2"], ["b"]]);
        assert_eq!(mirror.tab_by_id(&b).map(|t| &t.window), Some(&mirror.windows()[1].id));
        assert_eq!((mirror.key(&a), mirror.key(&b)), (Some(10), Some(11)));
        // `a` goes, and with it its window.
        assert_eq!(mirror.apply(report(3, &[(2, &[11])], vec![])), Ok(true));
        assert_eq!((mirror.key(&a), mirror.windows().len()), (None, 1));
        // Another tab under the same key is another tab.
        assert_eq!(mirror.apply(report(4, &[(2, &[11, 10])], vec![tab(10, "c")])), Ok(true));
        assert_ne!(mirror.windows()[0].tabs[1].id, a);
    }

    #[test]
    fn a_replaced_tab_keeps_its_id() {
        let mut mirror = Mirror::default();
        assert_eq!(mirror.apply(report(0, &[(1, &[10])], vec![tab(10, "a")])), Ok(true));
        let a = mirror.windows()[0].tabs[0].id.clone();
        let mut swap = report(1, &[(1, &[20])], vec![tab(20, "a")]);
        swap.replaced = vec![(10, 20)];
        assert_eq!(mirror.apply(swap), Ok(true));
        assert_eq!((mirror.key(&a), mirror.tab_by_key(10).is_none()), (Some(20), true));
    }

    #[test]
    fn a_lost_report_is_noticed() {
        let mut mirror = Mirror::default();
        assert_eq!(mirror.apply(report(0, &[(1, &[10])], vec![tab(10, "a")])), Ok(true));
        assert_eq!(mirror.apply(report(2, &[(1, &[10])], vec![tab(10, "b")])), Err(OutOfStep));
        assert_eq!(mirror.apply(report(1, &[(1, &[10, 11])], vec![])), Err(OutOfStep));
        assert_eq!(mirror.apply(report(0, &[(1, &[10])], vec![tab(10, "b")])), Ok(true));
        assert_eq!(titles(&mirror), [["b"]]);
    }
}
