//! The mirror and the acts, on a real Chromium.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

use std::time::Instant;

use support::{
    PATIENCE, Site, act, browser, extension_process, kill, mirrored, open, open_in, settled, tab, tabs, titled,
    wait_for, windows,
};
use tabwarden_browser::BrowserError;
use tabwarden_domain::{BrowserState, TabId, WindowKind, WritePermit};

async fn close(browser: &tabwarden_browser::Browser, id: &TabId) -> Result<(), BrowserError> {
    browser.close_tab(WritePermit::for_the_person(id.clone())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_open_change_and_close() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), true);
    browser.ensure_running().await.expect("started");
    assert!(matches!(browser.state(), BrowserState::Running { companion: true, .. }));
    assert_eq!(tabs(&browser).len(), 1);

    let one = open(&browser, &site.url("/title/one")).await;
    assert_eq!((one.url.as_str(), one.active), (site.url("/title/one").as_str(), true));
    let one = titled(&browser, &one.id, "one").await;
    assert_eq!((one.audible, one.muted), (Some(false), Some(false)));
    let two = open_in(&browser, Some(&site.url("/title/two")), false, None).await;
    assert!(!two.active && tab(&browser, &one.id).active);
    titled(&browser, &two.id, "two").await;

    browser.focus_tab(&two.id).await.expect("selected");
    assert!(tab(&browser, &two.id).active && !tab(&browser, &one.id).active);
    browser.mute_tab(WritePermit::for_the_person(two.id.clone()), true).await.expect("muted");
    assert_eq!(tab(&browser, &two.id).muted, Some(true));

    close(&browser, &one.id).await.expect("closed");
    assert!(matches!(browser.tab(&one.id), Err(BrowserError::NoSuchTab(_))));
    assert!(matches!(close(&browser, &one.id).await, Err(BrowserError::NoSuchTab(_))));
    settled(&browser).await;
    browser.shutdown().await;
    assert_eq!(browser.state(), BrowserState::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_object_or_hang_close_at_once() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), true);
    browser.ensure_running().await.expect("started");
    for (path, title) in [("/asks-before-leaving", "Asks"), ("/never-idle", "Busy"), ("/asks", "Alerts")] {
        let page = open(&browser, &site.url(path)).await;
        wait_for(title, || (tab(&browser, &page.id).title == title).then_some(())).await;
        close(&browser, &page.id).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    settled(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_closes_of_one_tab_do_not_fail() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    for _ in 0..5 {
        let page = open(&browser, &site.url("/title/page")).await;
        let (one, other) = tokio::join!(close(&browser, &page.id), close(&browser, &page.id));
        for closed in [one, other] {
            assert!(matches!(closed, Ok(()) | Err(BrowserError::NoSuchTab(_))), "{closed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_is_the_browsers_own() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    let page = open(&browser, &site.url("/late-frame")).await;
    // Of a frame that comes after its page has loaded, Chromium sends no event of its own.
    wait_for("the frame", || {
        let tab = tab(&browser, &page.id);
        (tab.title == "Later" && tab.loading).then_some(())
    })
    .await;
    site.release();
    wait_for("the frame to load", || (!tab(&browser, &page.id).loading).then_some(())).await;
    settled(&browser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restless_pages_hold_nobody_up() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    for _ in 0..6 {
        open_in(&browser, Some(&site.url("/restless")), false, None).await;
    }
    let half = open(&browser, &site.url("/half-a-character")).await;
    assert_eq!(titled(&browser, &half.id, "half \u{fffd}").await.title, "half \u{fffd}");
    close(&browser, &half.id).await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_companion_is_healed() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    let page = open(&browser, &site.url("/restless")).await;
    let BrowserState::Running { pid: Some(pid), .. } = browser.state() else { panic!("{:?}", browser.state()) };
    let crashed = extension_process(pid).expect("the extensions' process");
    kill(crashed);
    wait_for("another process", || extension_process(pid).filter(|another| *another != crashed)).await;
    // The page counts on in its title, so that what comes now was seen by the new one.
    let count = || tab(&browser, &page.id).title.strip_prefix("title ").and_then(|n| n.parse::<u32>().ok());
    let reached = wait_for("the title", count).await;
    wait_for("the title to go on", || count().filter(|now| *now > reached + 100)).await;
    let after = open(&browser, &site.url("/title/after")).await;
    titled(&browser, &after.id, "after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_person_does_shows() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), true);
    browser.ensure_running().await.expect("started");

    // A second window, and a tab that moves there and keeps its id.
    let moved = open(&browser, &site.url("/title/moved")).await;
    let before = titled(&browser, &moved.id, "moved").await.window;
    act(
        &browser,
        "chrome.tabs.query({title: 'moved'}).then(([t]) => chrome.windows.create({tabId: t.id})).then(() => 1)",
    )
    .await;
    wait_for("the move", || (tab(&browser, &moved.id).window != before).then_some(())).await;
    settled(&browser).await;

    // A popup window is told apart.
    act(
        &browser,
        &format!("chrome.windows.create({{type: 'popup', url: '{}'}}).then(() => 1)", site.url("/title/popup")),
    )
    .await;
    wait_for("the popup", || windows(&browser).iter().any(|w| w.kind == WindowKind::Popup).then_some(())).await;

    // A discarded tab is still that tab.
    let kept = open_in(&browser, Some(&site.url("/title/kept")), false, None).await;
    titled(&browser, &kept.id, "kept").await;
    act(&browser, "chrome.tabs.query({title: 'kept'}).then(([t]) => chrome.tabs.discard(t.id)).then(() => 1)").await;
    wait_for("the discard", || tab(&browser, &kept.id).discarded.then_some(())).await;
    settled(&browser).await;
    close(&browser, &kept.id).await.expect("a discarded tab closes");

    // A page opens another.
    act(
        &browser,
        "chrome.tabs.query({title: 'popup'}).then(([t]) => chrome.debugger.attach({tabId: t.id}, '1.3')
        .then(() => chrome.debugger.sendCommand({tabId: t.id}, 'Runtime.evaluate',
            {expression: \"open('/title/child'); 1\", userGesture: true}))
        .then(() => chrome.debugger.detach({tabId: t.id}))).then(() => 1)",
    )
    .await;
    wait_for("the page's own", || tabs(&browser).iter().any(|t| t.title == "child").then_some(())).await;
    settled(&browser).await;

    // A navigation by hand.
    act(&browser, &format!("chrome.tabs.query({{title: 'moved'}}).then(([t]) => chrome.tabs.update(t.id, {{url: '{}'}})).then(() => 1)", site.url("/title/elsewhere"))).await;
    assert_eq!(titled(&browser, &moved.id, "elsewhere").await.url, site.url("/title/elsewhere"));

    // A crash: the tab stays in the strip.
    act(
        &browser,
        "chrome.tabs.query({title: 'elsewhere'}).then(([t]) => chrome.debugger.attach({tabId: t.id}, '1.3')
        .then(() => { chrome.debugger.sendCommand({tabId: t.id}, 'Page.crash').catch(() => 0); })).then(() => 1)",
    )
    .await;
    settled(&browser).await;
    assert!(browser.tab(&moved.id).is_ok());
    close(&browser, &moved.id).await.expect("a crashed tab closes");

    // Sound.
    let sounds = open(&browser, &site.url("/sounds")).await;
    wait_for("sound", || (tab(&browser, &sounds.id).audible == Some(true)).then_some(())).await;

    // Extensions' own pages are nobody's tab.
    let count = tabs(&browser).len();
    act(&browser, "chrome.tabs.create({url: chrome.runtime.getURL('manifest.json')}).then(() => 1)").await;
    act(&browser, "companion.begin().then(() => 1)").await;
    assert_eq!(tabs(&browser).len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_outlives_its_last_window() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), true);
    browser.ensure_running().await.expect("started");
    let last = tabs(&browser).remove(0);
    assert!(browser.is_last_tab(&last.id));
    close(&browser, &last.id).await.expect("closed");
    assert!(windows(&browser).is_empty());
    let next = open(&browser, &site.url("/title/next")).await;
    titled(&browser, &next.id, "next").await;
    assert!(matches!(browser.state(), BrowserState::Running { .. }));
    let window = next.window.clone();
    let there = open_in(&browser, None, true, Some(window.clone())).await;
    assert_eq!(there.window, window);
    assert!(!browser.is_last_tab(&there.id));
}

/// Several hundred changes by the person and the agent at once; then the mirror equals the browser.
#[tokio::test(flavor = "multi_thread")]
async fn the_mirror_equals_the_browser_after_a_storm() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    for round in 0..4 {
        let storm = format!(
            "globalThis.raging = true;
            (async () => {{
                let seed = {round} + 1;
                const random = n => (seed = (seed * 48271) % 2147483647) % n;
                for (let i = 0; i < 60; i++) {{
                    const tabs = await chrome.tabs.query({{}});
                    const tab = tabs[random(tabs.length)];
                    try {{
                        switch (random(8)) {{
                            case 0: await chrome.tabs.create({{url: '{site}' + i}}); break;
                            case 1: await chrome.tabs.create({{url: '{site}' + i, active: false, index: 0}}); break;
                            case 2: if (tabs.length > 3) await chrome.tabs.remove(tab.id); break;
                            case 3: await chrome.tabs.move(tab.id, {{index: random(5)}}); break;
                            case 4: await chrome.tabs.update(tab.id, {{url: '{site}u' + i}}); break;
                            case 5: await chrome.tabs.update(tab.id, {{active: true}}); break;
                            case 6: if (tabs.length > 6) await chrome.windows.create({{tabId: tab.id}}); break;
                            case 7: await chrome.tabs.update(tab.id, {{pinned: !tab.pinned}}); break;
                        }}
                    }} catch (error) {{ /* The tab closed meanwhile. */ }}
                }}
            }})().finally(() => {{ raging = false; }});
            1",
            site = site.url("/title/s"),
        );
        act(&browser, &storm).await;
        for i in 0..15 {
            let tab = open_in(&browser, Some(&site.url(&format!("/title/a{round}-{i}"))), i % 2 == 0, None).await;
            if i % 3 == 0 {
                // The storm may have been faster.
                let _ = close(&browser, &tab.id).await;
            }
        }
        let over = async { while act(&browser, "raging").await == true {} };
        tokio::time::timeout(PATIENCE, over).await.expect("the storm ends");
        settled(&browser).await;
    }
    assert!(!mirrored(&browser).is_empty());
}

/// Prints what an act takes. Judges nothing.
#[tokio::test(flavor = "multi_thread")]
async fn latencies_are_printed() {
    let folder = tempfile::tempdir().expect("folder");
    let site = Site::start();
    let browser = browser(folder.path(), false);
    let start = Instant::now();
    browser.ensure_running().await.expect("started");
    println!("start {:?}", start.elapsed());
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for i in 0..20 {
        let start = Instant::now();
        let tab = open(&browser, &site.url(&format!("/title/{i}"))).await;
        opened.push(start.elapsed());
        titled(&browser, &tab.id, &i.to_string()).await;
        let start = Instant::now();
        close(&browser, &tab.id).await.expect("closed");
        closed.push(start.elapsed());
    }
    opened.sort();
    closed.sort();
    println!("open p50 {:?}, close p50 {:?}", opened[10], closed[10]);
}
