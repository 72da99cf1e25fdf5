//! The log: stderr, one line an entry, each line sealed.

use std::io::{self, Write};
use std::sync::Arc;

use tabwarden_firewall::{Firewall, Surface};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// What is logged where nothing else is asked for.
const DEFAULT: &str = "info";

/// Targets that print payloads, and are off whatever is asked for.
const NEVER: [&str; 3] = ["rmcp=off", "chromiumoxide=off", "tungstenite=off"];

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("The log filter '{filter}' cannot be read ({source}). Use error, warn, info, debug or trace.")]
pub struct LogError {
    filter: String,
    source: tracing_subscriber::filter::ParseError,
}

/// Starts the log. `filter` wins over `RUST_LOG`.
pub fn start(filter: Option<&str>, firewall: Arc<Firewall>) -> Result<(), LogError> {
    let asked = filter.map(str::to_owned).or_else(|| std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty()));
    let asked = asked.unwrap_or_else(|| DEFAULT.to_owned());
    let mut parsed = EnvFilter::try_new(&asked).map_err(|source| LogError { filter: asked.clone(), source })?;
    for directive in NEVER {
        if let Ok(directive) = directive.parse() {
            parsed = parsed.add_directive(directive);
        }
    }
    // A second start in one process (tests) keeps the first one's log.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_ansi(false)
        .with_writer(SealedStderr { firewall })
        .try_init();
    Ok(())
}

/// Writes nothing but what the firewall has sealed.
struct SealedStderr {
    firewall: Arc<Firewall>,
}

/// One log line on its way.
struct Line<'a> {
    firewall: &'a Firewall,
    bytes: Vec<u8>,
}

impl<'a> MakeWriter<'a> for SealedStderr {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { firewall: &self.firewall, bytes: Vec::new() }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let sealed = self.firewall.seal_text(Surface::Text, &String::from_utf8_lossy(&self.bytes));
        // Where stderr is gone, there is nowhere left to say so.
        let _ = io::stderr().write_all(sealed.egress.as_str().as_bytes());
    }
}
