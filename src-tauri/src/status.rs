//! Talking to the Tabwarden that runs: what it does, and bringing its window to the front.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// How long the running one may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// None runs.
    #[error("No Tabwarden answers on {} ({source}). Start it with `tabwarden`, or name its socket with --socket PATH.", path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not answer in time.
    #[error("The Tabwarden on {} did not answer within {} s. Stop it and start it again.", path.display(), LIMIT.as_secs())]
    Silent {
        /// The socket.
        path: PathBuf,
    },
    /// It answered something else.
    #[error("What answers on {} is not this version of Tabwarden. Stop it and start Tabwarden again.", path.display())]
    Foreign {
        /// The socket.
        path: PathBuf,
    },
    /// It has no window to show.
    #[error("A Tabwarden without a window already serves on {}. Stop it first, or name another socket with --socket PATH.", path.display())]
    NoWindow {
        /// The socket.
        path: PathBuf,
    },
}

/// Asks the running Tabwarden what it does.
pub async fn ask(socket: &Path) -> Result<Value, StatusError> {
    request(socket, "tabwarden/status").await
}

/// Brings the window of the running Tabwarden to the front.
pub async fn show_running(socket: &Path) -> Result<(), StatusError> {
    let answer = request(socket, "tabwarden/show").await?;
    match answer["shown"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(StatusError::NoWindow { path: socket.to_owned() }),
    }
}

async fn request(socket: &Path, method: &str) -> Result<Value, StatusError> {
    let path = || socket.to_owned();
    let exchange = async {
        let not_running = |source| StatusError::NotRunning { path: path(), source };
        let stream = tabwarden_gateway::connect(socket).await.map_err(not_running)?;
        let (reader, mut writer) = tokio::io::split(stream);
        let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": method }));
        writer.write_all(line.as_bytes()).await.map_err(not_running)?;
        let mut answer = String::new();
        BufReader::new(reader).read_line(&mut answer).await.map_err(not_running)?;
        serde_json::from_str::<Value>(&answer).map_err(|_| StatusError::Foreign { path: path() })
    };
    let answer = tokio::time::timeout(LIMIT, exchange).await.map_err(|_| StatusError::Silent { path: path() })??;
    match answer.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(StatusError::Foreign { path: path() }),
    }
}

/// The answer, for a person.
pub fn in_words(status: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let mut words = format!("Tabwarden {} on {}\n", text(&status["version"]), text(&status["socket"]));
    if let Some(http) = status["http"].as_str() {
        let _ = writeln!(words, "HTTP on {http}");
    }
    let browser = &status["browser"];
    let _ = match browser["state"].as_str() {
        Some("running") => writeln!(
            words,
            "{}, {} in {}",
            text(&browser["product"]),
            counted(&status["tabs"], "tab"),
            counted(&status["windows"], "window")
        ),
        Some("failed") => writeln!(words, "No browser: {}", text(&browser["reason"])),
        Some("starting") => writeln!(words, "The browser is starting."),
        _ => writeln!(words, "The browser does not run; the next call starts it."),
    };
    let sessions = status["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if sessions.is_empty() {
        words.push_str("No agent is connected.");
    }
    for session in sessions {
        let _ = writeln!(
            words,
            "- {} ({} {}, process {})",
            text(&session["label"]),
            text(&session["client"]),
            text(&session["client_version"]),
            session["pid"]
        );
    }
    words.trim_end().to_owned()
}

fn counted(count: &Value, noun: &str) -> String {
    let count = count.as_u64().unwrap_or(0);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_sentences() {
        let status = json!({
            "version": "0.1.0", "socket": "/run/s", "http": null,
            "browser": {"state": "running", "product": "Chromium 156"}, "tabs": 1, "windows": 2,
            "sessions": [{"label": "codex 2", "client": "codex", "client_version": "1", "pid": 7}],
        });
        let expect = "Tabwarden 0.1.0 on /run/s\nChromium 156, 1 tab in 2 windows\n- codex 2 (codex 1, process 7)";
        assert_eq!(in_words(&status), expect);
    }

    #[tokio::test]
    async fn nobody_on_the_socket_is_said_plainly() {
        let dir = tempfile::tempdir().expect("folder");
        let error = ask(&dir.path().join("none")).await.expect_err("nobody");
        assert!(matches!(error, StatusError::NotRunning { .. }));
        assert!(error.to_string().contains("Start it with `tabwarden`"), "{error}");
    }
}
