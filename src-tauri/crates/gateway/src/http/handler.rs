//! MCP over HTTP, between `rmcp` and the same pipeline that the socket has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tabwarden_domain::{Client, ClosedBecause, Era, Introduction, PrincipalId, Refusal, SessionId, Via};
use tokio::time::Instant;

use super::IDLE;
use crate::agent::open_session;
use crate::answer::Failure;
use crate::arguments::shorten;
use crate::gateway::Gateway;
use crate::pipeline::{Call, Ended, Progress};
use crate::protocol::INSTRUCTIONS;
use crate::tools;
use crate::transport::Origin;

/// How many stateless clients are remembered. HTTP never says that one has gone.
const MAX_STATELESS: usize = 64;

/// Whoever holds the token: the principal of all HTTP sessions.
pub(super) struct Owner {
    gateway: Gateway,
    principal: PrincipalId,
    /// The sessions of stateless clients, which are told apart by what they say of themselves.
    stateless: Mutex<Vec<Stateless>>,
}

struct Stateless {
    client: Client,
    session: SessionId,
    last_seen: Instant,
}

impl Owner {
    pub fn new(gateway: Gateway) -> Self {
        let principal = gateway.next_principal();
        Self { gateway, principal, stateless: Mutex::default() }
    }

    fn open(&self, client: Client, era: Era) -> SessionId {
        let who = Introduction {
            principal: self.principal,
            label: None,
            client,
            era,
            via: Via::Http,
            peer: None,
            since: SystemTime::now(),
        };
        open_session(&self.gateway, who)
    }

    fn is_open(&self, session: &SessionId) -> bool {
        self.gateway.session(session).is_some()
    }

    fn close(&self, session: &SessionId, because: ClosedBecause) {
        self.gateway.desk().visit(|desk| desk.close(session, because));
    }

    fn stateless_session(&self, client: Client) -> SessionId {
        let now = Instant::now();
        let mut known = self.stateless.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| {
            let keep = now.duration_since(one.last_seen) < IDLE && self.is_open(&one.session);
            if !keep {
                self.close(&one.session, ClosedBecause::ConnectionLost);
            }
            keep
        });
        if let Some(one) = known.iter_mut().find(|one| one.client == client) {
            one.last_seen = now;
            return one.session.clone();
        }
        if known.len() >= MAX_STATELESS
            && let Some(oldest) = (0..known.len()).min_by_key(|at| known[*at].last_seen)
        {
            self.close(&known.swap_remove(oldest).session, ClosedBecause::ConnectionLost);
        }
        let session = self.open(client.clone(), Era::Stateless);
        known.push(Stateless { client, session: session.clone(), last_seen: now });
        session
    }
}

/// One HTTP session of a handshake client, or one request of a stateless one.
pub(super) struct Visitor {
    owner: Arc<Owner>,
    session: Mutex<Option<SessionId>>,
}

impl Visitor {
    pub fn new(owner: Arc<Owner>) -> Self {
        Self { owner, session: Mutex::default() }
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Option<SessionId>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gateway(&self) -> &Gateway {
        &self.owner.gateway
    }

    fn speaker(&self, context: &RequestContext<RoleServer>) -> Result<SessionId, ErrorData> {
        if context.meta.protocol_version() == Some(ProtocolVersion::V_2026_07_28) {
            let client = context.meta.client_info().map(client).unwrap_or_default();
            return Ok(self.owner.stateless_session(client));
        }
        let session = self.session().clone().filter(|session| self.owner.is_open(session));
        session.ok_or_else(|| self.error(&Refusal::NotInitialized, &Origin::default()))
    }

    /// Seals here already, where it is known whose answer it is. The body's own sealing then finds nothing more.
    fn error(&self, refusal: &Refusal, origin: &Origin) -> ErrorData {
        let failure = Failure::from(refusal);
        let sealed = |text: String| self.gateway().seal().seal(text, origin).into_string();
        let message: Value =
            serde_json::from_str(&sealed(Value::from(failure.message.as_str()).to_string())).unwrap_or_default();
        let data = serde_json::from_str(&sealed(failure.data().to_string())).ok();
        ErrorData::new(ErrorCode(failure.code), message.as_str().unwrap_or_default().to_owned(), data)
    }

    fn answer(&self, ended: Ended) -> Result<CallToolResponse, ErrorData> {
        let reply = ended.result.map_err(|refusal| self.error(&refusal, &ended.origin))?;
        #[expect(clippy::disallowed_methods, reason = "sealed right here")]
        let sealed = self.gateway().seal().seal(reply.json.expose().clone(), &ended.origin).into_string();
        let object = serde_json::from_str(&sealed).ok();
        let mut result = CallToolResult::success(vec![ContentBlock::text(sealed)]);
        result.structured_content = object;
        Ok(CallToolResponse::from(result))
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        if let Some(session) = self.session().take() {
            self.owner.close(&session, ClosedBecause::ConnectionLost);
        }
    }
}

impl ServerHandler for Visitor {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("tabwarden", self.gateway().about().version).with_title("Tabwarden");
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let result = self.negotiate_initialize(&request)?;
        let mut session = self.session();
        if session.as_ref().is_none_or(|session| !self.owner.is_open(session)) {
            *session = Some(self.owner.open(client(request.client_info), Era::Handshake));
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.speaker(&context)?;
        let tools = tools::descriptions().into_iter().filter_map(|tool| serde_json::from_value(tool).ok()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.speaker(&context)?;
        let progress = context.meta.get_progress_token().map(|token| {
            let peer = context.peer.clone();
            Box::new(move |waited: Duration, limit: Duration| {
                let notice = ProgressNotificationParam::new(token.clone(), waited.as_secs_f64())
                    .with_total(limit.as_secs_f64())
                    .with_message("Waiting for the user's answer");
                let peer = peer.clone();
                tokio::spawn(async move { peer.notify_progress(notice).await });
            }) as Progress
        });
        let call = Call::new(self.gateway().clone(), self.owner.principal, session, progress);
        tokio::select! {
            ended = call.run(request.name.into_owned(), request.arguments.map(Value::Object)) => self.answer(ended),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("The call was cancelled.", None)),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let known = tools::descriptions().into_iter().find(|tool| tool["name"] == name)?;
        serde_json::from_value(known).ok()
    }
}

fn client(info: Implementation) -> Client {
    Client { name: shorten(&info.name), version: shorten(&info.version) }
}
