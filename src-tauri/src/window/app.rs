//! The app with its window: Tauri's side of things.

use std::sync::{Arc, Mutex, PoisonError};

use tabwarden_app::cli::Cli;
use tabwarden_app::has_display;
use tabwarden_app::serving::{Ground, Serving, StartError, asked_to_stop};
use tabwarden_app::setup::BridgeCommand;
use tabwarden_contract::ServerView;
use tabwarden_domain::Presence;
use tabwarden_firewall::Firewall;
use tabwarden_gateway::{Asker, Gateway};
use tauri::{AppHandle, Manager, RunEvent, WindowEvent};
use tokio::runtime::Runtime;

use crate::commands;
use crate::feed::Feed;
use crate::questions;
use crate::tray;

/// The label of the one window.
const MAIN: &str = "main";

/// Why the app did not open its window.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Serving did not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is no display.
    #[error("There is no display to open a window on. Start it from a desktop, or run `tabwarden serve --headless`.")]
    NoDisplay,
    /// Tauri could not begin.
    #[error("The window could not be opened: {0}")]
    Tauri(#[from] tauri::Error),
}

/// Serves with a window, until the user quits.
pub fn run(runtime: &Runtime, ground: Ground, cli: &Cli, firewall: Arc<Firewall>) -> Result<(), WindowError> {
    if !has_display() {
        return Err(WindowError::NoDisplay);
    }
    tauri::async_runtime::set(runtime.handle().clone());
    let (asker, asked) = Asker::channel();
    let serving = runtime.block_on(Serving::start(ground, &cli.serving, false, firewall, Some(asker)))?;
    let gateway = serving.gateway.clone();
    let feed = Feed::new(
        gateway.clone(),
        ServerView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            socket: serving.socket.display().to_string(),
            http: serving.http.map(|address| format!("http://{address}/mcp")),
        },
    );
    runtime.spawn(Arc::clone(&feed).run());

    let app = tauri::Builder::default()
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_window_state::Builder::new().build())
        .manage(feed)
        .manage(gateway.clone())
        .manage(BridgeCommand::of_this_program(&cli.places))
        .invoke_handler(tauri::generate_handler![
            commands::snapshot,
            commands::subscribe,
            commands::focus_tab,
            commands::close_tab,
            commands::mute_tab,
            commands::start_browser,
            commands::client_snippets,
        ])
        .setup(move |app| {
            tray::build(app)?;
            let handle = app.handle().clone();
            tauri::async_runtime::spawn(questions::answer(handle.clone(), asked));
            tauri::async_runtime::spawn(raise_when_asked(handle.clone(), gateway.clone()));
            tauri::async_runtime::spawn(async move {
                asked_to_stop().await;
                handle.exit(0);
            });
            Ok(())
        })
        .on_window_event(|window, event| {
            if let WindowEvent::CloseRequested { api, .. } = event
                && agents_are_connected(window.app_handle())
            {
                api.prevent_close();
                let _ = window.hide();
            }
        })
        .build(tauri::generate_context!("tauri.conf.json"))?;

    let serving = Mutex::new(Some(serving));
    let runtime = runtime.handle().clone();
    app.run(move |_, event| {
        if let RunEvent::Exit = event {
            let serving = serving.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(serving) = serving {
                runtime.block_on(serving.stop());
            }
        }
    });
    Ok(())
}

fn agents_are_connected(app: &AppHandle) -> bool {
    app.state::<Gateway>().sessions().iter().any(|session| session.presence == Presence::Connected)
}

/// Brings the window to the front, wherever it is.
pub fn raise(app: &AppHandle) {
    if let Some(window) = app.get_webview_window(MAIN) {
        let _ = window.show();
        let _ = window.unminimize();
        let _ = window.set_focus();
    }
}

/// A second `tabwarden` asks the first one to show itself.
async fn raise_when_asked(app: AppHandle, gateway: Gateway) {
    let mut asked = gateway.show_requests();
    while asked.recv().await.is_some() {
        raise(&app);
    }
}
