//! The main job, measured: a real server, a real Chromium, plain clients on the socket; Chromium alone beside it.
//!
//! `cargo xtask bench` runs it. It prints figures and judges nothing: what they should be stands in CONTRIBUTING.md.
#![allow(clippy::print_stdout, reason = "figures are what it is for")]
#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use common::{Client, Instance, Site, command, stop, wait_for};
use serde_json::{Value, json};

fn main() {
    let site = Site::start();
    starts();
    let instance = Instance::serve(&[]);
    let mut client = instance.client("bench");
    client.ok("browser_set_allowed_domains", json!({ "domains": ["localhost"] }));
    let mut open = client.tabs().len();
    for tabs in [1, 10, 50] {
        while open < tabs {
            client.ok("browser_tab_new", json!({ "url": site.url("app", &format!("/{open}")), "active": false }));
            open += 1;
        }
        settle(&mut client);
        let mut times = samples(5_000, || drop(client.call("browser_tab_list", json!({}))));
        println!("list, {tabs} tabs, over the socket      {}", percentiles(&mut times));
    }
    let others: Vec<Client> = (0..3).map(|n| instance.client(&format!("bench {n}"))).collect();
    println!("server memory, 50 tabs, 4 clients   {:.1} MB (PSS)", megabytes(instance.child.id()));
    drop(others);
    while open > 10 {
        let last = client.tabs().pop().expect("a tab");
        client.ok("browser_tab_close", json!({ "tab_id": last["id"] }));
        open -= 1;
    }
    settle(&mut client);
    together(&instance);
    idle(&instance);
    open_and_close(&mut client, &site);
    chromium_alone(&site);
}

/// From the start of the process to the first answers, on a warm disk and an existing profile.
fn starts() {
    let folder = tempfile::tempdir().expect("folder");
    drop(Instance::serve_in(folder.path(), &[]));
    let (mut initialized, mut listed) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (socket, data_dir) = (folder.path().join("run/mcp.sock"), folder.path().join("data"));
        let start = Instant::now();
        let mut child = command(&socket, &data_dir)
            .args(["serve", "--headless"])
            .stdout(Stdio::null())
            .spawn()
            .expect("tabwarden starts");
        let mut client = loop {
            if let Ok(client) = Client::try_connect(&socket) {
                break client;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        client.initialize("bench");
        initialized.push(start.elapsed());
        while client.tabs().is_empty() {}
        listed.push(start.elapsed());
        stop(&mut child);
    }
    println!("start to initialize                 {}", percentiles(&mut initialized));
    println!("start to the first tab list         {}", percentiles(&mut listed));
}

/// Four clients at once.
fn together(instance: &Instance) {
    const FOR: Duration = Duration::from_secs(3);
    let start = Instant::now();
    let total: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|n| {
                scope.spawn(move || {
                    let mut client = instance.client(&format!("together {n}"));
                    // Eight in flight, as a client with sub-agents has.
                    let requests: String = (0..8)
                        .map(|id| json!({ "jsonrpc": "2.0", "id": 1000 + id, "method": "tools/call", "params": { "name": "browser_tab_list", "arguments": {} } }).to_string() + "\n")
                        .collect();
                    let mut count = 0;
                    while start.elapsed() < FOR {
                        client.send_raw(&requests);
                        for _ in 0..8 {
                            assert!(client.receive_raw().contains("\"isError\":false"), "a list failed");
                            count += 1;
                        }
                    }
                    count
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("client")).sum()
    });
    println!("4 clients at once, 10 tabs          {:.0} lists/s", total as f64 / start.elapsed().as_secs_f64());
}

/// What idle connections cost.
fn idle(instance: &Instance) {
    let before = megabytes(instance.child.id());
    let clients: Vec<Client> = (0..240).map(|n| instance.client(&format!("idle {n}"))).collect();
    let after = megabytes(instance.child.id());
    println!("240 idle connections                {:.1} MB (PSS)", after - before);
    drop(clients);
}

fn open_and_close(client: &mut Client, site: &Site) {
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for round in 0..40 {
        let url = site.url("app", &format!("/round{round}"));
        let start = Instant::now();
        let tab = client.ok("browser_tab_new", json!({ "url": url }));
        opened.push(start.elapsed());
        settle(client);
        let start = Instant::now();
        client.ok("browser_tab_close", json!({ "tab_id": tab["tab"]["id"] }));
        closed.push(start.elapsed());
    }
    println!("open a tab                          {}", percentiles(&mut opened));
    println!("close a tab                         {}", percentiles(&mut closed));
}

/// Waits until no tab loads.
fn settle(client: &mut Client) {
    wait_for("every page to load", || {
        let ids: Vec<Value> = client.tabs().iter().map(|tab| tab["id"].clone()).collect();
        let mut get = |id: &Value| client.ok("browser_tab_get", json!({ "tab_id": id }))["tab"]["loading"] == false;
        ids.iter().all(&mut get).then_some(())
    });
}

/// The same Chromium over a pipe of its own, with nothing of Tabwarden's between.
fn chromium_alone(site: &Site) {
    let folder = tempfile::tempdir().expect("folder");
    let (theirs_in, mut ours_out) = pipe();
    let (ours_in, theirs_out) = pipe();
    let mut chromium = Command::new("chromium");
    chromium
        .args(["--headless=new", "--no-sandbox", "--no-first-run", "--remote-debugging-pipe", "about:blank"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .fd_mappings(vec![
            FdMapping { parent_fd: OwnedFd::from(theirs_in), child_fd: 3 },
            FdMapping { parent_fd: OwnedFd::from(theirs_out), child_fd: 4 },
        ])
        .expect("descriptors");
    let mut child = chromium.spawn().expect("chromium starts");
    drop(chromium);
    let mut reader = BufReader::new(ours_in);
    let mut next_id = 0;
    let mut ask = |method: &str, params: Value, until: &str| -> Value {
        next_id += 1;
        let message = json!({ "id": next_id, "method": method, "params": params });
        ours_out.write_all(format!("{message}\0").as_bytes()).expect("written");
        let (mut answer, mut event) = (None, until.is_empty());
        loop {
            let mut bytes = Vec::new();
            reader.read_until(0, &mut bytes).expect("read");
            bytes.pop();
            let message: Value = serde_json::from_slice(&bytes).expect("JSON");
            event |= message["method"] == until;
            if message["id"] == next_id {
                answer = Some(message["result"].clone());
            }
            if event && let Some(answer) = answer.take() {
                return answer;
            }
        }
    };
    ask("Target.setDiscoverTargets", json!({ "discover": true }), "");
    let (mut opened, mut closed) = (Vec::new(), Vec::new());
    for round in 0..40 {
        let url = site.url("app", &format!("/alone{round}"));
        let start = Instant::now();
        let target = ask("Target.createTarget", json!({ "url": url }), "");
        opened.push(start.elapsed());
        std::thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        ask("Target.closeTarget", json!({ "targetId": target["targetId"] }), "Target.targetDestroyed");
        closed.push(start.elapsed());
    }
    println!("open a tab, Chromium alone          {}", percentiles(&mut opened));
    println!("close a tab, Chromium alone         {}", percentiles(&mut closed));
    stop(&mut child);
}

fn pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    std::io::pipe().expect("pipe")
}

fn samples(count: usize, mut act: impl FnMut()) -> Vec<Duration> {
    let mut one = || {
        let start = Instant::now();
        act();
        start.elapsed()
    };
    for _warming_up in 0..count / 10 {
        one();
    }
    (0..count).map(|_| one()).collect()
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    format!("p50 {:8.3} ms   p99 {:8.3} ms   n {}", at(0.5), at(0.99), times.len())
}

/// A process's proportional share of memory.
fn megabytes(pid: u32) -> f64 {
    let mut text = String::new();
    std::fs::File::open(format!("/proc/{pid}/smaps_rollup"))
        .and_then(|mut file| file.read_to_string(&mut text))
        .expect("smaps_rollup");
    let line = text.lines().find(|line| line.starts_with("Pss:")).expect("Pss");
    let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("number");
    kilobytes / 1024.0
}
