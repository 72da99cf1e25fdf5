//! Closing the last window: the person is asked, once, and their answer counts.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]

mod common;

use common::{Client, Served, served, served_alone, wait_for};
use serde_json::{Value, json};
use tabwarden_domain::Event;
use tabwarden_gateway::{ANSWER_LIMIT, Answer, Question};
use tokio::time::Instant;

/// An agent, and the id of the only tab.
async fn agent_with_last_tab(served: &Served) -> (Client, Value) {
    let mut agent = served.agent("codex").await;
    let list = agent.ok("browser_tab_list", json!({})).await;
    assert_eq!(list["tabs"].as_array().map(Vec::len), Some(1));
    let id = list["tabs"][0]["id"].clone();
    (agent, id)
}

fn close(id: u64, tab: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "browser_tab_close", "arguments": { "tab_id": tab } } })
}

async fn asked(served: &mut Served) -> Question {
    served.asked.as_mut().expect("somebody to ask").next().await.expect("a question")
}

/// Asserts that nobody is being asked now.
fn nobody_is_asked(served: &mut Served) {
    use futures_util::FutureExt;
    assert!(served.asked.as_mut().expect("somebody to ask").next().now_or_never().is_none(), "no further question");
}

async fn result(agent: &mut Client) -> Value {
    agent.receive().await["result"]["structuredContent"].take()
}

#[tokio::test]
async fn kept_open_by_the_person() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    agent.send(close(1, &tab)).await;
    let question = asked(&mut served).await;
    assert_eq!((question.label(), question.title()), ("codex", "New Tab"));
    question.answer(Answer::Keep);
    assert_eq!(result(&mut agent).await, json!({ "closed": false, "tab_id": tab, "reason": "kept_by_user" }));
    assert_eq!(served.tabs().len(), 1);
    // Whoever asks again, later, is asked about again.
    agent.send(close(2, &tab)).await;
    asked(&mut served).await.answer(Answer::Keep);
    assert_eq!(result(&mut agent).await["reason"], "kept_by_user");
}

#[tokio::test]
async fn closed_with_a_new_tab_in_its_place() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    agent.send(close(1, &tab)).await;
    asked(&mut served).await.answer(Answer::CloseTab);
    assert_eq!(result(&mut agent).await, json!({ "closed": true, "tab_id": tab }));
    assert_eq!(served.tabs().len(), 1);
    assert_ne!(served.tabs()[0], tab.as_str().expect("an id"));
    assert!(served.browser_runs());
}

#[tokio::test]
async fn closed_with_the_browser() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    agent.send(close(1, &tab)).await;
    asked(&mut served).await.answer(Answer::Quit);
    assert_eq!(result(&mut agent).await, json!({ "closed": true, "tab_id": tab }));
    assert!(!served.browser_runs());
}

#[tokio::test]
async fn a_question_that_is_put_away_unanswered_keeps_the_tab() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    agent.send(close(1, &tab)).await;
    drop(asked(&mut served).await);
    assert_eq!(result(&mut agent).await, json!({ "closed": false, "tab_id": tab, "reason": "no_answer" }));
}

#[tokio::test]
async fn with_nobody_to_ask_the_last_window_stays() {
    let served = served_alone().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    let kept = agent.ok("browser_tab_close", json!({ "tab_id": tab })).await;
    assert_eq!(kept, json!({ "closed": false, "tab_id": tab, "reason": "no_user" }));
    // Another one closes without a word.
    let second = agent.ok("browser_tab_new", json!({})).await["tab"]["id"].clone();
    assert_eq!(agent.ok("browser_tab_close", json!({ "tab_id": second })).await["closed"], true);
}

#[tokio::test]
async fn a_last_tab_of_one_window_of_two_closes_without_a_question() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    served.control.open_window("News", "https://news.example/");
    assert_eq!(agent.ok("browser_tab_close", json!({ "tab_id": tab })).await, json!({ "closed": true, "tab_id": tab }));
    nobody_is_asked(&mut served);
}

#[tokio::test(start_paused = true)]
async fn no_answer_in_60_seconds_keeps_the_tab_and_tells_of_the_waiting() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    let mut request = close(1, &tab);
    request["params"]["_meta"] = json!({ "progressToken": "p-1" });
    let began = Instant::now();
    agent.send(request).await;
    let mut question = asked(&mut served).await;
    let mut waited = Vec::new();
    let answer = loop {
        let message = agent.receive().await;
        if message["method"] != "notifications/progress" {
            break message;
        }
        let params = &message["params"];
        assert_eq!((&params["progressToken"], &params["total"]), (&json!("p-1"), &json!(60)));
        waited.push(params["progress"].as_u64().expect("seconds"));
    };
    assert_eq!(began.elapsed().as_secs(), ANSWER_LIMIT.as_secs());
    assert_eq!(waited, (0..12).map(|n| n * 5).collect::<Vec<_>>());
    let kept = json!({ "closed": false, "tab_id": tab, "reason": "no_answer" });
    assert_eq!(answer["result"]["structuredContent"], kept);
    // The question is withdrawn, and an answer to it does no more.
    question.withdrawn().await;
    question.answer(Answer::Quit);
    assert!(served.browser_runs());
}

#[tokio::test]
async fn two_agents_closing_the_last_two_tabs_at_once_lead_to_one_question() {
    let mut served = served().await;
    let (mut first, one) = agent_with_last_tab(&served).await;
    let mut second = served.agent("other").await;
    let two = second.ok("browser_tab_new", json!({})).await["tab"]["id"].clone();
    let mut events = served.gateway.events();
    // Both are on their way before either has happened.
    served.control.hang(true);
    first.send(close(1, &one)).await;
    second.send(close(1, &two)).await;
    for _ in 0..2 {
        wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    }
    served.control.hang(false);
    asked(&mut served).await.answer(Answer::Keep);
    let (a, b) = (result(&mut first).await, result(&mut second).await);
    assert_ne!(a["closed"], b["closed"], "{a} {b}");
    assert_eq!(served.tabs().len(), 1);
    nobody_is_asked(&mut served);
}

#[tokio::test]
async fn two_agents_closing_the_same_last_tab_share_one_answer() {
    let mut served = served().await;
    let (mut first, tab) = agent_with_last_tab(&served).await;
    let mut second = served.agent("other").await;
    let mut events = served.gateway.events();
    first.send(close(1, &tab)).await;
    second.send(close(1, &tab)).await;
    for _ in 0..2 {
        wait_for(&mut events, |event| matches!(event, Event::CallStarted(_))).await;
    }
    // The second is answered once it is its turn, and then without a question of its own.
    let question = asked(&mut served).await;
    assert_eq!(second.request("ping", json!({})).await["result"], json!({}));
    question.answer(Answer::Keep);
    for agent in [&mut first, &mut second] {
        assert_eq!(result(agent).await["reason"], "kept_by_user");
    }
    nobody_is_asked(&mut served);
}

#[tokio::test]
async fn a_cancelled_close_withdraws_its_question() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    agent.send(close(1, &tab)).await;
    let mut question = asked(&mut served).await;
    agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    question.withdrawn().await;
    // The next one gets its turn.
    agent.send(close(2, &tab)).await;
    asked(&mut served).await.answer(Answer::CloseTab);
    assert_eq!(result(&mut agent).await["closed"], true);
}

#[tokio::test]
async fn a_client_that_goes_away_withdraws_its_question() {
    let mut served = served().await;
    let (mut agent, tab) = agent_with_last_tab(&served).await;
    agent.send(close(1, &tab)).await;
    let mut question = asked(&mut served).await;
    drop(agent);
    question.withdrawn().await;
    assert_eq!(served.tabs().len(), 1);
}
