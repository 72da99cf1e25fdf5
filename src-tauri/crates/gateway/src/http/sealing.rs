//! The one way out of the HTTP server: every response body is cut into texts, and each leaves as an [`Egress`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::Response;
use http_body::{Body as HttpBody, Frame};
use tabwarden_firewall::{Egress, Surface};

use crate::answer::with_data;
use crate::transport::{Origin, Seal};

/// A body that is sealed as it goes: an event stream line by line, everything else as a whole.
pub(super) struct Sealing {
    inner: Body,
    seal: Seal,
    events: bool,
    pending: Vec<u8>,
    ready: VecDeque<Bytes>,
    ended: bool,
}

impl Sealing {
    /// Seals a response's body.
    pub fn wrap(response: Response, seal: Seal) -> Response {
        let (mut head, inner) = response.into_parts();
        let kind = head.headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase()).unwrap_or_default();
        let events = kind.starts_with(b"text/event-stream");
        // What is withheld changes the length.
        head.headers.remove(CONTENT_LENGTH);
        let sealing = Self { inner, seal, events, pending: Vec::new(), ready: VecDeque::new(), ended: false };
        Response::from_parts(head, Body::new(sealing))
    }

    fn take(&mut self, data: &[u8]) {
        self.pending.extend_from_slice(data);
        if !self.events {
            return;
        }
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).into_owned();
            match line.strip_prefix("data:").map(str::trim).filter(|json| !json.is_empty()) {
                Some(json) => {
                    let sealed = self.seal.seal(with_data(json.to_owned()), &Origin::default());
                    self.put("data: ");
                    self.out(sealed);
                    self.put("\n");
                }
                // Ids, retry times, comments and the empty line that ends an event.
                None => self.plain(&line),
            }
        }
    }

    fn finish(&mut self) {
        self.ended = true;
        let rest = std::mem::take(&mut self.pending);
        let rest = String::from_utf8_lossy(&rest).into_owned();
        if rest.starts_with(['{', '[']) {
            let sealed = self.seal.seal(with_data(rest), &Origin::default());
            self.out(sealed);
        } else if !rest.is_empty() {
            self.plain(&rest);
        }
    }

    fn plain(&mut self, text: &str) {
        let sealed = self.seal.firewall.seal_text(Surface::Text, text).egress;
        self.out(sealed);
    }

    fn put(&mut self, punctuation: &'static str) {
        self.ready.push_back(Bytes::from_static(punctuation.as_bytes()));
    }

    fn out(&mut self, sealed: Egress) {
        self.ready.push_back(sealed.into_string().into());
    }
}

impl HttpBody for Sealing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        loop {
            if let Some(data) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.take(&data);
                    }
                }
                // A body that broke off has nothing more to say.
                Some(Err(_)) | None => this.finish(),
            }
        }
    }
}
