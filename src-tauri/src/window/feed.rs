//! What the window sees: events in, snapshots and updates out, sealed.
//!
//! The feed keeps what it showed last, and each update is the difference to that. It is driven by levels, not by edges:
//! an event only says that something is to be looked at again, so that a burst of events costs one look, and a lost one
//! nothing. Rows of the activity list are the exception; they exist only as events.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::civil::Date;
use tabwarden_contract::{
    ActivityKind, ActivityRow, BrowserView, LastCall, OutcomeView, ServerView, SessionView, Snapshot, TabView,
    TabsUpdate, Update, WindowView,
};
use tabwarden_domain::{CallId, CallRecord, ClosedBecause, Event, Outcome, Redaction, SessionId, TabId};
use tabwarden_firewall::Egress;
use tabwarden_gateway::{Gateway, Stamped};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::views;

/// How many rows of activity are kept.
const ROWS: usize = 10_000;
/// How many rows one update carries at most; under a flood the older ones are left to the next snapshot.
const ROWS_PER_UPDATE: usize = 1_000;
/// The shortest time between two updates: ten a second.
const BEAT: Duration = Duration::from_millis(100);

/// Takes sealed updates; says whether it wants more.
type Subscriber = Box<dyn Fn(&Egress) -> bool + Send>;

/// The feed behind one window.
pub struct Feed {
    gateway: Gateway,
    server: ServerView,
    shown: Mutex<Shown>,
}

/// What was shown last, and what came since.
struct Shown {
    revision: u64,
    browser: BrowserView,
    windows: Vec<WindowView>,
    tabs: HashMap<String, TabView>,
    sessions: Vec<SessionView>,
    activity: VecDeque<ActivityRow>,
    /// Rows since the last update.
    fresh: Vec<ActivityRow>,
    next_row: u64,
    /// The rows of the calls that still run.
    running: HashMap<CallId, u64>,
    /// What was counted of each open session.
    counted: HashMap<SessionId, Counted>,
    /// What is known of each tab beside what the browser says.
    noted: HashMap<TabId, Noted>,
    withheld: WithheldToday,
    /// Whether anything happened since the last update.
    stale: bool,
    subscribers: Vec<Subscriber>,
}

/// Counts of one session.
#[derive(Default)]
pub struct Counted {
    /// Its label, kept for the row that says that it ended.
    pub label: String,
    /// Its calls.
    pub calls: u32,
    /// Those of them that were refused or failed.
    pub refused: u32,
}

/// What is known of a tab beside what the browser says.
#[derive(Default)]
pub struct Noted {
    /// The session that opened it, and its label.
    pub opened_by: Option<(SessionId, String)>,
    /// The last call on it.
    pub last: Option<LastCall>,
    /// How often something was withheld from what left of it.
    pub withheld: u32,
}

/// A count that begins anew at each local midnight.
#[derive(Default)]
struct WithheldToday {
    day: Option<Date>,
    count: u32,
}

impl WithheldToday {
    fn add(&mut self, count: u32, day: Date) {
        if self.day != Some(day) {
            *self = Self { day: Some(day), count: 0 };
        }
        self.count = self.count.saturating_add(count);
    }

    fn count(&self, day: Date) -> u32 {
        if self.day == Some(day) { self.count } else { 0 }
    }
}

impl Feed {
    /// Makes the feed; [`Feed::run`] makes it live.
    pub fn new(gateway: Gateway, server: ServerView) -> Arc<Self> {
        let browser = views::browser(&gateway.browser().state());
        Arc::new(Self {
            gateway,
            server,
            shown: Mutex::new(Shown {
                revision: 0,
                browser,
                windows: Vec::new(),
                tabs: HashMap::new(),
                sessions: Vec::new(),
                activity: VecDeque::new(),
                fresh: Vec::new(),
                next_row: 1,
                running: HashMap::new(),
                counted: HashMap::new(),
                noted: HashMap::new(),
                withheld: WithheldToday::default(),
                stale: true,
                subscribers: Vec::new(),
            }),
        })
    }

    /// Follows the gateway until it is gone. An update leaves at once when the last one is a beat ago, and on the beat
    /// otherwise.
    pub async fn run(self: Arc<Self>) {
        let mut events = self.gateway.events();
        let mut next_update = Instant::now();
        loop {
            let stale = self.lock().stale;
            let event = tokio::select! {
                event = events.recv() => event,
                () = tokio::time::sleep_until(next_update), if stale => {
                    self.update();
                    next_update = Instant::now() + BEAT;
                    continue;
                }
            };
            match event {
                Ok(event) => self.lock().take(&event, &self.gateway),
                Err(RecvError::Lagged(_)) => self.lock().lost_events(),
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Everything at this moment, sealed.
    pub fn snapshot(&self) -> Egress {
        self.update();
        let shown = self.lock();
        let snapshot = Snapshot {
            revision: shown.revision,
            browser: shown.browser.clone(),
            server: self.server.clone(),
            windows: shown.windows.clone(),
            tabs: shown.tabs.values().cloned().collect(),
            sessions: shown.sessions.clone(),
            activity: shown.activity.iter().cloned().collect(),
            withheld_today: shown.withheld.count(today()),
        };
        drop(shown);
        self.seal(&snapshot)
    }

    /// Sends every update from now on to `subscriber`, until it returns false.
    pub fn subscribe(&self, subscriber: Subscriber) {
        self.lock().subscribers.push(subscriber);
    }

    /// Looks at everything again and tells the subscribers what is different.
    fn update(&self) {
        let mut shown = self.lock();
        let Some(update) = shown.difference(&self.gateway) else { return };
        if shown.subscribers.is_empty() {
            return;
        }
        let sealed = self.seal(&update);
        shown.subscribers.retain(|subscriber| subscriber(&sealed));
    }

    fn seal(&self, value: &impl serde::Serialize) -> Egress {
        let json = serde_json::to_string(value).unwrap_or_default();
        self.gateway.firewall().seal_json(json).egress
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shown {
    /// Takes in one event.
    fn take(&mut self, stamped: &Stamped, gateway: &Gateway) {
        self.stale = true;
        let at_ms = views::millis(stamped.at);
        match &stamped.event {
            Event::SessionOpened(id) => {
                let label = gateway.session(id).map(|session| session.label).unwrap_or_default();
                self.counted.insert(id.clone(), Counted { label: label.clone(), ..Counted::default() });
                self.row(at_ms, Some(label), None, ActivityKind::SessionOpened);
            }
            Event::SessionChanged(_) | Event::TabsChanged => {}
            Event::SessionClosed(id, because) => {
                let label = self.counted.remove(id).map(|counted| counted.label);
                let because = match because {
                    ClosedBecause::Asked => "asked",
                    ClosedBecause::ConnectionLost => "connection_lost",
                    ClosedBecause::Shutdown => "shutdown",
                };
                self.row(at_ms, label, None, ActivityKind::SessionClosed { because: because.into() });
            }
            Event::CallStarted(call) => {
                let kind = ActivityKind::Call { tool: call.tool.clone(), outcome: OutcomeView::Running };
                let label = self.label(call);
                let row = self.row(at_ms, label, call.tab.as_ref(), kind);
                self.running.insert(call.id, row);
            }
            Event::CallEnded(call, outcome, duration) => self.call_ended(call, outcome, *duration, at_ms),
            Event::Redacted(redaction) => self.redacted(redaction, at_ms),
            Event::BrowserChanged(state) => {
                let browser = views::browser(state);
                self.row(at_ms, None, None, ActivityKind::Browser { browser });
            }
        }
    }

    fn call_ended(&mut self, call: &CallRecord, outcome: &Outcome, duration: Duration, at_ms: u64) {
        if let Some(counted) = call.session.as_ref().and_then(|id| self.counted.get_mut(id)) {
            counted.calls += 1;
            counted.refused += u32::from(matches!(outcome, Outcome::Refused { .. }));
        }
        let label = self.label(call);
        if let (Some(tab), Some(label)) = (&call.tab, &label) {
            let noted = self.noted.entry(tab.clone()).or_default();
            noted.last = Some(LastCall { tool: call.tool.clone(), session: label.clone(), at_ms });
            if call.tool == "browser_tab_new" && *outcome == Outcome::Done {
                noted.opened_by = call.session.clone().map(|id| (id, label.clone()));
            }
        }
        let kind = ActivityKind::Call { tool: call.tool.clone(), outcome: views::outcome(outcome, duration) };
        match self.running.remove(&call.id) {
            Some(id) => {
                self.put(ActivityRow { id, at_ms, session: label, tab: tab_text(call.tab.as_ref()), what: kind })
            }
            None => {
                self.row(at_ms, label, call.tab.as_ref(), kind);
            }
        }
    }

    fn redacted(&mut self, redaction: &Redaction, at_ms: u64) {
        self.withheld.add(redaction.count, today());
        if let Some(tab) = &redaction.tab {
            let noted = self.noted.entry(tab.clone()).or_default();
            noted.withheld = noted.withheld.saturating_add(redaction.count);
        }
        let label = redaction.session.as_ref().and_then(|id| self.counted.get(id)).map(|c| c.label.clone());
        let kind = ActivityKind::Redaction {
            tool: redaction.tool.clone(),
            surface: views::surface(redaction.surface).into(),
            place: redaction.place.clone(),
            rule: redaction.rule.clone(),
            count: redaction.count,
            tag: redaction.tag.clone(),
        };
        self.row(at_ms, label, redaction.tab.as_ref(), kind);
    }

    /// Events were lost: calls that seem to run may have ended long ago.
    fn lost_events(&mut self) {
        self.stale = true;
        let lost: Vec<u64> = self.running.drain().map(|(_, row)| row).collect();
        self.activity.retain(|row| !lost.contains(&row.id));
        self.fresh.retain(|row| !lost.contains(&row.id));
    }

    fn label(&self, call: &CallRecord) -> Option<String> {
        call.session.as_ref().and_then(|id| self.counted.get(id)).map(|counted| counted.label.clone())
    }

    /// Adds a row and returns its number.
    fn row(&mut self, at_ms: u64, session: Option<String>, tab: Option<&TabId>, what: ActivityKind) -> u64 {
        let id = self.next_row;
        self.next_row += 1;
        if self.activity.len() == ROWS {
            self.activity.pop_front();
        }
        let row = ActivityRow { id, at_ms, session, tab: tab_text(tab), what };
        self.activity.push_back(row.clone());
        self.fresh.push(row);
        id
    }

    /// Puts a row in the place of the one with the same number.
    fn put(&mut self, row: ActivityRow) {
        // Rows stand in the order of their numbers.
        if let Ok(place) = self.activity.binary_search_by_key(&row.id, |r| r.id) {
            // It keeps the time at which the call began.
            let row = ActivityRow { at_ms: self.activity[place].at_ms, ..row };
            self.activity[place] = row.clone();
            match self.fresh.iter_mut().find(|r| r.id == row.id) {
                Some(fresh) => *fresh = row,
                None => self.fresh.push(row),
            }
        }
    }

    /// What is different from what was shown last; shows it.
    fn difference(&mut self, gateway: &Gateway) -> Option<Update> {
        self.stale = false;
        let browser = views::browser(&gateway.browser().state());
        let tabs = self.tabs_difference(gateway);
        let sessions: Vec<SessionView> = gateway
            .sessions()
            .iter()
            .map(|session| {
                let opened = |n: &&Noted| n.opened_by.as_ref().is_some_and(|(id, _)| *id == session.id);
                let tabs = self.noted.values().filter(opened).count();
                views::session(session, self.counted.get(&session.id), tabs)
            })
            .collect();
        let mut activity = std::mem::take(&mut self.fresh);
        activity.drain(..activity.len().saturating_sub(ROWS_PER_UPDATE));
        let update = Update {
            revision: self.revision + 1,
            browser: (browser != self.browser).then(|| browser.clone()),
            tabs,
            sessions: (sessions != self.sessions).then(|| sessions.clone()),
            activity,
            withheld_today: self.withheld.count(today()),
        };
        if update.browser.is_none() && update.tabs.is_none() && update.sessions.is_none() && update.activity.is_empty()
        {
            return None;
        }
        self.revision = update.revision;
        self.browser = browser;
        self.sessions = sessions;
        Some(update)
    }

    #[expect(clippy::disallowed_methods, reason = "what is shown is sealed on its way to the window")]
    fn tabs_difference(&mut self, gateway: &Gateway) -> Option<TabsUpdate> {
        // A browser that does not run has no windows.
        let raw = gateway.browser().windows().ok();
        let windows = raw.as_ref().map(|windows| windows.expose().as_slice()).unwrap_or_default();
        let views: Vec<WindowView> = windows.iter().map(views::window).collect();
        let mut changed = Vec::new();
        let mut gone = std::mem::take(&mut self.tabs);
        let mut noted = std::mem::take(&mut self.noted);
        for tab in windows.iter().flat_map(|window| &window.tabs) {
            let notes = noted.remove(&tab.id);
            let view = views::tab(tab, notes.as_ref());
            if let Some(notes) = notes {
                self.noted.insert(tab.id.clone(), notes);
            }
            let before = gone.remove(&view.id);
            if before.as_ref() != Some(&view) {
                changed.push(view.clone());
            }
            self.tabs.insert(view.id.clone(), view);
        }
        let removed: Vec<String> = gone.into_keys().collect();
        if changed.is_empty() && removed.is_empty() && views == self.windows {
            return None;
        }
        self.windows.clone_from(&views);
        Some(TabsUpdate { windows: views, changed, removed })
    }
}

fn tab_text(tab: Option<&TabId>) -> Option<String> {
    tab.map(ToString::to_string)
}

/// The local date.
fn today() -> Date {
    jiff::ZonedDateTime::now().date()
}

#[cfg(test)]
mod tests;
