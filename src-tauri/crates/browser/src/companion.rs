//! The companion: an extension of ours inside the browser, that knows what DevTools do not – sound, muting, selection,
//! order – and that opens tabs without touching focus.
//!
//! It is compiled in, unpacked beside the profile, loaded over the pipe, and spoken to through its service worker. While
//! we are attached to that, it stays alive.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chromiumoxide::cdp::browser_protocol::extensions::{LoadUnpackedParams, UninstallParams};
use chromiumoxide::cdp::browser_protocol::target::AttachToTargetParams;
use chromiumoxide::cdp::js_protocol::runtime::{AddBindingParams, EvaluateParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::link::{Link, LinkEvent};
use crate::{BrowserError, Shared};

const FILES: [(&str, &str); 2] =
    [("manifest.json", include_str!("companion/manifest.json")), ("worker.js", include_str!("companion/worker.js"))];

/// The function through which the companion reports.
const BINDING: &str = "tabwardenReport";
/// The event of a call to it.
pub(crate) const BINDING_CALLED: &str = "Runtime.bindingCalled";

/// Where the companion's reports come in.
pub(crate) struct Reports {
    shared: Arc<Shared>,
    /// Our session with its service worker; `None` while that is between two lives.
    session: Mutex<Option<String>>,
}

impl Reports {
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Self> {
        Arc::new(Self { shared, session: Mutex::new(None) })
    }

    fn session(&self) -> MutexGuard<'_, Option<String>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report into the mirror at once, so that it is there before the answer that follows it. Says whether the
    /// event was one; one that is out of step is left to who can ask for everything anew.
    pub(crate) fn take(&self, event: &LinkEvent) -> bool {
        let ours =
            event.method == BINDING_CALLED && event.params["name"] == BINDING && event.session == *self.session();
        let report = || serde_json::from_str(event.params["payload"].as_str()?).ok();
        ours && report().is_some_and(|report| self.shared.reported(report).is_ok())
    }
}

/// The companion in a running browser.
pub(crate) struct Companion {
    link: Link,
    id: String,
    worker_url: String,
    reports: Arc<Reports>,
}

impl Companion {
    /// Unpacks and loads it. Its worker is attached to when the browser tells of it.
    pub(crate) async fn load(link: Link, folder: &Path, reports: Arc<Reports>) -> Result<Self, BrowserError> {
        let folder = unpack(folder)?;
        let loaded = link.send(None, LoadUnpackedParams::new(folder.display().to_string())).await?;
        let worker_url = format!("chrome-extension://{}/worker.js", loaded.id);
        Ok(Self { link, id: loaded.id, worker_url, reports })
    }

    /// Takes it out of a browser that goes on without us.
    pub(crate) async fn unload(&self) {
        let unloaded = self.link.send(None, UninstallParams::new(self.id.clone())).await;
        if let Err(error) = unloaded {
            tracing::warn!("the companion stays in the browser until that ends: {error}");
        }
    }

    /// Takes up its worker where an event tells that it is there.
    pub(crate) async fn attach_if_its_worker(&self, event: &LinkEvent) -> Result<bool, BrowserError> {
        let target = &event.params["targetInfo"];
        if event.method != "Target.targetCreated" || target["url"] != self.worker_url {
            return Ok(false);
        }
        let mut attach = AttachToTargetParams::new(target["targetId"].as_str().unwrap_or_default().to_owned());
        attach.flatten = Some(true);
        let session = self.link.send(None, attach).await?.session_id.inner().clone();
        self.link.send(Some(&session), AddBindingParams::new(BINDING)).await?;
        *self.reports.session() = Some(session);
        self.begin_anew().await?;
        Ok(true)
    }

    /// Has it report everything. A worker that was just attached to may not have run its script yet.
    pub(crate) async fn begin_anew(&self) -> Result<(), BrowserError> {
        const WHEN_LOADED: &str = "new Promise(done => {
            const look = () => typeof companion === 'undefined' ? setTimeout(look, 1) : done(companion.begin());
            look();
        })";
        self.evaluate(WHEN_LOADED).await.map(drop)
    }

    /// Notices where an event tells that the worker is gone.
    pub(crate) fn lost_if_its_worker(&self, event: &LinkEvent) {
        let mut session = self.reports.session();
        if event.method == "Target.detachedFromTarget" && session.as_deref() == event.params["sessionId"].as_str() {
            *session = None;
        }
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

    /// Evaluates an expression in its worker, and waits for what it promises.
    pub(crate) async fn evaluate(&self, expression: &str) -> Result<Value, BrowserError> {
        let session = self.reports.session().clone();
        let session =
            session.ok_or_else(|| BrowserError::Refused("the companion is starting, try again".to_owned()))?;
        let mut evaluate = EvaluateParams::new(expression);
        evaluate.await_promise = Some(true);
        evaluate.return_by_value = Some(true);
        let answer = self.link.send(Some(&session), evaluate).await?;
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

/// Writes the companion's files into a folder, and returns it.
fn unpack(folder: &Path) -> Result<PathBuf, BrowserError> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (name, text) in FILES {
            std::fs::write(folder.join(name), text)?;
        }
        Ok(())
    };
    write().map(|()| folder.to_owned()).map_err(|error| BrowserError::Unavailable {
        reason: format!(
            "The folder {} cannot be written to ({error}). Mend its permissions, or name another with --data-dir DIR.",
            folder.display()
        ),
    })
}
