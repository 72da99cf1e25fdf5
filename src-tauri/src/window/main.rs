//! `tabwarden-window`: the app with its window.
//!
//! A program of its own, started by `tabwarden`, so that serving without a window, the bridge and the small commands do
//! not load the web view: on Linux that alone takes 50 ms and 44 MB.

// A release build on Windows opens no console beside the window.
#![cfg_attr(all(not(debug_assertions), windows), windows_subsystem = "windows")]

mod app;
mod commands;
mod feed;
mod questions;
mod tray;
mod views;

use std::process::ExitCode;
use std::sync::Arc;

use tabwarden_app::cli::Cli;
use tabwarden_app::serving::{Ground, StartError};
use tabwarden_app::{Done, status};
use tabwarden_firewall::Firewall;
use tabwarden_gateway::SocketError;

fn main() -> ExitCode {
    tabwarden_app::main(open)
}

/// Opens the window, or brings that of the Tabwarden that already runs to the front.
fn open(cli: Cli, firewall: Arc<Firewall>) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ground = match Ground::take(&cli.places) {
        Ok(ground) => ground,
        Err(StartError::Socket(SocketError::InUse { path })) => {
            return Ok(runtime.block_on(status::show_running(&path))?);
        }
        Err(error) => return Err(error.into()),
    };
    Ok(app::run(&runtime, ground, &cli, firewall)?)
}
