//! Identifiers. Each kind is a type of its own, and none converts into another.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// Writes `n` in lowercase base 36.
fn base36(mut n: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut out = Vec::new();
    loop {
        out.push(DIGITS[(n % 36) as usize]);
        n /= 36;
        if n == 0 {
            break;
        }
    }
    out.reverse();
    String::from_utf8_lossy(&out).into_owned()
}

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Makes an id from a random number. The caller sees to it that no number comes twice.
            pub fn from_random(n: u64) -> Self {
                Self(format!(concat!($prefix, "{}"), base36(n)).into())
            }

            /// Takes an id as somebody sent it. It names something only if that is found under it.
            pub fn from_wire(text: &str) -> Self {
                Self(text.into())
            }

            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

opaque_id!(
    /// A tab, for as long as it lives. Never used again during one launch of the browser.
    TabId,
    "tab_"
);
opaque_id!(
    /// A browser window, for as long as it lives.
    WindowId,
    "win_"
);
opaque_id!(
    /// One agent's session.
    SessionId,
    "ses_"
);

/// Whoever stands behind a transport and owns its sessions: one connection, or one bearer token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PrincipalId(pub u64);

/// One `tools/call`, numbered from the start of the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CallId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_prefixed_lowercase_base_36() {
        assert_eq!(TabId::from_random(0).as_str(), "tab_0");
        assert_eq!(TabId::from_random(35).as_str(), "tab_z");
        assert_eq!(WindowId::from_random(36).as_str(), "win_10");
        assert_eq!(SessionId::from_random(u64::MAX).as_str(), "ses_3w5e11264sgsf");
    }
}
