//! Tabwarden, the desktop shell: the command line, the window, and how the parts are put together.

mod cli;
mod commands;
mod feed;
mod log;
mod places;
mod questions;
mod serving;
mod setup;
mod status;
mod token;
mod tray;
mod views;
mod window;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use tabwarden_firewall::{Firewall, Surface};
use tabwarden_gateway::SocketError;

use crate::cli::{Cli, Command, PlaceArgs, ServingArgs};
use crate::serving::{Ground, Serving, StartError};
use crate::setup::{BridgeCommand, ClientName};

/// Runs the program and returns its exit status: 0 done, 1 failed, 2 misused.
pub fn run() -> ExitCode {
    let Cli { command, places, serving } = Cli::parse();
    let firewall = match Firewall::built_in(rand::random()) {
        Ok(firewall) => Arc::new(firewall),
        // Without a firewall nothing may leave, not even what is wrong with it beyond the rule's name.
        Err(error) => return complain(None, &error),
    };
    if let Err(error) = log::start(places.log.as_deref(), Arc::clone(&firewall)) {
        return complain(Some(&firewall), &error);
    }
    let done = match command {
        None => open_window(&places, &serving, Arc::clone(&firewall)),
        Some(Command::Serve { headless }) => serve(&places, &serving, headless, Arc::clone(&firewall)),
        Some(Command::Mcp { no_start }) => bridge(&places, &serving, no_start),
        Some(Command::Status { json }) => status(&places, json),
        Some(Command::Setup { client, write }) => set_up(&places, client, write),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(Some(&firewall), error.as_ref()),
    }
}

/// The errors that end the program are only shown, never decided by.
type Done = Result<(), Box<dyn std::error::Error>>;

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

fn open_window(places: &PlaceArgs, args: &ServingArgs, firewall: Arc<Firewall>) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ground = match Ground::take(places) {
        Ok(ground) => ground,
        Err(StartError::Socket(SocketError::InUse { path })) => {
            return Ok(runtime.block_on(status::show_running(&path))?);
        }
        Err(error) => return Err(error.into()),
    };
    Ok(window::run(&runtime, ground, places, args, firewall)?)
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

fn bridge(places: &PlaceArgs, args: &ServingArgs, no_start: bool) -> Done {
    let socket = serving::socket_path(places)?;
    let start = if no_start { None } else { Some(start_command(places, args)?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(tabwarden_gateway::bridge::run(tabwarden_gateway::bridge::BridgeConfig { socket, start }));
    // A read of stdin that still waits must not hold the process.
    runtime.shutdown_background();
    Ok(done?)
}

/// How the bridge starts Tabwarden: with its window where there is a display, without one otherwise.
fn start_command(places: &PlaceArgs, args: &ServingArgs) -> std::io::Result<std::process::Command> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    if !window::has_display() {
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
    let http = args.http.map(|port| port.to_string());
    for (option, text) in [("--log", &places.log), ("--attach", &args.attach), ("--http", &http)] {
        if let Some(text) = text {
            command.arg(option).arg(text);
        }
    }
    Ok(command)
}

fn status(places: &PlaceArgs, json: bool) -> Done {
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
