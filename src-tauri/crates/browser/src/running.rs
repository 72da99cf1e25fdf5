//! One launch of a browser, from its first answer to its end: it feeds the mirror and carries out what is permitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::{CloseParams, GetVersionParams};
use chromiumoxide::cdp::browser_protocol::target::{
    CloseTargetParams, FilterEntry, SetDiscoverTargetsParams, TargetFilter,
};
use serde_json::{Value, json};
use tabwarden_domain::{BrowserState, Raw, Tab, TabId};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};

use crate::companion::{self, Companion, Folder, Reports};
use crate::launch::{self, LastWords, Launched, START_LIMIT};
use crate::link::{ANSWER_LIMIT, InOrder, Link, LinkEvent};
use crate::mirror::Key;
use crate::targets::Targets;
use crate::{BrowserConfig, BrowserError, ENDED, OpenTab, Shared, Source, idle, websocket};

/// The person is at work in the browser when its window has the keyboard and the last input is no older than this.
const AT_WORK: Duration = Duration::from_secs(3);

/// How long a tab that was opened may take to show in the mirror when a report of it was lost.
const LOST_LIMIT: Duration = Duration::from_secs(1);

/// How long an orderly close may take before the process is ended.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// A browser that runs.
pub(crate) struct Running {
    link: Link,
    tabs: Arc<Tabs>,
    /// Turns true when it is to end, or has.
    ended: watch::Sender<bool>,
    /// True once nothing can be asked of it any more.
    over: AtomicBool,
    /// Turns true when its process is gone too, and everybody knows.
    gone: watch::Receiver<bool>,
    /// Whether it was started by us, and is ours to close.
    launched: bool,
    /// Whether it shows no windows, so that nobody can be at work in it.
    windowless: bool,
}

/// Who knows the tabs and acts on them.
enum Tabs {
    /// The companion.
    Companion(Companion),
    /// DevTools alone.
    Targets(Targets),
}

/// A browser's process. It does not outlive this.
struct Process {
    child: Child,
    last_words: LastWords,
}

impl Process {
    /// Ends it at once and waits until it is gone: till then it holds the profile, and the next start would fail.
    async fn end(mut self) {
        launch::end_group(&self.child);
        let _ = tokio::time::timeout(CLOSE_LIMIT, self.child.wait()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        launch::end_group(&self.child);
    }
}

impl Running {
    /// Starts a browser, or attaches to one, and waits until the mirror holds its tabs.
    pub(crate) async fn start(
        config: &BrowserConfig,
        shared: &Arc<Shared>,
    ) -> Result<(Arc<Self>, BrowserState), BrowserError> {
        let reports = Reports::new(shared.clone());
        let in_order: InOrder = {
            let reports = reports.clone();
            Box::new(move |event| reports.take(event))
        };
        match &config.source {
            Source::Launch { executable, profile } => {
                let folder: Folder = Box::new(profile.with_file_name("companion"));
                companion::unpack(&folder)?;
                let Launched { child, link, events, last_words, no_sandbox } =
                    launch::launch(executable.as_deref(), profile, config.headless, &config.extra_args, in_order)
                        .await?;
                let pid = child.id();
                let mut process = Process { child, last_words };
                let begun = tokio::select! {
                    begun = tokio::time::timeout(START_LIMIT, Self::begin(link, events, Some(folder), shared, reports)) => begun,
                    _ = process.child.wait() => {
                        return Err(BrowserError::Unavailable { reason: process.last_words.reason(profile).await });
                    }
                };
                let begun = match begun {
                    Ok(Ok(begun)) => begun,
                    // A link that breaks while the browser starts: its process is about to end, and says why.
                    Ok(Err(BrowserError::Unavailable { .. })) => {
                        let _ = tokio::time::timeout(CLOSE_LIMIT, process.child.wait()).await;
                        return Err(BrowserError::Unavailable { reason: process.last_words.reason(profile).await });
                    }
                    Ok(Err(error)) => {
                        process.end().await;
                        return Err(BrowserError::Unavailable {
                            reason: format!("The browser could not be used: {error}."),
                        });
                    }
                    Err(_) => {
                        process.end().await;
                        let reason =
                            format!("The browser did not answer within {} s of its start.", START_LIMIT.as_secs());
                        return Err(BrowserError::Unavailable { reason });
                    }
                };
                let state = begun.state(pid, no_sandbox);
                Ok((begun.watch(shared, Some(process)), state))
            }
            Source::Attach { address, local } => {
                let (link, events) = websocket::connect(address, in_order).await?;
                // Of a name that nobody can foresee and open to nobody else, for what lies there acts in their browser.
                let private = || tempfile::Builder::new().prefix("tabwarden-companion-").tempdir();
                let folder = local.then(private).and_then(Result::ok).map(|folder| Box::new(folder) as Folder);
                folder.as_ref().map_or(Ok(()), companion::unpack)?;
                let begun = Self::begin(link, events, folder, shared, reports).await?;
                let state = begun.state(None, false);
                Ok((begun.watch(shared, None), state))
            }
        }
    }

    async fn begin(
        link: Link,
        mut events: mpsc::UnboundedReceiver<LinkEvent>,
        companion: Option<Folder>,
        shared: &Arc<Shared>,
        reports: Arc<Reports>,
    ) -> Result<Begun, BrowserError> {
        // It answers when it is up, which a busy machine may take long for.
        let version = link.send_within(START_LIMIT, None, GetVersionParams {}).await?;
        let product = version.product.replace('/', " ");
        let windowless = version.user_agent.contains("HeadlessChrome");
        let loaded = match companion {
            Some(folder) => Companion::load(link.clone(), folder, reports).await,
            None => Err(BrowserError::Refused("the browser runs elsewhere".to_owned())),
        };
        let tabs = match loaded {
            Ok(companion) => Tabs::Companion(companion),
            // Where the companion cannot be loaded, DevTools must do.
            Err(BrowserError::Refused(why)) => {
                tracing::info!("without the companion: {why}");
                Tabs::Targets(Targets::new(link.clone()))
            }
            Err(error) => return Err(error),
        };
        let kind = match tabs {
            Tabs::Companion(_) => "service_worker",
            Tabs::Targets(_) => "page",
        };
        let entry =
            |kind: Option<&str>, exclude| FilterEntry { exclude: Some(exclude), r#type: kind.map(str::to_owned) };
        let filter = TargetFilter::new(vec![entry(Some(kind), false), entry(None, true)]);
        link.send(None, SetDiscoverTargetsParams { discover: true, filter: Some(filter) }).await?;
        let tabs = Arc::new(tabs);
        match &*tabs {
            Tabs::Companion(companion) => {
                // The worker that is there first may be one of before, which ends when the companion is loaded again.
                let follow = async {
                    while let Some(event) = events.recv().await {
                        companion.lost_with(&event);
                        if let Err(error) = companion.heard(&event).await {
                            tracing::debug!("the companion's worker is not there yet: {error}");
                        }
                    }
                };
                tokio::select! {
                    begun = companion.begun() => begun?,
                    () = follow => return Err(BrowserError::Unavailable { reason: ENDED.to_owned() }),
                }
            }
            Tabs::Targets(targets) => targets.look(shared).await?,
        }
        Ok(Begun { link, tabs, events, product, windowless })
    }

    /// The tab's own key, for the driver.
    fn key(shared: &Shared, tab: &TabId) -> Result<Key, BrowserError> {
        shared.mirror().key(tab).ok_or_else(|| BrowserError::NoSuchTab(tab.clone()))
    }

    /// What an error means where it concerns one tab.
    fn about(tab: &TabId, error: BrowserError) -> BrowserError {
        match &error {
            // It closed while the command was on its way.
            BrowserError::Refused(why)
                if why.starts_with("No tab with id") || why.starts_with("No target with given id") =>
            {
                BrowserError::NoSuchTab(tab.clone())
            }
            // The person drags a tab; then Chromium lets nobody else touch the strip.
            BrowserError::Refused(why) if why.starts_with("Tabs cannot be edited right now") => {
                BrowserError::Busy(tab.clone())
            }
            _ => error,
        }
    }

    pub(crate) async fn open(&self, shared: &Shared, open: OpenTab) -> Result<Raw<Tab>, BrowserError> {
        let window = match &open.window {
            None => None,
            Some(id) => Some(shared.mirror().window_key(id).ok_or_else(|| BrowserError::NoSuchWindow(id.clone()))?),
        };
        let active = open.active && !self.person_is_at_work(shared).await;
        let url = open.permit.url().map(|url| url.as_str().to_owned());
        let key = match &*self.tabs {
            Tabs::Companion(companion) => {
                let wish = json!({ "url": url, "active": active, "window": window });
                companion.ask::<Key>("open", &[wish]).await.map_err(|error| match (&error, open.window) {
                    // The window closed while the command was on its way.
                    (BrowserError::Refused(why), Some(id)) if why.starts_with("No window with id") => {
                        BrowserError::NoSuchWindow(id)
                    }
                    _ => error,
                })?
            }
            Tabs::Targets(targets) => targets.open(shared, url, active).await?,
        };
        // It is there already, unless a report was lost and all are asked for anew.
        let opened = || shared.mirror().tab_by_key(key).cloned();
        shared.until(LOST_LIMIT, || opened().is_some()).await;
        let gone = || BrowserError::Refused("the tab closed as soon as it opened".to_owned());
        opened().map(Raw::new).ok_or_else(gone)
    }

    /// Closes a tab and waits until it is gone from the mirror.
    pub(crate) async fn close(&self, shared: &Shared, tab: &TabId) -> Result<(), BrowserError> {
        let key = Self::key(shared, tab)?;
        self.send_close(shared, key).await.map_err(|error| Self::about(tab, error))?;
        match shared.until(ANSWER_LIMIT, || shared.mirror().key(tab).is_none()).await {
            true => Ok(()),
            false => Err(BrowserError::TimedOut(ANSWER_LIMIT)),
        }
    }

    async fn send_close(&self, shared: &Shared, key: Key) -> Result<(), BrowserError> {
        match &*self.tabs {
            // Not `chrome.tabs.remove`: that waits for a page's "really leave?" question.
            Tabs::Companion(companion) => match companion.ask::<Option<String>>("target", &[json!(key)]).await? {
                Some(target) => self.link.send(None, CloseTargetParams::new(target)).await.map(drop),
                None => companion.ask::<Value>("remove", &[json!(key)]).await.map(drop),
            },
            Tabs::Targets(targets) => targets.close(shared, key).await,
        }
    }

    pub(crate) async fn focus(&self, shared: &Shared, tab: &TabId) -> Result<(), BrowserError> {
        let key = Self::key(shared, tab)?;
        let done = match &*self.tabs {
            Tabs::Companion(companion) => companion.ask::<Value>("focus", &[json!(key)]).await.map(drop),
            Tabs::Targets(targets) => targets.focus(key).await,
        };
        done.map_err(|error| Self::about(tab, error))
    }

    pub(crate) async fn mute(&self, shared: &Shared, tab: &TabId, muted: bool) -> Result<(), BrowserError> {
        let key = Self::key(shared, tab)?;
        let done = match &*self.tabs {
            Tabs::Companion(companion) => companion.ask::<Value>("mute", &[json!(key), json!(muted)]).await.map(drop),
            Tabs::Targets(_) => Err(BrowserError::Refused("it cannot mute a tab without the companion".to_owned())),
        };
        done.map_err(|error| Self::about(tab, error))
    }

    /// Whether the person works in the browser right now.
    async fn person_is_at_work(&self, shared: &Shared) -> bool {
        if self.windowless || !shared.mirror().windows().iter().any(|window| window.focused) {
            return false;
        }
        match (tokio::task::spawn_blocking(idle::since_last_input).await, &*self.tabs) {
            (Ok(Some(idle)), _) => idle < AT_WORK,
            // Coarser, and known everywhere. In doubt they are.
            (_, Tabs::Companion(companion)) => companion.ask("inUse", &[]).await.unwrap_or(true),
            (_, Tabs::Targets(_)) => true,
        }
    }

    /// Runs an expression in the companion, for tests that act as the person would.
    #[cfg(feature = "test-support")]
    pub(crate) async fn evaluate(&self, expression: &str) -> Result<Value, BrowserError> {
        match &*self.tabs {
            Tabs::Companion(companion) => companion.evaluate(expression).await,
            Tabs::Targets(_) => Err(BrowserError::Refused("there is no companion".to_owned())),
        }
    }

    /// Whether it ended already.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Closes the browser if it is ours, lets go of it otherwise, and waits until that is done.
    pub(crate) async fn end(&self) {
        match &*self.tabs {
            // The process is waited for, and ended where it does not answer.
            _ if self.launched => {
                self.ended.send_replace(true);
                let gone = async { self.gone.clone().wait_for(|gone| *gone).await.map(drop) };
                tokio::select! { _ = self.link.send(None, CloseParams {}) => {} _ = gone => {} }
            }
            Tabs::Companion(companion) if !self.is_over() => {
                let _ = tokio::time::timeout(CLOSE_LIMIT, companion.unload()).await;
                self.ended.send_replace(true);
            }
            _ => drop(self.ended.send_replace(true)),
        }
        let _ = self.gone.clone().wait_for(|gone| *gone).await;
    }
}

/// A browser that answers, and whose tabs are in the mirror.
struct Begun {
    link: Link,
    tabs: Arc<Tabs>,
    events: mpsc::UnboundedReceiver<LinkEvent>,
    product: String,
    windowless: bool,
}

impl Begun {
    fn state(&self, pid: Option<u32>, no_sandbox: bool) -> BrowserState {
        let companion = matches!(*self.tabs, Tabs::Companion(_));
        BrowserState::Running { product: self.product.clone(), pid, companion, no_sandbox }
    }

    /// Follows its events until it ends.
    fn watch(self, shared: &Arc<Shared>, process: Option<Process>) -> Arc<Running> {
        let Self { link, tabs, events, windowless, .. } = self;
        let (ended, end) = watch::channel(false);
        let (gone_in, gone) = watch::channel(false);
        let running = Arc::new(Running {
            link: link.clone(),
            tabs: tabs.clone(),
            ended,
            over: AtomicBool::new(false),
            gone,
            launched: process.is_some(),
            windowless,
        });
        let (shared, this) = (shared.clone(), Arc::downgrade(&running));
        tokio::spawn(async move {
            let mut let_go = end.clone();
            let launched = process.is_some();
            let let_go = async {
                let _ = let_go.wait_for(|end| *end).await;
                // A browser of our own is followed to its end, as long as it heeds; another is let go of at once.
                if launched {
                    tokio::time::sleep(CLOSE_LIMIT).await;
                }
            };
            let heeded = tokio::select! { () = follow(&tabs, events, &shared) => true, () = let_go => false };
            link.broken();
            let clean = match process {
                Some(mut process) if heeded => ended_in_order(&mut process).await,
                Some(mut process) => end_now(&mut process).await,
                None => false,
            };
            let asked = *end.borrow();
            if let Some(this) = this.upgrade() {
                this.over.store(true, Ordering::SeqCst);
            }
            shared.ended(&this, asked || clean);
            let _ = gone_in.send(true);
        });
        running
    }
}

/// Waits for the process to end, and ends it where it does not. Says whether it closed as a browser does when the person
/// quits it.
async fn ended_in_order(process: &mut Process) -> bool {
    match tokio::time::timeout(CLOSE_LIMIT, process.child.wait()).await {
        Ok(status) => status.is_ok_and(|status| status.success()),
        Err(_) => end_now(process).await,
    }
}

/// Ends the process, which is never in order.
async fn end_now(process: &mut Process) -> bool {
    launch::end_group(&process.child);
    let _ = process.child.wait().await;
    false
}

/// Feeds the mirror until the link breaks.
async fn follow(tabs: &Arc<Tabs>, mut events: mpsc::UnboundedReceiver<LinkEvent>, shared: &Shared) {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        match &**tabs {
            Tabs::Companion(companion) => {
                let Some(event) = events.recv().await else { return };
                let lost = companion.lost_with(&event);
                let tabs = tabs.clone();
                // On a task of its own: while it waits for answers, more events come.
                tokio::spawn(async move {
                    let Tabs::Companion(companion) = &*tabs else { return };
                    let done = match lost {
                        true => companion.bring_back().await,
                        false => companion.heard(&event).await,
                    };
                    if let Err(error) = done {
                        tracing::warn!("the companion does not follow: {error}");
                    }
                });
            }
            Tabs::Targets(targets) => {
                tokio::select! {
                    event = events.recv() => if event.is_none() { return },
                    // No event tells that the person selected another tab.
                    _ = tick.tick() => {}
                }
                while events.try_recv().is_ok() {}
                if let Err(BrowserError::Unavailable { .. }) = targets.look(shared).await {
                    return;
                }
            }
        }
    }
}
