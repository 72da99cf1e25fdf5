//! The domains that a session may reach.

use std::fmt;

use url::{Host, Url};

use crate::OpenUrl;

/// How many patterns a session may name.
pub const MAX_DOMAINS: usize = 256;

/// The longest pattern that an error repeats, in characters.
const LONGEST_SHOWN: usize = 80;

/// One pattern, as `example.com` (that host and its subdomains), `=example.com` (that host alone), `*.example.com`
/// (its subdomains alone); with an optional scheme before and an optional port behind. IP addresses match exactly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainPattern {
    scheme: Option<Scheme>,
    reach: Reach,
    host: Host<String>,
    port: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scheme {
    Http,
    Https,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    HostAndSubdomains,
    HostAlone,
    SubdomainsAlone,
}

/// Why a pattern was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AccessError {
    /// A pattern cannot be read.
    #[error("'{pattern}' is not a domain pattern: {problem}")]
    Pattern {
        /// The pattern, shortened.
        pattern: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The list is too long.
    #[error("{count} patterns are more than {MAX_DOMAINS}")]
    TooMany {
        /// How many there were.
        count: usize,
    },
}

impl DomainPattern {
    /// Reads and normalises a pattern.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        // A long one is only counted: cut off, a secret in it might no longer be known as one.
        let shown = || match text.chars().count() {
            ..=LONGEST_SHOWN => text.to_owned(),
            count => format!("(a text of {count} characters)"),
        };
        let wrong = |problem| AccessError::Pattern { pattern: shown(), problem };
        let rest = text.trim();
        let (scheme, rest) = match rest.split_once("://") {
            None => (None, rest),
            Some((s, rest)) if s.eq_ignore_ascii_case("http") => (Some(Scheme::Http), rest),
            Some((s, rest)) if s.eq_ignore_ascii_case("https") => (Some(Scheme::Https), rest),
            Some(_) => return Err(wrong("only http:// and https:// may stand before it")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (reach, rest) = if let Some(rest) = rest.strip_prefix('=') {
            (Reach::HostAlone, rest)
        } else if let Some(rest) = rest.strip_prefix("*.") {
            (Reach::SubdomainsAlone, rest)
        } else {
            (Reach::HostAndSubdomains, rest)
        };
        if rest.is_empty() {
            return Err(wrong("it names no host"));
        }
        if rest.contains('*') {
            return Err(wrong("* may stand only at the front, as *.example.com"));
        }
        if rest.contains(['/', '?', '#', '@', '\\', ' ', '\t', '%', ',']) {
            return Err(wrong("it takes a host and a port, no path and no user"));
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port: u16 = port.parse().map_err(|_| wrong("the port is not a number from 1 to 65535"))?;
                if port == 0 {
                    return Err(wrong("the port is not a number from 1 to 65535"));
                }
                (host, Some(port))
            }
            _ => (rest, None),
        };
        let bare = host.strip_suffix('.').unwrap_or(host);
        if bare.is_empty() || bare.starts_with('.') || bare.ends_with('.') || bare.contains("..") {
            return Err(wrong("the host is not valid"));
        }
        let host = Host::parse(bare).map_err(|_| wrong("the host is not valid"))?;
        if let (Host::Ipv4(_) | Host::Ipv6(_), Reach::SubdomainsAlone) = (&host, reach) {
            return Err(wrong("an IP address has no subdomains"));
        }
        Ok(Self { scheme, reach, host, port })
    }

    /// Whether the pattern covers an address.
    pub fn covers(&self, url: &Url) -> bool {
        let scheme_fits = match self.scheme {
            None => matches!(url.scheme(), "http" | "https"),
            Some(Scheme::Http) => url.scheme() == "http",
            Some(Scheme::Https) => url.scheme() == "https",
        };
        let port_fits = match self.port {
            // A pattern without a port means the schemes' own ports and every other: `localhost` is `localhost:3000`.
            None => true,
            port => port == url.port_or_known_default(),
        };
        scheme_fits && port_fits && self.covers_host(url)
    }

    fn covers_host(&self, url: &Url) -> bool {
        match (&self.host, url.host()) {
            (Host::Ipv4(a), Some(Host::Ipv4(b))) => *a == b,
            (Host::Ipv6(a), Some(Host::Ipv6(b))) => *a == b,
            (Host::Domain(mine), Some(Host::Domain(theirs))) => {
                let theirs = theirs.strip_suffix('.').unwrap_or(theirs);
                let same = theirs == mine;
                let below = theirs.strip_suffix(mine.as_str()).is_some_and(|front| front.ends_with('.'));
                match self.reach {
                    Reach::HostAlone => same,
                    Reach::SubdomainsAlone => below,
                    Reach::HostAndSubdomains => same || below,
                }
            }
            _ => false,
        }
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Some(Scheme::Http) => f.write_str("http://")?,
            Some(Scheme::Https) => f.write_str("https://")?,
            None => {}
        }
        match self.reach {
            Reach::HostAlone => f.write_str("=")?,
            Reach::SubdomainsAlone => f.write_str("*.")?,
            Reach::HostAndSubdomains => {}
        }
        write!(f, "{}", self.host)?;
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// A session's list. Empty means nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllowedDomains(Vec<DomainPattern>);

impl AllowedDomains {
    /// Reads a list, normalises it and drops what stands in it twice. One bad pattern refuses the whole list.
    pub fn parse<S: AsRef<str>>(patterns: &[S]) -> Result<Self, AccessError> {
        if patterns.len() > MAX_DOMAINS {
            return Err(AccessError::TooMany { count: patterns.len() });
        }
        let mut list = Vec::with_capacity(patterns.len());
        for text in patterns {
            let pattern = DomainPattern::parse(text.as_ref())?;
            if !list.contains(&pattern) {
                list.push(pattern);
            }
        }
        Ok(Self(list))
    }

    /// Whether the list covers an address. `about:blank` belongs to no domain and is always covered.
    pub fn covers(&self, url: &OpenUrl) -> bool {
        url.is_blank() || self.0.iter().any(|pattern| pattern.covers(url.url()))
    }

    /// The patterns, normalised.
    pub fn to_strings(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_normalised() {
        fn check(text: &str, expect: Option<&str>) {
            assert_eq!(DomainPattern::parse(text).ok().map(|p| p.to_string()).as_deref(), expect, "{text}");
        }
        check("Example.COM", Some("example.com"));
        check("example.com.", Some("example.com"));
        check("=example.com", Some("=example.com"));
        check("*.example.com", Some("*.example.com"));
        check("https://example.com/", Some("https://example.com"));
        check("localhost:3000", Some("localhost:3000"));
        check("bücher.example", Some("xn--bcher-kva.example"));
        check("127.0.0.1", Some("127.0.0.1"));
        check("[::1]:8080", Some("[::1]:8080"));
        check("[::1]", Some("[::1]"));
        for bad in [
            "",
            "..",
            ".example.com",
            "a..example",
            " ",
            "*",
            "*.",
            "=",
            "exa mple.com",
            "ftp://example.com",
            "example.com/path",
            "user@example.com",
            "example.com:0",
            "example.com:99999",
            "a.*.com",
            "*.127.0.0.1",
            "::1",
            "example.com:",
            "%65xample.com",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn matching_is_on_the_parsed_host() {
        fn check(pattern: &str, url: &str, expect: bool) {
            let list = AllowedDomains::parse(&[pattern]).expect(pattern);
            assert_eq!(list.covers(&OpenUrl::parse(url).expect(url)), expect, "{pattern} and {url}");
        }
        check("example.com", "https://example.com/", true);
        check("example.com", "https://www.example.com/", true);
        check("example.com", "https://EXAMPLE.com./", true);
        check("example.com", "https://ex%61mple.com/", true);
        check("example.com", "https://example.com:8443/", true);
        check("example.com", "https://notexample.com/", false);
        check("example.com", "https://example.com.evil.example/", false);
        check("example.com", "https://example.com@evil.example/", false);
        check("=example.com", "https://www.example.com/", false);
        check("*.example.com", "https://example.com/", false);
        check("*.example.com", "https://a.b.example.com/", true);
        check("https://example.com", "http://example.com/", false);
        check("localhost:3000", "http://localhost:3000/", true);
        check("localhost:3000", "http://localhost:3001/", false);
        check("example.com:443", "https://example.com/", true);
        check("127.0.0.1", "http://127.0.0.1:99/", true);
        check("127.0.0.1", "http://0x7f.1/", true);
        check("127.0.0.1", "http://127.0.0.2/", false);
        check("example.com", "about:blank", true);
    }

    #[test]
    fn an_empty_list_covers_nothing_and_a_bad_pattern_refuses_the_list() {
        let none = AllowedDomains::default();
        assert!(!none.covers(&OpenUrl::parse("https://example.com").expect("url")));
        assert!(AllowedDomains::parse(&["example.com", "*"]).is_err());
        assert!(AllowedDomains::parse(&vec!["a.example"; MAX_DOMAINS + 1]).is_err());
        assert_eq!(AllowedDomains::parse(&["a.example", "A.example"]).expect("list").to_strings(), ["a.example"]);
    }
}
