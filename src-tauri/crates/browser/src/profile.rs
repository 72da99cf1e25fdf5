//! The profile folder: there, writable, and nobody else's.

use std::path::Path;
use std::time::Duration;

use crate::BrowserError;

/// How long a browser that is just ending may still hold the profile: one whose Tabwarden was killed goes on for a moment.
const RELEASE_LIMIT: Duration = Duration::from_secs(3);

/// How often it is looked whether it still does. There is no event for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Makes the profile folder where it does not exist, and waits until nobody holds it.
pub(crate) async fn prepare(profile: &Path) -> Result<(), BrowserError> {
    let made = std::fs::create_dir_all(profile).and_then(|()| {
        let probe = profile.join(".tabwarden-probe");
        std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe))
    });
    made.map_err(|error| BrowserError::Unavailable {
        reason: format!(
            "The profile folder {} cannot be written to ({error}). Mend its permissions, or name another with --data-dir DIR.",
            profile.display()
        ),
    })?;
    let free = async {
        while in_use(profile) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let freed = tokio::time::timeout(RELEASE_LIMIT, free).await;
    freed.map_err(|_| BrowserError::Unavailable { reason: said_in_use(profile) })?;
    said_held_elsewhere(profile).map_or(Ok(()), |reason| Err(BrowserError::Unavailable { reason }))
}

/// What is said of a profile that somebody holds.
pub(crate) fn said_in_use(profile: &Path) -> String {
    format!(
        "The profile {} is in use by another browser. Close that one, or name another folder with --data-dir DIR.",
        profile.display()
    )
}

/// What is said of a profile that a browser on another computer seems to hold, if one does. Chromium does not touch it
/// and asks the person in a window that nothing here hears of: the folder may lie on a shared disk. But it may as well be
/// that this computer's name has changed.
#[cfg(unix)]
fn said_held_elsewhere(profile: &Path) -> Option<String> {
    let (host, _) = holder(profile)?;
    let here = rustix::system::uname().nodename().to_string_lossy() == host;
    let lock = profile.join("SingletonLock");
    (!here).then(|| {
        format!(
            "The profile {} was left locked by a browser on the computer {host}. If none runs there, delete {}.",
            profile.display(),
            lock.display()
        )
    })
}

/// The computer and the process that hold the profile: its lock is a link to `HOST-PID`.
#[cfg(unix)]
fn holder(profile: &Path) -> Option<(String, u32)> {
    let target = std::fs::read_link(profile.join("SingletonLock")).ok()?;
    let (host, pid) = target.to_str()?.rsplit_once('-')?;
    Some((host.to_owned(), pid.parse().ok()?))
}

/// Whether a living browser holds the profile. A lock alone proves nothing: a browser that was killed leaves it behind,
/// and its number may be another process's by now.
#[cfg(unix)]
pub(crate) fn in_use(profile: &Path) -> bool {
    // Its holder listens on a socket. Through the link's target, which is short enough for a socket's address.
    let listens = std::fs::read_link(profile.join("SingletonSocket"))
        .is_ok_and(|socket| std::os::unix::net::UnixStream::connect(socket).is_ok());
    // The socket lies in a folder for temporary files, which may have been swept.
    let runs = || {
        let (_, pid) = holder(profile)?;
        let command = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).ok()?;
        let profile = profile.as_os_str().as_encoded_bytes();
        Some(command.windows(profile.len()).any(|part| part == profile))
    };
    listens || runs().unwrap_or(false)
}

#[cfg(not(unix))]
fn said_held_elsewhere(_profile: &Path) -> Option<String> {
    None
}

#[cfg(not(unix))]
pub(crate) fn in_use(_profile: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_left_behind_holds_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        let lock = folder.path().join("SingletonLock");
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // Our own process: it lives, and is no browser.
        std::os::unix::fs::symlink(format!("{host}-{}", std::process::id()), &lock).expect("lock");
        std::os::unix::fs::symlink(folder.path().join("gone"), folder.path().join("SingletonSocket")).expect("socket");
        assert!(!in_use(folder.path()));
        assert_eq!(said_held_elsewhere(folder.path()), None);
    }

    #[test]
    fn who_listens_holds_it() {
        let folder = tempfile::tempdir().expect("folder");
        let socket = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        std::os::unix::fs::symlink(&socket, folder.path().join("SingletonSocket")).expect("link");
        assert!(in_use(folder.path()));
        drop(listener);
        assert!(!in_use(folder.path()));
    }

    #[test]
    fn another_computers_lock_is_said() {
        let folder = tempfile::tempdir().expect("folder");
        let lock = folder.path().join("SingletonLock");
        std::os::unix::fs::symlink("far-away-7", &lock).expect("lock");
        let said = said_held_elsewhere(folder.path()).expect("said");
        assert!(said.contains("far-away") && said.contains("SingletonLock"), "{said}");
    }
}
