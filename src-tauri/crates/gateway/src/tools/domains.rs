//! The allowed domains of a session.

use serde_json::json;
use tabwarden_domain::{AllowedDomains, MAX_DOMAINS, Refusal};

use super::{Effect, Tool, object};
use crate::answer::Reply;
use crate::arguments::{Argument, Kind, SESSION};

/// `browser_set_allowed_domains`.
pub(super) static SET: Tool = Tool {
    name: "browser_set_allowed_domains",
    about: "Replace the list of domains that you may open. example.com covers its subdomains, =example.com is that host \
            alone, *.example.com its subdomains alone. An empty list allows nothing.",
    arguments: &[
        Argument { name: "domains", kind: Kind::Texts, required: true, about: "The whole list, up to 256" },
        SESSION,
    ],
    output: || object(json!({ "domains": { "type": "array", "items": { "type": "string" } } })),
    effect: Effect::Sets,
    run: |call, arguments| {
        Box::pin(async move {
            let domains =
                AllowedDomains::parse(&arguments.texts("domains")).map_err(|error| Refusal::InvalidParams {
                    argument: "domains".to_owned(),
                    problem: format!("cannot be taken: {}", one_line(&error.to_string())),
                    expected: format!("up to {MAX_DOMAINS} patterns as example.com, =example.com or *.example.com"),
                })?;
            let set =
                call.desk().visit(|desk| desk.set_domains(call.session(), domains).map(AllowedDomains::to_strings));
            set.map(|domains| Reply::of(&json!({ "domains": domains }))).ok_or(Refusal::NotInitialized)
        })
    },
};

/// `browser_get_allowed_domains`.
pub(super) static GET: Tool = Tool {
    name: "browser_get_allowed_domains",
    about: "Get the list of domains that you may open.",
    arguments: &[SESSION],
    output: || object(json!({ "domains": { "type": "array", "items": { "type": "string" } } })),
    effect: Effect::Reads,
    run: |call, _| {
        Box::pin(async move {
            let domains = call
                .desk()
                .visit(|desk| desk.session(call.session().as_str()).map(|session| session.domains.to_strings()));
            domains.map(|domains| Reply::of(&json!({ "domains": domains }))).ok_or(Refusal::NotInitialized)
        })
    },
};

/// A pattern may hold line breaks; the sentence that quotes it may not.
fn one_line(problem: &str) -> String {
    problem.split_whitespace().collect::<Vec<_>>().join(" ")
}
