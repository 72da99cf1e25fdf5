//! The straight line: arguments, session, permit, browser, answer. Reading this is understanding the product.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use rand::random;
use serde_json::Value;
use tabwarden_browser::Browser;
use tabwarden_domain::{CallRecord, Event, Introduction, Outcome, PrincipalId, Refusal, SessionId, TabId};
use tabwarden_firewall::Firewall;
use tokio::time::Instant;

use crate::answer::{Failure, Reply, refusal};
use crate::arguments::{Arguments, shorten};
use crate::desk::DeskRoom;
use crate::events::Feed;
use crate::gateway::Gateway;
use crate::question::Closing;
use crate::tools;
use crate::transport::Origin;

/// The code under which a refusal of the user's is shown.
const REFUSED_BY_USER: i32 = -32012;

/// How many sessions one principal may have open.
const MAX_SESSIONS: usize = 64;

/// Tells a waiting client how far its call is: time waited, and time that it may take.
pub(crate) type Progress = Box<dyn Fn(Duration, Duration) + Send + Sync>;

/// One `tools/call` on its way: who calls, and what the call may reach for.
pub(crate) struct Call {
    gateway: Gateway,
    principal: PrincipalId,
    session: SessionId,
    progress: Option<Progress>,
}

/// A call that has come to its end.
pub(crate) struct Ended {
    /// How.
    pub result: Result<Reply, Refusal>,
    /// Whose it was, for what is withheld from its answer.
    pub origin: Origin,
}

impl Call {
    /// A call by a principal, for its main session until the arguments name another.
    pub fn new(gateway: Gateway, principal: PrincipalId, session: SessionId, progress: Option<Progress>) -> Self {
        Self { gateway, principal, session, progress }
    }

    /// The line.
    pub async fn run(mut self, name: String, sent: Option<Value>) -> Ended {
        let prepared = match tools::find(&name) {
            None => Err(Refusal::UnknownTool { name: shorten(&name) }),
            Some(tool) => Arguments::read(sent, tool.arguments).map(|arguments| (tool, arguments)),
        };
        let prepared = prepared.and_then(|(tool, arguments)| {
            if let Some(named) = arguments.text("session_id") {
                self.session = self.own_session(named)?;
            }
            Ok((tool, arguments))
        });
        let mut running = Running::begin(
            self.gateway.feed(),
            CallRecord {
                id: self.gateway.next_call(),
                session: Some(self.session.clone()),
                tool: shorten(&name),
                tab: prepared.as_ref().ok().and_then(|(_, arguments)| arguments.tab()),
            },
        );
        let result = match prepared {
            Err(refusal) => Err(refusal),
            Ok((tool, arguments)) => unharmed(tool.name, (tool.run)(&self, arguments)).await,
        };
        if let Ok(Reply { tab: Some(tab), .. }) = &result {
            running.record.tab = Some(tab.clone());
        }
        let origin = running.end(&result);
        Ended { result, origin }
    }

    /// The calling session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The desk.
    pub fn desk(&self) -> &DeskRoom {
        self.gateway.desk()
    }

    /// The browser.
    pub fn browser(&self) -> &Browser {
        self.gateway.browser()
    }

    /// The firewall.
    pub fn firewall(&self) -> &Firewall {
        self.gateway.firewall()
    }

    /// What closes tabs.
    pub fn closing(&self) -> &Closing {
        self.gateway.closing()
    }

    /// Starts the browser if it does not run.
    pub async fn browser_runs(&self) -> Result<(), Refusal> {
        self.browser().ensure_running().await.map_err(refusal)
    }

    /// Lets the client know that the call goes on, if it asked to know.
    pub fn tell_progress(&self, waited: Duration, limit: Duration) {
        if let Some(tell) = &self.progress {
            tell(waited, limit);
        }
    }

    /// Opens another session for the same principal, introduced as the calling one is.
    pub fn open_session(&self, label: &str) -> Result<(SessionId, String), Refusal> {
        let label = self.gateway.sealed(label);
        self.desk().visit(|desk| {
            let caller = desk.session(self.session.as_str()).ok_or(Refusal::NotInitialized)?;
            let who = Introduction {
                principal: self.principal,
                label: Some(label.clone()),
                client: caller.client.clone(),
                era: caller.era,
                via: caller.via,
                peer: caller.peer.clone(),
                since: SystemTime::now(),
            };
            if desk.sessions().filter(|session| session.principal == self.principal).count() >= MAX_SESSIONS {
                return Err(Refusal::InvalidParams {
                    argument: "label".to_owned(),
                    problem: format!("would name one session more than the {MAX_SESSIONS} that a connection may have"),
                    expected: "browser_session_close on one that is done, first".to_owned(),
                });
            }
            loop {
                if let Some(session) = desk.open(SessionId::from_random(random()), who.clone()) {
                    return Ok((session.id.clone(), session.label.clone()));
                }
            }
        })
    }

    fn own_session(&self, named: &str) -> Result<SessionId, Refusal> {
        let own = self.desk().visit(|desk| {
            desk.session(named).filter(|session| session.principal == self.principal).map(|session| session.id.clone())
        });
        own.ok_or_else(|| Refusal::InvalidParams {
            argument: "session_id".to_owned(),
            problem: format!("'{}' is no open session of yours", shorten(named)),
            expected: "an id from browser_session_open, or none for the main session".to_owned(),
        })
    }
}

/// A tool that panics must not leave its caller without an answer.
async fn unharmed(tool: &str, work: impl Future<Output = Result<Reply, Refusal>>) -> Result<Reply, Refusal> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(tool, "a tool panicked");
        Err(Refusal::Internal { what: "the tool broke off".to_owned() })
    })
}

/// A call between its first and its last event. Dropped before its end, it was cancelled.
struct Running<'a> {
    feed: &'a Feed,
    record: CallRecord,
    began: Instant,
    ended: bool,
}

impl<'a> Running<'a> {
    fn begin(feed: &'a Feed, record: CallRecord) -> Self {
        feed.publish(|| Event::CallStarted(record.clone()));
        Self { feed, record, began: Instant::now(), ended: false }
    }

    fn end(mut self, result: &Result<Reply, Refusal>) -> Origin {
        self.ended = true;
        self.publish(|| match result {
            // An answer like any other for the agent; whoever watches sees that nothing was done.
            Ok(Reply { kept: Some(slug), .. }) => Outcome::Refused { code: REFUSED_BY_USER, slug },
            Ok(_) => Outcome::Done,
            Err(refusal) => {
                let Failure { code, slug, .. } = Failure::from(refusal);
                Outcome::Refused { code, slug }
            }
        });
        let CallRecord { session, tool, tab, .. } = &self.record;
        Origin { session: session.clone(), tool: Some(tool.clone()), tab: tab.clone() }
    }

    fn publish(&self, outcome: impl FnOnce() -> Outcome) {
        self.feed.publish(|| Event::CallEnded(self.record.clone(), outcome(), self.began.elapsed()));
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.publish(|| Outcome::Cancelled);
        }
    }
}

/// The tab of an entry in a list of tabs, by the place of what was withheld from it, as `tabs[3].url ?access_token`.
pub(crate) fn tab_of_place(answer: &Value, place: &str) -> Option<TabId> {
    let index: usize = place.strip_prefix("tabs[")?.split_once(']')?.0.parse().ok()?;
    ["/result/structuredContent", ""]
        .iter()
        .find_map(|root| answer.pointer(&format!("{root}/tabs/{index}/id")))?
        .as_str()
        .map(TabId::from_wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tool_that_panics_is_answered_for() {
        let ended = unharmed("broken", async { panic!("on purpose") }).await;
        assert!(matches!(ended, Err(Refusal::Internal { .. })));
    }

    #[test]
    fn a_place_in_a_list_leads_to_its_tab() {
        let list = serde_json::json!({ "tabs": [{ "id": "tab_a" }, { "id": "tab_b" }] });
        let answer = serde_json::json!({ "result": { "structuredContent": list } });
        for whole in [&list, &answer] {
            assert_eq!(tab_of_place(whole, "tabs[1].url ?access_token"), Some(TabId::from_wire("tab_b")));
            assert_eq!(tab_of_place(whole, "tabs[2].url"), None);
            assert_eq!(tab_of_place(whole, "tab.url"), None);
        }
    }
}
