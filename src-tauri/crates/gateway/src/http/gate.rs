//! Who may come in at all. Looked at before anything of MCP is parsed.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// The bearer token. Only its hash is kept, and two hashes are compared in constant time.
pub struct Token([u8; 32]);

impl Token {
    /// Takes the secret.
    pub fn new(secret: String) -> Self {
        Self(Sha256::digest(secret).into())
    }

    fn is(&self, offered: &[u8]) -> bool {
        let offered: [u8; 32] = Sha256::digest(offered).into();
        self.0.iter().zip(offered).fold(0, |differs, (mine, theirs)| differs | (mine ^ theirs)) == 0
    }
}

/// Checks Host, Origin and token.
pub(super) struct Gate {
    token: Token,
    port: u16,
}

impl Gate {
    pub fn new(token: Token, port: u16) -> Self {
        Self { token, port }
    }

    pub async fn pass(self: Arc<Self>, request: Request, next: Next) -> Response {
        match self.refusal(request.headers()) {
            None => next.run(request).await,
            Some(refusal) => refusal,
        }
    }

    fn refusal(&self, headers: &HeaderMap) -> Option<Response> {
        let forbidden = |what: &'static str| Some((StatusCode::FORBIDDEN, what).into_response());
        // A page can point a name of its own at 127.0.0.1; it cannot choose another Host than that name.
        let mut hosts = headers.get_all(header::HOST).iter();
        if !hosts.next().is_some_and(|host| self.is_local(host)) || hosts.next().is_some() {
            return forbidden("This server answers only to 127.0.0.1 and localhost: connect by one of those.\n");
        }
        let local_origin = |origin: &HeaderValue| {
            let host = origin.as_bytes().strip_prefix(b"http://");
            host.is_some_and(|host| self.is_local_name(host))
        };
        if !headers.get_all(header::ORIGIN).iter().all(local_origin) {
            return forbidden(
                "Web pages of other origins may not use this server: connect without an Origin header.\n",
            );
        }
        let mut offers = headers.get_all(header::AUTHORIZATION).iter();
        let offered = offers.next().map(HeaderValue::as_bytes).and_then(bearer);
        if offers.next().is_none() && offered.is_some_and(|offered| self.token.is(offered)) {
            return None;
        }
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        let message = "The bearer token is missing or wrong: send the one that Tabwarden shows.\n";
        Some((StatusCode::UNAUTHORIZED, challenge, message).into_response())
    }

    fn is_local(&self, host: &HeaderValue) -> bool {
        self.is_local_name(host.as_bytes())
    }

    fn is_local_name(&self, host: &[u8]) -> bool {
        let port = self.port.to_string();
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
            let rest = host.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name.as_bytes()));
            match rest.map(|_| &host[name.len()..]) {
                Some([]) => self.port == 80,
                Some([b':', digits @ ..]) => digits == port.as_bytes(),
                _ => false,
            }
        })
    }
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_lets_in_only_who_comes_locally_with_the_token() {
        fn check(headers: &[(&str, &str)], expect: Option<u16>) {
            let gate = Gate::new(Token::new("the token".to_owned()), 8000);
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name.parse::<header::HeaderName>().expect("a name"), value.parse().expect("a value"));
            }
            let refused = gate.refusal(&map).map(|response| response.status().as_u16());
            assert_eq!(refused, expect, "{headers:?}");
        }
        let host = ("host", "127.0.0.1:8000");
        let token = ("authorization", "Bearer the token");
        check(&[host, token], None);
        check(&[("host", "LocalHost:8000"), token], None);
        check(&[host, ("authorization", "bearer the token")], None);
        check(&[host, token, ("origin", "http://localhost:8000")], None);
        check(&[host], Some(401));
        check(&[host, ("authorization", "Bearer another")], Some(401));
        check(&[host, ("authorization", "Bearer ")], Some(401));
        check(&[host, ("authorization", "Basic the token")], Some(401));
        check(&[host, token, token], Some(401));
        check(&[token], Some(403));
        check(&[("host", "127.0.0.1"), token], Some(403));
        check(&[("host", "127.0.0.1:8001"), token], Some(403));
        check(&[("host", "evil.example:8000"), token], Some(403));
        check(&[("host", "127.0.0.1.evil.example:8000"), token], Some(403));
        check(&[host, host, token], Some(403));
        check(&[host, token, ("origin", "http://evil.example")], Some(403));
        check(&[host, token, ("origin", "http://localhost:3000")], Some(403));
        check(&[host, token, ("origin", "null")], Some(403));
    }
}
