//! Anything that a page could have said.

use std::fmt;

/// A value that came from the browser and has not passed the firewall.
///
/// It can be looked into only by [`Raw::expose`], which stands in the few places that hand the value to the firewall
/// (or decide something without letting it out). There is no `Serialize`, `Display` or `Deref`, so that no answer, log
/// line or window can take it by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw<T>(T);

impl<T> Raw<T> {
    /// Marks a value as coming from outside.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for a caller that seals what it makes of it, or lets nothing of it out.
    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Changes the value without letting it out.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Raw<U> {
        Raw(f(self.0))
    }
}

impl<T> fmt::Debug for Raw<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raw(…)")
    }
}
