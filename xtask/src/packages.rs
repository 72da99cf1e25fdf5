//! The system packages of Debian and its kin: which are missing, and getting them.

use std::process::Command;

use crate::failure::{Failure, output_of, run};

/// What building and running need: a C linker, the web view, tray and icons for the window, the browser that agents share.
pub const APP: &[&str] = &[
    "build-essential",
    "pkg-config",
    "libwebkit2gtk-4.1-dev",
    "libayatana-appindicator3-dev",
    "librsvg2-common",
    "chromium",
    "chromium-sandbox",
    "dbus",
];

/// A desktop in memory with its keyring, and a way to take its picture.
pub const DESKTOP: &[&str] =
    &["xvfb", "xauth", "openbox", "x11-utils", "imagemagick", "gnome-keyring", "libsecret-tools"];

/// What the tests use on that desktop: the window's driver, a hand on the mouse and one on native dialogs,
/// and a Python for the Python client.
pub const TESTS: &[&str] =
    &["webkit2gtk-driver", "xdotool", "at-spi2-core", "python3-pyatspi", "python3-venv", "procps"];

/// apt-get, without questions and with few words.
const APT_GET: [&str; 6] = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"];

/// Installs those of the packages that are missing, or says how to.
pub fn ensure(sets: &[&[&'static str]]) -> Result<(), Failure> {
    let wanted: Vec<&str> = sets.concat();
    if !cfg!(target_os = "linux") || output_of(Command::new("dpkg-query").arg("--version")).is_none() {
        println!("This system has no dpkg, so its packages are not looked at. Needed are: {}", wanted.join(" "));
        return Ok(());
    }
    let missing = missing(&wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let Some(as_root) = way_to_root() else {
        let line = format!("sudo apt-get update && sudo apt-get install --no-install-recommends {}", missing.join(" "));
        return Err(Failure::Packages(line));
    };
    println!("Installing {}", missing.join(" "));
    let apt_get = || {
        let mut words = as_root.iter().copied().chain(APT_GET);
        let mut command = Command::new(words.next().unwrap_or("env"));
        command.args(words);
        command
    };
    run(apt_get().arg("update"))?;
    run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

/// The packages that are not installed.
fn missing<'a>(wanted: &[&'a str]) -> Vec<&'a str> {
    // It fails where it does not know one of them, and still lists the others.
    let listed = Command::new("dpkg-query")
        .args(["--show", "--showformat=${Package} ${db:Status-Status}\n"])
        .args(wanted)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let installed = |name: &str| listed.lines().any(|line| line.split_once(' ') == Some((name, "installed")));
    wanted.iter().copied().filter(|name| !installed(name)).collect()
}

/// The words before a command that make it root's, or nothing where that would need a password.
fn way_to_root() -> Option<&'static [&'static str]> {
    if output_of(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0") {
        return Some(&[]);
    }
    output_of(Command::new("sudo").args(["--non-interactive", "true"]))
        .map(|_| ["sudo", "--non-interactive"].as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_what_is_missing_is_named() {
        if output_of(Command::new("dpkg-query").arg("--version")).is_none() {
            return;
        }
        assert_eq!(missing(&["dpkg", "no-such-package-anywhere"]), ["no-such-package-anywhere"]);
    }
}
