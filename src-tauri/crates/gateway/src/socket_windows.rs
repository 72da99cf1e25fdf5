//! A named pipe that only its owner can open, held by a lock file in the user's own folder.

use std::ffi::{OsStr, OsString, c_void};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use std::ptr;

use tabwarden_domain::Peer;
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::{ERROR_PIPE_BUSY, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES};
use windows_sys::Win32::System::Pipes::GetNamedPipeClientProcessId;

use super::{SocketError, SocketPath};
use crate::connection::Incoming;

/// A client's connection to the pipe.
pub type Stream = NamedPipeClient;
/// What a connection is written to.
pub(crate) type WriteHalf = tokio::io::WriteHalf<NamedPipeServer>;
/// What a connection is read from.
pub(crate) type ReadHalf = tokio::io::ReadHalf<NamedPipeServer>;
/// What a client reads from.
pub(crate) type ClientRead = tokio::io::ReadHalf<Stream>;
/// What a client writes to.
pub(crate) type ClientWrite = tokio::io::WriteHalf<Stream>;

/// Where named pipes live.
const PIPES: &str = r"\\.\pipe\";

/// Full access for the owner, and nobody else, whatever the default would be.
const OWNER_ONLY: &str = "D:P(A;;GA;;;OW)";

pub(super) fn usual_path(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, SocketError> {
    let user = variable("USERNAME").unwrap_or_default();
    Ok(format!("{PIPES}tabwarden-{}", plain(&user)).into())
}

/// A name in which nothing has a meaning for the system.
fn plain(name: &OsStr) -> String {
    name.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// A pipe's name that is ours, from the moment of taking it until this is dropped.
#[derive(Debug)]
pub struct BoundSocket {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl BoundSocket {
    /// Takes the name. Only one process of a user gets it.
    pub fn bind(socket: &SocketPath) -> Result<Self, SocketError> {
        let path = match socket.path.as_os_str().to_string_lossy().starts_with(PIPES) {
            true => socket.path.clone(),
            false => PathBuf::from(format!("{PIPES}tabwarden-{}", plain(socket.path.as_os_str()))),
        };
        let folder =
            std::env::var_os("LOCALAPPDATA").map(PathBuf::from).ok_or(SocketError::NoFolder)?.join("tabwarden");
        let unusable = |source| SocketError::Folder { folder: folder.clone(), source };
        std::fs::create_dir_all(&folder).map_err(unusable)?;
        let lock_path = folder.join(format!("{}.lock", plain(path.as_os_str())));
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, lock_path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(SocketError::InUse { path }),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }

    /// The pipe's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to accept, inside a tokio runtime.
    pub(crate) fn listen(self) -> io::Result<Listener> {
        // The first instance fails if a pipe of that name exists: nobody can have put one of theirs in our place.
        let next = Some(instance(&self.path, true)?);
        Ok(Listener { next, socket: self })
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

/// Accepts connections.
pub(crate) struct Listener {
    /// The instance that waits for a client.
    next: Option<NamedPipeServer>,
    socket: BoundSocket,
}

impl Listener {
    /// The next connection. The pipe's access list has already turned other users away.
    pub async fn accept(&mut self) -> io::Result<(ReadHalf, WriteHalf, Option<Peer>)> {
        let path = &self.socket.path;
        let waiting = match self.next.as_ref() {
            Some(waiting) => waiting,
            None => self.next.insert(instance(path, false)?),
        };
        waiting.connect().await?;
        // Another one waits before this one is served, so that no client finds the name gone.
        let after = instance(path, false)?;
        let Some(pipe) = self.next.replace(after) else { return Err(io::ErrorKind::NotConnected.into()) };
        let peer = client_process(&pipe).map(crate::peer::behind);
        let (read, write) = tokio::io::split(pipe);
        Ok((read, write, peer))
    }
}

#[allow(unsafe_code)]
fn instance(path: &Path, first: bool) -> io::Result<NamedPipeServer> {
    let access: Vec<u16> = OWNER_ONLY.encode_utf16().chain([0]).collect();
    let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
    // SAFETY: the text ends with a null, and the descriptor that comes back is freed below, after its last use.
    let made = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            access.as_ptr(),
            SDDL_REVISION_1,
            &mut descriptor,
            ptr::null_mut(),
        )
    };
    if made == 0 {
        return Err(io::Error::last_os_error());
    }
    let mut attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor,
        bInheritHandle: 0,
    };
    let mut options = ServerOptions::new();
    options.first_pipe_instance(first).reject_remote_clients(true);
    // SAFETY: the attributes and the descriptor in them live until after the call, which copies what it needs.
    let pipe = unsafe { options.create_with_security_attributes_raw(path, (&raw mut attributes).cast::<c_void>()) };
    // SAFETY: the descriptor came from the conversion above, which says to free it so.
    unsafe { LocalFree(descriptor) };
    pipe
}

#[allow(unsafe_code)]
fn client_process(pipe: &NamedPipeServer) -> Option<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open as long as `pipe` is borrowed, and `pid` is a place to write to.
    (unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &mut pid) } != 0).then_some(pid)
}

/// The two directions of a client's connection.
pub(crate) fn split(stream: Stream) -> (ClientRead, ClientWrite) {
    tokio::io::split(stream)
}

/// Connects to the pipe of a Tabwarden that runs.
pub async fn connect(path: &Path) -> io::Result<Stream> {
    loop {
        match ClientOptions::new().open(path) {
            // Each instance is taken for a moment, until the next one waits.
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            opened => return opened,
        }
    }
}

impl<T: Send + 'static> Incoming for tokio::io::ReadHalf<T>
where
    Self: tokio::io::AsyncRead + Unpin,
{
    fn hung_up(&self) -> bool {
        // A pipe that was closed ends for good: writing to it fails, and there is nothing to ask beforehand.
        false
    }
}
