//! Messages that hold calls: one answer, or a stream.

use serde_json::{Value, json};
use toolpost_model::{EffectClass, ToolFailure};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    super::{client::Request, running::Place},
    Dialect, URI, add, events, items, result, rpc, serve,
};

fn send(dialect: Dialect, id: &str, parts: &[Value]) -> Request {
    rpc(
        dialect.method("send"),
        &json!({ "message": dialect.message(id, parts) }),
    )
}

#[tokio::test]
async fn a_blocking_send_returns_the_task_with_events_and_the_result() {
    for dialect in Dialect::BOTH {
        let tool = add();
        let server = serve(&tool).await;
        let call = dialect.call("c1", "add", &json!({ "a": 2.0, "b": 3.0 }));
        let told = server.send(send(dialect, "m1", &[call])).await;
        let header = match dialect {
            Dialect::Older => "x-a2a-extensions",
            Dialect::Newer => "a2a-extensions",
        };
        assert_eq!(told.head.header(header), Some(URI));
        let task = dialect.task(&told.json()["result"]);
        assert_eq!(
            task["status"]["state"],
            dialect.state("completed"),
            "{task}"
        );
        assert_eq!(
            tool.inputs(),
            [json!({ "a": 2, "b": 3 })],
            "whole numbers fit integer schemas"
        );
        let history = &task["history"];
        assert_eq!(events(history), ["tool-call", "tool-call", "tool-result"]);
        assert_eq!(history[0]["messageId"], "m1");
        let role = if dialect == Dialect::Older {
            "agent"
        } else {
            "ROLE_AGENT"
        };
        assert_eq!(
            (&history[1]["role"], &history[1]["extensions"]),
            (&json!(role), &json!([URI]))
        );
        let end = &history[2]["parts"][0]["data"];
        assert_eq!(
            (&end["toolCallId"], &end["toolName"]),
            (&json!("c1"), &json!("add"))
        );
        assert_eq!(
            (&end["output"], &end["input"]),
            (&json!({ "sum": 5 }), &json!({ "a": 2, "b": 3 }))
        );
        assert!(
            end["durationMs"].is_u64() && history[1]["parts"][0]["data"]["startedAt"].is_string()
        );
        let artifact = &task["artifacts"][0];
        assert_eq!(
            (&artifact["artifactId"], &artifact["parts"][0]["data"]),
            (&json!("c1"), &json!({ "sum": 5 }))
        );
        let kinds = task.to_string().matches("\"kind\"").count();
        assert_eq!(kinds > 0, dialect == Dialect::Older, "{task}");
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_task_and_ends_with_its_end() {
    for dialect in Dialect::BOTH {
        let server = serve(&add()).await;
        let call = dialect.call("c1", "add", &json!({ "a": 2 }));
        let params = json!({ "message": dialect.message("m1", &[call]) });
        let mut stream = server.begin(rpc(dialect.method("stream"), &params)).await;
        let head = stream.head().await;
        assert_eq!(
            head.header("content-type"),
            Some("text/event-stream; charset=utf-8")
        );
        let items: Vec<_> = items(&mut stream)
            .await
            .iter()
            .map(|item| dialect.item(item))
            .collect();
        let kinds: Vec<&str> = items.iter().map(|(kind, _)| kind.as_str()).collect();
        let expected = [
            "task",
            "status-update",
            "status-update",
            "artifact-update",
            "status-update",
        ];
        assert_eq!(kinds, expected);
        let states: Vec<_> = [0, 1, 2, 4]
            .map(|place: usize| items[place].1["status"]["state"].clone())
            .to_vec();
        let expected =
            ["submitted", "working", "working", "completed"].map(|word| json!(dialect.state(word)));
        assert_eq!(states, expected);
        let event =
            |place: usize| items[place].1["status"]["message"]["parts"][0]["data"]["type"].clone();
        assert_eq!(
            (event(1), event(2)),
            (json!("tool-call"), json!("tool-result"))
        );
        let finals: Vec<_> = [1, 2, 4]
            .map(|place: usize| items[place].1.get("final").cloned())
            .to_vec();
        match dialect {
            Dialect::Older => {
                assert_eq!(finals, [false, false, true].map(|last| Some(json!(last))));
            }
            Dialect::Newer => assert_eq!(finals, [None, None, None]),
        }
        let id = items[0].1["id"].as_str().unwrap();
        assert!(
            items[1..].iter().all(|(_, item)| item["taskId"] == id),
            "{items:?}"
        );
    }
}

#[tokio::test]
async fn failures_are_told_and_fail_the_task() {
    let broken = MockNativeTool::named("demo.broken").failing(ToolFailure::new("it broke"));
    let server = serve(&broken).await;
    for (message, tool, input, expected) in [
        ("m1", "broken", json!({}), "it broke"),
        (
            "m2",
            "missing",
            json!({ "password": "hunter22" }),
            "missing",
        ),
        ("m3", "broken", json!("text"), "object"),
    ] {
        let call = Dialect::Newer.call("c", tool, &input);
        let task =
            Dialect::Newer.task(&result(&server, send(Dialect::Newer, message, &[call])).await);
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
        assert_eq!(
            events(&task["history"]),
            ["tool-call", "tool-call", "tool-error"]
        );
        let why = task["history"][2]["parts"][0]["data"]["error"]["message"]
            .as_str()
            .unwrap();
        assert!(why.contains(expected), "{why}");
        assert_eq!(task["status"]["message"]["parts"][0]["text"], why);
        assert!(
            !task.to_string().contains("hunter22"),
            "what nobody could check is not told back"
        );
        assert!(task.get("artifacts").is_none());
    }
}

#[tokio::test]
async fn several_calls_are_one_task() {
    let tool = add();
    let broken = MockNativeTool::named("demo.broken").failing(ToolFailure::new("it broke"));
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool.clone()).tool(broken.clone()))
        .await;
    let dialect = Dialect::Newer;
    let calls = [1, 2, 3].map(|n| dialect.call("same", "add", &json!({ "a": n })));
    let task = dialect.task(&result(&server, send(dialect, "m1", &calls)).await);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let mut ids: Vec<&str> = task["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|made| made["artifactId"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(
        (ids.as_slice(), tool.call_count()),
        (["same", "same-2", "same-3"].as_slice(), 3)
    );
    let calls = [
        dialect.call("1", "add", &json!({ "a": 1 })),
        dialect.call("2", "broken", &json!({})),
    ];
    let task = dialect.task(&result(&server, send(dialect, "m2", &calls)).await);
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(
        task["artifacts"].as_array().unwrap().len(),
        1,
        "what succeeded is there all the same"
    );
}

#[tokio::test]
async fn text_alone_is_told_what_to_send() {
    let server = serve(&add()).await;
    for dialect in Dialect::BOTH {
        let told = result(
            &server,
            send(dialect, "m", &[json!({ "kind": "text", "text": "hello" })]),
        )
        .await;
        let message = match dialect {
            Dialect::Older => &told,
            Dialect::Newer => &told["message"],
        };
        assert!(
            message["parts"][0]["text"]
                .as_str()
                .unwrap()
                .contains("tool-call"),
            "{told}"
        );
        let params = json!({ "message": dialect.message("m", &[json!({ "text": "hello" })]) });
        let mut stream = server.begin(rpc(dialect.method("stream"), &params)).await;
        stream.head().await;
        let items = items(&mut stream).await;
        assert_eq!(
            (items.len(), dialect.item(&items[0]).0.as_str()),
            (1, "message")
        );
    }
}

#[tokio::test]
async fn without_the_extension_there_are_no_events() {
    let server = serve(&add()).await;
    let part = json!({
        "data": { "id": "f1", "name": "add", "args": { "a": 1 } }, "metadata": { "adk_type": "function_call" }
    });
    let plain = server
        .send(send(Dialect::Newer, "m1", std::slice::from_ref(&part)))
        .await;
    assert_eq!(plain.head.header("a2a-extensions"), None);
    let task = Dialect::Newer.task(&plain.json()["result"]);
    assert_eq!(
        events(&task["history"]),
        ["tool-call"],
        "the message itself, and no event"
    );
    assert_eq!(
        task["artifacts"][0]["parts"][0]["data"],
        json!({ "sum": 5 })
    );
    for (place, (header, uri)) in [
        ("A2A-Extensions", URI),
        (
            "X-A2A-Extensions",
            "https://mentionable.dev/spec/a2a-tool-events/v0.1",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let request = send(
            Dialect::Newer,
            &format!("n{place}"),
            std::slice::from_ref(&part),
        );
        let told = server
            .send(request.header(header, format!("https://other.example/x, {uri}")))
            .await;
        assert_eq!(told.head.header("a2a-extensions"), Some(URI));
        let task = Dialect::Newer.task(&told.json()["result"]);
        assert_eq!(
            events(&task["history"]),
            ["tool-call", "tool-call", "tool-result"]
        );
    }
}

#[tokio::test]
async fn secrets_are_not_told_back() {
    let tool = MockNativeTool::named("demo.login").output("in").schema(json!({
        "type": "object", "properties": { "password": { "type": "string", "x-sensitive": true } }
    }));
    let server = serve(&tool).await;
    let call = Dialect::Older.call("c", "login", &json!({ "password": "hunter22" }));
    let told = server.send(send(Dialect::Older, "m1", &[call])).await;
    assert_eq!(tool.inputs(), [json!({ "password": "hunter22" })]);
    assert_eq!(told.json()["result"]["status"]["state"], "completed");
    assert!(!told.text().contains("hunter22"), "{}", told.text());
}

#[tokio::test]
async fn whoever_does_not_wait_gets_the_task_at_once() {
    for dialect in Dialect::BOTH {
        let gate = MockToolGate::new();
        let server = serve(&add().gate(&gate)).await;
        let configuration = match dialect {
            Dialect::Older => json!({ "blocking": false }),
            Dialect::Newer => json!({ "returnImmediately": true }),
        };
        let call = dialect.call("c1", "add", &json!({ "a": 2 }));
        let params =
            json!({ "message": dialect.message("m1", &[call]), "configuration": configuration });
        let task = dialect.task(&result(&server, rpc(dialect.method("send"), &params)).await);
        assert_eq!(task["status"]["state"], dialect.state("working"), "{task}");
        gate.entered(1).await;
        gate.let_through(1);
        let id = task["id"].as_str().unwrap();
        let mut stream = server
            .begin(rpc(dialect.method("subscribe"), &json!({ "id": id })))
            .await;
        let head = stream.head().await;
        if head.header("content-type") != Some("application/json") {
            items(&mut stream).await;
        }
        let get = rpc(
            dialect.method("get"),
            &json!({ "id": id, "historyLength": 1 }),
        );
        let task = result(&server, get).await;
        assert_eq!(
            task["status"]["state"],
            dialect.state("completed"),
            "{task}"
        );
        assert_eq!(task["history"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn arguments_that_were_not_read_are_not_made_up() {
    let server = serve(&add()).await;
    let dialect = Dialect::Newer;
    for (place, (tool, input)) in [
        ("add", json!("a=1")),
        ("add", json!(null)),
        ("add", json!(5)),
        ("missing", json!({ "a": 1 })),
    ]
    .into_iter()
    .enumerate()
    {
        let call = dialect.call("c", tool, &input);
        let params = json!({ "message": dialect.message(&format!("m{place}"), &[call]) });
        let task = dialect.task(&result(&server, rpc("SendMessage", &params)).await);
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
        let told: Vec<&Value> = task["history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| &message["parts"][0]["data"])
            .collect();
        assert_eq!(told.len(), 3, "{task}");
        for event in told {
            assert!(
                event.get("input").is_none_or(|told| *told == input),
                "{input}: {event}"
            );
        }
    }
}

#[tokio::test]
async fn a_large_input_is_cut_in_the_history_too() {
    let server = serve(
        &MockNativeTool::named("demo.take")
            .class(EffectClass::Read)
            .output("taken"),
    )
    .await;
    let dialect = Dialect::Newer;
    let call = dialect.call("c", "take", &json!({ "text": "x".repeat(300_000) }));
    let params = json!({ "message": dialect.message("m", &[call]) });
    let task = dialect.task(&result(&server, rpc("SendMessage", &params)).await);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert_eq!(
        task["history"][0]["parts"][0]["data"]["input"]["truncated"],
        true
    );
    assert!(task.to_string().len() < 100_000);
}
