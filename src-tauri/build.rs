#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is how a build script speaks to cargo")]
//! Builds the window's page before Tauri embeds it, so that `cargo run` is all there is to do.

use std::path::Path;
use std::process::Command;

fn main() {
    for path in [
        "src-tauri/capabilities",
        "src-tauri/permissions",
        "tauri.conf.json",
        "icons",
        "ui/src",
        "ui/index.html",
        "ui/package-lock.json",
        "ui/vite.config.ts",
    ] {
        println!("cargo:rerun-if-changed={path}");
    }
    build_page();
    let attributes = tauri_build::Attributes::new()
        .capabilities_path_pattern("src-tauri/capabilities/**/*")
        .app_manifest(tauri_build::AppManifest::new().permissions_path_pattern("src-tauri/permissions/**/*"));
    if let Err(error) = tauri_build::try_build(attributes) {
        fail(&format!("{error:#}"));
    }
}

/// Installs the page's packages where the lock file is newer than they are, and builds it.
fn build_page() {
    let modified = |path: &str| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let installed = modified("ui/node_modules/.package-lock.json");
    if installed.is_none() || installed < modified("ui/package-lock.json") {
        npm(&["ci", "--no-audit", "--no-fund"]);
    }
    npm(&["run", "--silent", "build"]);
}

fn npm(arguments: &[&str]) {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let run = Command::new(program).args(arguments).current_dir(Path::new("ui")).output();
    match run {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            fail(&format!(
                "npm {} failed:\n{}{}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        Err(error) => fail(&format!("npm could not be started ({error}): install Node.js 20 or newer")),
    }
}

/// Ends the build with a message and without a backtrace.
fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1);
}
