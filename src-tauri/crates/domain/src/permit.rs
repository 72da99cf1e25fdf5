//! Permits: proof that the desk looked at what a session wants and let it pass.
//!
//! A permit is taken by value by the call that it allows, and only this crate can make one.

use url::Url;

use crate::TabId;

/// Leave to change one tab.
#[derive(Debug)]
pub struct WritePermit {
    tab: TabId,
}

impl WritePermit {
    pub(crate) fn new(tab: TabId) -> Self {
        Self { tab }
    }

    /// The person at the window may change every tab.
    pub fn for_the_person(tab: TabId) -> Self {
        Self { tab }
    }

    /// The tab that may be changed.
    pub fn tab(&self) -> &TabId {
        &self.tab
    }
}

/// Leave to open a page (or the browser's new-tab page).
#[derive(Debug)]
pub struct NavPermit {
    url: Option<OpenUrl>,
}

impl NavPermit {
    pub(crate) fn new(url: Option<OpenUrl>) -> Self {
        Self { url }
    }

    /// The address that may be opened; `None` is the new-tab page.
    pub fn url(&self) -> Option<&OpenUrl> {
        self.url.as_ref()
    }
}

/// An address of a kind that may be opened at all: http, https or about:blank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenUrl(Url);

/// Why an address cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlError {
    /// It is not a URL at all.
    #[error("is not a valid URL")]
    Invalid,
    /// It is longer than 64 KiB.
    #[error("is longer than 64 KiB")]
    TooLong,
    /// It is a URL of another kind.
    #[error("has a scheme that cannot be opened")]
    Scheme,
}

/// The longest address that is opened, in bytes. Browsers show longer ones, but no site needs them, and each list of tabs
/// would carry them.
const LONGEST: usize = 64 * 1024;

impl OpenUrl {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > LONGEST {
            return Err(UrlError::TooLong);
        }
        let url = Url::parse(text).map_err(|_| UrlError::Invalid)?;
        match url.scheme() {
            "http" | "https" if url.host().is_some() => Ok(Self(url)),
            "about" if url.path() == "blank" => Ok(Self(url)),
            _ => Err(UrlError::Scheme),
        }
    }

    /// The address as the browser will get it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Its parts.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Whether it is `about:blank`, which belongs to no domain.
    pub fn is_blank(&self) -> bool {
        self.0.scheme() == "about"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_and_blank_can_be_opened() {
        fn check(text: &str, expect: Result<&str, UrlError>) {
            assert_eq!(OpenUrl::parse(text).as_ref().map(OpenUrl::as_str).map_err(|e| *e), expect, "{text}");
        }
        check("https://example.com", Ok("https://example.com/"));
        check("HTTP://EXAMPLE.com:80/a b", Ok("http://example.com/a%20b"));
        check("about:blank", Ok("about:blank"));
        check("about:blank#x", Ok("about:blank#x"));
        check("about:version", Err(UrlError::Scheme));
        check("javascript:alert(1)", Err(UrlError::Scheme));
        check("data:text/html,x", Err(UrlError::Scheme));
        check("blob:https://example.com/1", Err(UrlError::Scheme));
        check("file:///etc/passwd", Err(UrlError::Scheme));
        check("chrome://settings", Err(UrlError::Scheme));
        check("view-source:https://example.com", Err(UrlError::Scheme));
        check("example.com", Err(UrlError::Invalid));
        check("", Err(UrlError::Invalid));
        check(&format!("https://example.com/{}", "a".repeat(LONGEST)), Err(UrlError::TooLong));
        check("https://", Err(UrlError::Invalid));
        check("http://[::1", Err(UrlError::Invalid));
    }
}
