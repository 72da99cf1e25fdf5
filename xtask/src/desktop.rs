//! A desktop where there is none, or where tests must not touch the person's own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;
use crate::tools;

/// Starts the desktop, says how to reach it, and ends it when the process that it was started for has ended: a script
/// beside that process, so that nothing is left behind however it ends.
const KEEPER: &str = include_str!("desktop.sh");

/// What would lead a program on the desktop of the tests back to the person's own.
const OTHERS: [&str; 5] = ["WAYLAND_DISPLAY", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];

/// A desktop in memory. It ends with this process (or with what that becomes by `exec`), or when dropped.
pub struct Desktop {
    environment: Vec<(String, String)>,
    without: &'static [&'static str],
    keeper: Child,
}

impl Desktop {
    /// For a program that a person runs: home and runtime folder stay the person's, so that others find its socket.
    pub fn for_a_person() -> Result<Self, Failure> {
        Self::start(Some(&tools::target().join("desktop")), &OTHERS[..1])
    }

    /// For tests: with a home of its own, too.
    pub fn for_tests() -> Result<Self, Failure> {
        Self::start(None, &OTHERS)
    }

    fn start(keyrings: Option<&Path>, without: &'static [&'static str]) -> Result<Self, Failure> {
        let mut command = Command::new("bash");
        command.args(["-c", KEEPER, "desktop.sh"]).arg(std::process::id().to_string()).args(keyrings);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // A group of its own: Ctrl-C must not reach the X server before the program that shows its window there.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let not_started = |source| Failure::NotStarted { program: "bash".into(), source };
        let mut keeper = command.spawn().map_err(not_started)?;
        let stdout = keeper.stdout.take();
        let mut desktop = Self { environment: Vec::new(), without, keeper };
        for line in stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok) {
            match line.split_once('=') {
                Some((name, value)) => desktop.environment.push((name.to_owned(), value.to_owned())),
                None => return Ok(desktop),
            }
        }
        Err(Failure::NoDesktop)
    }

    /// A program on this desktop.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        // cargo and rustup look for theirs below HOME.
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none()
                && let Some(home) = std::env::home_dir()
            {
                command.env(name, home.join(folder));
            }
        }
        for name in self.without {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What a person puts before a command to run it on this desktop.
    pub fn in_words(&self) -> String {
        let shown = self.environment.iter().filter(|(name, _)| ["DISPLAY", "XAUTHORITY"].contains(&name.as_str()));
        shown.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// Leaves the desktop to what this process becomes by `exec`.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        // TERM, which lets it end the others.
        let _ = Command::new("kill").arg(self.keeper.id().to_string()).status();
        let _ = self.keeper.wait();
    }
}
