//! What the window can ask for. Thin: each command is one call into the gateway, the browser or the feed.

use std::sync::Arc;

use tabwarden_app::setup::{BridgeCommand, ClientName};
use tabwarden_browser::BrowserError;
use tabwarden_contract::{ActError, ClientSnippet};
use tabwarden_domain::{TabId, WritePermit};
use tabwarden_gateway::Gateway;
use tauri::ipc::Channel;
use tauri::{AppHandle, State};

use crate::feed::Feed;
use crate::questions;
use crate::views;

/// Everything at this moment, as the JSON text of a `Snapshot`.
#[tauri::command]
pub fn snapshot(feed: State<'_, Arc<Feed>>) -> String {
    feed.snapshot().into_string()
}

/// Sends every update from now on, each as the JSON text of an `Update`.
#[tauri::command]
pub fn subscribe(feed: State<'_, Arc<Feed>>, updates: Channel<String>) {
    feed.subscribe(Box::new(move |update| updates.send(update.as_str().to_owned()).is_ok()));
}

/// Selects a tab in the browser and raises its window.
#[tauri::command]
pub async fn focus_tab(gateway: State<'_, Gateway>, id: String) -> Result<(), ActError> {
    let done = gateway.browser().focus_tab(&TabId::from_wire(&id)).await;
    done.map_err(|error| sealed(&gateway, &error))
}

/// Closes a tab; asks first where it is the last one of the last window.
#[tauri::command]
pub async fn close_tab(app: AppHandle, gateway: State<'_, Gateway>, id: String) -> Result<(), ActError> {
    let tab = TabId::from_wire(&id);
    if gateway.browser().is_last_tab(&tab) && !questions::person_closes_last_window(&app).await {
        return Ok(());
    }
    let done = gateway.browser().close_tab(WritePermit::for_the_person(tab)).await;
    done.map_err(|error| sealed(&gateway, &error))
}

/// Mutes a tab or lets it sound again.
#[tauri::command]
pub async fn mute_tab(gateway: State<'_, Gateway>, id: String, muted: bool) -> Result<(), ActError> {
    let done = gateway.browser().mute_tab(WritePermit::for_the_person(TabId::from_wire(&id)), muted).await;
    done.map_err(|error| sealed(&gateway, &error))
}

/// Starts the browser if it does not run.
#[tauri::command]
pub async fn start_browser(gateway: State<'_, Gateway>) -> Result<(), ActError> {
    let done = gateway.browser().ensure_running().await;
    done.map_err(|error| sealed(&gateway, &error))
}

/// How to connect each client.
#[tauri::command]
pub fn client_snippets(bridge: State<'_, BridgeCommand>) -> Vec<ClientSnippet> {
    ClientName::ALL.iter().map(|client| client.snippet(&bridge)).collect()
}

/// An error for the window. The browser's words in it are sealed like everything that leaves.
fn sealed(gateway: &Gateway, error: &BrowserError) -> ActError {
    let ActError { code, message } = views::act_error(error);
    let message = gateway.firewall().seal_text(tabwarden_firewall::Surface::Error, &message).egress.into_string();
    ActError { code, message }
}
