//! What no system package brings: Node.js, cargo-deny, and the packages of the client tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::failure::{Failure, output_of, run};

/// The version that is installed where there is none.
const CARGO_DENY: &str = "0.20.2";

/// The oldest Node.js that the window's page is built with.
const NODE: u32 = 20;

/// The top folder of this repository.
pub fn top() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The folder that cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| top().join("target"), |dir| top().join(dir))
}

/// The cargo that runs this, in the top folder.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(top());
    cargo
}

/// npm, in a folder below the top one.
pub fn npm(folder: &str) -> Command {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.current_dir(top().join(folder));
    npm
}

/// Fails where Node.js is missing or too old. It comes with npm.
pub fn ensure_node() -> Result<(), Failure> {
    let version = output_of(Command::new("node").arg("--version")).unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    match (major, output_of(npm(".").arg("--version"))) {
        (Some(major), Some(_)) if major >= NODE => Ok(()),
        _ => Err(Failure::Tool("Node.js 20 or newer, with npm,")),
    }
}

/// cargo-deny: the one that is installed, or one that is built below the target folder, which takes some minutes once.
pub fn cargo_deny() -> Result<Command, Failure> {
    let deny = |program: &Path| {
        let mut deny = Command::new(program);
        deny.current_dir(top());
        deny
    };
    let root = target().join("tools");
    let built = root.join("bin/cargo-deny");
    for program in [Path::new("cargo-deny"), &built] {
        if output_of(deny(program).arg("--version")).is_some() {
            return Ok(deny(program));
        }
    }
    println!("Building cargo-deny {CARGO_DENY} into {}", root.display());
    // Unoptimised: it is built far oftener than its speed is felt.
    run(cargo()
        .args(["install", "--locked", "--debug", "--quiet", "--version", CARGO_DENY, "--root"])
        .arg(&root)
        .arg("cargo-deny"))?;
    Ok(deny(&built))
}

/// Installs the npm packages of a folder where its lock file is newer than they are.
pub fn ensure_npm_packages(folder: &str) -> Result<(), Failure> {
    let lock = top().join(folder).join("package-lock.json");
    if modified(&lock) <= modified(&lock.with_file_name("node_modules/.package-lock.json")) {
        return Ok(());
    }
    run(npm(folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))
}

/// A Python with the packages that a file lists.
pub fn python_with(requirements: &str) -> Result<PathBuf, Failure> {
    let requirements = top().join(requirements);
    let folder = target().join("clients-python");
    let python = folder.join("bin/python");
    let installed = folder.join("installed-requirements.txt");
    if modified(&requirements) > modified(&installed) {
        // Debian's own, whatever else is called python3 here: its venv is among the packages.
        run(Command::new("/usr/bin/python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(&requirements))?;
        let file = |source| Failure::File { path: installed.display().to_string(), source };
        std::fs::copy(&requirements, &installed).map_err(file)?;
    }
    Ok(python)
}

/// When a file was last written, and nothing where it is not there.
fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|meta| meta.modified()).ok()
}
