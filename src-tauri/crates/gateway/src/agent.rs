//! One connected agent: what it may ask for, and the sessions that are its own.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use rand::random;
use serde_json::json;
use serde_json::value::RawValue;
use tabwarden_domain::{Client, Era, Introduction, Peer, PrincipalId, Refusal, SessionId, Via};
use tabwarden_firewall::Egress;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::answer::{self, Failure};
use crate::arguments::shorten;
use crate::fault::Fault;
use crate::gateway::Gateway;
use crate::message::{Id, Malformed, Message};
use crate::pipeline::{Call, Progress};
use crate::protocol::{self, AnyParams, CallParams, Dialect, Meta, MetaError, Said};
use crate::resume::Secret;
use crate::tools;
use crate::transport::Origin;

/// What a message leads to.
pub(crate) enum Step {
    /// Nothing more.
    Nothing,
    /// An answer that is ready.
    Answer(Egress),
    /// An answer that will take its time.
    Call(Id, BoxFuture<'static, Egress>),
    /// The end of a call that runs.
    Cancel(Id),
}

/// The agent behind one connection.
pub(crate) struct Agent {
    gateway: Gateway,
    principal: PrincipalId,
    peer: Option<Peer>,
    /// The session of calls that name none.
    main: Option<SessionId>,
    /// Whether `initialize` was called.
    shook_hands: bool,
    /// The secret by which a bridge may come back.
    secret: Option<Secret>,
    /// Ends the connection, for a bridge that has come back by another one.
    hang_up: CancellationToken,
    notices: mpsc::Sender<Egress>,
}

impl Agent {
    /// A new agent. `notices` takes what is sent to it unasked; `hang_up` ends its connection.
    pub fn new(
        gateway: Gateway,
        peer: Option<Peer>,
        notices: mpsc::Sender<Egress>,
        hang_up: CancellationToken,
    ) -> Self {
        let principal = gateway.next_principal();
        Self { gateway, principal, peer, main: None, shook_hands: false, secret: None, hang_up, notices }
    }

    /// Takes one line.
    pub fn take(&mut self, line: &[u8]) -> Step {
        match Message::read(line) {
            Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Message::Notification { method, params }) => notification(&method, params),
            Ok(Message::Answer) => Step::Nothing,
            Err(Malformed { id, fault }) => Step::Answer(self.fault(id.as_ref(), &fault)),
        }
    }

    /// The answer to what was no call.
    pub fn fault(&self, id: Option<&Id>, fault: &Fault) -> Egress {
        self.error(id, &Failure::from(fault))
    }

    fn error(&self, id: Option<&Id>, failure: &Failure) -> Egress {
        self.gateway
            .seal()
            .seal(answer::error(id, failure), &Origin { session: self.main.clone(), ..Origin::default() })
    }

    fn request(&mut self, id: Id, method: &str, params: Option<&RawValue>) -> Step {
        let result = match method {
            "tools/call" => return self.tool_call(id, params),
            "tools/list" => self.tool_list(params),
            "ping" => Ok(Cow::Borrowed("{}")),
            "initialize" => self.initialize(params).map(Cow::Owned),
            "server/discover" => Ok(protocol::discover_result(self.gateway.about()).into()),
            "tabwarden/status" => Ok(self.gateway.status().to_string().into()),
            "tabwarden/show" => Ok(json!({ "shown": self.gateway.show() }).to_string().into()),
            "tabwarden/bridge" => self.resume(params).map(Cow::Owned),
            _ => Err(Failure::from(&Fault::UnknownMethod { method: shorten(method) })),
        };
        Step::Answer(match result {
            Ok(result) => {
                let origin = Origin { session: self.main.clone(), ..Origin::default() };
                self.gateway.seal().seal(answer::result(&id, &result), &origin)
            }
            Err(failure) => self.error(Some(&id), &failure),
        })
    }

    fn initialize(&mut self, params: Option<&RawValue>) -> Result<String, Failure> {
        let (client, version) = protocol::read_initialize(params).map_err(|refusal| Failure::from(&refusal))?;
        self.shook_hands = true;
        self.main_session(client, Era::Handshake);
        Ok(protocol::initialize_result(version, self.gateway.about()))
    }

    fn tool_list(&mut self, params: Option<&RawValue>) -> Result<Cow<'static, str>, Failure> {
        let params: AnyParams<'_> = match params {
            None => AnyParams::default(),
            Some(json) => serde_json::from_str(json.get()).map_err(|_| mistyped("params", "params as an object"))?,
        };
        let (dialect, _) = self.speaker(params.meta.as_ref())?;
        Ok(Cow::Borrowed(tools::list(dialect)))
    }

    fn tool_call(&mut self, id: Id, params: Option<&RawValue>) -> Step {
        let prepared = self.prepare_call(params);
        let (dialect, call, name, arguments) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => return Step::Answer(self.error(Some(&id), &failure)),
        };
        let seal = self.gateway.seal().clone();
        let answered = id.clone();
        Step::Call(
            id,
            Box::pin(async move {
                let ended = call.run(name, arguments).await;
                let line = match &ended.result {
                    Ok(reply) => answer::tool_result(&answered, reply, dialect),
                    Err(refusal) => answer::error(Some(&answered), &Failure::from(refusal)),
                };
                seal.seal(line, &ended.origin)
            }),
        )
    }

    fn prepare_call(
        &mut self,
        params: Option<&RawValue>,
    ) -> Result<(Dialect, Call, String, Option<serde_json::Value>), Failure> {
        // Whoever has not said who it is hears that first, whatever else is wrong with its call.
        let parsed: Option<CallParams<'_>> = params.and_then(|json| serde_json::from_str(json.get()).ok());
        let meta = match (&parsed, params) {
            (None, Some(json)) => serde_json::from_str::<AnyParams<'_>>(json.get()).ok().and_then(|any| any.meta),
            _ => None,
        };
        let meta = parsed.as_ref().map_or(meta.as_ref(), |params| params.meta.as_ref());
        let (dialect, session) = self.speaker(meta)?;
        let progress = meta.and_then(|meta| meta.progress_token).and_then(|token| self.progress(token));
        let call = Call::new(self.gateway.clone(), self.principal, session, progress);
        let Some(CallParams { name, arguments, .. }) = parsed else {
            return Err(mistyped("name", "params with the tool's name as a string and arguments as an object"));
        };
        Ok((dialect, call, name.into_owned(), arguments))
    }

    /// In which dialect a request speaks, and for which session.
    fn speaker(&mut self, meta: Option<&Meta<'_>>) -> Result<(Dialect, SessionId), Failure> {
        let said = meta.map_or(Ok(Said::Nothing), Meta::said).map_err(|error| match error {
            MetaError::Fault(fault) => Failure::from(&fault),
            MetaError::Refusal(refusal) => Failure::from(&refusal),
        })?;
        match said {
            Said::Inline(client) => Ok((Dialect::Stateless, self.main_session(client, Era::Stateless))),
            Said::Nothing => {
                let open = self.main.clone().filter(|_| self.shook_hands).filter(|main| self.is_open(main));
                open.map(|main| (Dialect::Handshake, main)).ok_or_else(|| Failure::from(&Refusal::NotInitialized))
            }
        }
    }

    /// The main session; opened if there is none, or none any more.
    fn main_session(&mut self, client: Client, era: Era) -> SessionId {
        if let Some(main) = self.main.clone().filter(|main| self.is_open(main)) {
            return main;
        }
        let who = Introduction {
            principal: self.principal,
            label: None,
            client,
            era,
            via: Via::Socket,
            peer: self.peer.clone(),
            since: SystemTime::now(),
        };
        let main = open_session(&self.gateway, who);
        self.main = Some(main.clone());
        main
    }

    fn is_open(&self, id: &SessionId) -> bool {
        self.gateway.desk().visit(|desk| desk.session(id.as_str()).is_some())
    }

    fn progress(&self, token: &RawValue) -> Option<Progress> {
        let token = Id::read(token.get())?;
        let notices = self.notices.clone();
        let seal = self.gateway.seal().clone();
        Some(Box::new(move |waited: Duration, limit: Duration| {
            let (waited, limit) = (waited.as_secs(), limit.as_secs());
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\
                 \"progress\":{waited},\"total\":{limit},\"message\":\"Waiting for the user's answer\"}}}}"
            );
            // A client that leaves its notices unread misses some; its answer does not depend on them.
            let _ = notices.try_send(seal.seal(line, &Origin::default()));
        }))
    }

    /// A bridge says by which secret it may come back, or comes back.
    fn resume(&mut self, params: Option<&RawValue>) -> Result<String, Failure> {
        #[derive(serde::Deserialize)]
        struct Hello<'a> {
            #[serde(borrow)]
            secret: Cow<'a, str>,
        }
        let expected = "{\"secret\": \"<64 hexadecimal digits>\"}, first on its connection";
        let secret = params
            .and_then(|json| serde_json::from_str::<Hello<'_>>(json.get()).ok())
            .and_then(|hello| Secret::read(&hello.secret))
            .filter(|_| self.main.is_none() && self.secret.is_none())
            .ok_or_else(|| mistyped("secret", expected))?;
        let (principal, sessions) = self.gateway.resume(secret, self.principal, self.hang_up.clone());
        self.principal = principal;
        self.secret = Some(secret);
        // The bridge repeats the client's `initialize`, which then finds this session and opens no second one.
        self.main = sessions.first().cloned();
        let ids: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
        Ok(json!({ "resumed": !ids.is_empty(), "sessions": ids }).to_string())
    }

    /// The connection is gone.
    pub fn leave(self) {
        match self.secret {
            Some(secret) => self.gateway.bridge_left(secret, &self.hang_up),
            None => self.gateway.desk().connection_lost(self.principal),
        }
    }
}

/// Opens a session under an id that is free. What the client says of itself is sealed first.
pub(crate) fn open_session(gateway: &Gateway, who: Introduction) -> SessionId {
    let client = Client { name: gateway.sealed(&who.client.name), version: gateway.sealed(&who.client.version) };
    let who = Introduction { client, ..who };
    gateway.desk().visit(|desk| {
        loop {
            if let Some(session) = desk.open(SessionId::from_random(random()), who.clone()) {
                return session.id.clone();
            }
        }
    })
}

fn notification(method: &str, params: Option<&RawValue>) -> Step {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    if method != "notifications/cancelled" {
        return Step::Nothing;
    }
    params
        .and_then(|json| serde_json::from_str::<Cancelled<'_>>(json.get()).ok())
        .and_then(|cancelled| Id::read(cancelled.request_id.get()))
        .map_or(Step::Nothing, Step::Cancel)
}

fn mistyped(argument: &str, expected: &str) -> Failure {
    Failure::from(&Refusal::InvalidParams {
        argument: argument.to_owned(),
        problem: "is missing or mistyped".to_owned(),
        expected: expected.to_owned(),
    })
}
