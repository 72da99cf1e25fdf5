//! `cargo xtask run`: Tabwarden, on the person's display or on one in memory.

use std::process::Command;

use crate::desktop::Desktop;
use crate::failure::{Failure, output_of, run as finish};
use crate::{packages, tools};

/// Installs what is missing, builds Tabwarden, and becomes it.
pub fn run(arguments: &[&str]) -> Result<(), Failure> {
    let has_display = !cfg!(target_os = "linux")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    tools::ensure_node()?;
    packages::ensure(if has_display { &[packages::APP] } else { &[packages::APP, packages::DESKTOP] })?;
    finish(tools::cargo().args(["build", "--locked", "--package", "tabwarden", "--bins"]))?;
    let program = tools::target().join("debug/tabwarden");
    if has_display {
        return become_program(Command::new(&program).args(arguments));
    }
    let desktop = Desktop::for_a_person()?;
    let there = desktop.in_words();
    let work_in_it = match output_of(Command::new("which").arg("x11vnc")) {
        Some(_) => format!("{there} x11vnc -localhost -usepw"),
        None => "install x11vnc, and start this again".to_owned(),
    };
    println!(
        "\nThere is no display here, so Tabwarden opens its window on one in memory.\n  \
           Look at it:  {there} import -window root tabwarden.png\n  \
           Work in it:  {work_in_it}\n  \
           Connect:     {program} setup claude-code    (or cursor, vscode, codex, gemini)\n  \
           Its state:   {program} status    (names the socket, too)\n  \
           Stop it:     Ctrl-C\n",
        program = program.display(),
    );
    let mut program = desktop.command(&program);
    desktop.leave();
    become_program(program.args(arguments))
}

/// Replaces this process, so that Ctrl-C and the exit status are the program's own.
#[cfg(unix)]
fn become_program(program: &mut Command) -> Result<(), Failure> {
    use std::os::unix::process::CommandExt as _;
    let source = program.exec();
    Err(Failure::NotStarted { program: crate::failure::in_words(program), source })
}

#[cfg(not(unix))]
fn become_program(program: &mut Command) -> Result<(), Failure> {
    finish(program)
}
