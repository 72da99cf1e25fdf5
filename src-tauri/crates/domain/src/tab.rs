//! Tabs and windows, as the browser has them.

use crate::{TabId, WindowId};

/// One tab. Titles, addresses and icons are the page's own words: inside [`crate::Raw`] until they are sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct Tab {
    /// Its id.
    pub id: TabId,
    /// The window that it stands in.
    pub window: WindowId,
    /// The page's title, or what the browser shows in its place.
    pub title: String,
    /// The page's address; while the first page is still awaited, the address that was asked for.
    pub url: String,
    /// The page's icon, an address or a `data:` URL, if it has one.
    pub favicon: Option<String>,
    /// Whether it is the selected tab of its window.
    pub active: bool,
    /// Whether the page is loading.
    pub loading: bool,
    /// Whether it plays sound; `None` where the browser cannot tell.
    pub audible: Option<bool>,
    /// Whether it is muted; `None` where the browser cannot tell.
    pub muted: Option<bool>,
    /// Whether the browser put the page out of memory until it is selected again.
    pub discarded: bool,
}

/// What kind of window it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowKind {
    /// An ordinary window with a tab strip.
    Normal,
    /// A window without a tab strip that a page opened, or an installed web app.
    Popup,
}

/// One window and its tabs, in strip order.
#[derive(Clone, PartialEq, Eq)]
pub struct Window {
    /// Its id.
    pub id: WindowId,
    /// What kind it is.
    pub kind: WindowKind,
    /// Whether it has the keyboard.
    pub focused: bool,
    /// Its tabs, in strip order.
    pub tabs: Vec<Tab>,
}
