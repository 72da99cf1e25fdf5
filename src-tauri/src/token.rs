//! The bearer token of the HTTP address: in the system's keyring, or in a file where there is none.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The name of the entry in the keyring.
const SERVICE: &str = "tabwarden";
/// The shortest token that is taken from a file, in characters.
const SHORTEST: usize = 16;
/// Bytes of randomness in a token.
const LENGTH: usize = 32;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The keyring does not answer.
    #[error(
        "The system's keyring cannot be used ({0}). Start it, or keep the HTTP token in a file with --token-file PATH."
    )]
    Keyring(keyring::Error),
    /// The file cannot be used.
    #[error("The token file {} cannot be used ({source}). Mend it or name another with --token-file PATH.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file can be read by others.
    #[error("The token file {} can be read by others. Run: chmod 600 {}", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The file holds no token, or one that is easily guessed.
    #[error("The token file {} holds no line of {SHORTEST} or more plain characters. Remove it, and a new one is made.", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
    },
}

/// The token for HTTP clients of the instance at this data folder; made at the first use. May wait for the keyring.
pub fn token(file: Option<&Path>, data_dir: &Path) -> Result<String, TokenError> {
    match file {
        Some(path) => from_file(path),
        None => from_keyring(&format!("http token of {}", data_dir.display())).map_err(TokenError::Keyring),
    }
}

fn from_keyring(user: &str) -> Result<String, keyring::Error> {
    let entry = match keyring::Entry::new(SERVICE, user) {
        Ok(entry) => entry,
        // The store's own failure says more than "there is no default store".
        Err(keyring::Error::NoDefaultStore) => match keyring::Entry::store_status() {
            Err(error) => return Err(keyring::Error::NoStorageAccess(error.to_string().into())),
            Ok(()) => return Err(keyring::Error::NoDefaultStore),
        },
        Err(error) => return Err(error),
    };
    match entry.get_password() {
        Err(keyring::Error::NoEntry) => {
            let token = random();
            entry.set_password(&token)?;
            Ok(token)
        }
        found => found,
    }
}

fn from_file(path: &Path) -> Result<String, TokenError> {
    let failed = |source| TokenError::File { path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    match options.open(path) {
        Ok(mut file) => {
            let token = random();
            writeln!(file, "{token}").and_then(|()| file.sync_all()).map_err(failed)?;
            Ok(token)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if std::fs::metadata(path).map_err(failed)?.is_dir() {
                return Err(failed(std::io::ErrorKind::IsADirectory.into()));
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(TokenError::Exposed { path: path.to_owned() });
                }
            }
            let text = std::fs::read_to_string(path).map_err(failed)?;
            let token = text.trim();
            match token.len() >= SHORTEST && token.bytes().all(|byte| byte.is_ascii_graphic()) {
                true => Ok(token.to_owned()),
                false => Err(TokenError::Unfit { path: path.to_owned() }),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

fn random() -> String {
    rand::random::<[u8; LENGTH]>().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_made_private_and_read_again() {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("token");
        let first = token(Some(&path), dir.path()).expect("made");
        assert_eq!(first.len(), 2 * LENGTH);
        assert_eq!(token(Some(&path), dir.path()).expect("read"), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).expect("meta").permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("chmod");
            assert!(matches!(token(Some(&path), dir.path()), Err(TokenError::Exposed { .. })));
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("chmod");
        }
        for unfit in ["", "\n", "short", "two lines\nof a token file", "nul\0nul\0nul\0nul\0nul\0"] {
            std::fs::write(&path, unfit).expect("written");
            assert!(matches!(token(Some(&path), dir.path()), Err(TokenError::Unfit { .. })), "{unfit:?}");
        }
        assert!(matches!(token(Some(dir.path()), dir.path()), Err(TokenError::File { .. })));
        assert!(matches!(token(Some(&dir.path().join("no/token")), dir.path()), Err(TokenError::File { .. })));
    }
}
