//! The MCP server that agents connect to.
//!
//! A request runs in one straight line, and each step is a file: [`socket`] and [`framing`] bring a line, `agent` knows
//! who speaks, `pipeline` takes a call through session, permit and browser, `answer` writes what came of it, and
//! `transport` seals it and is the only one to write.
//!
//! # Why the socket does without a protocol library
//!
//! `rmcp` serves HTTP here, where its session and stream handling are worth much. On the socket it is left out. What it
//! would bring there is dispatch over some ten methods. What it would need is a transport of ours that repairs lines,
//! ids, versions, error data and half-closed streams before and after it. Also it hands out results as values that it
//! serialises itself, so that every answer would be parsed again to be sealed. Reading the line ourselves and writing
//! each answer once is the smaller program, and the only writer demands an [`Egress`](tabwarden_firewall::Egress)
//! without exceptions.
//!
//! # Logs
//!
//! Nothing in this crate logs what came or went. `rmcp` does, on its own target: whoever sets up logging must keep the
//! target `rmcp` off.

mod agent;
mod answer;
mod arguments;
pub mod bridge;
mod connection;
mod desk;
mod events;
mod fault;
pub mod framing;
mod gateway;
mod http;
mod message;
mod peer;
mod pipeline;
mod protocol;
mod question;
mod resume;
pub mod socket;
mod tools;
mod transport;

pub use events::Stamped;
pub use gateway::{About, Gateway, MAX_CONNECTIONS, ShowRequests};
pub use http::Token;
pub use question::{ANSWER_LIMIT, Answer, Asked, Asker, Question};
pub use socket::{BoundSocket, SocketError, SocketPath, connect};
