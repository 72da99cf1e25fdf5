//! The only way out: what is written to a client has been sealed here.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use serde_json::Value;
use tabwarden_domain::{Event, Redaction, SessionId, Surface, TabId};
use tabwarden_firewall::{Egress, Finding, Firewall, Surface as Place};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use crate::events::Feed;
use crate::pipeline::tab_of_place;

/// How much may wait for a client before no more of its requests are read.
const FULL: usize = 8 * 1024 * 1024;

/// How long a client may leave a full queue without taking anything from it.
const STALL: Duration = Duration::from_secs(30);

/// Whose answer a text is.
#[derive(Clone, Default, Debug)]
pub(crate) struct Origin {
    /// The session that called.
    pub session: Option<SessionId>,
    /// The tool that answers.
    pub tool: Option<String>,
    /// The tab that the call names.
    pub tab: Option<TabId>,
}

/// The firewall, with somebody to tell what it withheld.
#[derive(Clone)]
pub(crate) struct Seal {
    pub firewall: Arc<Firewall>,
    pub feed: Feed,
}

impl Seal {
    /// Seals one message and reports each thing withheld from it.
    pub fn seal(&self, json: String, origin: &Origin) -> Egress {
        let sealed = self.firewall.seal_json(json);
        if !sealed.findings.is_empty() {
            let answer: Value = serde_json::from_str(sealed.egress.as_str()).unwrap_or_default();
            for finding in sealed.findings {
                self.feed.publish(|| Event::Redacted(redaction(finding, origin, &answer)));
            }
        }
        sealed.egress
    }
}

fn redaction(finding: Finding, origin: &Origin, answer: &Value) -> Redaction {
    Redaction {
        session: origin.session.clone(),
        tool: origin.tool.clone(),
        tab: tab_of_place(answer, &finding.place).or_else(|| origin.tab.clone()),
        surface: match finding.surface {
            Place::Url => Surface::Url,
            Place::Title => Surface::Title,
            Place::Text => Surface::Text,
            Place::Error => Surface::Error,
        },
        place: finding.place,
        rule: finding.rule,
        count: finding.count,
        tag: finding.tag,
    }
}

/// Writes to one client, as fast as it reads.
pub(crate) struct Outbox<W> {
    stream: W,
    waiting: BytesMut,
    /// Since when the queue has been full without the client taking anything.
    full_since: Option<Instant>,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub fn new(stream: W) -> Self {
        Self { stream, waiting: BytesMut::new(), full_since: None }
    }

    /// Puts one message at the end of the queue.
    pub fn push(&mut self, message: &Egress) {
        self.waiting.reserve(message.as_str().len() + 1);
        self.waiting.extend_from_slice(message.as_str().as_bytes());
        self.waiting.extend_from_slice(b"\n");
        if self.is_full() && self.full_since.is_none() {
            self.full_since = Some(Instant::now());
        }
    }

    /// Whether everything was written.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether so much waits that no more should be asked for.
    pub fn is_full(&self) -> bool {
        self.waiting.len() > FULL
    }

    /// Writes some of what waits. May be dropped at any point.
    pub async fn write_some(&mut self) -> std::io::Result<()> {
        let written = self.stream.write(&self.waiting).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.waiting.advance(written);
        self.full_since = self.is_full().then(Instant::now);
        if self.waiting.is_empty() {
            // Given back, so that a large answer does not stay with an idle connection.
            self.waiting = BytesMut::new();
        }
        Ok(())
    }

    /// When the client will have left a full queue alone for too long.
    pub fn gives_up_at(&self) -> Option<Instant> {
        self.full_since.map(|since| since + STALL)
    }

    /// Writes all that waits, unless the client does not take it, and says that nothing follows.
    pub async fn finish(&mut self) {
        while !self.is_empty() {
            match tokio::time::timeout(STALL, self.write_some()).await {
                Ok(Ok(())) => {}
                // Whoever ends here has nothing to say to a client that does not listen.
                Ok(Err(_)) | Err(_) => return,
            }
        }
        let _ = self.stream.shutdown().await;
    }
}
