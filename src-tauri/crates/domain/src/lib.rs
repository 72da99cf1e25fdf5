//! What Tabwarden is about, without any input or output: who the agents are, what a tab is, what a session may do.
//!
//! Nothing in here reads a clock, a socket or a file. Time is passed in, and what changed is handed back as
//! [`Event`]s, so that every rule can be tested without waiting and without a browser.

mod access;
mod desk;
mod event;
mod id;
mod one_line;
mod permit;
mod raw;
mod refusal;
mod session;
mod tab;

pub use access::{AccessError, AllowedDomains, DomainPattern, MAX_DOMAINS};
pub use desk::{Desk, GRACE, Introduction};
pub use event::{BrowserState, CallRecord, ClosedBecause, Event, Outcome, Redaction, Surface};
pub use id::{CallId, PrincipalId, SessionId, TabId, WindowId};
pub use one_line::one_line;
pub use permit::{NavPermit, OpenUrl, UrlError, WritePermit};
pub use raw::Raw;
pub use refusal::Refusal;
pub use session::{Client, Era, Peer, Presence, Session, Via};
pub use tab::{Tab, Window, WindowKind};
