//! The events of modules on the streams of sessions and of A2A tasks: while their call runs, and again from the record.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolpost_model::{EffectClass, EventBody, FnTool, Tool, ToolFailure, ToolOutput};

use super::{
    client::{Connection, Frame, Request},
    running::{Place, Running},
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that emits one event, waits until it may go on, and emits `later` more.
fn emitter(go_on: &Arc<Semaphore>, later: usize) -> impl Tool + use<> {
    let go_on = Arc::clone(go_on);
    FnTool::named("demo.emit")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: Nothing, context| {
            let go_on = Arc::clone(&go_on);
            async move {
                let emit = |name: &str, data: Value| {
                    let at = "2026-01-02T03:04:05Z".parse().ok();
                    context.emit(EventBody::module_event(
                        name,
                        context.session_id(),
                        at,
                        data,
                    ));
                };
                emit("demo:begun", json!({ "large": "x".repeat(5_000), "n": 0 }));
                go_on.acquire().await.unwrap().forget();
                for n in 1..=later {
                    emit("demo:done", json!({ "n": n }));
                }
                Ok::<_, ToolFailure>(ToolOutput::text("emitted"))
            }
        })
}

async fn serve(place: &Place, go_on: &Arc<Semaphore>, later: usize) -> Running {
    place
        .start_with(|builder| builder.tool(emitter(go_on, later)))
        .await
}

async fn stream_of_session(server: &Running, query: &str) -> Connection {
    let mut stream = server
        .begin(Request::get(format!("/sessions/default/events{query}")))
        .await;
    assert_eq!(stream.head().await.status, 200);
    assert_eq!(stream.frame().await.unwrap().event, "opening");
    stream
}

async fn next(stream: &mut Connection, event: &str) -> Value {
    let frame: Frame = stream.frame().await.expect("the stream goes on");
    assert_eq!(frame.event, event, "{frame:?}");
    serde_json::from_str(&frame.data).unwrap()
}

/// An event of the tool above; a field over 4 KiB is replaced by its size.
fn check_event(event: &Value, call: &Value, name: &str, data: &Value) {
    assert_eq!(event["type"], "module-event", "{event}");
    assert_eq!(
        (&event["toolCallId"], &event["event"]),
        (call, &json!(name))
    );
    assert_eq!(
        (&event["timestamp"], &event["data"]),
        (&json!("2026-01-02T03:04:05Z"), data)
    );
    assert!(
        event["sessionId"].is_string() && event["seq"].is_u64(),
        "{event}"
    );
}

fn cut() -> Value {
    json!({ "cut": format!("{} bytes", json!({ "large": "x".repeat(5_000), "n": 0 }).to_string().len()) })
}

#[tokio::test]
async fn a_session_stream_has_the_events_of_modules_while_their_call_runs_and_from_the_record() {
    let place = Place::without_native_tools();
    let go_on = Arc::new(Semaphore::new(0));
    let server = serve(&place, &go_on, 1).await;
    let mut stream = stream_of_session(&server, "").await;
    let mut call = server.begin(Request::call("emit", &json!({}))).await;
    let id = next(&mut stream, "tool-event").await["toolCallId"].clone();
    check_event(
        &next(&mut stream, "module-event").await,
        &id,
        "demo:begun",
        &cut(),
    );
    go_on.add_permits(1);
    check_event(
        &next(&mut stream, "module-event").await,
        &id,
        "demo:done",
        &json!({ "n": 1 }),
    );
    assert_eq!(next(&mut stream, "tool-event").await["type"], "tool-result");
    call.receive().await;
    // A later reader gets the same from the record, each event once.
    let mut later = stream_of_session(&server, "?from=start").await;
    assert_eq!(next(&mut later, "tool-event").await["type"], "tool-call");
    check_event(
        &next(&mut later, "module-event").await,
        &id,
        "demo:begun",
        &cut(),
    );
    check_event(
        &next(&mut later, "module-event").await,
        &id,
        "demo:done",
        &json!({ "n": 1 }),
    );
    assert_eq!(next(&mut later, "tool-event").await["type"], "tool-result");
    server.shut_down().await;
}

#[tokio::test]
async fn the_ai_sdk_gets_the_events_of_modules_as_transient_data() {
    let place = Place::without_native_tools();
    let go_on = Arc::new(Semaphore::new(1));
    let server = serve(&place, &go_on, 0).await;
    server.send(Request::call("emit", &json!({}))).await;
    let request = Request::get("/sessions/default/events?from=start&vocabulary=ai-sdk");
    let mut stream = server.begin(request).await;
    assert_eq!(stream.head().await.status, 200);
    let mut text = String::new();
    while !text.contains("tool-output-available") {
        text.push_str(&stream.piece().await.expect("the stream goes on"));
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let told: Vec<Value> = data
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let types: Vec<&str> = told
        .iter()
        .map(|chunk| chunk["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "start",
            "tool-input-available",
            "data-module-event",
            "tool-output-available"
        ]
    );
    assert_eq!(told[2]["transient"], true);
    check_event(
        &told[2]["data"],
        &told[1]["toolCallId"],
        "demo:begun",
        &cut(),
    );
}

fn message(extension: bool) -> Request {
    let part = json!({ "data": { "type": "tool-call", "toolCallId": "c1", "toolName": "emit", "input": {} } });
    let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [part] });
    let body = json!({
        "jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": { "message": message },
    });
    let request = Request::post("/a2a", body.to_string()).header("A2A-Version", "1.0");
    let uri = "https://mentionable.dev/ns/a2a-tool-events/v0.1";
    if extension {
        request.header("A2A-Extensions", uri)
    } else {
        request
    }
}

/// The data parts of a status update of the newer dialect.
fn data_parts(item: &Value) -> Vec<Value> {
    let parts = item["result"]["statusUpdate"]["status"]["message"]["parts"].as_array();
    parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("data").cloned())
        .collect()
}

#[tokio::test]
async fn an_a2a_task_has_the_events_of_modules_while_its_call_runs_and_after_a_restart() {
    let place = Place::without_native_tools();
    let go_on = Arc::new(Semaphore::new(0));
    let server = serve(&place, &go_on, 1).await;
    let mut stream = server.begin(message(true)).await;
    assert_eq!(stream.head().await.status, 200);
    let task = stream.data().await.unwrap()["result"]["task"].clone();
    let mut told = Vec::new();
    while let Some(item) = stream.data().await {
        told.extend(data_parts(&item));
        if told
            .last()
            .is_some_and(|part| part["event"] == "demo:begun")
        {
            // The call still waits: its first event was told before the end.
            go_on.add_permits(1);
        }
    }
    let types: Vec<&str> = told
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        ["tool-call", "module-event", "module-event", "tool-result"],
        "{told:?}"
    );
    check_event(&told[1], &json!("c1"), "demo:begun", &cut());
    check_event(&told[2], &json!("c1"), "demo:done", &json!({ "n": 1 }));
    server.shut_down().await;

    let server = serve(&place, &go_on, 1).await;
    let body =
        json!({ "jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": { "id": task["id"] } });
    let again = server
        .send(Request::post("/a2a", body.to_string()).header("A2A-Version", "1.0"))
        .await
        .json();
    let history = again["result"]["history"].as_array().unwrap();
    let parts = history
        .iter()
        .flat_map(|message| message["parts"].as_array().unwrap());
    let types: Vec<&str> = parts
        .filter_map(|part| part["data"]["type"].as_str())
        .collect();
    let expected = [
        "tool-call",
        "tool-call",
        "module-event",
        "module-event",
        "tool-result",
    ];
    assert_eq!(
        types, expected,
        "the user's own call, then what was told: {again}"
    );
    assert_eq!(again["result"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_task_holds_a_bounded_number_of_events() {
    let place = Place::without_native_tools();
    let go_on = Arc::new(Semaphore::new(1));
    let server = serve(&place, &go_on, 1_000).await;
    let mut stream = server.begin(message(true)).await;
    assert_eq!(stream.head().await.status, 200);
    let mut told = Vec::new();
    while let Some(item) = stream.data().await {
        told.extend(data_parts(&item));
    }
    let module = told
        .iter()
        .filter(|part| part["type"] == "module-event")
        .count();
    assert!((2..=64).contains(&module), "{module}");
    assert_eq!(told.last().unwrap()["type"], "tool-result");
}
