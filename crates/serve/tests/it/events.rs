//! A session's calls as they happen: `GET /sessions/{id}/events`.

mod joining;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolpost_core::{Hook, HookCall, HookError, HookOutput};
use toolpost_model::{
    BoxFuture, CallContext, Declaration, EffectClass, NestedCall, PrincipalRole, Tool, ToolCall,
    ToolFailure, ToolOutput,
};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Connection, Frame, Request},
    running::{Place, Running},
};

fn reader(name: &str) -> MockNativeTool {
    MockNativeTool::named(name).class(EffectClass::Read)
}

/// A stream behind its opening.
async fn follow(server: &Running, request: Request) -> Connection {
    opened(server, request).await.0
}

/// A stream, and its opening.
async fn opened(server: &Running, request: Request) -> (Connection, Frame) {
    let mut stream = server.begin(request).await;
    let head = stream.head().await;
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
    assert_eq!(head.header("cache-control"), Some("no-store"));
    let opening = stream.frame().await.expect("a stream begins");
    assert_eq!(opening.event, "opening");
    assert!(
        opening.id.is_some() && payload(&opening)["open"].is_array(),
        "{opening:?}"
    );
    (stream, opening)
}

/// The last words of a stream.
async fn closing(stream: &mut Connection) -> Value {
    let frame = stream.frame().await.expect("a stream says that it ends");
    assert_eq!((frame.event.as_str(), frame.id), ("closing", None));
    assert_eq!(stream.frame().await, None, "nothing comes behind it");
    payload(&frame)["reason"].clone()
}

async fn own(server: &Running, query: &str) -> Connection {
    follow(
        server,
        Request::get(format!("/sessions/default/events{query}")),
    )
    .await
}

async fn next(stream: &mut Connection) -> Frame {
    let frame = stream.frame().await.expect("the stream goes on");
    assert_eq!(frame.event, "tool-event");
    frame
}

fn payload(frame: &Frame) -> Value {
    serde_json::from_str(&frame.data).expect("events are JSON")
}

/// What an event says, without what differs from run to run.
fn told(frame: &Frame) -> Value {
    let mut event = payload(frame);
    let members = event.as_object_mut().expect("events are objects");
    assert!(
        members
            .remove("toolCallId")
            .is_some_and(|id| id.as_str().is_some_and(|id| !id.is_empty()))
    );
    match members["type"].as_str() {
        Some("tool-call") => assert!(members.remove("startedAt").is_some_and(|at| at.is_string())),
        Some(_) => assert!(
            members
                .remove("durationMs")
                .is_some_and(|took| took.is_u64())
        ),
        None => panic!("{frame:?} has no type"),
    }
    event
}

#[tokio::test]
async fn a_call_is_told_when_it_begins_and_when_it_ends() {
    let gate = MockToolGate::new();
    let tool = reader("demo.wait").gate(&gate).output("through");
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let mut stream = own(&server, "").await;
    let mut call = server
        .begin(Request::call("wait", &json!({ "path": "a" })))
        .await;
    let begun = next(&mut stream).await;
    assert_eq!(
        told(&begun),
        json!({ "type": "tool-call", "toolName": "wait", "input": { "path": "a" } })
    );
    assert_eq!(
        begun.id, None,
        "a call that only reads is not on record before its end"
    );
    gate.let_through(1);
    let ended = next(&mut stream).await;
    let expected = json!({ "type": "tool-result", "toolName": "wait", "input": { "path": "a" }, "output": "through" });
    assert_eq!(told(&ended), expected);
    assert!(ended.id.is_some());
    // The id leads to the call.
    let answer = call.receive().await.json();
    assert_eq!(answer["invocation_id"], payload(&begun)["toolCallId"]);
    assert_eq!(answer["invocation_id"], payload(&ended)["toolCallId"]);
    server.shut_down().await;
    assert_eq!(
        closing(&mut stream).await,
        "shutdown",
        "a host that goes ends its streams"
    );
}

#[tokio::test]
async fn what_does_not_succeed_is_told_as_an_error_behind_its_call() {
    let tool = reader("demo.fail").failing(ToolFailure::new("the disk is on fire"));
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let mut stream = own(&server, "").await;
    // Nobody read the arguments for a tool that is not there, so nothing is said of them.
    for (tool, expected, begins) in [
        (
            "fail",
            "the disk is on fire",
            json!({ "type": "tool-call", "toolName": "fail", "input": {} }),
        ),
        (
            "nothing",
            "nothing",
            json!({ "type": "tool-call", "toolName": "nothing" }),
        ),
    ] {
        server.call(tool, json!({})).await;
        assert_eq!(told(&next(&mut stream).await), begins);
        let ended = told(&next(&mut stream).await);
        assert_eq!(
            (&ended["type"], &ended["toolName"]),
            (&json!("tool-error"), &json!(tool))
        );
        assert!(
            ended["error"]["message"]
                .as_str()
                .unwrap()
                .contains(expected),
            "{ended}"
        );
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_goes_on_where_it_was_also_after_a_restart() {
    let place = Place::without_native_tools();
    let start = || {
        place.start_with(|builder| {
            builder.tool(reader("demo.read").output("r")).tool(
                MockNativeTool::named("demo.write")
                    .class(EffectClass::Write)
                    .output("w"),
            )
        })
    };
    let server = start().await;
    for tool in ["read", "write", "read"] {
        server.call(tool, json!({})).await;
    }
    let mut stream = own(&server, "?from=start").await;
    let mut whole = Vec::new();
    for _ in 0..6 {
        whole.push(next(&mut stream).await);
    }
    let names: Vec<Value> = whole
        .iter()
        .map(|frame| payload(frame)["toolName"].clone())
        .collect();
    assert_eq!(names, ["read", "read", "write", "write", "read", "read"]);
    drop(stream);
    server.shut_down().await;

    let server = start().await;
    let mut again = own(&server, "?from=start").await;
    for frame in &whole {
        assert_eq!(
            next(&mut again).await,
            *frame,
            "the same events under the same ids"
        );
    }
    let after_first = whole[1].id.unwrap();
    let request =
        Request::get("/sessions/default/events").header("Last-Event-ID", after_first.to_string());
    let by_query = Request::get(format!(
        "/sessions/default/events?after={after_first}&from=start"
    ));
    for request in [request, by_query] {
        let mut resumed = follow(&server, request).await;
        for frame in &whole[2..] {
            assert_eq!(next(&mut resumed).await, *frame);
        }
        server.call("read", json!({})).await;
        assert_eq!(
            payload(&next(&mut resumed).await)["type"],
            "tool-call",
            "and then what happens next"
        );
        assert_eq!(payload(&next(&mut resumed).await)["type"], "tool-result");
    }
    // Numbers that were never given out: the reader has everything.
    let mut ahead = own(&server, "?after=18446744073709551615").await;
    server.call("read", json!({})).await;
    assert_eq!(payload(&next(&mut ahead).await)["type"], "tool-call");
}

#[tokio::test]
async fn an_end_is_never_told_without_its_call() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.write")
        .class(EffectClass::Write)
        .gate(&gate)
        .output("w");
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let mut first = own(&server, "").await;
    let request = Request::call("write", &json!({ "path": "p" })).key("k");
    let mut call = server.begin(request).await;
    gate.entered(1).await;
    let begun = next(&mut first).await;
    // On record by now, and before the place where this one begins.
    let mut late = own(&server, "").await;
    gate.let_through(1);
    call.receive().await;
    let call = next(&mut late).await;
    let end = next(&mut late).await;
    assert_eq!(payload(&call)["toolCallId"], payload(&begun)["toolCallId"]);
    assert_eq!(told(&call), told(&begun));
    assert_eq!(call.id, None, "who breaks off here must get it again");
    let other = next(&mut first).await;
    assert_eq!(end, other);
    assert_eq!(payload(&end)["type"], "tool-result");
}

#[tokio::test]
async fn a_reader_that_does_not_read_misses_nothing() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(reader("demo.read").output("r")))
        .await;
    let mut stream = own(&server, "").await;
    let mut expected = Vec::new();
    for place in 0..300 {
        let answer = server
            .call("read", json!({ "place": place, "text": "x".repeat(4_000) }))
            .await
            .json();
        expected.push(answer["invocation_id"].as_str().unwrap().to_owned());
    }
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut order = Vec::new();
    let mut last = 0;
    while order.len() < expected.len() {
        let frame = next(&mut stream).await;
        let event = payload(&frame);
        let id = event["toolCallId"].as_str().unwrap();
        let kind = event["type"].as_str().unwrap();
        seen.entry(id.to_owned()).or_default().push(kind.to_owned());
        if kind == "tool-result" {
            order.push(id.to_owned());
            assert!(frame.id.unwrap() > last, "ids go up");
            last = frame.id.unwrap();
        }
    }
    assert_eq!(order, expected);
    for (id, kinds) in seen {
        assert_eq!(kinds, ["tool-call", "tool-result"], "{id}");
    }
}

#[tokio::test]
async fn many_read_at_once_and_places_are_given_back() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(reader("demo.read").output("r")))
        .await;
    let mut streams = Vec::new();
    for _ in 0..128 {
        streams.push(own(&server, "").await);
    }
    let refused = server.send(Request::get("/sessions/default/events")).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "too_many_streams")
    );
    server.call("read", json!({})).await;
    for stream in &mut streams {
        assert_eq!(payload(&next(stream).await)["type"], "tool-call");
        assert_eq!(payload(&next(stream).await)["type"], "tool-result");
    }
    drop(streams);
    for _ in 0..10_000 {
        // The server notices when it next writes to one that is gone, or reads its end.
        let mut again = server.begin(Request::get("/sessions/default/events")).await;
        if again.head().await.status == 200 {
            return;
        }
    }
    panic!("no place was given back");
}

#[tokio::test]
async fn only_the_owner_and_operators_may_watch() {
    let place = Place::without_native_tools()
        .with_token("other", PrincipalRole::Agent, "token-of-the-other")
        .with_token("boss", PrincipalRole::Operator, "token-of-the-operator");
    let server = place
        .start_with(|builder| builder.tool(reader("demo.read").output("r")))
        .await;
    let session = server.open_session(Request::post("/sessions", "")).await;
    let path = format!("/sessions/{session}/events");
    let refused = server
        .send(Request::get(&path).bearer("token-of-the-other"))
        .await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (404, "unknown_session")
    );
    assert_eq!(server.send_bare(Request::get(&path)).await.status(), 401);
    let mut boss = follow(&server, Request::get(&path).bearer("token-of-the-operator")).await;
    server
        .send(Request::call("read", &json!({})).session(&session))
        .await;
    assert_eq!(payload(&next(&mut boss).await)["type"], "tool-call");
    // Calls of other sessions are not heard.
    let mut other = follow(
        &server,
        Request::get("/sessions/default/events?from=start").bearer("token-of-the-other"),
    )
    .await;
    server
        .send(Request::call("read", &json!({ "mine": 1 })).bearer("token-of-the-other"))
        .await;
    assert_eq!(
        payload(&next(&mut other).await)["input"],
        json!({ "mine": 1 })
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let server = Place::without_native_tools().start().await;
    let path = "/sessions/default/events";
    for (request, code) in [
        (
            Request::get(path).header("Last-Event-ID", "abc"),
            "bad_event_id",
        ),
        (
            Request::get(path).header("Last-Event-ID", "-1"),
            "bad_event_id",
        ),
        (
            Request::get(path).header("Last-Event-ID", "+1"),
            "bad_event_id",
        ),
        (
            Request::get(path).header("Last-Event-ID", "99999999999999999999"),
            "bad_event_id",
        ),
        (
            Request::get(path).header("Last-Event-ID", b"\xff"),
            "bad_event_id",
        ),
        (Request::get(format!("{path}?from=later")), "bad_query"),
        (
            Request::get(format!("{path}?vocabulary=klingon")),
            "bad_query",
        ),
        (Request::get(format!("{path}?after=x")), "bad_query"),
        (Request::get(format!("{path}?form=start")), "bad_query"),
    ] {
        let refused = server.send(request).await;
        assert_eq!((refused.status(), refused.code().as_str()), (400, code));
    }
    let unknown = server.send(Request::get("/sessions/none/events")).await;
    assert_eq!(
        (unknown.status(), unknown.code().as_str()),
        (404, "unknown_session")
    );
    assert!(
        !unknown.json().to_string().contains("header"),
        "{}",
        unknown.json()
    );
    own(&server, "").await;
    follow(&server, Request::get(path).header("Last-Event-ID", "")).await;
}

#[tokio::test]
async fn secrets_in_arguments_are_not_told() {
    let gate = MockToolGate::new();
    let tool = reader("demo.read").gate(&gate).output("r").schema(json!({
        "type": "object",
        "properties": { "password": { "type": "string", "x-sensitive": true }, "note": { "type": "string" } }
    }));
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let mut stream = own(&server, "").await;
    let token = server.token().to_owned();
    let arguments = json!({ "note": format!("the token is {token}") });
    let mut call = server.begin(Request::call("read", &arguments)).await;
    let begun = next(&mut stream).await;
    gate.let_through(1);
    call.receive().await;
    let ended = next(&mut stream).await;
    for frame in [begun, ended] {
        assert!(!frame.data.contains(&token), "{frame:?}");
        assert!(frame.data.contains("[redacted"), "{frame:?}");
    }
}

/// Calls another tool.
struct Outer;

impl Tool for Outer {
    fn declaration(&self) -> Declaration {
        Declaration::new("demo.outer".parse().unwrap(), "Calls another tool")
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let context: CallContext = call.context;
        context
            .call_tool(NestedCall::new("read", json!({ "in": 1 })))
            .await?;
        Ok(ToolOutput::text("out"))
    }
}

#[tokio::test]
async fn calls_made_by_calls_are_told_too() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(Outer).tool(reader("demo.read").output("r")))
        .await;
    let mut stream = own(&server, "").await;
    server.call("outer", json!({})).await;
    let mut heard = Vec::new();
    for _ in 0..4 {
        let event = payload(&next(&mut stream).await);
        heard.push(format!(
            "{} {}",
            event["type"].as_str().unwrap(),
            event["toolName"].as_str().unwrap()
        ));
    }
    assert_eq!(
        heard,
        [
            "tool-call outer",
            "tool-call read",
            "tool-result read",
            "tool-result outer"
        ]
    );
}

/// Everything that is still sent, as text.
async fn rest(stream: &mut Connection) -> String {
    let mut text = String::new();
    while let Some(piece) = stream.piece().await {
        text.push_str(&piece);
    }
    text
}

/// The chunks of a UI message stream, with their ids of calls taken out.
fn chunks(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut chunks: Vec<Value> = data
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
        .collect();
    for chunk in chunks.iter_mut().filter_map(Value::as_object_mut) {
        chunk.remove("toolCallId");
        chunk.remove("messageId");
    }
    chunks
}

#[tokio::test]
async fn the_ai_sdk_gets_a_message_that_is_complete_when_the_session_closes() {
    let gate = MockToolGate::new();
    let server = Place::without_native_tools()
        .start_with(|builder| {
            let failing = reader("demo.fail").failing(ToolFailure::new("no luck"));
            let hanging = reader("demo.hang").gate(&gate);
            builder
                .tool(reader("demo.read").output(json!({ "n": 1 })))
                .tool(failing)
                .tool(hanging)
        })
        .await;
    let session = server.open_session(Request::post("/sessions", "")).await;
    let mut stream = server
        .begin(Request::get(format!(
            "/sessions/{session}/events?vocabulary=ai-sdk"
        )))
        .await;
    let head = stream.head().await;
    assert_eq!(head.header("x-vercel-ai-ui-message-stream"), Some("v1"));
    let mut text = String::new();
    for (tool, last) in [
        ("read", "tool-output-available"),
        ("fail", "tool-output-error"),
    ] {
        server
            .send(Request::call(tool, &json!({})).session(&session))
            .await;
        // A call that begins while the end of another is being read may be told first.
        while !text.contains(last) {
            text.push_str(&stream.piece().await.expect("the stream goes on"));
        }
    }
    let mut hanging = server
        .begin(Request::call("hang", &json!({})).session(&session))
        .await;
    gate.entered(1).await;
    let closed = server
        .send(Request::new("DELETE", format!("/sessions/{session}")))
        .await;
    assert_eq!(closed.status(), 204);
    hanging.receive().await;
    text.push_str(&rest(&mut stream).await);
    let mut told = chunks(&text);
    let canceled = told[6]["errorText"].take();
    assert!(
        canceled
            .as_str()
            .is_some_and(|text| text.contains("its session was closed")),
        "{canceled}"
    );
    let input = |tool: &str| json!({ "type": "tool-input-available", "toolName": tool, "input": {}, "dynamic": true });
    let expected = [
        json!({ "type": "start" }),
        input("read"),
        json!({ "type": "tool-output-available", "output": { "n": 1 }, "dynamic": true }),
        input("fail"),
        json!({ "type": "tool-output-error", "errorText": "no luck", "dynamic": true }),
        input("hang"),
        json!({ "type": "tool-output-error", "errorText": null, "dynamic": true }),
        json!({ "type": "finish" }),
        json!("[DONE]"),
    ];
    assert_eq!(told, expected);
}

/// A hook that puts another path into every call.
struct OtherPath;

impl Hook for OtherPath {
    fn name(&self) -> &str {
        "other-path"
    }

    fn before<'a>(&'a self, _: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(std::future::ready(Ok(HookOutput::rewrite(
            json!({ "path": "b" }),
            "b is better",
        ))))
    }
}

#[tokio::test]
async fn a_call_is_told_with_what_the_model_sent_and_its_end_with_what_ran() {
    let gate = MockToolGate::new();
    let tool = reader("demo.wait").gate(&gate);
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool).hook(OtherPath))
        .await;
    let mut live = own(&server, "").await;
    let mut page = server
        .begin(Request::get("/sessions/default/events?vocabulary=ai-sdk"))
        .await;
    page.head().await;
    let mut call = server
        .begin(Request::call("wait", &json!({ "path": "a" })))
        .await;
    gate.entered(1).await;
    // A reader that comes while the call runs.
    let mut joined = own(&server, "").await;
    gate.let_through(1);
    call.receive().await;
    let mut replayed = own(&server, "?from=start").await;
    for stream in [&mut live, &mut joined, &mut replayed] {
        let begun = told(&next(stream).await);
        let ended = told(&next(stream).await);
        assert_eq!(
            (&begun["type"], &begun["input"]),
            (&json!("tool-call"), &json!({ "path": "a" }))
        );
        assert_eq!(
            (&ended["type"], &ended["input"]),
            (&json!("tool-result"), &json!({ "path": "b" }))
        );
    }
    let mut text = String::new();
    while !text.contains("tool-output-available") {
        text.push_str(&page.piece().await.expect("the stream goes on"));
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let told: Vec<Value> = chunks
        .filter(|chunk| chunk["type"] == "tool-input-available")
        .collect();
    let inputs: Vec<&Value> = told.iter().map(|chunk| &chunk["input"]).collect();
    assert_eq!(inputs, [&json!({ "path": "a" }), &json!({ "path": "b" })]);
}
