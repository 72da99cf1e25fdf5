//! Who an agent is.

use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use crate::{AllowedDomains, PrincipalId, SessionId};

/// The protocol era in which a client speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// `initialize` opens the conversation.
    Handshake,
    /// Every request says who it is.
    Stateless,
}

/// The transport by which a client came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// The local socket (or named pipe).
    Socket,
    /// HTTP on the loopback interface.
    Http,
}

/// What the client says of itself. Not to be trusted, only shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Client {
    /// The client's name.
    pub name: String,
    /// The client's version.
    pub version: String,
}

/// The process at the other end of a socket, as the operating system tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its process id.
    pub pid: u32,
    /// Its executable, where that can be read.
    pub executable: Option<PathBuf>,
}

/// Whether a session's connection is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It is connected.
    Connected,
    /// The connection dropped; the session ends at this moment unless it comes back.
    Gone {
        /// When the session ends.
        until: Instant,
    },
}

/// One agent's session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub principal: PrincipalId,
    /// A short name to call it by, unique among the open sessions.
    pub label: String,
    /// What the client says of itself.
    pub client: Client,
    /// The era in which it speaks.
    pub era: Era,
    /// The transport by which it came.
    pub via: Via,
    /// The process behind it, where that is known.
    pub peer: Option<Peer>,
    /// When it was opened.
    pub since: SystemTime,
    /// The domains that it may reach. A new session's list is empty, and empty means nothing.
    pub domains: AllowedDomains,
    /// Whether its connection is there.
    pub presence: Presence,
}
