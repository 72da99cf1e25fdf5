//! Why a command of xtask ended early.

use std::process::{Command, ExitStatus};

use crate::USAGE;

/// Why a command of xtask ended early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is none of those that are known.
    #[error("this is how it is used:\n{USAGE}")]
    Usage,
    /// There is no such step.
    #[error("there is no step '{0}'; `cargo xtask help` lists them")]
    NoSuchStep(String),
    /// System packages are missing and may not be installed from here.
    #[error("these packages are missing, and only root may install them. Run this, then try again:\n  {0}")]
    Packages(String),
    /// A tool is missing or too old.
    #[error("{0} is needed, and was not found: install it, then try again")]
    Tool(&'static str),
    /// A program could not be started.
    #[error("`{program}` could not be started ({source})")]
    NotStarted { program: String, source: std::io::Error },
    /// A program failed. It has said why itself.
    #[error("`{program}` failed ({status})")]
    Failed { program: String, status: ExitStatus },
    /// The desktop of the tests did not come up. Its programs have said why.
    #[error(
        "the virtual desktop did not start: see what Xvfb, dbus-daemon, openbox or gnome-keyring-daemon said above"
    )]
    NoDesktop,
    /// A file could not be read or written.
    #[error("{path} could not be used ({source})")]
    File { path: String, source: std::io::Error },
}

/// Runs a program to its end, and fails where it fails.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let program = in_words(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed { program, status }),
        Err(source) => Err(Failure::NotStarted { program, source }),
    }
}

/// A program's output, or nothing where it cannot be started or fails.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// A command as a person would type it.
pub fn in_words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
