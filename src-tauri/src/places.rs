//! Where Tabwarden keeps what it keeps.

use std::io;
use std::path::{Path, PathBuf};

/// The data folder and what lies in it.
#[derive(Clone, Debug)]
pub struct DataDir(PathBuf);

/// Why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The system names no place for it.
    #[error("The system names no folder for user data. Name one with --data-dir DIR.")]
    NoHome,
    /// It cannot be made or written to.
    #[error("The data folder {} cannot be written to ({source}). Mend its permissions or name another with --data-dir DIR.", path.display())]
    Unwritable {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl DataDir {
    /// Opens the data folder, making it where it does not exist, and tries that it can be written to.
    pub fn open(explicit: Option<&Path>) -> Result<Self, DataDirError> {
        let path = match explicit {
            Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            None => dirs::data_dir().ok_or(DataDirError::NoHome)?.join("tabwarden"),
        };
        let unwritable = |source| DataDirError::Unwritable { path: path.clone(), source };
        make_private(&path).map_err(unwritable)?;
        let probe = path.join(format!(".probe-{}", std::process::id()));
        std::fs::write(&probe, b"").map_err(unwritable)?;
        std::fs::remove_file(&probe).map_err(unwritable)?;
        Ok(Self(path))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The browser's profile.
    pub fn profile(&self) -> PathBuf {
        self.0.join("profile")
    }
}

/// Makes a folder that only its owner can enter.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_is_made_and_tried() {
        let dir = tempfile::tempdir().expect("temp folder");
        let data = DataDir::open(Some(&dir.path().join("a/b"))).expect("made");
        assert!(data.path().is_dir());
        let file = dir.path().join("file");
        std::fs::write(&file, b"").expect("file");
        let error = DataDir::open(Some(&file.join("below"))).expect_err("no folder below a file");
        assert!(error.to_string().contains("--data-dir DIR"), "{error}");
    }
}
