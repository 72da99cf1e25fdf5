//! Finding the browser on this machine.

use std::path::{Path, PathBuf};

use crate::BrowserError;

/// Names to look for on the search path, the freest first.
#[cfg(target_os = "linux")]
const NAMES: [&str; 9] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge-stable",
    "microsoft-edge",
    "brave-browser",
    "brave",
    "chrome",
];
#[cfg(target_os = "linux")]
const PLACES: [&str; 4] =
    ["/snap/bin/chromium", "/opt/google/chrome/chrome", "/opt/microsoft/msedge/msedge", "/opt/brave.com/brave/brave"];

#[cfg(target_os = "macos")]
const NAMES: [&str; 1] = ["chromium"];
#[cfg(target_os = "macos")]
const PLACES: [&str; 4] = [
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "/Applications/Brave Browser.app/Contents/MacOS/Brave Browser",
];

#[cfg(windows)]
const NAMES: [&str; 3] = ["chrome.exe", "msedge.exe", "brave.exe"];
#[cfg(windows)]
const PLACES: [&str; 4] = [
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    r"C:\Program Files\Microsoft\Edge\Application\msedge.exe",
    r"C:\Program Files\BraveSoftware\Brave-Browser\Application\brave.exe",
];

/// The browser to start: the one that is named, or the first that is found.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, BrowserError> {
    if let Some(path) = named {
        return match is_program(path) {
            true => Ok(path.to_owned()),
            false => Err(BrowserError::Unavailable {
                reason: format!(
                    "{} is not a program that can be started. Name a Chromium, Chrome, Edge or Brave with --browser PATH.",
                    path.display()
                ),
            }),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    find_in(std::env::split_paths(&search)).ok_or_else(|| BrowserError::Unavailable {
        reason:
            "No browser was found. Install Chromium (on Debian: apt install chromium), or name a Chromium, Chrome, \
                 Edge or Brave with --browser PATH."
                .to_owned(),
    })
}

fn find_in(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = folders.collect();
    let on_the_path = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    on_the_path.chain(PLACES.iter().map(PathBuf::from)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    let Ok(meta) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        meta.is_file() && meta.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        meta.is_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_is_no_program_is_said() {
        let error = find(Some(Path::new("/no/such/browser"))).expect_err("not there");
        assert!(error.to_string().contains("/no/such/browser") && error.to_string().contains("--browser PATH"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn chromium_comes_before_chrome_wherever_they_lie() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("folder");
        for (folder, name) in [("a", "google-chrome"), ("b", "chromium")] {
            let path = dir.path().join(folder);
            std::fs::create_dir(&path).expect("folder");
            std::fs::write(path.join(name), b"").expect("file");
            std::fs::set_permissions(path.join(name), std::fs::Permissions::from_mode(0o755)).expect("mode");
        }
        let found = find_in([dir.path().join("a"), dir.path().join("b")].into_iter());
        assert_eq!(found, Some(dir.path().join("b/chromium")));
    }
}
