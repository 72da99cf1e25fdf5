//! The tabs surface, as the user documented it.
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "a test stops where something is not as it expects")]
#![allow(clippy::disallowed_methods, reason = "tests look at what pages say")]

mod common;

use common::{Client, Served, assert_holds, served};
use serde_json::{Value, json};
use tabwarden_domain::{OpenUrl, Tab, TabId};

async fn agent(served: &Served) -> Client {
    let mut agent = served.agent("codex").await;
    agent.ok("browser_set_allowed_domains", json!({ "domains": ["example.com"] })).await;
    agent
}

fn seen(served: &Served, id: &str) -> Tab {
    served.gateway.browser().tab(&TabId::from_wire(id)).expect("the tab").expose().clone()
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().expect("text")
}

#[tokio::test]
async fn the_list_has_the_documented_shape_to_the_byte() {
    let served = served().await;
    let mut agent = agent(&served).await;
    agent.ok("browser_tab_new", json!({ "url": "https://example.com/\"quoted\"?a=1&b=%C3%A4" })).await;
    agent.ok("browser_tab_new", json!({ "active": false })).await;
    let answer = agent.call("browser_tab_list", json!({})).await;
    let expected: Vec<String> = served
        .tabs()
        .iter()
        .map(|id| {
            let tab = seen(&served, id);
            let text = |text: &str| Value::from(text).to_string();
            format!(
                "{{\"id\":{},\"title\":{},\"url\":{},\"active\":{},\"window_id\":{}}}",
                text(id),
                text(&tab.title),
                text(&tab.url),
                tab.active,
                text(tab.window.as_str())
            )
        })
        .collect();
    assert_eq!(expected.len(), 3);
    assert_eq!(text_of(&answer), format!("{{\"tabs\":[{}]}}", expected.join(",")));
    assert_eq!(answer["result"]["content"][0]["type"], "text");
    assert_eq!(answer["result"]["isError"], false);
    let object: Value = serde_json::from_str(text_of(&answer)).expect("JSON");
    assert_eq!(answer["result"]["structuredContent"], object);
}

#[tokio::test]
async fn one_tab_comes_with_sound_and_loading_in_the_documented_order() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let id = agent.ok("browser_tab_new", json!({ "url": "https://example.com/" })).await["tab"]["id"].clone();
    let answer = agent.call("browser_tab_get", json!({ "tab_id": id })).await;
    let tab = seen(&served, id.as_str().expect("an id"));
    let flag = |flag: Option<bool>| flag.map_or("null".to_owned(), |flag| flag.to_string());
    let expected = format!(
        "{{\"tab\":{{\"id\":{id},\"title\":{},\"url\":\"https://example.com/\",\"active\":{},\"window_id\":{},\
         \"audible\":{},\"muted\":{},\"loading\":{}}}}}",
        Value::from(tab.title),
        tab.active,
        Value::from(tab.window.as_str()),
        flag(tab.audible),
        flag(tab.muted),
        tab.loading
    );
    assert_eq!(text_of(&answer), expected);
}

#[tokio::test]
async fn a_new_tab_is_answered_with_its_id_url_and_window() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let window = agent.ok("browser_tab_list", json!({})).await["tabs"][0]["window_id"].clone();
    let arguments = json!({ "url": "https://example.com/", "active": true, "window_id": window });
    let answer = agent.call("browser_tab_new", arguments).await;
    let text = text_of(&answer);
    let tab: Value = serde_json::from_str(text).expect("JSON");
    assert_holds(
        &tab,
        &json!({ "tab": { "id": "…", "url": "https://example.com/", "active": true, "window_id": window } }),
        &tab,
    );
    let places: Vec<usize> = ["\"id\":", "\"title\":", "\"url\":", "\"active\":", "\"window_id\":", "\"loading\":"]
        .iter()
        .map(|field| text.find(field).unwrap_or_else(|| panic!("{field} in {text}")))
        .collect();
    assert!(places.is_sorted(), "the order of fields: {text}");
    assert!(served.tabs().contains(&tab["tab"]["id"].as_str().expect("an id").to_owned()));
}

#[tokio::test]
async fn closing_answers_as_documented() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let id = agent.ok("browser_tab_new", json!({})).await["tab"]["id"].clone();
    let answer = agent.call("browser_tab_close", json!({ "tab_id": id })).await;
    assert_eq!(text_of(&answer), format!("{{\"closed\":true,\"tab_id\":{id}}}"));
    assert!(!served.tabs().contains(&id.as_str().expect("an id").to_owned()));
    let error = agent.refused("browser_tab_close", json!({ "tab_id": id })).await;
    assert_eq!((&error["code"], &error["data"]["tab_id"]), (&json!(-32020), &id));
}

#[tokio::test]
async fn every_refusal_has_its_code_and_says_what_to_do() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let invalid = |argument: &str| json!({ "argument": argument, "expected": "…" });
    let long = "x".repeat(100_000);
    for (tool, arguments, code, slug, more) in [
        ("browser_tab_get", json!({}), -32602, "invalid_params", invalid("tab_id")),
        ("browser_tab_get", json!({ "tab_id": 3 }), -32602, "invalid_params", invalid("tab_id")),
        ("browser_tab_get", json!({ "tab_id": null }), -32602, "invalid_params", invalid("tab_id")),
        ("browser_tab_get", json!({ "tab_id": "tab_no" }), -32020, "tab_not_found", json!({ "tab_id": "tab_no" })),
        ("browser_tab_get", json!({ "tab_id": "" }), -32020, "tab_not_found", json!({})),
        ("browser_tab_get", json!({ "tab_id": long }), -32020, "tab_not_found", json!({ "tab_id": "…" })),
        ("browser_tab_close", json!({}), -32602, "invalid_params", invalid("tab_id")),
        ("browser_tab_close", json!({ "tab_id": ["a"] }), -32602, "invalid_params", invalid("tab_id")),
        ("browser_tab_close", json!({ "tab_id": "tab_no" }), -32020, "tab_not_found", json!({ "tab_id": "tab_no" })),
        ("browser_tab_list", json!({ "window": 1 }), -32602, "invalid_params", invalid("window")),
        ("browser_tab_list", json!([]), -32602, "invalid_params", invalid("arguments")),
        ("browser_tab_list", json!("all"), -32602, "invalid_params", invalid("arguments")),
        ("browser_tab_new", json!({ "url": 5 }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "example.com" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "javascript:alert(1)" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "data:text/html,x" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "blob:https://example.com/1" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "file:///etc/passwd" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "url": "chrome://settings" }), -32602, "invalid_params", invalid("url")),
        ("browser_tab_new", json!({ "active": "yes" }), -32602, "invalid_params", invalid("active")),
        ("browser_tab_new", json!({ "window_id": 1 }), -32602, "invalid_params", invalid("window_id")),
        ("browser_tab_new", json!({ "window_id": "win_no" }), -32602, "invalid_params", invalid("window_id")),
        ("browser_tab_new", json!({ "tab_id": "x" }), -32602, "invalid_params", invalid("tab_id")),
        (
            "browser_tab_new",
            json!({ "url": "https://elsewhere.example/" }),
            -32010,
            "domain_not_allowed",
            json!({ "host": "elsewhere.example", "allowed_domains": ["example.com"] }),
        ),
        ("browser_set_allowed_domains", json!({}), -32602, "invalid_params", invalid("domains")),
        (
            "browser_set_allowed_domains",
            json!({ "domains": "a.example" }),
            -32602,
            "invalid_params",
            invalid("domains"),
        ),
        ("browser_set_allowed_domains", json!({ "domains": [1] }), -32602, "invalid_params", invalid("domains")),
        ("browser_set_allowed_domains", json!({ "domains": ["*"] }), -32602, "invalid_params", invalid("domains")),
        (
            "browser_set_allowed_domains",
            json!({ "domains": vec!["a.example"; 257] }),
            -32602,
            "invalid_params",
            invalid("domains"),
        ),
        ("browser_tab_list", json!({ "session_id": "ses_no" }), -32602, "invalid_params", invalid("session_id")),
        ("browser_tab_list", json!({ "session_id": 1 }), -32602, "invalid_params", invalid("session_id")),
        ("browser_session_open", json!({}), -32602, "invalid_params", invalid("label")),
        ("browser_session_close", json!({}), -32602, "invalid_params", invalid("session_id")),
        ("browser_no_such_tool", json!({}), -32602, "invalid_params", invalid("name")),
    ] {
        let before = served.browser_runs().then(|| served.tabs());
        let error = agent.refused(tool, arguments.clone()).await;
        let mut data = json!({ "code": slug, "retryable": false, "hint": "…" });
        data.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        assert_holds(&error, &json!({ "code": code, "message": "…", "data": data }), &json!([tool, arguments, error]));
        assert!(error.to_string().len() < 2000, "a short error");
        if let Some(before) = before {
            assert_eq!(served.tabs(), before, "nothing was opened or closed by {tool} {arguments}");
        }
    }
    assert!(agent.ok("browser_tab_list", json!({})).await["tabs"].is_array());
}

#[tokio::test]
async fn a_call_without_proper_params_is_refused() {
    let served = served().await;
    let mut agent = agent(&served).await;
    for params in [json!({}), json!({ "name": 7 }), json!({ "arguments": {} }), json!([]), json!("x")] {
        let answer = agent.request("tools/call", params).await;
        assert_holds(&answer["error"], &json!({ "code": -32602, "data": { "code": "invalid_params" } }), &answer);
    }
    agent.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" })).await;
    assert_eq!(agent.receive().await["error"]["code"], -32602);
    // Arguments may be left out where none are needed.
    assert_eq!(agent.request("tools/call", json!({ "name": "browser_tab_list" })).await["result"]["isError"], false);
}

#[tokio::test]
async fn a_new_session_may_open_only_blank_pages_until_it_declares_domains() {
    let served = served().await;
    let mut agent = served.agent("new").await;
    assert_eq!(agent.ok("browser_get_allowed_domains", json!({})).await, json!({ "domains": [] }));
    let page = json!({ "url": "https://example.com/" });
    let error = agent.refused("browser_tab_new", page.clone()).await;
    assert_eq!((&error["code"], &error["data"]["allowed_domains"]), (&json!(-32010), &json!([])));
    assert!(!served.browser_runs(), "no browser is started for a refused call");
    agent.ok("browser_tab_new", json!({})).await;
    agent.ok("browser_tab_new", json!({ "url": "about:blank" })).await;
    let set = agent
        .ok("browser_set_allowed_domains", json!({ "domains": ["Example.COM", "example.com", "*.a.example"] }))
        .await;
    assert_eq!(set, json!({ "domains": ["example.com", "*.a.example"] }));
    assert_eq!(agent.ok("browser_get_allowed_domains", json!({})).await, set);
    agent.ok("browser_tab_new", page.clone()).await;
    agent.ok("browser_set_allowed_domains", json!({ "domains": [] })).await;
    assert_eq!(agent.refused("browser_tab_new", page).await["code"], -32010);
}

#[tokio::test]
async fn ids_of_an_earlier_launch_are_gone() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let list = agent.ok("browser_tab_list", json!({})).await;
    let (tab, window) = (&list["tabs"][0]["id"], &list["tabs"][0]["window_id"]);
    served.gateway.browser().shutdown().await;
    // The next call starts it again.
    assert_eq!(agent.refused("browser_tab_get", json!({ "tab_id": tab })).await["code"], -32020);
    assert!(served.browser_runs());
    let error = agent.refused("browser_tab_new", json!({ "window_id": window })).await;
    assert_eq!((&error["code"], &error["data"]["argument"]), (&json!(-32602), &json!("window_id")));
}

#[tokio::test]
async fn the_tools_are_described_with_schemas_and_true_annotations() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let answer = agent.request("tools/list", json!({})).await;
    assert!(answer.to_string().len() < 8000, "small enough: {}", answer.to_string().len());
    let tools = answer["result"]["tools"].as_array().expect("tools");
    let hints: Vec<_> = tools
        .iter()
        .map(|tool| {
            assert!(tool["inputSchema"]["type"] == "object" && tool["outputSchema"]["type"] == "object", "{tool}");
            assert!(tool["description"].as_str().is_some_and(|about| about.len() > 20), "{tool}");
            let hint = |name: &str| tool["annotations"][name].as_bool().expect(name);
            (
                tool["name"].as_str().expect("a name"),
                hint("readOnlyHint"),
                hint("destructiveHint"),
                hint("idempotentHint"),
            )
        })
        .collect();
    assert_eq!(
        hints,
        [
            ("browser_tab_list", true, false, true),
            ("browser_tab_get", true, false, true),
            ("browser_tab_new", false, false, false),
            ("browser_tab_close", false, true, true),
            ("browser_set_allowed_domains", false, false, true),
            ("browser_get_allowed_domains", true, false, true),
            ("browser_session_open", false, false, false),
            ("browser_session_close", false, true, true),
        ]
    );
}

#[tokio::test]
async fn secrets_in_urls_and_titles_do_not_leave() {
    let served = served().await;
    let mut agent = agent(&served).await;
    let canary = format!("ya29{}", "Zk3v".repeat(8));
    let url = format!("https://example.com/cb?access_token={canary}&page=2#access_token={canary}&expires_in=3600");
    let sealed = "https://example.com/cb?access_token=[REDACTED]&page=2#access_token=[REDACTED]&expires_in=3600";
    assert!(OpenUrl::parse(&url).is_ok());
    let mut events = served.gateway.events();
    let opened = agent.call("browser_tab_new", json!({ "url": url })).await;
    let id = opened["result"]["structuredContent"]["tab"]["id"].clone();
    let redaction = common::wait_for(&mut events, |event| matches!(event, tabwarden_domain::Event::Redacted(_))).await;
    let tabwarden_domain::Event::Redacted(redaction) = redaction else { unreachable!("just matched") };
    assert_eq!(redaction.tab.as_ref().map(TabId::as_str), id.as_str());
    assert_eq!(redaction.tool.as_deref(), Some("browser_tab_new"));
    assert_eq!(redaction.session, Some(served.gateway.sessions()[0].id.clone()));
    let got = agent.call("browser_tab_get", json!({ "tab_id": id })).await;
    assert_eq!(got["result"]["structuredContent"]["tab"]["url"], sealed);
    let mut events = served.gateway.events();
    let list = agent.call("browser_tab_list", json!({})).await;
    for answer in [&opened, &got, &list] {
        assert!(!answer.to_string().contains(&canary), "{answer}");
        assert!(text_of(answer).contains(sealed), "{answer}");
    }
    // In a list, each thing withheld is told with the tab of its own entry, and once.
    let mut tabs = Vec::new();
    while let Ok(stamped) = events.try_recv() {
        if let tabwarden_domain::Event::Redacted(redaction) = &stamped.event
            && redaction.place.contains("?access_token")
            && redaction.place.contains(".url")
        {
            tabs.push(redaction.tab.as_ref().map(|tab| tab.as_str().to_owned()));
        }
    }
    assert_eq!(tabs, [id.as_str().map(ToOwned::to_owned)]);
    // An error that quotes what was sent does not hand it back either.
    let error = agent.refused("browser_tab_get", json!({ "tab_id": format!("x?access_token={canary}") })).await;
    assert!(!error.to_string().contains(&canary), "{error}");
}
