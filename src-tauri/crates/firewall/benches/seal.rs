//! How fast sealing is. Prints figures and judges nothing: what they should be stands in CONTRIBUTING.md.
#![allow(clippy::print_stdout, reason = "figures are what it is for")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot go on fails")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tabwarden_firewall::{Firewall, Surface};

fn main() {
    let firewall = Firewall::built_in([1, 2]).expect("the built-in rules");
    let prose =
        "The quick brown fox jumps over the lazy dog; it has 12 keys, no token, and a page at home. ".repeat(6_000);
    let time = median(200, || drop(black_box(firewall.seal_text(Surface::Text, &prose))));
    println!("text without secrets      {:7.0} MB/s", prose.len() as f64 / time.as_secs_f64() / 1e6);
    for tabs in [50, 500] {
        let line = answer(tabs, false);
        let time = median(2_000, || drop(black_box(firewall.seal_json(line.clone()))));
        println!("{tabs:3} tabs, no secret       {:9.1} µs  ({} bytes)", time.as_secs_f64() * 1e6, line.len());
        let line = answer(tabs, true);
        let time = median(2_000, || drop(black_box(firewall.seal_json(line.clone()))));
        println!("{tabs:3} tabs, every 10th one  {:9.1} µs", time.as_secs_f64() * 1e6);
    }
}

/// A tab list as it leaves.
fn answer(tabs: usize, secrets: bool) -> String {
    let tab = |n: usize| {
        let secret = if secrets && n.is_multiple_of(10) { "&access_token=x7qx7qx7q" } else { "" };
        json!({ "id": format!("tab_{n:x}a9c"), "title": format!("Article {n} – Example News"),
            "url": format!("https://news.example.com/2026/12/article-{n}?page={n}{secret}"), "active": n == 0, "window_id": "win_9c" })
    };
    let object = json!({ "tabs": (0..tabs).map(tab).collect::<Vec<_>>() });
    json!({ "jsonrpc": "2.0", "id": 1, "result": {
        "content": [{ "type": "text", "text": Value::from(object.to_string()) }], "isError": false, "structuredContent": object } })
    .to_string()
}

fn median(count: usize, mut act: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let start = Instant::now();
            act();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[count / 2]
}
