//! Who is at the other end of a socket, as the operating system tells.

use tabwarden_domain::Peer;

/// The program whose process is only a bridge: who started it is the one to name.
const BRIDGE: &str = if cfg!(windows) { "tabwarden.exe" } else { "tabwarden" };

/// The process behind a connection. If that is our own stdio bridge, the process that started it.
pub(crate) fn behind(pid: u32) -> Peer {
    let peer = look_up(pid);
    match (is_bridge(&peer), parent(pid)) {
        (true, Some(parent)) => look_up(parent),
        _ => peer,
    }
}

fn look_up(pid: u32) -> Peer {
    Peer { pid, executable: executable(pid) }
}

fn is_bridge(peer: &Peer) -> bool {
    let Some(folder) = std::env::current_exe().ok().and_then(|path| path.parent().map(|folder| folder.join(BRIDGE)))
    else {
        return false;
    };
    peer.executable.as_ref().is_some_and(|path| *path == folder)
}

#[cfg(target_os = "linux")]
fn executable(pid: u32) -> Option<std::path::PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    // So the kernel marks a file that an upgrade has replaced while it ran.
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(before) => Some(before.into()),
        None => Some(path),
    }
}

#[cfg(target_os = "linux")]
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn executable(_pid: u32) -> Option<std::path::PathBuf> {
    None
}

#[cfg(not(target_os = "linux"))]
fn parent(_pid: u32) -> Option<u32> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_its_executable_and_parent() {
        let me = std::process::id();
        assert_eq!(behind(me).executable, std::env::current_exe().ok());
        assert_eq!(parent(me), Some(std::os::unix::process::parent_id()));
    }
}
