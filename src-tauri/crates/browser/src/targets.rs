//! Tabs by DevTools alone, for a browser that the companion cannot be loaded into.
//!
//! Like the companion it looks at everything again whenever anything happens. What DevTools do not tell, it asks the
//! pages: which one shows, and whether it is still loading. Sound and muting stay unknown.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::browser::GetWindowForTargetParams;
use chromiumoxide::cdp::browser_protocol::target::{
    ActivateTargetParams, AttachToTargetParams, CloseTargetParams, CreateTargetParams, GetTargetsParams, TargetInfo,
};
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use futures_util::future::join_all;

use crate::link::Link;
use crate::mirror::{Key, Report, ReportedTab, ReportedWindow};
use crate::{BrowserError, Shared};

/// How long a page may take to say whether it shows. One that hangs is taken as it was before.
const PAGE_LIMIT: Duration = Duration::from_millis(500);

/// The pages of a browser.
pub(crate) struct Targets {
    link: Link,
    known: Mutex<Known>,
    /// One look at a time: an older one must not overtake a newer one.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    next_key: Key,
    pages: HashMap<String, Page>,
}

/// A page, by its target's id.
#[derive(Clone)]
struct Page {
    key: Key,
    session: Option<String>,
    shows: bool,
    loading: bool,
}

impl Targets {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, known: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }

    /// Looks at everything again and tells the mirror.
    pub(crate) async fn look(&self, shared: &Shared) -> Result<(), BrowserError> {
        let _one_at_a_time = self.looking.lock().await;
        let mut targets = self.link.send(None, GetTargetsParams::default()).await?.target_infos;
        targets.retain(|t| {
            t.r#type == "page" && !t.url.starts_with("devtools:") && !t.url.starts_with("chrome-extension:")
        });
        let mut looked = join_all(targets.iter().map(|target| self.look_at(target))).await;
        let mut windows: Vec<ReportedWindow> = Vec::new();
        let mut changed = Vec::new();
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let mut pages = HashMap::with_capacity(targets.len());
            for (target, page) in targets.iter().zip(&mut looked) {
                let Some((page, _)) = page else { continue };
                if page.key == 0 {
                    known.next_key += 1;
                    page.key = known.next_key;
                }
                pages.insert(target.target_id.inner().clone(), page.clone());
            }
            known.pages = pages;
        }
        // In the order in which they were opened.
        let mut tabs: Vec<_> =
            targets.into_iter().zip(looked).filter_map(|(target, page)| Some((target, page?))).collect();
        tabs.sort_by_key(|(_, (page, _))| page.key);
        for (target, (page, window)) in tabs {
            match windows.iter_mut().find(|w| w.id == window) {
                Some(window) => window.tabs.push(page.key),
                None => windows.push(ReportedWindow { id: window, popup: false, focused: false, tabs: vec![page.key] }),
            }
            changed.push(ReportedTab {
                id: page.key,
                title: target.title,
                url: target.url,
                favicon: None,
                active: page.shows,
                loading: page.loading,
                audible: None,
                muted: None,
                discarded: false,
            });
        }
        // Each look holds everything, so that each begins the sequence anew.
        let _ = shared.reported(Report { sequence: 0, windows, changed, replaced: Vec::new() });
        Ok(())
    }

    /// A page and its window; `None` if it closed meanwhile.
    async fn look_at(&self, target: &TargetInfo) -> Option<(Page, Key)> {
        let id = target.target_id.inner();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).pages.get(id).cloned();
        let mut page = known.unwrap_or(Page { key: 0, session: None, shows: false, loading: false });
        let window = GetWindowForTargetParams { target_id: Some(target.target_id.clone()) };
        let window = self.link.send(None, window).await.ok()?;
        if page.session.is_none() {
            let mut attach = AttachToTargetParams::new(target.target_id.clone());
            attach.flatten = Some(true);
            page.session = Some(self.link.send(None, attach).await.ok()?.session_id.inner().clone());
        }
        let mut question = EvaluateParams::new("document.visibilityState + ' ' + document.readyState");
        question.return_by_value = Some(true);
        let asked = self.link.send(page.session.as_deref(), question);
        if let Ok(Ok(answer)) = tokio::time::timeout(PAGE_LIMIT, asked).await
            && let Some(answer) = answer.result.value.as_ref().and_then(|value| value.as_str())
        {
            page.shows = answer.starts_with("visible");
            page.loading = !answer.ends_with("complete");
        }
        Some((page, *window.window_id.inner()))
    }

    fn target(&self, key: Key) -> Result<String, BrowserError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.pages.iter().find(|(_, page)| page.key == key).map(|(id, _)| id.clone());
        // In the words in which DevTools say it.
        found.ok_or_else(|| BrowserError::Refused("No target with given id found".to_owned()))
    }

    pub(crate) async fn open(&self, shared: &Shared, url: Option<String>, active: bool) -> Result<Key, BrowserError> {
        let mut create = CreateTargetParams::new(url.unwrap_or_else(|| "chrome://newtab/".to_owned()));
        create.background = Some(!active);
        let target = self.link.send(None, create).await?.target_id;
        self.look(shared).await?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = known.pages.get(target.inner()).map(|page| page.key);
        key.ok_or_else(|| BrowserError::Refused("the tab closed as soon as it opened".to_owned()))
    }

    pub(crate) async fn close(&self, shared: &Shared, key: Key) -> Result<(), BrowserError> {
        self.link.send(None, CloseTargetParams::new(self.target(key)?)).await?;
        self.look(shared).await
    }

    pub(crate) async fn focus(&self, key: Key) -> Result<(), BrowserError> {
        self.link.send(None, ActivateTargetParams::new(self.target(key)?)).await.map(drop)
    }
}
