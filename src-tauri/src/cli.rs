//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::setup::ClientName;

/// Lets several AI agents share one real Chromium, safely, while you watch.
///
/// Without a command it opens the window, starts the browser and answers agents on a local socket.
#[derive(Parser, Debug)]
#[command(name = "tabwarden", version, args_conflicts_with_subcommands = false)]
pub struct Cli {
    /// What to do; opens the window if left out.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Where things are.
    #[command(flatten)]
    pub places: PlaceArgs,

    /// How to serve.
    #[command(flatten)]
    pub serving: ServingArgs,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Connect an MCP client over stdin and stdout; starts Tabwarden if none runs
    Mcp {
        /// Fail instead of starting Tabwarden when none runs
        #[arg(long)]
        no_start: bool,
    },
    /// Serve agents without a window; prints `ready <socket>` when it answers
    Serve {
        /// Run the browser without a window, too
        #[arg(long)]
        headless: bool,
    },
    /// Say what the running Tabwarden does
    Status {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print how to connect a client, or write it into the client's configuration
    Setup {
        /// The client
        client: ClientName,
        /// Add it to the client's configuration file; a backup is kept beside it
        #[arg(long)]
        write: bool,
    },
}

/// Where things are. The same for every way of starting.
#[derive(Args, Debug, Clone, Default)]
pub struct PlaceArgs {
    /// The socket that agents connect to
    #[arg(long, global = true, value_name = "PATH", env = "TABWARDEN_SOCKET")]
    pub socket: Option<PathBuf>,

    /// The folder for the browser's profile and Tabwarden's own data
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// What to log on stderr: error, warn, info, debug, trace, or a filter as in RUST_LOG
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
}

/// How to serve.
#[derive(Args, Debug, Clone, Default)]
pub struct ServingArgs {
    /// The browser's executable; Chromium, Chrome, Edge or Brave is found if left out
    #[arg(long, global = true, value_name = "PATH")]
    pub browser: Option<PathBuf>,

    /// One more argument for the browser, as --browser-arg=--proxy-server=…; may be given several times
    #[arg(long, global = true, value_name = "ARG", allow_hyphen_values = true)]
    pub browser_arg: Vec<String>,

    /// Drive a browser that already runs, by its DevTools address (ws://…)
    #[arg(long, global = true, value_name = "URL", conflicts_with = "browser")]
    pub attach: Option<String>,

    /// Also answer over HTTP on 127.0.0.1 at this port; 0 takes any free one
    #[arg(long, global = true, value_name = "PORT")]
    pub http: Option<u16>,

    /// Keep the HTTP token in this file instead of the system's keyring
    #[arg(long, global = true, value_name = "PATH")]
    pub token_file: Option<PathBuf>,
}
