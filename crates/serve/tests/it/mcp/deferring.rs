//! Tools that are found by searching.

use serde_json::{Value, json};
use toolpost_model::LoadingStrategy;
use toolpost_testkit::MockNativeTool;

use super::{Era, Place, Request, both};

fn names(listed: &Value) -> Vec<&str> {
    listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

fn deferred(name: &str) -> MockNativeTool {
    MockNativeTool::named(name)
        .output("found")
        .declare(|declaration| {
            declaration.loading = LoadingStrategy::Deferred;
            declaration.description = "Counts zebras".to_owned();
        })
}

#[tokio::test]
async fn deferred_tools_are_found_called_and_join_a_sessions_list() {
    let plain = MockNativeTool::named("demo.plain");
    let taken = MockNativeTool::named("demo.call_tool").output("the real one");
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| {
            builder
                .tool(plain)
                .tool(taken)
                .tool(deferred("demo.zebras"))
        })
        .await;
    for era in both(&server).await {
        let listed = era.ask(&server, "tools/list", json!({})).await.json();
        assert_eq!(
            names(&listed),
            ["search_tools", "toolpost_call_tool", "call_tool", "plain"]
        );
        let real = era.call(&server, "call_tool", json!({})).await;
        assert_eq!(real["content"][0]["text"], "the real one");
        let found = era
            .call(&server, "search_tools", json!({ "query": "zebras" }))
            .await;
        assert_eq!(found["structuredContent"]["tools"][0]["name"], "zebras");
        assert!(
            found["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("Counts zebras")
        );
        let through = era
            .call(
                &server,
                "toolpost_call_tool",
                json!({ "name": "zebras", "arguments": {} }),
            )
            .await;
        assert_eq!(through["content"][0]["text"], "found");
        assert_eq!(
            era.call(&server, "zebras", json!({})).await["content"][0]["text"],
            "found"
        );
        for (tool, arguments) in [
            ("search_tools", json!({ "quarry": 1 })),
            ("search_tools", json!(["zebras", 1])),
            ("toolpost_call_tool", json!(["zebras", {}])),
        ] {
            let wrong = era.call(&server, tool, arguments).await;
            let text = wrong["content"][0]["text"].as_str().unwrap_or_default();
            assert!(
                wrong["isError"] == true && text.contains("must be a text and is required"),
                "{wrong}"
            );
        }
        let listed = era.ask(&server, "tools/list", json!({})).await.json();
        let joins = matches!(era, Era::Session(_));
        assert_eq!(
            names(&listed).contains(&"zebras"),
            joins,
            "lists are the same for all without sessions"
        );
    }
}

#[tokio::test]
async fn a_session_is_told_that_its_list_has_grown() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(deferred("demo.zebras")))
        .await;
    let [era, _] = both(&server).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    let mut stream = server
        .begin(
            Request::get("/mcp")
                .streamed()
                .header("Mcp-Session-Id", session),
        )
        .await;
    assert_eq!(stream.head().await.status, 200);
    assert!(stream.piece().await.is_some());
    era.call(&server, "search_tools", json!({ "query": "zebras" }))
        .await;
    let told: Value = serde_json::from_str(&stream.frame().await.unwrap().data).unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn nothing_of_it_is_there_where_nothing_is_deferred() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.plain")))
        .await;
    for era in both(&server).await {
        assert_eq!(
            names(&era.ask(&server, "tools/list", json!({})).await.json()),
            ["plain"]
        );
        let missing = era
            .ask(&server, "tools/call", json!({ "name": "search_tools" }))
            .await;
        assert_eq!(missing.json()["error"]["code"], -32602);
    }
}
