//! How fast the firewall is: `cargo bench -p tabwarden-firewall`.

#![allow(missing_docs, clippy::print_stdout, clippy::expect_used, reason = "a program for a person to read")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tabwarden_firewall::{Firewall, Surface};

fn main() {
    let firewall = Firewall::built_in([1, 2]).expect("built-in rules");
    let prose =
        "The quick brown fox jumps over the lazy dog: nothing here is a secret. See https://example.com/a?b=c. ";
    let prose = prose.repeat(500_000 / prose.len());
    let snapshot =
        "- link \"Read more\" [ref=e12]\n  - /url: https://news.example.com/2026/11/30/article-4711?page=2\n";
    let snapshot = snapshot.repeat(25_000 / snapshot.len());
    let secret = "https://app.example/cb?access_token=abcdef0123456789&page=2";
    report("500 kB clean text", prose.len(), || firewall.seal_text(Surface::Text, &prose).findings.len());
    report("25 kB clean snapshot", snapshot.len(), || firewall.seal_text(Surface::Text, &snapshot).findings.len());
    // Each of these once took time with the square of its length.
    for pattern in ["token=;", "@", "//a:b@", "key=", "code=a&", "token=)))))))", "%2525", "eyJ"] {
        let text = pattern.repeat(400_000 / pattern.len());
        report(&format!("400 kB of {pattern}"), text.len(), || firewall.seal_text(Surface::Text, &text).findings.len());
    }
    for tabs in [1, 10, 50, 500] {
        for (name, every) in [("clean", None), ("1 in 10 with a secret", Some(10)), ("all with a secret", Some(1))] {
            let answer = tab_list(tabs, |tab| every.filter(|every| tab % every == 0).map(|_| secret));
            report_json(&firewall, &format!("{tabs}-tab list, {name}"), &answer);
        }
    }
}

/// A tool's answer as it goes over the socket: the list as text and as an object.
fn tab_list<'a>(tabs: usize, secret: impl Fn(usize) -> Option<&'a str>) -> String {
    let clean = |tab: usize| match tab % 4 {
        0 => format!("https://news.example.com/2026/11/article-{tab}.html"),
        1 => format!("https://github.com/example/repo/pull/{tab}/files?w=1#diff-{tab}"),
        2 => format!("https://www.example.org/search?q=rust%20json+{tab}&key=piano&page=2"),
        _ => format!("https://docs.example.com/en/latest/page{tab}?lang=en"),
    };
    let list: Vec<serde_json::Value> = (0..tabs)
        .map(|tab| {
            serde_json::json!({
                "id": format!("tab_{tab:04x}"),
                "title": format!("Page {tab}: a title of the usual length \u{2013} Example"),
                "url": secret(tab).map_or_else(|| clean(tab), str::to_owned),
                "active": tab == 0,
                "window_id": "win_9c",
            })
        })
        .collect();
    let list = serde_json::json!({ "tabs": list });
    let answer = serde_json::json!({
        "jsonrpc": "2.0", "id": 1,
        "result": { "content": [{ "type": "text", "text": list.to_string() }], "isError": false, "structuredContent": list },
    });
    answer.to_string()
}

fn report_json(firewall: &Firewall, name: &str, answer: &str) {
    // The copy that `seal_json` takes over is made outside of what is timed.
    let mut copies = Vec::new();
    let mut best = Duration::MAX;
    let mut findings = 0;
    for _ in 0..300 {
        copies.push(answer.to_owned());
        let copy = copies.pop().unwrap_or_default();
        let start = Instant::now();
        let sealed = black_box(firewall.seal_json(black_box(copy)));
        best = best.min(start.elapsed());
        findings = sealed.findings.len();
    }
    print(name, answer.len(), best, findings);
}

fn report(name: &str, bytes: usize, seal: impl Fn() -> usize) {
    let mut best = Duration::MAX;
    let mut findings = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        findings = black_box(seal());
        best = best.min(start.elapsed());
    }
    print(name, bytes, best, findings);
}

fn print(name: &str, bytes: usize, best: Duration, findings: usize) {
    let speed = bytes as f64 / best.as_secs_f64() / 1e6;
    println!("{name:36} {bytes:>8} B {:>9.1} us {speed:>8.0} MB/s {findings:>4} findings", best.as_secs_f64() * 1e6);
}
