//! Tabwarden, the desktop shell: the command line, and how the parts are put together.
//!
//! Two programs use it: `tabwarden`, which serves, bridges and answers questions, and `tabwarden-window`, which adds
//! the window.

pub mod cli;
pub mod log;
pub mod places;
pub mod serving;
pub mod setup;
pub mod status;
pub mod token;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use tabwarden_firewall::{Firewall, Surface};
use tabwarden_gateway::bridge;

use crate::cli::{Cli, Command, PlaceArgs, ServingArgs};
use crate::serving::{Ground, Serving};
use crate::setup::{BridgeCommand, ClientName};

/// The program with the window, which lies beside this one.
const WINDOW_PROGRAM: &str = if cfg!(windows) { "tabwarden-window.exe" } else { "tabwarden-window" };

/// How a program ends. The errors that end it are only shown, never decided by.
pub type Done = Result<(), Box<dyn std::error::Error>>;

/// Reads the command line, raises the firewall, starts the log and does `work`. The exit status: 0 done, 1 failed,
/// 2 misused.
pub fn main(work: impl FnOnce(Cli, Arc<Firewall>) -> Done) -> ExitCode {
    let cli = Cli::parse();
    let firewall = match Firewall::built_in(rand::random()) {
        Ok(firewall) => Arc::new(firewall),
        // Its message names a rule and a place, nothing that could be a secret.
        Err(error) => return complain(None, &error),
    };
    if let Err(error) = log::start(cli.places.log.as_deref(), Arc::clone(&firewall)) {
        return complain(Some(&firewall), &error);
    }
    match work(cli, Arc::clone(&firewall)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(Some(&firewall), error.as_ref()),
    }
}

/// What `tabwarden` does.
pub fn tabwarden(cli: Cli, firewall: Arc<Firewall>) -> Done {
    let Cli { command, places, serving } = cli;
    match command {
        None => open_window(),
        Some(Command::Serve { headless }) => serve(&places, &serving, headless, firewall),
        Some(Command::Mcp { no_start }) => run_bridge(&places, &serving, no_start),
        Some(Command::Status { json }) => print_status(&places, json),
        Some(Command::Setup { client, write }) => set_up(&places, client, write),
    }
}

/// Says what went wrong, on stderr.
fn complain(firewall: Option<&Firewall>, error: &dyn std::error::Error) -> ExitCode {
    let text = format!("tabwarden: {error}\n");
    let text = match firewall {
        Some(firewall) => firewall.seal_text(Surface::Error, &text).egress.into_string(),
        None => text,
    };
    // Where stderr is gone, there is nowhere left to say so.
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::FAILURE
}

/// Prints a line on stdout. A reader that went away is no failure.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// The program with the window cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("The window's program {} cannot be started ({source}). Install Tabwarden anew, or build all of it with `cargo build`.", path.display())]
struct NoWindowProgram {
    path: std::path::PathBuf,
    source: std::io::Error,
}

/// Becomes the program with the window, with the same arguments.
fn open_window() -> Done {
    let path = std::env::current_exe()?.with_file_name(WINDOW_PROGRAM);
    let mut program = std::process::Command::new(&path);
    program.args(std::env::args_os().skip(1));
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        let source = program.exec();
        Err(NoWindowProgram { path, source }.into())
    }
    #[cfg(not(unix))]
    {
        let status = program.status().map_err(|source| NoWindowProgram { path, source })?;
        std::process::exit(status.code().unwrap_or(1))
    }
}

fn serve(places: &PlaceArgs, args: &ServingArgs, headless: bool, firewall: Arc<Firewall>) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ground = Ground::take(places)?;
    runtime.block_on(async {
        let serving = Serving::start(ground, args, headless, firewall, None).await?;
        say(&format!("ready {}", serving.socket.display()));
        serving::asked_to_stop().await;
        serving.stop().await;
        Ok(())
    })
}

fn run_bridge(places: &PlaceArgs, args: &ServingArgs, no_start: bool) -> Done {
    let socket = serving::socket_path(places)?;
    let start = if no_start { None } else { Some(start_command(places, args)?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(bridge::run(bridge::BridgeConfig { socket, start }));
    // A read of stdin that still waits must not hold the process.
    runtime.shutdown_background();
    Ok(done?)
}

/// How the bridge starts Tabwarden: with its window where there is a display, without one otherwise.
fn start_command(places: &PlaceArgs, args: &ServingArgs) -> std::io::Result<std::process::Command> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    if !has_display() {
        command.args(["serve", "--headless"]);
    }
    let paths = [
        ("--socket", &places.socket),
        ("--data-dir", &places.data_dir),
        ("--browser", &args.browser),
        ("--token-file", &args.token_file),
    ];
    for (option, path) in paths {
        if let Some(path) = path {
            command.arg(option).arg(std::path::absolute(path)?);
        }
    }
    for argument in &args.browser_arg {
        command.arg(format!("--browser-arg={argument}"));
    }
    let http = args.http.map(|port| port.to_string());
    for (option, text) in [("--log", &places.log), ("--attach", &args.attach), ("--http", &http)] {
        if let Some(text) = text {
            command.arg(option).arg(text);
        }
    }
    Ok(command)
}

/// Whether a window can be opened here.
pub fn has_display() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

fn print_status(places: &PlaceArgs, json: bool) -> Done {
    let socket = serving::socket_path(places)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(status::ask(socket.as_path()))?;
    say(&if json { serde_json::to_string_pretty(&answer)? } else { status::in_words(&answer) });
    Ok(())
}

fn set_up(places: &PlaceArgs, client: ClientName, write: bool) -> Done {
    let bridge = BridgeCommand::of_this_program(places);
    if write {
        let path = client.write(&bridge)?;
        say(&format!("Tabwarden stands in {} now. Restart the client to see it.", path.display()));
        return Ok(());
    }
    let snippet = client.snippet(&bridge);
    match snippet.file {
        Some(file) => say(&format!("Add this to {file}:\n\n{}", snippet.text)),
        None => say(&format!("Run this:\n\n{}", snippet.text)),
    }
    Ok(())
}
