//! The `tabwarden` program; everything it does is in the library beside it.

// A release build on Windows opens no console beside the window.
#![cfg_attr(all(not(debug_assertions), windows), windows_subsystem = "windows")]

fn main() -> std::process::ExitCode {
    tabwarden_app::run()
}
