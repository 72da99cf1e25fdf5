//! The desk: the one mutable truth of sessions, and the only place that grants permits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use crate::{
    AllowedDomains, Client, ClosedBecause, Era, Event, NavPermit, OpenUrl, Peer, Presence, PrincipalId, Refusal,
    Session, SessionId, TabId, Via, WritePermit, one_line,
};

/// How long a session outlives its connection, so that a bridge can come back.
pub const GRACE: Duration = Duration::from_secs(5);

/// The longest label that is kept, in characters.
const MAX_LABEL: usize = 60;

/// How a new session presents itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// Whose it is.
    pub principal: PrincipalId,
    /// The name that it asks for; the client's name if it asks for none.
    pub label: Option<String>,
    /// What the client says of itself.
    pub client: Client,
    /// The era in which it speaks.
    pub era: Era,
    /// The transport by which it came.
    pub via: Via,
    /// The process behind it.
    pub peer: Option<Peer>,
    /// The time of day.
    pub since: SystemTime,
}

/// Sessions and what they may do. Every change is noted as an [`Event`] that [`Desk::take_events`] hands over.
#[derive(Default, Debug)]
pub struct Desk {
    sessions: BTreeMap<SessionId, Session>,
    /// Order of opening, so that lists are stable.
    order: Vec<SessionId>,
    events: Vec<Event>,
}

impl Desk {
    /// An empty desk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a session under an id that the caller drew at random. Fails only if that id is taken.
    pub fn open(&mut self, id: SessionId, who: Introduction) -> Option<&Session> {
        if self.sessions.contains_key(&id) {
            return None;
        }
        let label = self.free_label(who.label.as_deref().unwrap_or(&who.client.name));
        let session = Session {
            id: id.clone(),
            principal: who.principal,
            label,
            client: who.client,
            era: who.era,
            via: who.via,
            peer: who.peer,
            since: who.since,
            domains: AllowedDomains::default(),
            presence: Presence::Connected,
        };
        self.order.push(id.clone());
        self.events.push(Event::SessionOpened(id.clone()));
        Some(self.sessions.entry(id).or_insert(session))
    }

    /// Ends a session. Says whether there was one.
    pub fn close(&mut self, id: &SessionId, because: ClosedBecause) -> bool {
        let was_open = self.sessions.remove(id).is_some();
        if was_open {
            self.order.retain(|open| open != id);
            self.events.push(Event::SessionClosed(id.clone(), because));
        }
        was_open
    }

    /// A principal's connection dropped: its sessions stay for [`GRACE`].
    pub fn connection_lost(&mut self, principal: PrincipalId, now: Instant) {
        self.set_presence(principal, Presence::Gone { until: now + GRACE });
    }

    /// A principal's connection is back. Says how many sessions it still has.
    pub fn connection_back(&mut self, principal: PrincipalId, now: Instant) -> usize {
        self.expire(now);
        self.set_presence(principal, Presence::Connected)
    }

    fn set_presence(&mut self, principal: PrincipalId, presence: Presence) -> usize {
        let mut count = 0;
        for session in self.sessions.values_mut().filter(|s| s.principal == principal) {
            count += 1;
            if session.presence != presence {
                session.presence = presence;
                self.events.push(Event::SessionChanged(session.id.clone()));
            }
        }
        count
    }

    /// When [`Desk::expire`] next has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.sessions
            .values()
            .filter_map(|session| match session.presence {
                Presence::Connected => None,
                Presence::Gone { until } => Some(until),
            })
            .min()
    }

    /// Ends what has run out by `now`.
    pub fn expire(&mut self, now: Instant) {
        let over: Vec<SessionId> = self
            .sessions
            .values()
            .filter(|s| matches!(s.presence, Presence::Gone { until } if until <= now))
            .map(|s| s.id.clone())
            .collect();
        for id in over {
            self.close(&id, ClosedBecause::ConnectionLost);
        }
    }

    /// Replaces a session's allowed domains.
    pub fn set_domains(&mut self, id: &SessionId, domains: AllowedDomains) -> Option<&AllowedDomains> {
        let session = self.sessions.get_mut(id)?;
        if session.domains != domains {
            session.domains = domains;
            self.events.push(Event::SessionChanged(id.clone()));
        }
        Some(&session.domains)
    }

    /// An open session.
    pub fn session(&self, id: &str) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// All open sessions, in the order of their opening.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.order.iter().filter_map(|id| self.sessions.get(id))
    }

    /// Leave to open a page in a new tab.
    pub fn authorize_open(&self, id: &SessionId, url: Option<OpenUrl>) -> Result<NavPermit, Refusal> {
        let session = self.sessions.get(id).ok_or(Refusal::NotInitialized)?;
        if let Some(url) = &url
            && !session.domains.covers(url)
        {
            return Err(Refusal::DomainNotAllowed {
                host: url.url().host_str().unwrap_or_default().to_owned(),
                allowed: session.domains.to_strings(),
            });
        }
        Ok(NavPermit::new(url))
    }

    /// Leave to change a tab.
    pub fn authorize_write(&self, id: &SessionId, tab: TabId) -> Result<WritePermit, Refusal> {
        match self.sessions.contains_key(id) {
            true => Ok(WritePermit::new(tab)),
            false => Err(Refusal::NotInitialized),
        }
    }

    /// Hands over what happened since the last time.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// A label that no open session has: what was asked for, made printable and short, and numbered if it is taken.
    fn free_label(&self, wanted: &str) -> String {
        let mut base = one_line(wanted, MAX_LABEL);
        if base.is_empty() {
            base = "agent".to_owned();
        }
        let taken = |label: &str| self.sessions.values().any(|s| s.label == label);
        if !taken(&base) {
            return base;
        }
        (2u32..).map(|n| format!("{base} {n}")).find(|label| !taken(label)).unwrap_or(base)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn introduce(principal: u64, name: &str) -> Introduction {
        Introduction {
            principal: PrincipalId(principal),
            label: None,
            client: Client { name: name.to_owned(), version: "1".to_owned() },
            era: Era::Handshake,
            via: Via::Socket,
            peer: None,
            since: SystemTime::UNIX_EPOCH,
        }
    }

    fn id(n: u64) -> SessionId {
        SessionId::from_random(n)
    }

    #[test]
    fn labels_are_printable_and_unique() {
        let mut desk = Desk::new();
        let label = |desk: &mut Desk, n, name: &str| desk.open(id(n), introduce(n, name)).expect("free").label.clone();
        assert_eq!(label(&mut desk, 1, "codex"), "codex");
        assert_eq!(label(&mut desk, 2, "codex"), "codex 2");
        assert_eq!(label(&mut desk, 3, "co\u{200b}dex\u{202e}\n"), "co dex");
        assert_eq!(label(&mut desk, 4, ""), "agent");
        assert_eq!(label(&mut desk, 5, &"x".repeat(500)).chars().count(), MAX_LABEL);
    }

    #[test]
    fn a_lost_connection_keeps_its_sessions_for_the_grace_and_no_longer() {
        let start = Instant::now();
        let mut desk = Desk::new();
        desk.open(id(1), introduce(1, "a"));
        desk.open(id(2), introduce(2, "b"));
        desk.connection_lost(PrincipalId(1), start);
        assert_eq!(desk.next_deadline(), Some(start + GRACE));
        desk.expire(start + GRACE - Duration::from_millis(1));
        assert!(desk.session(id(1).as_str()).is_some());
        assert_eq!(desk.connection_back(PrincipalId(1), start + GRACE - Duration::from_millis(1)), 1);
        assert_eq!(desk.next_deadline(), None);
        desk.connection_lost(PrincipalId(1), start);
        assert_eq!(desk.connection_back(PrincipalId(1), start + GRACE), 0);
        assert!(desk.session(id(1).as_str()).is_none());
        assert!(desk.session(id(2).as_str()).is_some());
        assert!(desk.take_events().contains(&Event::SessionClosed(id(1), ClosedBecause::ConnectionLost)));
    }

    #[test]
    fn a_new_session_may_open_nothing_but_blank_pages() {
        let mut desk = Desk::new();
        desk.open(id(1), introduce(1, "a"));
        let page = OpenUrl::parse("https://example.com/").expect("url");
        let refused = desk.authorize_open(&id(1), Some(page.clone())).expect_err("refused");
        assert_eq!(refused, Refusal::DomainNotAllowed { host: "example.com".into(), allowed: vec![] });
        assert!(desk.authorize_open(&id(1), None).is_ok());
        assert!(desk.authorize_open(&id(1), Some(OpenUrl::parse("about:blank").expect("url"))).is_ok());
        desk.set_domains(&id(1), AllowedDomains::parse(&["example.com"]).expect("list"));
        assert!(desk.authorize_open(&id(1), Some(page.clone())).is_ok());
        desk.close(&id(1), ClosedBecause::Asked);
        assert_eq!(desk.authorize_open(&id(1), Some(page)).expect_err("closed"), Refusal::NotInitialized);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Open(u64, u64),
        Close(u64),
        Lose(u64),
        Return(u64),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0u64..12, 0u64..4).prop_map(|(s, p)| Step::Open(s, p)),
            (0u64..12).prop_map(Step::Close),
            (0u64..4).prop_map(Step::Lose),
            (0u64..4).prop_map(Step::Return),
            (0u64..6000).prop_map(Step::Wait),
        ];
        prop::collection::vec(step, 0..80)
    }

    proptest! {
        /// The desk against a model that keeps nothing but (session, principal, end) triples.
        #[test]
        fn the_desk_agrees_with_a_naive_model(steps in steps()) {
            let mut now = Instant::now();
            let mut desk = Desk::new();
            let mut model: Vec<(u64, u64, Option<Instant>)> = Vec::new();
            let (mut opened, mut closed) = (0usize, 0usize);
            for step in steps {
                match step {
                    Step::Open(s, p) => {
                        let free = model.iter().all(|m| m.0 != s);
                        prop_assert_eq!(desk.open(id(s), introduce(p, "agent")).is_some(), free);
                        if free { model.push((s, p, None)); }
                    }
                    Step::Close(s) => {
                        let was = model.iter().any(|m| m.0 == s);
                        prop_assert_eq!(desk.close(&id(s), ClosedBecause::Asked), was);
                        model.retain(|m| m.0 != s);
                    }
                    Step::Lose(p) => {
                        desk.connection_lost(PrincipalId(p), now);
                        model.iter_mut().filter(|m| m.1 == p).for_each(|m| m.2 = Some(now + GRACE));
                    }
                    Step::Return(p) => {
                        let back = desk.connection_back(PrincipalId(p), now);
                        prop_assert_eq!(back, model.iter().filter(|m| m.1 == p).count());
                        model.iter_mut().filter(|m| m.1 == p).for_each(|m| m.2 = None);
                    }
                    Step::Wait(ms) => {
                        now += Duration::from_millis(ms);
                        desk.expire(now);
                        model.retain(|m| m.2.is_none_or(|end| end > now));
                    }
                }
                let mut want: Vec<_> = model.iter().map(|m| id(m.0)).collect();
                let have: Vec<_> = desk.sessions().map(|s| s.id.clone()).collect();
                prop_assert_eq!(&have, &want);
                prop_assert_eq!(desk.next_deadline(), model.iter().filter_map(|m| m.2).min());
                let mut labels: Vec<_> = desk.sessions().map(|s| s.label.clone()).collect();
                labels.sort();
                labels.dedup();
                want.sort();
                prop_assert_eq!(labels.len(), want.len());
                for event in desk.take_events() {
                    match event {
                        Event::SessionOpened(_) => opened += 1,
                        Event::SessionClosed(..) => closed += 1,
                        _ => {}
                    }
                }
                prop_assert_eq!(opened - closed, model.len());
            }
        }
    }
}
