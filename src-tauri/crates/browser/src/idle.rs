//! How long ago the person last touched mouse or keyboard.

use std::time::Duration;

/// The time since the last input to this desktop; `None` where it cannot be told.
#[cfg(target_os = "linux")]
pub(crate) fn since_last_input() -> Option<Duration> {
    use x11rb::connection::Connection as _;
    use x11rb::protocol::screensaver::ConnectionExt as _;

    // Under Wayland the X server hears only of input to X windows.
    if std::env::var_os("WAYLAND_DISPLAY").is_some() {
        return None;
    }
    // Asked seldom (once for each tab that is opened), so a connection for each question is cheap enough.
    let (connection, screen) = x11rb::connect(None).ok()?;
    let root = connection.setup().roots.get(screen)?.root;
    let info = connection.screensaver_query_info(root).ok()?.reply().ok()?;
    Some(Duration::from_millis(info.ms_since_user_input.into()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn since_last_input() -> Option<Duration> {
    None
}
