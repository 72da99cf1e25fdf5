//! What can be wrong with a message before it is anybody's call.

/// Why a message is not served. The domain's [`tabwarden_domain::Refusal`] is for calls; this is for what comes before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// The line is not JSON.
    #[error("the line is not JSON")]
    NotJson,
    /// The line is JSON but no JSON-RPC message.
    #[error("the line is not a JSON-RPC 2.0 message")]
    NotAMessage,
    /// The line holds several messages.
    #[error("the line is a batch")]
    Batch,
    /// The id is neither a string nor a number, or too long.
    #[error("the id is not a short string or a number")]
    BadId,
    /// The parameters are not an object.
    #[error("params is not an object")]
    BadParams,
    /// The line was too long and was dropped.
    #[error("message larger than 4 MiB")]
    TooLong,
    /// No such method.
    #[error("there is no method {method}")]
    UnknownMethod {
        /// The method as it was sent, shortened.
        method: String,
    },
    /// The version that a request names is not spoken here.
    #[error("protocol version {requested} is not spoken here")]
    UnsupportedVersion {
        /// The version as it was sent, shortened.
        requested: String,
    },
    /// There are too many connections already.
    #[error("all connections are in use")]
    TooManyConnections,
    /// The app went away while a request was with it. Only the bridge says so.
    #[error("Tabwarden stopped before it answered")]
    AppGone,
    /// The app does not run and could not be started. Only the bridge says so.
    #[error("Tabwarden is not running")]
    NoApp {
        /// The socket on which nobody answers.
        path: String,
    },
}
