//! A browser's beginning and end: started, killed, refused, attached to.
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use support::{Site, browser, is_alive, kill, open, quiet, signal, tab, tabs, titled, wait_for};
use tabwarden_browser::{Browser, BrowserConfig, BrowserError, Source};
use tabwarden_domain::{BrowserState, WritePermit};

fn pid(browser: &Browser) -> u32 {
    match browser.state() {
        BrowserState::Running { pid: Some(pid), .. } => pid,
        state => panic!("no browser of ours: {state:?}"),
    }
}

/// Why it did not start.
async fn refused(source: Source, headless: bool) -> String {
    let browser = Browser::new(BrowserConfig { source, headless, extra_args: quiet() });
    let error = browser.ensure_running().await.expect_err("it cannot start");
    assert!(matches!(error, BrowserError::Unavailable { .. }), "{error:?}");
    assert_eq!(browser.state(), BrowserState::Failed { reason: error.to_string() });
    error.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_is_noticed_and_started_again() {
    let folder = tempfile::tempdir().expect("folder");
    let browser = browser(folder.path(), false);
    // Several callers at once start one.
    let (a, b, c) = tokio::join!(browser.ensure_running(), browser.ensure_running(), browser.ensure_running());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let (first, old) = (pid(&browser), tabs(&browser).remove(0).id);
    kill(first);
    wait_for("the death to be noticed", || matches!(browser.state(), BrowserState::Failed { .. }).then_some(())).await;
    assert!(matches!(browser.windows(), Err(BrowserError::Unavailable { .. })));
    let close = browser.close_tab(WritePermit::for_the_person(old.clone())).await;
    assert!(matches!(close, Err(BrowserError::Unavailable { .. })), "{close:?}");
    browser.ensure_running().await.expect("started again");
    assert_ne!(pid(&browser), first);
    assert!(matches!(browser.tab(&old), Err(BrowserError::NoSuchTab(_))));
    let second = pid(&browser);
    browser.shutdown().await;
    assert!(!is_alive(second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_the_person_quits_has_stopped() {
    let folder = tempfile::tempdir().expect("folder");
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    let process = pid(&browser);
    let _ = Command::new("kill").arg(process.to_string()).status();
    wait_for("the end", || (browser.state() == BrowserState::Stopped).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_does_not_heed_is_ended() {
    let folder = tempfile::tempdir().expect("folder");
    let browser = browser(folder.path(), false);
    browser.ensure_running().await.expect("started");
    let process = pid(&browser);
    signal(process, "STOP");
    browser.shutdown().await;
    assert!(!is_alive(process));
    browser.ensure_running().await.expect("started again");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_answers_all_who_wait() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("folder");
    let (program, starts) = (folder.path().join("browser"), folder.path().join("starts"));
    std::fs::write(&program, format!("#!/bin/sh\necho x >> '{}'\nexit 1\n", starts.display())).expect("file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let source = Source::Launch { executable: Some(program), profile: folder.path().join("profile") };
    let browser = Browser::new(BrowserConfig { source, headless: true, extra_args: Vec::new() });
    let start = || browser.ensure_running();
    let outcomes = tokio::join!(start(), start(), start(), start());
    assert!(outcomes.0.is_err() && outcomes.1.is_err() && outcomes.2.is_err() && outcomes.3.is_err());
    assert_eq!(std::fs::read_to_string(&starts).expect("it was started").lines().count(), 1);
}

/// This test starts itself again as the process that is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_no_browser() {
    const FOLDER: &str = "TABWARDEN_TEST_HOST";
    const WINDOW: &str = "TABWARDEN_TEST_WINDOW";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let browser = browser(folder.as_ref(), std::env::var_os(WINDOW).is_some());
        browser.ensure_running().await.expect("started");
        println!("browser {}", pid(&browser));
        std::future::pending::<()>().await;
    }
    let folder = tempfile::tempdir().expect("folder");
    let mut browsers = Vec::new();
    // On one profile, each at once after the other's end: a browser that is still ending does not stand in the way.
    for window in [true, false, true] {
        let mut host = Command::new(std::env::current_exe().expect("this test"));
        host.args(["--exact", "a_killed_process_leaves_no_browser", "--nocapture"]).env(FOLDER, folder.path());
        if window {
            host.env(WINDOW, "1");
        }
        let mut host = host.stdout(Stdio::piped()).spawn().expect("started");
        let lines = BufReader::new(host.stdout.take().expect("stdout")).lines();
        let process = lines
            .map_while(Result::ok)
            .find_map(|line| line.split_once("browser ").and_then(|(_, pid)| pid.trim().parse().ok()))
            .expect("the browser's process");
        assert!(is_alive(process));
        browsers.push(process);
        host.kill().expect("killed");
        host.wait().expect("gone");
    }
    wait_for("the browsers to end with their hosts", || (!browsers.iter().any(|pid| is_alive(*pid))).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_is_said() {
    let folder = tempfile::tempdir().expect("folder");
    let profile = |name: &str| folder.path().join(name).join("profile");
    let launch = |executable: Option<&str>, name: &str| Source::Launch {
        executable: executable.map(Into::into),
        profile: profile(name),
    };
    let check = |said: String, expect: &str| assert!(said.contains(expect), "'{expect}' is not in: {said}");

    check(refused(launch(Some("/no/such/browser"), "a"), true).await, "--browser PATH");
    check(refused(launch(Some("/bin/false"), "b"), true).await, "ended while it started");
    std::fs::write(folder.path().join("c"), b"").expect("file");
    check(refused(launch(None, "c"), true).await, "--data-dir DIR");

    let holder = browser(folder.path(), false);
    holder.ensure_running().await.expect("started");
    let taken = Source::Launch { executable: None, profile: folder.path().join("profile") };
    check(refused(taken, true).await, "in use by another browser");
    assert!(matches!(holder.state(), BrowserState::Running { .. }), "the first one lives on");

    std::fs::create_dir_all(profile("e")).expect("folder");
    std::os::unix::fs::symlink("far-away-7", profile("e").join("SingletonLock")).expect("lock");
    check(refused(launch(None, "e"), true).await, "on the computer far-away");

    let source = Source::Launch { executable: None, profile: profile("d") };
    let extra_args = [quiet(), vec!["--display=:987".to_owned()]].concat();
    let blind = Browser::new(BrowserConfig { source, headless: false, extra_args });
    check(blind.ensure_running().await.expect_err("no display").to_string(), "tabwarden serve --headless");

    for address in ["http://127.0.0.1:1/", "ws://127.0.0.1:1/devtools/browser/x", "nonsense"] {
        check(refused(Source::Attach { address: address.into(), local: true }, true).await, "--attach");
    }
}

/// A browser that somebody else started, with a debugging port.
struct Theirs {
    process: std::process::Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Theirs {
    fn start(page: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let mut process = Command::new("chromium")
            .args(["--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-port=0"])
            .args(quiet())
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .arg(page)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium starts");
        let address = BufReader::new(process.stderr.take().expect("stderr"))
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("DevTools listening on ").map(|(_, address)| address.trim().to_owned()))
            .expect("its address");
        Self { process, address, _folder: folder }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Attaches, works and lets go.
async fn attached(local: bool) {
    let site = Site::start();
    let theirs = Theirs::start(&site.url("/title/theirs"));
    let source = Source::Attach { address: theirs.address.clone(), local };
    let browser = Browser::new(BrowserConfig { source, headless: false, extra_args: Vec::new() });
    browser.ensure_running().await.expect("attached");
    let BrowserState::Running { companion, pid: None, .. } = browser.state() else { panic!("{:?}", browser.state()) };
    assert_eq!(companion, local);
    let first = wait_for("their page", || tabs(&browser).into_iter().find(|t| t.title == "theirs")).await;
    let known = local.then_some(false);
    assert_eq!((first.audible, first.muted, first.active), (known, known, true));

    let opened = open(&browser, &site.url("/title/opened")).await;
    titled(&browser, &opened.id, "opened").await;
    wait_for("the selection", || tab(&browser, &opened.id).active.then_some(())).await;
    browser.focus_tab(&first.id).await.expect("selected");
    wait_for("the selection", || (tab(&browser, &first.id).active && !tab(&browser, &opened.id).active).then_some(()))
        .await;
    let mute = browser.mute_tab(WritePermit::for_the_person(first.id.clone()), true).await;
    assert_eq!(mute.is_ok(), local, "{mute:?}");
    browser.close_tab(WritePermit::for_the_person(opened.id.clone())).await.expect("closed");
    assert!(matches!(browser.tab(&opened.id), Err(BrowserError::NoSuchTab(_))));

    browser.shutdown().await;
    assert_eq!(browser.state(), BrowserState::Stopped);
    assert!(is_alive(theirs.process.id()), "a browser that is not ours is left running");
    // It can be attached to again, and its end is noticed.
    browser.ensure_running().await.expect("attached again");
    drop(theirs);
    wait_for("its end to be noticed", || matches!(browser.state(), BrowserState::Failed { .. }).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_runs_is_attached_to_and_left_running() {
    attached(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_elsewhere_is_driven_without_the_companion() {
    attached(false).await;
}
