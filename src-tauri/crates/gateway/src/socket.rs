//! The local socket: where it lies, who holds it, and how a client gets to it.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
#[path = "socket_unix.rs"]
mod os;
#[cfg(windows)]
#[path = "socket_windows.rs"]
mod os;

pub use os::{BoundSocket, Stream, connect};
pub(crate) use os::{ClientRead, ClientWrite, WriteHalf, split};

/// Where the socket lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// Whether the folder is ours alone: then it is made private. A folder that the user named is left as it is.
    own_folder: bool,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another Tabwarden holds it.
    #[error("Another Tabwarden already serves on {}. Use that one, or name another socket with --socket PATH.", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path is longer than the system takes.
    #[error("The socket path {} has {length} bytes, and this system takes {limit}. Name a shorter one with --socket PATH.", path.display())]
    TooLong {
        /// The socket.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The longest that goes, in bytes.
        limit: usize,
    },
    /// Neither a run-time folder nor a home folder is known.
    #[error(
        "There is no folder for the socket, since neither XDG_RUNTIME_DIR nor HOME is set. Name one with --socket PATH."
    )]
    NoFolder,
    /// The folder cannot be made or written.
    #[error("The socket's folder {} cannot be used ({source}). Make it writable, or name another socket with --socket PATH.", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder belongs to somebody else.
    #[error("The socket's folder {} belongs to another user. Name another socket with --socket PATH.", folder.display())]
    ForeignFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// Others than its owner may write to the folder.
    #[error("The socket's folder {} can be written to by others. Run: chmod 700 {}, or name another socket with --socket PATH.", folder.display(), folder.display())]
    OpenFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// Something that is no socket stands at the path.
    #[error("{} exists and is no socket. Move it away, or name another socket with --socket PATH.", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused it.
    #[error("The socket {} cannot be made ({source}). Name another with --socket PATH.", path.display())]
    Refused {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SocketPath {
    /// The path that was named, or else the usual one of this user.
    pub fn resolve(explicit: Option<&Path>) -> Result<Self, SocketError> {
        match explicit {
            Some(path) => Ok(Self { path: path.to_owned(), own_folder: false }),
            None => Ok(Self { path: os::usual_path(|name| std::env::var_os(name))?, own_folder: true }),
        }
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}
