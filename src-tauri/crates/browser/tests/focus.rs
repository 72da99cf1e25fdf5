//! The person at work. Alone in its program: input belongs to the whole display, and other tests would feel it.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

use std::process::Command;

use support::{Site, browser, open, open_in, settled, tab, titled, wait_for, windows};

#[tokio::test(flavor = "multi_thread")]
async fn the_person_at_work_keeps_the_focus() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), true);
    browser.ensure_running().await.expect("started");
    let mine = open(&browser, &site.url("/title/mine")).await;
    titled(&browser, &mine.id, "mine").await;
    browser.focus_tab(&mine.id).await.expect("raised");
    wait_for("the window to have the keyboard", || windows(&browser).iter().any(|w| w.focused).then_some(())).await;
    let touched =
        Command::new("xdotool").args(["mousemove", "400", "400", "click", "1"]).status().expect("xdotool runs");
    assert!(touched.success());
    let theirs = open_in(&browser, Some(&site.url("/title/theirs")), true, None).await;
    assert!(!theirs.active && tab(&browser, &mine.id).active, "the person's tab stays selected");
    settled(&browser).await;
}
