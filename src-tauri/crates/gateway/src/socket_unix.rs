//! A Unix domain socket, held by a lock file beside it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tabwarden_domain::Peer;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use super::{SocketError, SocketPath};
use crate::connection::Incoming;

/// A client's connection to the socket.
pub type Stream = UnixStream;
/// What a connection is read from.
pub(crate) type ReadHalf = OwnedReadHalf;
/// What a connection is written to.
pub(crate) type WriteHalf = OwnedWriteHalf;

/// What a client reads from.
pub(crate) type ClientRead = OwnedReadHalf;
/// What a client writes to.
pub(crate) type ClientWrite = OwnedWriteHalf;

/// The longest path that fits into `sockaddr_un`, in bytes.
const LONGEST: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// How many connections may wait to be accepted: a thousand at once must not be turned away by the system.
const BACKLOG: i32 = 4096;

pub(super) fn usual_path(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, SocketError> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(runtime) = folder("XDG_RUNTIME_DIR") {
        return Ok(runtime.join("tabwarden/mcp.sock"));
    }
    let home = folder("HOME").ok_or(SocketError::NoFolder)?;
    let state = match cfg!(target_os = "macos") {
        true => home.join("Library/Application Support"),
        false => folder("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state")),
    };
    Ok(state.join("tabwarden/run/mcp.sock"))
}

/// A socket that is ours, from the moment of its making until this is dropped.
#[derive(Debug)]
pub struct BoundSocket {
    listener: StdListener,
    path: PathBuf,
    /// Which file at `path` is ours.
    inode: (u64, u64),
    lock: Lock,
}

impl BoundSocket {
    /// Takes the socket. Only one process gets it; a socket file that nobody holds is replaced.
    pub fn bind(socket: &SocketPath) -> Result<Self, SocketError> {
        let path = socket.path.clone();
        let length = path.as_os_str().len();
        if length > LONGEST {
            return Err(SocketError::TooLong { path, length, limit: LONGEST });
        }
        prepare_folder(socket)?;
        let lock = Lock::take(&path)?;
        let refused = |source| SocketError::Refused { path: path.clone(), source };
        match std::fs::symlink_metadata(&path) {
            // Somebody answers on it without holding our lock: another program, whose socket is not ours to remove.
            Ok(found) if found.file_type().is_socket() && StdStream::connect(&path).is_ok() => {
                return Err(SocketError::InUse { path });
            }
            Ok(found) if found.file_type().is_socket() => std::fs::remove_file(&path).map_err(refused)?,
            Ok(_) => return Err(SocketError::NotASocket { path }),
            Err(_) => {}
        }
        let listener = StdListener::bind(&path).map_err(refused)?;
        // Between these two lines others could connect, but the peer's user is checked before a byte is read.
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(refused)?;
        rustix::net::listen(&listener, BACKLOG).map_err(|error| refused(error.into()))?;
        listener.set_nonblocking(true).map_err(refused)?;
        let inode = inode(&path).map_err(refused)?;
        Ok(Self { listener, path, inode, lock })
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to accept, inside a tokio runtime.
    pub(crate) fn listen(self) -> io::Result<Listener> {
        let listener = UnixListener::from_std(self.listener.try_clone()?)?;
        Ok(Listener { listener, _socket: self })
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        if inode(&self.path).is_ok_and(|inode| inode == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
        // Last, and while it is still locked: whoever waits for it then makes a new one.
        let _ = std::fs::remove_file(&self.lock.path);
    }
}

fn inode(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

fn prepare_folder(socket: &SocketPath) -> Result<(), SocketError> {
    let Some(folder) = socket.path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let unusable = |source| SocketError::Folder { folder: folder.to_owned(), source };
    if !folder.exists() {
        return DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable);
    }
    if !socket.own_folder {
        // A folder that the user named keeps its mode, unless others could put a socket of theirs in our place. In one
        // like /tmp, where everybody removes only their own, they cannot.
        let mode = std::fs::metadata(folder).map_err(unusable)?.mode();
        return match mode & 0o022 != 0 && mode & 0o1000 == 0 {
            true => Err(SocketError::OpenFolder { folder: folder.to_owned() }),
            false => Ok(()),
        };
    }
    let found = std::fs::symlink_metadata(folder).map_err(unusable)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(SocketError::ForeignFolder { folder: folder.to_owned() });
    }
    if found.mode() & 0o777 != 0o700 {
        std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(unusable)?;
    }
    Ok(())
}

/// The lock file. The system frees it however the process ends.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    fn take(socket: &Path) -> Result<Self, SocketError> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let unusable =
            |source| SocketError::Folder { folder: socket.parent().map_or_else(PathBuf::new, Path::to_owned), source };
        loop {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&path)
                .map_err(unusable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(SocketError::InUse { path: socket.to_owned() }),
                Err(TryLockError::Error(source)) => return Err(unusable(source)),
            }
            // The one before may have removed the file between our opening and locking it; such a lock is worth nothing.
            let locked = file.metadata().map(|file| (file.dev(), file.ino())).map_err(unusable)?;
            if inode(&path).is_ok_and(|inode| inode == locked) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

/// Accepts connections.
pub(crate) struct Listener {
    listener: UnixListener,
    /// Removes the socket at the end.
    _socket: BoundSocket,
}

impl Listener {
    /// The next connection of the same user. Others are closed before a byte is read.
    pub async fn accept(&mut self) -> io::Result<(ReadHalf, WriteHalf, Option<Peer>)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let who = stream.peer_cred()?;
            if who.uid() != rustix::process::geteuid().as_raw() {
                tracing::warn!(uid = who.uid(), "refused a connection of another user");
                continue;
            }
            let peer = who.pid().and_then(|pid| u32::try_from(pid).ok()).map(crate::peer::behind);
            let (read, write) = stream.into_split();
            return Ok((read, write, peer));
        }
    }
}

/// The two directions of a client's connection.
pub(crate) fn split(stream: Stream) -> (ClientRead, ClientWrite) {
    stream.into_split()
}

/// Connects to the socket of a Tabwarden that runs.
pub async fn connect(path: &Path) -> io::Result<Stream> {
    Stream::connect(path).await
}

impl Incoming for OwnedReadHalf {
    fn hung_up(&self) -> bool {
        let stream: &UnixStream = self.as_ref();
        let mut fds = [PollFd::new(stream, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Asked of the system directly: the runtime's own notice of it may come later than the end of the stream.
        matches!(poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: PathBuf) -> SocketPath {
        SocketPath { path, own_folder: true }
    }

    #[test]
    fn the_usual_path_follows_the_environment() {
        fn check(set: &[(&str, &str)], expect: Option<&str>) {
            let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            assert_eq!(usual_path(variable).ok(), expect.map(PathBuf::from), "{set:?}");
        }
        check(&[("XDG_RUNTIME_DIR", "/run/u"), ("HOME", "/h")], Some("/run/u/tabwarden/mcp.sock"));
        check(&[], None);
        if cfg!(target_os = "linux") {
            check(&[("XDG_RUNTIME_DIR", ""), ("HOME", "/h")], Some("/h/.local/state/tabwarden/run/mcp.sock"));
        }
    }

    #[test]
    fn a_socket_is_private_held_once_and_gone_afterwards() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("own/mcp.sock");
        let bound = BoundSocket::bind(&at(path.clone())).expect("bound");
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").mode() & 0o777;
        assert_eq!((mode(&folder.path().join("own")), mode(&path)), (0o700, 0o600));
        assert!(matches!(BoundSocket::bind(&at(path.clone())), Err(SocketError::InUse { .. })));
        assert!(path.exists(), "the live socket was left alone");
        drop(bound);
        assert_eq!(std::fs::read_dir(folder.path().join("own")).expect("folder").count(), 0);
        BoundSocket::bind(&at(path)).expect("free again");
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_plain_file_is_not() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("mcp.sock");
        drop(StdListener::bind(&path).expect("a socket that nobody holds any more"));
        File::create(folder.path().join("mcp.sock.lock")).expect("a lock file that nobody holds");
        drop(BoundSocket::bind(&at(path.clone())).expect("replaced"));
        std::fs::write(&path, "notes").expect("file");
        assert!(matches!(BoundSocket::bind(&at(path.clone())), Err(SocketError::NotASocket { .. })));
        assert_eq!(std::fs::read_to_string(&path).expect("file"), "notes");
    }

    #[test]
    fn a_path_that_cannot_be_is_refused_in_one_sentence_with_what_to_do() {
        let folder = tempfile::tempdir().expect("folder");
        let long = folder.path().join("x".repeat(120));
        let error = BoundSocket::bind(&at(long)).expect_err("too long");
        assert!(matches!(error, SocketError::TooLong { .. }));
        assert!(error.to_string().contains("Name a shorter one with --socket PATH."), "{error}");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("file");
        let error = BoundSocket::bind(&at(file.join("sub/mcp.sock"))).expect_err("a file is no folder");
        assert!(matches!(error, SocketError::Folder { .. }), "{error}");
    }

    #[test]
    fn a_folder_that_others_may_enter_is_made_private_if_it_is_ours() {
        let folder = tempfile::tempdir().expect("folder");
        let open = folder.path().join("open");
        std::fs::create_dir(&open).expect("folder");
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).expect("mode");
        let _bound = BoundSocket::bind(&at(open.join("mcp.sock"))).expect("bound");
        assert_eq!(std::fs::metadata(&open).expect("metadata").mode() & 0o777, 0o700);
    }
}
