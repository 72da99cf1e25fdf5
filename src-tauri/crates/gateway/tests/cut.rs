//! Long texts of an agent: nothing of a secret in them is left where they are cut.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use common::{initialize_params, served};
use serde_json::json;
use tabwarden_gateway::{BoundSocket, SocketError, SocketPath};

/// A token that a rule knows by its whole length only, and a password that is known by the `@` behind it.
fn secrets() -> [String; 2] {
    [format!("ghp_{}", "a1B2c3D4e5".repeat(4)), format!("http://u:hunter2SEKRET{}@host/", "p".repeat(120))]
}

#[tokio::test]
async fn no_part_of_a_secret_is_left_where_a_text_is_cut() {
    let served = served().await;
    for secret in secrets() {
        for pad in [0, 20, 40, 56, 70, 78] {
            let text = format!("{}{secret}", "x ".repeat(pad / 2));
            let mut agent = served.connect().await;
            let mut hello = initialize_params("2025-06-18", "agent");
            hello["clientInfo"] = json!({ "name": text, "version": text });
            agent.request("initialize", hello).await;
            let mut answers = String::new();
            answers += &agent.call("browser_session_open", json!({ "label": text })).await.to_string();
            answers += &agent.call("browser_tab_get", json!({ "tab_id": text })).await.to_string();
            answers += &agent.call("browser_tab_new", json!({ "window_id": text })).await.to_string();
            answers += &agent.call("browser_tab_list", json!({ "session_id": text })).await.to_string();
            answers += &agent.call("browser_tab_list", json!({ (text.as_str()): 1 })).await.to_string();
            answers += &agent.call(&text, json!({})).await.to_string();
            answers += &agent.request(&text, json!({})).await.to_string();
            answers += &agent.call("browser_set_allowed_domains", json!({ "domains": [text] })).await.to_string();
            answers += &served.status().await.to_string();
            let labels: String = served.gateway.sessions().into_iter().map(|session| session.label).collect();
            for out in [answers, labels] {
                for part in ["ghp_a1B2", "hunter2"] {
                    assert!(!out.contains(part), "{part} is left of {text} in {out}");
                }
            }
        }
    }
}

#[test]
fn a_socket_that_another_program_answers_is_left_to_it() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("s.sock");
    let theirs = UnixListener::bind(&path).expect("bound");
    let socket = SocketPath::resolve(Some(&path)).expect("a path");
    assert!(matches!(BoundSocket::bind(&socket), Err(SocketError::InUse { .. })));
    assert!(path.exists());
    drop(theirs);
    BoundSocket::bind(&socket).expect("nobody answers any more");
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = SocketPath::resolve(Some(&folder.path().join("s.sock"))).expect("a path");
    for (mode, taken) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true), (0o700, true)] {
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).expect("mode");
        let bound = BoundSocket::bind(&socket);
        assert_eq!(bound.is_ok(), taken, "{mode:o}: {bound:?}");
        if let Err(error) = bound {
            assert!(error.to_string().contains("chmod 700"), "{error}");
        }
    }
}
