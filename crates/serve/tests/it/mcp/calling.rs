//! Calls: the same result in both eras, what is told on the way, what stops them.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use toolpost_model::{
    EffectClass, EventBody, FnTool, PersistStrategy, ResultContent, ToolFailure, ToolOutput,
    ToolPersistenceSettings, ToolProgress, ToolSettings, ToolSurfaceSettings,
};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{Era, Nothing, Place, begin, both, posted, told, tools};
use crate::client::within;

#[tokio::test]
async fn both_eras_list_and_call_the_same_tools() {
    let output = ToolOutput {
        content: vec![
            ResultContent::text("words"),
            ResultContent::Image {
                data: "aGk=".to_owned(),
                media_type: "image/png".to_owned(),
            },
            ResultContent::Link {
                uri: "x://y".to_owned(),
                name: "more".to_owned(),
                title: None,
                description: None,
                media_type: None,
                size: Some(3),
            },
        ],
        structured: Some(json!({ "n": 1 })),
        ..ToolOutput::default()
    };
    let place = Place::without_native_tools();
    let rich = MockNativeTool::named("demo.rich").output(output);
    let server = place.start_with(|builder| tools(builder).tool(rich)).await;
    let [old, new] = both(&server).await;
    let names = |listed: &Value| -> Vec<String> {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let one = old.ask(&server, "tools/list", json!({})).await;
    let other = new.ask(&server, "tools/list", json!({})).await;
    assert_eq!(names(&one.json()), ["asks", "rich", "steps"]);
    assert_eq!(
        one.json()["result"]["tools"],
        other.json()["result"]["tools"]
    );
    let result = &other.json()["result"];
    assert_eq!(
        (&result["resultType"], &result["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(result["ttlMs"].is_u64());
    for era in [old, new] {
        let result = era.call(&server, "rich", json!({})).await;
        assert_eq!(
            result["content"],
            json!([
                { "type": "text", "text": "words" },
                { "type": "image", "data": "aGk=", "mimeType": "image/png" },
                { "type": "resource_link", "uri": "x://y", "name": "more", "size": 3 },
            ])
        );
        assert_eq!(
            (&result["structuredContent"], &result["isError"]),
            (&json!({ "n": 1 }), &json!(false))
        );
        assert_eq!(result["_meta"]["toolpost/outcome"], "succeeded");
    }
}

#[tokio::test]
async fn progress_and_log_come_before_the_answer_and_only_when_asked_for() {
    let place = Place::without_native_tools();
    let server = place.start_with(tools).await;
    let params = |meta: Value| json!({ "name": "steps", "arguments": {}, "_meta": meta });
    let quiet = Era::Stateless.request(&json!(1), "tools/call", params(json!({})), &json!({}));
    assert_eq!(
        server.send(quiet).await.json()["result"]["content"][0]["text"],
        "done"
    );
    let heard = json!({ "progressToken": "p", "io.modelcontextprotocol/logLevel": "info" });
    for era in both(&server).await {
        let request = era.request(
            &json!("x y"),
            "tools/call",
            params(heard.clone()),
            &json!({}),
        );
        let messages = told(&mut server.begin(request).await).await;
        let progress: Vec<&Value> = messages
            .iter()
            .filter(|message| message["method"] == "notifications/progress")
            .collect();
        let steps: Vec<&Value> = progress
            .iter()
            .map(|message| &message["params"]["progress"])
            .collect();
        assert_eq!(steps, [&json!(0), &json!(50), &json!(100)]);
        assert!(
            progress
                .iter()
                .all(|message| message["params"]["progressToken"] == "p")
        );
        assert!(
            messages
                .iter()
                .any(|message| message["params"]["data"] == "half way")
        );
        let last = messages.last().unwrap();
        assert_eq!(
            (&last["id"], &last["result"]["content"][0]["text"]),
            (&json!("x y"), &json!("done"))
        );
    }
}

#[tokio::test]
async fn an_event_of_a_module_is_a_structured_log_of_its_call() {
    let module = FnTool::named("demo.module")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, call| async move {
            let at = "2026-01-02T03:04:05Z".parse().ok();
            call.emit(EventBody::module_event(
                "demo:read",
                call.session_id(),
                at,
                json!({ "n": 1 }),
            ));
            Ok::<_, ToolFailure>("done")
        });
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(module))
        .await;
    let meta = json!({ "io.modelcontextprotocol/logLevel": "info" });
    let params = json!({ "name": "module", "arguments": {}, "_meta": meta });
    for era in both(&server).await {
        let request = era.request(&json!(1), "tools/call", params.clone(), &json!({}));
        let messages = told(&mut server.begin(request).await).await;
        let call = &messages.last().unwrap()["result"]["_meta"]["toolpost/invocationId"];
        let logs: Vec<&Value> = messages
            .iter()
            .filter(|message| message["method"] == "notifications/message")
            .collect();
        let [log] = logs.as_slice() else {
            panic!("{messages:?}")
        };
        let (params, data) = (&log["params"], &log["params"]["data"]);
        assert_eq!(
            (&params["level"], &params["logger"]),
            (&json!("info"), &json!("module_event"))
        );
        assert_eq!(
            (&data["event"], &data["data"]),
            (&json!("demo:read"), &json!({ "n": 1 }))
        );
        assert_eq!(
            (&data["timestamp"], &data["invocation_id"]),
            (&json!("2026-01-02T03:04:05Z"), call)
        );
        assert!(data["session_id"].is_string() && call.is_string(), "{log}");
    }
}

#[tokio::test]
async fn a_session_cancels_by_id_and_two_clients_with_the_same_ids_do_not_meet() {
    let place = Place::without_native_tools();
    let gate = MockToolGate::new();
    let slow = MockNativeTool::named("demo.slow")
        .output("late")
        .gate(&gate);
    let server = place.start_with(|builder| builder.tool(slow)).await;
    let one = begin(&server, json!({}), None).await;
    let other = begin(&server, json!({}), None).await;
    let params = json!({ "name": "slow", "arguments": {} });
    let mut first = server
        .begin(one.request(&json!(1), "tools/call", params.clone(), &json!({})))
        .await;
    let mut second = server
        .begin(other.request(&json!(1), "tools/call", params, &json!({})))
        .await;
    gate.entered(2).await;
    let Era::Session(session) = &one else {
        unreachable!()
    };
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(
        server
            .send(posted(&cancel).header("Mcp-Session-Id", session))
            .await
            .status(),
        202
    );
    assert_eq!(
        first.receive().await.status(),
        202,
        "a cancelled request has no answer"
    );
    gate.let_through(2);
    assert_eq!(
        second.receive().await.json()["result"]["content"][0]["text"],
        "late"
    );
}

#[tokio::test]
async fn a_broken_connection_stops_a_call_only_where_each_request_stands_for_itself() {
    let (begun, mut begins) = mpsc::unbounded_channel();
    let (ended, mut ends) = mpsc::unbounded_channel();
    let release = Arc::new(Semaphore::new(0));
    let may_end = Arc::clone(&release);
    let slow = FnTool::named("demo.slow")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: Nothing, call| {
            let begun = begun.clone();
            let ended = ended.clone();
            let may_end = Arc::clone(&may_end);
            async move {
                begun.send(()).unwrap();
                let how = tokio::select! {
                    () = call.canceled() => "stopped",
                    released = may_end.acquire() => released.map(|_| "finished").unwrap(),
                };
                ended.send(how).unwrap();
                Ok::<_, ToolFailure>(how)
            }
        });
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(slow))
        .await;
    let [old, new] = both(&server).await;
    let params = json!({ "name": "slow", "arguments": {} });
    for era in [&old, &new] {
        let connection = server
            .begin(era.request(&json!(1), "tools/call", params.clone(), &json!({})))
            .await;
        within(begins.recv()).await.unwrap();
        drop(connection);
    }
    assert_eq!(
        within(ends.recv()).await,
        Some("stopped"),
        "the one that stands for itself"
    );
    release.add_permits(1);
    assert_eq!(
        within(ends.recv()).await,
        Some("finished"),
        "the one of a session"
    );
}

#[tokio::test]
async fn what_is_too_large_is_linked_and_read_in_ranges() {
    let text: String = (0..60_000).map(|n| format!("line {n}\n")).collect();
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.say").output(text.clone())))
        .await;
    for era in both(&server).await {
        let result = era.call(&server, "say", json!({})).await;
        let link = result["content"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert_eq!(
            (&link["type"], link["size"].as_u64()),
            (&json!("resource_link"), Some(text.len() as u64))
        );
        let uri = link["uri"].as_str().unwrap();
        let part = format!("{uri}?offset=5&length=20");
        let read = era
            .ask(&server, "resources/read", json!({ "uri": part }))
            .await
            .json();
        assert_eq!(read["result"]["contents"][0]["text"], &text[5..25]);
        let read = era
            .ask(&server, "resources/read", json!({ "uri": uri }))
            .await
            .json();
        assert_eq!(read["result"]["contents"][0]["text"], text);
    }
}

#[tokio::test]
async fn structured_content_that_was_promised_is_there_whatever_its_length() {
    let value = json!({ "lines": (0..20_000).collect::<Vec<u32>>() });
    let output = ToolOutput {
        structured: Some(value.clone()),
        ..ToolOutput::default()
    };
    let schema = json!({ "type": "object", "properties": { "lines": { "type": "array" } }, "required": ["lines"] });
    let long = |id: &str| {
        let tool = MockNativeTool::named(id).output(output.clone());
        tool.declare(|declaration| declaration.output.schema = Some(Arc::new(schema.clone())))
    };
    let tools = [long("demo.long"), long("demo.secret")];
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| {
            tools
                .into_iter()
                .fold(builder, toolpost_serve::ServerBuilder::tool)
        })
        .await;
    let only_linked = ToolSettings {
        persistence: ToolPersistenceSettings {
            keep: Some(PersistStrategy::RefOnly),
            ..ToolPersistenceSettings::default()
        },
        ..ToolSettings::default()
    };
    server
        .server
        .host()
        .replace_settings(HashMap::from([("secret".to_owned(), only_linked)]))
        .await;
    for era in both(&server).await {
        let listed = era.ask(&server, "tools/list", json!({})).await.json();
        let promised = |place: usize| listed["result"]["tools"][place]["outputSchema"].is_object();
        assert_eq!((promised(0), promised(1)), (true, false), "{listed}");
        let result = era.call(&server, "long", json!({})).await;
        assert_eq!(result["structuredContent"], value);
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.last().unwrap()["type"], "resource_link");
        assert!(
            content[0]["text"].as_str().unwrap().len() < 50_000,
            "a part is enough to look at"
        );
        let result = era.call(&server, "secret", json!({})).await;
        assert_eq!(
            (result.get("structuredContent"), &result["isError"]),
            (None, &json!(false))
        );
    }
}

#[tokio::test]
async fn a_stream_tells_what_changed_since_the_one_before_it() {
    let place = Place::new();
    let server = place.start().await;
    let era = begin(&server, json!({}), None).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    for tool in ["shell", "read_file"] {
        era.ask(&server, "tools/list", json!({})).await;
        let hidden = ToolSettings {
            surface: ToolSurfaceSettings {
                hidden: Some(true),
                ..ToolSurfaceSettings::default()
            },
            ..ToolSettings::default()
        };
        server
            .server
            .host()
            .replace_settings(HashMap::from([(tool.to_owned(), hidden)]))
            .await;
        // The stream before is gone, and the host may not know that yet.
        let get = super::Request::get("/mcp")
            .streamed()
            .header("Mcp-Session-Id", session);
        let mut stream = server.begin(get).await;
        assert_eq!(stream.head().await.status, 200);
        let message: Value =
            serde_json::from_str(&within(stream.frame()).await.unwrap().data).unwrap();
        assert_eq!(
            message["method"], "notifications/tools/list_changed",
            "{tool}"
        );
    }
}

#[tokio::test]
async fn lists_that_change_are_told_to_whoever_listens() {
    let place = Place::new();
    let server = place.start().await;
    let listen =
        json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
    let mut new = server
        .begin(Era::Stateless.request(&json!("s"), "subscriptions/listen", listen, &json!({})))
        .await;
    assert_eq!(new.head().await.status, 200);
    let first: Value = serde_json::from_str(&new.frame().await.unwrap().data).unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        first["params"]["notifications"],
        json!({ "toolsListChanged": true })
    );
    assert_eq!(
        first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "s"
    );
    let Era::Session(session) = begin(&server, json!({}), None).await else {
        unreachable!()
    };
    let get = super::Request::get("/mcp")
        .streamed()
        .header("Mcp-Session-Id", session);
    let mut old = server.begin(get).await;
    assert_eq!(old.head().await.status, 200);
    // The stream is attached once it says that it is there.
    assert!(old.piece().await.is_some());
    let hidden = ToolSettings {
        surface: ToolSurfaceSettings {
            hidden: Some(true),
            ..ToolSurfaceSettings::default()
        },
        ..ToolSettings::default()
    };
    server
        .server
        .host()
        .replace_settings(HashMap::from([("shell".to_owned(), hidden)]))
        .await;
    for stream in [&mut new, &mut old] {
        let message: Value = serde_json::from_str(&stream.frame().await.unwrap().data).unwrap();
        assert_eq!(message["method"], "notifications/tools/list_changed");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_nothing_up() {
    let (ended, mut ends) = mpsc::unbounded_channel();
    let flood = FnTool::named("demo.flood")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: Nothing, call| {
            let ended = ended.clone();
            async move {
                for done in 0..20_000 {
                    let message = "x".repeat(1_000);
                    call.progress(ToolProgress {
                        done: Some(done),
                        message,
                        ..ToolProgress::default()
                    });
                }
                ended.send(()).unwrap();
                Ok::<_, ToolFailure>("done")
            }
        });
    let say = MockNativeTool::named("demo.say").output("hi");
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(flood).tool(say))
        .await;
    for era in both(&server).await {
        let params = json!({ "name": "flood", "arguments": {}, "_meta": { "progressToken": 1 } });
        let mut unread = server
            .begin(era.request(&json!(1), "tools/call", params, &json!({})))
            .await;
        within(ends.recv()).await.unwrap();
        assert_eq!(
            era.call(&server, "say", json!({})).await["content"][0]["text"],
            "hi"
        );
        // It lost some of what it did not read, and not the answer.
        let messages = told(&mut unread).await;
        assert!(messages.len() < 20_000);
        assert_eq!(
            messages.last().unwrap()["result"]["content"][0]["text"],
            "done"
        );
    }
}
