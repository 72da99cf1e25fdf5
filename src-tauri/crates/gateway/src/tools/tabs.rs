//! The tabs surface: list, get, open, close.

use serde_json::{Value, json};
use tabwarden_browser::OpenTab;
use tabwarden_domain::{OpenUrl, Refusal, TabId, UrlError};

use super::{Effect, Tool, object};
use crate::answer::{self, Reply, refusal};
use crate::arguments::{Argument, Arguments, Kind, SESSION};
use crate::question::Verdict;

const TAB: Argument = Argument { name: "tab_id", kind: Kind::Text, required: true, about: "From browser_tab_list" };

fn tab_schema(more: &[(&str, Value)]) -> Value {
    let mut fields = json!({
        "id": { "type": "string" },
        "title": { "type": "string" },
        "url": { "type": "string" },
        "active": { "type": "boolean" },
        "window_id": { "type": "string" },
    });
    for (name, schema) in more {
        fields[*name] = schema.clone();
    }
    object(fields)
}

/// `browser_tab_list`.
pub(super) static LIST: Tool = Tool {
    name: "browser_tab_list",
    about: "List all open tabs in window and strip order. active means selected in its window. Secrets in titles and \
            URLs read [REDACTED].",
    arguments: &[SESSION],
    output: || object(json!({ "tabs": { "type": "array", "items": tab_schema(&[]) } })),
    effect: Effect::Reads,
    run: |call, _| {
        Box::pin(async move {
            call.browser_runs().await?;
            call.browser().windows().map(answer::tab_list).map_err(refusal)
        })
    },
};

/// `browser_tab_get`.
pub(super) static GET: Tool = Tool {
    name: "browser_tab_get",
    about: "Get one tab, with whether it plays sound, is muted (null where unknown) and is loading.",
    arguments: &[TAB, SESSION],
    output: || {
        let maybe = json!({ "type": ["boolean", "null"] });
        let more = [("audible", maybe.clone()), ("muted", maybe), ("loading", json!({ "type": "boolean" }))];
        object(json!({ "tab": tab_schema(&more) }))
    },
    effect: Effect::Reads,
    run: |call, arguments| {
        Box::pin(async move {
            let tab = tab(&arguments)?;
            call.browser_runs().await?;
            call.browser().tab(&tab).map(|tab| answer::tab_details(&tab)).map_err(refusal)
        })
    },
};

/// `browser_tab_new`.
pub(super) static NEW: Tool = Tool {
    name: "browser_tab_new",
    about: "Open a tab, on url or else on the new-tab page. The url's host must be in your allowed domains: call \
            browser_set_allowed_domains first. Answers at once, without waiting for the page.",
    arguments: &[
        Argument { name: "url", kind: Kind::Text, required: false, about: "http, https or about:blank" },
        Argument {
            name: "active",
            kind: Kind::Flag,
            required: false,
            about: "Select it (default true); the user at work keeps the focus",
        },
        Argument { name: "window_id", kind: Kind::Text, required: false, about: "Default: the focused window" },
        SESSION,
    ],
    output: || object(json!({ "tab": tab_schema(&[("loading", json!({ "type": "boolean" }))]) })),
    effect: Effect::Adds,
    run: |call, arguments| {
        Box::pin(async move {
            let url = arguments.text("url").map(open_url).transpose()?;
            let permit = call.desk().visit(|desk| desk.authorize_open(call.session(), url))?;
            call.browser_runs().await?;
            let open = OpenTab { permit, active: arguments.flag("active").unwrap_or(true), window: arguments.window() };
            call.browser().open_tab(open).await.map(|tab| answer::opened_tab(&tab)).map_err(refusal)
        })
    },
};

/// `browser_tab_close`.
pub(super) static CLOSE: Tool = Tool {
    name: "browser_tab_close",
    about: "Close a tab. Closing the last tab of the last window asks the user, which can take a minute; \
            closed is false with a reason if it stays open.",
    arguments: &[TAB, SESSION],
    output: || {
        json!({
            "type": "object",
            "properties": {
                "closed": { "type": "boolean" },
                "tab_id": { "type": "string" },
                "reason": { "enum": ["kept_by_user", "no_answer", "no_user"] },
            },
            "required": ["closed", "tab_id"],
        })
    },
    effect: Effect::Ends,
    run: |call, arguments| {
        Box::pin(async move {
            let tab = tab(&arguments)?;
            call.browser_runs().await?;
            let seen = call.browser().tab(&tab).map_err(refusal)?;
            let permit = call.desk().visit(|desk| desk.authorize_write(call.session(), tab.clone()))?;
            let verdict = call.closing().close(call, permit, seen.map(|tab| tab.title)).await?;
            Ok(closed(&tab, verdict))
        })
    },
};

fn closed(tab: &TabId, verdict: Verdict) -> Reply {
    let id = Value::from(tab.as_str());
    match verdict {
        Verdict::Closed => Reply::written(format!("{{\"closed\":true,\"tab_id\":{id}}}")),
        Verdict::Kept(reason) => {
            let reason = reason.as_str();
            let json = format!("{{\"closed\":false,\"tab_id\":{id},\"reason\":\"{reason}\"}}");
            Reply { kept: Some(reason), ..Reply::written(json) }
        }
    }
}

fn tab(arguments: &Arguments) -> Result<TabId, Refusal> {
    // It is declared as required, so that what has no tab_id never comes here.
    arguments.tab().ok_or_else(|| Refusal::Internal { what: "a required argument was not checked".to_owned() })
}

fn open_url(text: &str) -> Result<OpenUrl, Refusal> {
    OpenUrl::parse(text).map_err(|error| Refusal::InvalidParams {
        argument: "url".to_owned(),
        problem: error.to_string(),
        expected: match error {
            UrlError::Invalid => "an absolute URL, as https://example.com/".to_owned(),
            UrlError::TooLong => "a URL of at most 64 KiB".to_owned(),
            UrlError::Scheme => "an http or https URL, or about:blank".to_owned(),
        },
    })
}
