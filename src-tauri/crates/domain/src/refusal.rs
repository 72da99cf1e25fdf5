//! Why a call was not carried out.

use std::time::Duration;

use crate::TabId;

/// Every reason for which a call is refused or fails. The gateway turns each into its error code in one place.
///
/// Texts in here are sealed like everything else before they leave.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The connection never said who it is.
    #[error("this connection has not called initialize")]
    NotInitialized,
    /// The call names a tool that does not exist.
    #[error("there is no tool {name}")]
    UnknownTool {
        /// The name as it was sent, shortened.
        name: String,
    },
    /// An argument is missing, mistyped, unknown or not usable.
    #[error("{argument}: {problem}")]
    InvalidParams {
        /// The argument's name.
        argument: String,
        /// What is wrong with it.
        problem: String,
        /// What would be right.
        expected: String,
    },
    /// Something failed inside.
    #[error("internal failure: {what}")]
    Internal {
        /// What failed.
        what: String,
    },
    /// The tab is there but between two states; trying again helps.
    #[error("tab {tab} is between two states")]
    TabBusy {
        /// The tab.
        tab: TabId,
    },
    /// There is no such tab.
    #[error("there is no tab {tab}")]
    TabNotFound {
        /// The id as it was sent.
        tab: TabId,
    },
    /// The address lies outside the session's allowed domains.
    #[error("{host} is outside this session's allowed domains")]
    DomainNotAllowed {
        /// The host that was refused.
        host: String,
        /// The session's list.
        allowed: Vec<String>,
    },
    /// The page or the browser did not answer in time.
    #[error("no answer within {} ms", limit.as_millis())]
    TimedOut {
        /// The call's limit.
        limit: Duration,
    },
    /// The browser does not run and could not be started.
    #[error("the browser is not available: {reason}")]
    BrowserUnavailable {
        /// What stands in the way, and what to do.
        reason: String,
    },
}
