//! Streamable HTTP on the loopback interface: a gate in front, `rmcp` in the middle, the firewall behind it.

mod gate;
mod handler;
mod sealing;

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use gate::Token;

use crate::framing::MAX_LINE;
use crate::gateway::Gateway;
use gate::Gate;
use handler::{Owner, Visitor};
use sealing::Sealing;

/// How long an HTTP client may be silent before its session ends, since HTTP never says that one has gone. A model may
/// think for minutes between two calls.
const IDLE: Duration = Duration::from_secs(30 * 60);

impl Gateway {
    /// Serves agents over HTTP at `/mcp` until `cancel` or [`Gateway::shutdown`].
    pub async fn serve_http(self, listener: TcpListener, token: Token, cancel: CancellationToken) {
        let port = match listener.local_addr() {
            Ok(address) => address.port(),
            Err(error) => {
                tracing::error!("the HTTP port cannot be served: {error}");
                return;
            }
        };
        self.served_on_http(format!("http://127.0.0.1:{port}/mcp"));
        let ending = cancel.child_token();
        let owner = Arc::new(Owner::new(self.clone()));
        let config = StreamableHttpServerConfig::default()
            // The gate has already looked at Host and Origin, and more strictly.
            .disable_allowed_hosts()
            .with_legacy_session_mode(true)
            .with_max_request_body_bytes(MAX_LINE)
            .with_cancellation_token(ending.clone());
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE);
        let service = StreamableHttpService::new(move || Ok(Visitor::new(owner.clone())), Arc::new(sessions), config);
        let gate = Arc::new(Gate::new(token, port));
        let seal = self.seal().clone();
        let router = Router::new()
            .route_service("/mcp", service)
            .layer(from_fn(move |request, next| gate.clone().pass(request, next)))
            .layer(map_response(move |response: Response| {
                let seal = seal.clone();
                async move { Sealing::wrap(response, seal) }
            }));
        let stop = self.stop().clone();
        let serving = axum::serve(listener, router).into_future();
        tokio::select! {
            () = cancel.cancelled() => {}
            () = stop.cancelled() => {}
            ended = serving => if let Err(error) = ended {
                tracing::error!("HTTP ended: {error}");
            },
        }
        ending.cancel();
    }
}
