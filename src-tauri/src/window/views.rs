//! The one place that turns the domain into what the window sees.

use std::time::{Duration, SystemTime};

use tabwarden_browser::BrowserError;
use tabwarden_contract::{ActError, BrowserView, EraView, OutcomeView, SessionView, TabView, ViaView, WindowView};
use tabwarden_domain::{
    BrowserState, Era, Outcome, Presence, Session, Surface, Tab, Via, Window, WindowKind, one_line,
};

use crate::feed::{Counted, Noted};

/// The longest title that is shown, in characters.
const MAX_TITLE: usize = 1000;

/// Milliseconds since 1970.
pub fn millis(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// The browser.
pub fn browser(state: &BrowserState) -> BrowserView {
    match state.clone() {
        BrowserState::Stopped => BrowserView::Stopped,
        BrowserState::Starting => BrowserView::Starting,
        BrowserState::Running { product, pid, companion, no_sandbox } => {
            BrowserView::Running { product, pid, companion, no_sandbox }
        }
        BrowserState::Failed { reason } => BrowserView::Failed { reason },
    }
}

/// A window.
pub fn window(window: &Window) -> WindowView {
    WindowView {
        id: window.id.to_string(),
        popup: window.kind == WindowKind::Popup,
        focused: window.focused,
        tabs: window.tabs.iter().map(|tab| tab.id.to_string()).collect(),
    }
}

/// A tab, with what is known of it beside what the browser says.
pub fn tab(tab: &Tab, noted: Option<&Noted>) -> TabView {
    TabView {
        id: tab.id.to_string(),
        title: one_line(&tab.title, MAX_TITLE),
        url: tab.url.clone(),
        domain: host(&tab.url),
        favicon: tab.favicon.clone().filter(|icon| icon.starts_with("data:image/")),
        active: tab.active,
        loading: tab.loading,
        audible: tab.audible,
        muted: tab.muted,
        discarded: tab.discarded,
        opened_by: noted.and_then(|n| n.opened_by.as_ref()).map(|(_, label)| label.clone()),
        last: noted.and_then(|n| n.last.clone()),
        withheld: noted.map_or(0, |n| n.withheld),
    }
}

/// The host of an address, empty where it has none.
fn host(url: &str) -> String {
    url::Url::parse(url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A session, with what was counted of it.
pub fn session(session: &Session, counted: Option<&Counted>, tabs: usize) -> SessionView {
    SessionView {
        id: session.id.to_string(),
        label: session.label.clone(),
        client: session.client.name.clone(),
        client_version: session.client.version.clone(),
        era: match session.era {
            Era::Handshake => EraView::Handshake,
            Era::Stateless => EraView::Stateless,
        },
        via: match session.via {
            Via::Socket => ViaView::Socket,
            Via::Http => ViaView::Http,
        },
        pid: session.peer.as_ref().map(|peer| peer.pid),
        executable: session.peer.as_ref().and_then(|peer| peer.executable.as_ref()).map(|p| p.display().to_string()),
        since_ms: millis(session.since),
        domains: session.domains.to_strings(),
        connected: session.presence == Presence::Connected,
        calls: counted.map_or(0, |c| c.calls),
        refused: counted.map_or(0, |c| c.refused),
        tabs: u32::try_from(tabs).unwrap_or(u32::MAX),
    }
}

/// How a call ended.
pub fn outcome(outcome: &Outcome, duration: Duration) -> OutcomeView {
    let duration_ms = duration.as_secs_f64() * 1000.0;
    match outcome {
        Outcome::Done => OutcomeView::Done { duration_ms },
        Outcome::Refused { code, slug } => OutcomeView::Refused { code: *code, slug: (*slug).to_owned(), duration_ms },
        Outcome::Cancelled => OutcomeView::Cancelled { duration_ms },
    }
}

/// The name of a surface.
pub fn surface(surface: Surface) -> &'static str {
    match surface {
        Surface::Url => "url",
        Surface::Title => "title",
        Surface::Text => "text",
        Surface::Error => "error",
    }
}

/// Why an act of the person failed.
pub fn act_error(error: &BrowserError) -> ActError {
    let (code, message) = match error {
        BrowserError::Unavailable { reason } => ("browser_unavailable", reason.clone()),
        BrowserError::NoSuchTab(_) => ("tab_not_found", "This tab is already closed.".to_owned()),
        BrowserError::NoSuchWindow(_) => ("tab_not_found", "This window is already closed.".to_owned()),
        BrowserError::Busy(_) => ("internal", "The tab is between two states. Try again.".to_owned()),
        BrowserError::TimedOut(limit) => {
            ("timed_out", format!("The browser did not answer within {} s. Try again.", limit.as_secs()))
        }
        BrowserError::Refused(what) => ("internal", format!("The browser refused: {what}.")),
    };
    ActError { code: code.into(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_have_a_domain() {
        fn check(url: &str, expect: &str) {
            assert_eq!(host(url), expect, "{url}");
        }
        check("https://user:pw@App.Example:8443/x", "app.example");
        check("chrome://newtab/", "");
        check("about:blank", "");
        check("not a url", "");
    }
}
