//! Sessions of one's own, for several agents behind one connection.

use serde_json::json;
use tabwarden_domain::{ClosedBecause, Refusal, SessionId};

use super::{Effect, Tool, object};
use crate::answer::Reply;
use crate::arguments::{Argument, Kind, SESSION};

/// `browser_session_open`.
pub(super) static OPEN: Tool = Tool {
    name: "browser_session_open",
    about: "Open a session of its own for a sub-agent, with its own allowed domains. Pass the id that comes back as \
            session_id in its calls.",
    arguments: &[
        Argument { name: "label", kind: Kind::Text, required: true, about: "A short name that the user will see" },
        SESSION,
    ],
    output: || {
        object(json!({ "session": object(json!({ "id": { "type": "string" }, "label": { "type": "string" } })) }))
    },
    effect: Effect::Adds,
    run: |call, arguments| {
        Box::pin(async move {
            let (id, label) = call.open_session(arguments.text("label").unwrap_or_default())?;
            let (id, label) = (json!(id.as_str()), json!(label));
            Ok(Reply::written(format!("{{\"session\":{{\"id\":{id},\"label\":{label}}}}}")))
        })
    },
};

/// `browser_session_close`.
pub(super) static CLOSE: Tool = Tool {
    name: "browser_session_close",
    about: "End one of your sessions. Its tabs stay open.",
    arguments: &[Argument { name: "session_id", kind: Kind::Text, required: true, about: "The session to end" }],
    output: || object(json!({ "closed": { "type": "boolean" }, "session_id": { "type": "string" } })),
    effect: Effect::Ends,
    run: |call, _| {
        Box::pin(async move {
            // The pipeline has already seen to it that the session that is named is one of the caller's own.
            let id: &SessionId = call.session();
            match call.desk().visit(|desk| desk.close(id, ClosedBecause::Asked)) {
                true => Ok(Reply::written(format!("{{\"closed\":true,\"session_id\":{}}}", json!(id.as_str())))),
                false => Err(Refusal::NotInitialized),
            }
        })
    },
};
