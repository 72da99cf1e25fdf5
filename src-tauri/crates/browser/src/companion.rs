//! The companion: an extension of ours inside the browser, that knows what DevTools do not – sound, muting, selection,
//! order – and that opens tabs without touching focus.
//!
//! It is compiled in, unpacked beside the profile, loaded over the pipe, and spoken to through its service worker. While
//! we are attached to that, it stays alive.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::extensions::{LoadUnpackedParams, UninstallParams};
use chromiumoxide::cdp::browser_protocol::target::AttachToTargetParams;
use chromiumoxide::cdp::js_protocol::runtime::{AddBindingParams, EvaluateParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::launch::START_LIMIT;
use crate::link::{ANSWER_LIMIT, Link, LinkEvent};
use crate::mirror::Report;
use crate::{BrowserError, Shared};

const FILES: [(&str, &str); 2] =
    [("manifest.json", include_str!("companion/manifest.json")), ("worker.js", include_str!("companion/worker.js"))];

/// The function through which the companion reports.
const BINDING: &str = "tabwardenReport";
/// The event of a call to it.
const BINDING_CALLED: &str = "Runtime.bindingCalled";

/// How long its worker may be away before it is loaded again.
const RETURN_LIMIT: Duration = Duration::from_secs(2);

/// The folder that it is loaded from, kept for as long as it may be read.
pub(crate) type Folder = Box<dyn AsRef<Path> + Send + Sync>;

/// Where the companion's reports come in.
pub(crate) struct Reports {
    shared: Arc<Shared>,
    /// Our session with its service worker; `None` while that is between two lives.
    session: watch::Sender<Option<Session>>,
}

/// Our session with a life of the worker.
#[derive(Clone)]
struct Session {
    id: String,
    /// Whether it has reported everything, so that what it does from now on shows in the mirror.
    begun: bool,
}

impl Reports {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared, session: watch::Sender::new(None) })
    }

    /// Takes a report into the mirror at once, so that it is there before the answer that follows it. Says whether the
    /// event was one; one that is out of step is left to who can ask for everything anew.
    pub(crate) fn take(&self, event: &LinkEvent) -> bool {
        let ours = event.method == BINDING_CALLED
            && event.params["name"] == BINDING
            && event.session.as_deref() == self.session.borrow().as_ref().map(|session| &*session.id);
        let report = || serde_json::from_str::<Report>(event.params["payload"].as_str()?).ok();
        let Some(report) = ours.then(report).flatten() else { return false };
        let whole = report.sequence == 0;
        let taken = self.shared.reported(report).is_ok();
        if taken && whole {
            self.session.send_if_modified(|session| {
                session.as_mut().is_some_and(|session| !std::mem::replace(&mut session.begun, true))
            });
        }
        taken
    }
}

fn is_begun(session: &Option<Session>) -> bool {
    session.as_ref().is_some_and(|session| session.begun)
}

/// The companion in a running browser.
pub(crate) struct Companion {
    link: Link,
    folder: Folder,
    id: String,
    worker_url: String,
    reports: Arc<Reports>,
}

impl Companion {
    /// Loads it from where it was unpacked. Its worker is attached to when the browser tells of it.
    pub(crate) async fn load(link: Link, folder: Folder, reports: Arc<Reports>) -> Result<Self, BrowserError> {
        let id = Self::load_from(&link, (*folder).as_ref()).await?;
        let worker_url = format!("chrome-extension://{id}/worker.js");
        Ok(Self { link, folder, id, worker_url, reports })
    }

    async fn load_from(link: &Link, folder: &Path) -> Result<String, BrowserError> {
        Ok(link.send_within(START_LIMIT, None, LoadUnpackedParams::new(folder.display().to_string())).await?.id)
    }

    /// Takes it out of a browser that goes on without us.
    pub(crate) async fn unload(&self) {
        let unloaded = self.link.send(None, UninstallParams::new(self.id.clone())).await;
        if let Err(error) = unloaded {
            tracing::warn!("the companion stays in the browser until that ends: {error}");
        }
    }

    /// Does what an event about its worker asks for. Reports that were taken do not come here.
    pub(crate) async fn heard(&self, event: &LinkEvent) -> Result<(), BrowserError> {
        let session = event.session.as_deref();
        let (ours, begun) = {
            let known = self.reports.session.borrow();
            (session.is_some() && session == known.as_ref().map(|known| &*known.id), is_begun(&known))
        };
        match &*event.method {
            "Target.targetCreated" if event.params["targetInfo"]["url"] == self.worker_url => self.attach(event).await,
            // It is back after a crash, in the session that it had.
            "Inspector.targetReloadedAfterCrash" if ours => self.listen(session).await,
            // A report that was out of step.
            BINDING_CALLED if ours && begun => self.evaluate("companion.begin()").await.map(drop),
            _ => Ok(()),
        }
    }

    async fn attach(&self, event: &LinkEvent) -> Result<(), BrowserError> {
        let target = event.params["targetInfo"]["targetId"].as_str().unwrap_or_default().to_owned();
        let mut attach = AttachToTargetParams::new(target);
        attach.flatten = Some(true);
        let session = self.link.send(None, attach).await?.session_id.inner().clone();
        self.reports.session.send_replace(Some(Session { id: session.clone(), begun: false }));
        self.listen(Some(&session)).await
    }

    /// Listens to its worker, which begins when it finds that somebody does.
    async fn listen(&self, session: Option<&str>) -> Result<(), BrowserError> {
        self.link.send(session, AddBindingParams::new(BINDING)).await.map(drop)
    }

    /// Waits until the mirror holds what it reports.
    pub(crate) async fn begun(&self) -> Result<(), BrowserError> {
        self.session().await.map(drop)
    }

    /// Notices at once where an event tells that its worker is gone.
    pub(crate) fn lost_with(&self, event: &LinkEvent) -> bool {
        match &*event.method {
            "Target.detachedFromTarget" => {
                let session = event.params["sessionId"].as_str();
                self.reports.session.send_if_modified(|ours| ours.take_if(|ours| session == Some(&*ours.id)).is_some())
            }
            // The session stays, but what was bound to the worker is gone.
            "Inspector.targetCrashed" => self.reports.session.send_if_modified(|ours| {
                let ours = ours.as_mut().filter(|ours| event.session.as_ref() == Some(&ours.id));
                ours.is_some_and(|ours| std::mem::replace(&mut ours.begun, false))
            }),
            _ => false,
        }
    }

    /// Loads it again if its worker does not come back by itself: it crashed, or somebody switched it off.
    pub(crate) async fn bring_back(&self) -> Result<(), BrowserError> {
        let mut session = self.reports.session.subscribe();
        if tokio::time::timeout(RETURN_LIMIT, session.wait_for(is_begun)).await.is_err() && !self.link.is_broken() {
            tracing::warn!("the companion was lost and is loaded again");
            Self::load_from(&self.link, (*self.folder).as_ref()).await?;
        }
        Ok(())
    }

    /// Calls one of its functions and waits for what it returns.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        function: &str,
        arguments: &[Value],
    ) -> Result<T, BrowserError> {
        let arguments = arguments.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let answer = self.evaluate(&format!("companion.{function}({arguments})")).await?;
        serde_json::from_value(answer)
            .map_err(|_| BrowserError::Refused(format!("the companion's {function} answered oddly")))
    }

    /// Our session with its worker, awaited while that comes back.
    async fn session(&self) -> Result<String, BrowserError> {
        let mut session = self.reports.session.subscribe();
        match tokio::time::timeout(ANSWER_LIMIT, session.wait_for(is_begun)).await {
            Ok(Ok(session)) => Ok(session.as_ref().map(|session| session.id.clone()).unwrap_or_default()),
            _ => Err(BrowserError::TimedOut(ANSWER_LIMIT)),
        }
    }

    /// Evaluates an expression in its worker, and waits for what it promises.
    pub(crate) async fn evaluate(&self, expression: &str) -> Result<Value, BrowserError> {
        let session = self.session().await?;
        let mut evaluate = EvaluateParams::new(expression);
        evaluate.await_promise = Some(true);
        evaluate.return_by_value = Some(true);
        // A worker that crashes may never answer, and whether it did what it was asked nobody knows.
        let mut known = self.reports.session.subscribe();
        let lost = known.wait_for(|known| !known.as_ref().is_some_and(|known| known.id == session && known.begun));
        let answer = tokio::select! {
            answer = self.link.send(Some(&session), evaluate) => answer?,
            _ = lost => return Err(BrowserError::Refused("its companion started anew meanwhile".to_owned())),
        };
        match answer.exception_details {
            None => Ok(answer.result.value.unwrap_or(json!(null))),
            Some(thrown) => {
                let said = thrown.exception.and_then(|exception| exception.description).unwrap_or(thrown.text);
                // The first line: what follows is a stack. An API's own messages name no page.
                let said = said.lines().next().unwrap_or_default().trim_start_matches("Error: ").to_owned();
                Err(BrowserError::Refused(said))
            }
        }
    }
}

/// Writes the companion's files into a folder.
pub(crate) fn unpack(folder: &Folder) -> Result<(), BrowserError> {
    let folder = (**folder).as_ref();
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        FILES.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
    };
    write().map_err(|error| BrowserError::Unavailable {
        reason: format!(
            "The folder {} cannot be written to ({error}). Mend its permissions, or name another with --data-dir DIR.",
            folder.display()
        ),
    })
}
