//! Closing tabs, and asking the person before the last window goes.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tabwarden_browser::{Browser, OpenTab};
use tabwarden_domain::{Raw, Refusal, TabId, WritePermit};
use tabwarden_firewall::{Egress, Surface};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::answer::refusal;
use crate::pipeline::Call;

/// How long the person has for an answer.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How often a client that asked for it hears that its call still waits.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What the person says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The tab stays open.
    Keep,
    /// The tab is closed, and a new-tab page takes its place.
    CloseTab,
    /// The tab is closed and the browser with it.
    Quit,
}

/// "May this agent close the last window?" Dropping it unanswered counts as no answer.
#[derive(Debug)]
pub struct Question {
    label: String,
    title: String,
    reply: oneshot::Sender<Answer>,
}

impl Question {
    /// The label of the session that wants to close it, sealed.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The tab's title, sealed.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Gives the answer. If nobody waits for it any more, nothing happens.
    pub fn answer(self, answer: Answer) {
        let _ = self.reply.send(answer);
    }

    /// Ends when nobody waits for the answer any more: its time is over, or the call was cancelled.
    pub async fn withdrawn(&mut self) {
        self.reply.closed().await;
    }
}

/// Asks: the gateway's end.
pub struct Asker(mpsc::Sender<Question>);

/// Is asked: the window's end.
pub struct Asked(mpsc::Receiver<Question>);

impl Asker {
    /// Both ends.
    pub fn channel() -> (Self, Asked) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), Asked(receiver))
    }
}

impl Asked {
    /// The next question that still waits for its answer; `None` when there will be none any more.
    pub async fn next(&mut self) -> Option<Question> {
        loop {
            let question = self.0.recv().await?;
            if !question.reply.is_closed() {
                return Some(question);
            }
        }
    }
}

/// How closing a tab ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is closed.
    Closed,
    /// It stays open.
    Kept(KeptBecause),
}

/// Why a tab stays open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeptBecause {
    /// The person said so.
    KeptByUser,
    /// The person did not answer in time.
    NoAnswer,
    /// There is nobody to ask.
    NoUser,
}

impl KeptBecause {
    /// As it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeptByUser => "kept_by_user",
            Self::NoAnswer => "no_answer",
            Self::NoUser => "no_user",
        }
    }
}

/// Closes tabs for agents, and sees to it that the last one is never closed behind the person's back.
pub(crate) struct Closing {
    asker: Option<Asker>,
    /// One question at a time.
    turn: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tabs on their way out. Two agents that close the last two tabs at once must not each count on the other's.
    going: HashSet<TabId>,
    /// The last question's outcome. Whoever waited to ask about the same tab takes it as its own.
    settled: Option<(TabId, Instant, Verdict)>,
}

/// A tab on its way out, until this is dropped.
struct Going<'a> {
    closing: &'a Closing,
    tab: TabId,
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.closing.state().going.remove(&self.tab);
    }
}

impl Closing {
    pub fn new(asker: Option<Asker>) -> Self {
        Self { asker, turn: Semaphore::new(1), state: Mutex::default() }
    }

    /// Closes a tab, asking first if it is the last one.
    pub async fn close(&self, call: &Call, permit: WritePermit, title: Raw<String>) -> Result<Verdict, Refusal> {
        let browser = call.browser();
        let tab = permit.tab().clone();
        if let Some(_going) = self.not_the_last(browser, &tab)? {
            return close(browser, permit).await;
        }
        let Some(asker) = &self.asker else { return Ok(Verdict::Kept(KeptBecause::NoUser)) };
        let began = Instant::now();
        // The semaphore is never closed, so this cannot fail; without a turn nobody is asked.
        let Ok(_turn) = self.turn.acquire().await else { return Ok(Verdict::Kept(KeptBecause::NoUser)) };
        if let Some(verdict) = self.settled_since(&tab, began) {
            return Ok(verdict);
        }
        if let Some(_going) = self.not_the_last(browser, &tab)? {
            return close(browser, permit).await;
        }
        let verdict = match ask(asker, call, &title).await {
            Err(because) => Verdict::Kept(because),
            Ok(Answer::Keep) => Verdict::Kept(KeptBecause::KeptByUser),
            Ok(Answer::CloseTab) => {
                #[expect(clippy::disallowed_methods, reason = "the window's id, which no page says")]
                let window = browser.tab(&tab).map_err(refusal)?.expose().window.clone();
                let new_tab = call.desk().visit(|desk| desk.authorize_open(call.session(), None))?;
                let open = OpenTab { permit: new_tab, active: true, window: Some(window) };
                browser.open_tab(open).await.map_err(refusal)?;
                close(browser, permit).await?
            }
            Ok(Answer::Quit) => {
                let verdict = close(browser, permit).await?;
                browser.shutdown().await;
                verdict
            }
        };
        self.state().settled = Some((tab, Instant::now(), verdict));
        Ok(verdict)
    }

    /// Marks the tab as going, unless nothing would be left without it.
    fn not_the_last(&self, browser: &Browser, tab: &TabId) -> Result<Option<Going<'_>>, Refusal> {
        let windows = browser.windows().map_err(refusal)?;
        let mut state = self.state();
        #[expect(clippy::disallowed_methods, reason = "the tabs' ids, which no page says")]
        let mut tabs = windows.expose().iter().flat_map(|window| &window.tabs).map(|tab| &tab.id);
        // A tab that is gone already is for the browser to refuse.
        let gone = !tabs.clone().any(|open| open == tab);
        let others = tabs.any(|open| open != tab && !state.going.contains(open));
        Ok((gone || others).then(|| {
            state.going.insert(tab.clone());
            Going { closing: self, tab: tab.clone() }
        }))
    }

    fn settled_since(&self, tab: &TabId, began: Instant) -> Option<Verdict> {
        let state = self.state();
        let (settled, at, verdict) = state.settled.as_ref()?;
        (settled == tab && *at >= began).then_some(*verdict)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn close(browser: &Browser, permit: WritePermit) -> Result<Verdict, Refusal> {
    browser.close_tab(permit).await.map(|()| Verdict::Closed).map_err(refusal)
}

async fn ask(asker: &Asker, call: &Call, title: &Raw<String>) -> Result<Answer, KeptBecause> {
    let label = call.desk().visit(|desk| desk.session(call.session().as_str()).map(|session| session.label.clone()));
    let seal = |surface, text: &str| Egress::into_string(call.firewall().seal_text(surface, text).egress);
    let (reply, answered) = oneshot::channel();
    #[expect(clippy::disallowed_methods, reason = "sealed right here")]
    let question = Question {
        label: seal(Surface::Text, &label.unwrap_or_default()),
        title: seal(Surface::Title, title.expose()),
        reply,
    };
    let asking = async {
        asker.0.send(question).await.map_err(|_| KeptBecause::NoUser)?;
        answered.await.map_err(|_| KeptBecause::NoAnswer)
    };
    let telling = async {
        let mut waited = Duration::ZERO;
        while waited < ANSWER_LIMIT {
            call.tell_progress(waited, ANSWER_LIMIT);
            tokio::time::sleep(PROGRESS_EVERY).await;
            waited += PROGRESS_EVERY;
        }
    };
    tokio::select! {
        biased;
        answer = asking => answer,
        () = telling => Err(KeptBecause::NoAnswer),
    }
}
