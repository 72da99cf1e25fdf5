//! Starting Chromium: its profile folder, its arguments, its pipes, and what it says when it does not start.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::{mpsc, watch};

use crate::link::{InOrder, Link, LinkEvent};
use crate::{BrowserError, find, profile};

/// How long Chromium may take from its start to its first answer.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(30);

/// How many of its last lines on stderr are kept, to say why it ended.
const KEPT_LINES: usize = 20;

/// How long its last lines are awaited once it has ended. A process that it left behind may keep them open.
const WORDS_LIMIT: Duration = Duration::from_secs(1);

/// A Chromium that was just started.
pub(crate) struct Launched {
    pub(crate) child: Child,
    pub(crate) link: Link,
    pub(crate) events: mpsc::UnboundedReceiver<LinkEvent>,
    pub(crate) last_words: LastWords,
    pub(crate) no_sandbox: bool,
}

/// The last lines that Chromium wrote to stderr. They may hold addresses, so they are only searched, never shown.
pub(crate) struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Turns true with the last of them.
    said: watch::Receiver<bool>,
}

impl LastWords {
    fn follow(stderr: Option<ChildStderr>) -> Self {
        let (said_in, said) = watch::channel(false);
        let words = Self { lines: Arc::default(), said };
        let kept = words.lines.clone();
        tokio::spawn(async move {
            let Some(stderr) = stderr else { return };
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
            let _ = said_in.send(true);
        });
        words
    }

    fn mention(&self, text: &str) -> bool {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.contains(text))
    }

    /// Why it ended, as far as it said so, and what to do.
    pub(crate) async fn reason(&self, profile: &Path) -> String {
        // The process has ended; what it said is perhaps still on its way.
        let _ = tokio::time::timeout(WORDS_LIMIT, self.said.clone().wait_for(|said| *said)).await;
        if self.mention("Missing X server")
            || self.mention("cannot open display")
            || self.mention("Failed to connect to Wayland")
        {
            "The browser found no display. Start Tabwarden from a desktop, or without a browser window: \
             tabwarden serve --headless."
                .to_owned()
        } else if self.mention("SingletonLock") || self.mention("ProcessSingleton") || profile::in_use(profile) {
            profile::said_in_use(profile)
        } else if self.mention("no-sandbox") || self.mention("No usable sandbox") {
            "The browser could not set up its sandbox. Allow user namespaces on this system, or use a browser that brings \
             its own sandbox helper."
                .to_owned()
        } else {
            "The browser ended while it started. Start it by hand to see what it says.".to_owned()
        }
    }
}

/// Starts Chromium on a profile folder, with its ends of the two pipes as descriptors 3 and 4.
///
/// A debugging port would be open to every local process; a pipe is not. And when our ends of it close, however we
/// end, Chromium ends too.
#[cfg(unix)]
pub(crate) async fn launch(
    named: Option<&Path>,
    profile: &Path,
    headless: bool,
    extra: &[String],
    in_order: InOrder,
) -> Result<Launched, BrowserError> {
    use command_fds::{CommandFdExt, FdMapping};
    use tokio::net::unix::pipe;

    let executable = find::find(named)?;
    profile::prepare(profile).await?;
    let failed = |source: std::io::Error| BrowserError::Unavailable {
        reason: format!("The browser {} could not be started ({source}).", executable.display()),
    };
    let (theirs_in, ours_out) = std::io::pipe().map_err(failed)?;
    let (ours_in, theirs_out) = std::io::pipe().map_err(failed)?;
    let no_sandbox = is_root();
    let mut command = Command::new(&executable);
    command
        .args(arguments(profile, headless, no_sandbox))
        .args(extra)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // A group of its own: Ctrl-C in our terminal is ours to answer, and Chromium is closed in order.
        .process_group(0)
        .kill_on_drop(true);
    command
        .fd_mappings(vec![
            FdMapping { parent_fd: theirs_in.into(), child_fd: 3 },
            FdMapping { parent_fd: theirs_out.into(), child_fd: 4 },
        ])
        .map_err(|_| failed(std::io::ErrorKind::InvalidInput.into()))?;
    let mut child = command.spawn().map_err(failed)?;
    // The command owns our copies of Chromium's ends. While they live, the pipe would not close with it.
    drop(command);
    let last_words = LastWords::follow(child.stderr.take());
    let reader = pipe::Receiver::from_owned_fd(ours_in.into()).map_err(failed)?;
    let writer = pipe::Sender::from_owned_fd(ours_out.into()).map_err(failed)?;
    let (link, events) = Link::over_pipes(reader, writer, in_order);
    Ok(Launched { child, link, events, last_words, no_sandbox })
}

#[cfg(not(unix))]
pub(crate) async fn launch(
    _: Option<&Path>,
    _: &Path,
    _: bool,
    _: &[String],
    _: InOrder,
) -> Result<Launched, BrowserError> {
    Err(BrowserError::Unavailable {
        reason:
            "Starting a browser is not possible on this system yet. Start it yourself with --remote-debugging-port \
                 and name its address with --attach ws://…"
                .to_owned(),
    })
}

fn arguments(profile: &Path, headless: bool, no_sandbox: bool) -> Vec<std::ffi::OsString> {
    let mut user_data_dir = std::ffi::OsString::from("--user-data-dir=");
    user_data_dir.push(profile);
    let mut arguments = vec![
        user_data_dir,
        "--remote-debugging-pipe".into(),
        // Lets the companion be loaded over the pipe, and over nothing else.
        "--enable-unsafe-extension-debugging".into(),
        "--no-first-run".into(),
        "--no-default-browser-check".into(),
        // When we are killed, Chromium ends with us; the person need not be asked about that at the next start.
        "--hide-crash-restore-bubble".into(),
    ];
    if headless {
        arguments.push("--headless=new".into());
    }
    if no_sandbox {
        arguments.push("--no-sandbox".into());
    }
    arguments
}

/// Chromium does not start as root with its sandbox.
#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Ends a process that was started here, at once, with those that it started.
#[cfg(unix)]
pub(crate) fn end_group(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    // No number: it has ended, and been waited for.
    if let Some(group) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(crate) fn end_group(_child: &Child) {}
