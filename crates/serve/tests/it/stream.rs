//! A call as server-sent events.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolpost_core::RecordKind;
use toolpost_model::{
    BoxFuture, Declaration, EffectClass, EffectOrigin, EventBody, FnTool, LogLevel, PermissionMode,
    SessionScope, Source, SourceError, SourceSession, Tool, ToolFailure, ToolOutput, ToolProgress,
    ToolSet, WireNaming,
};
use toolpost_store::JournalReader;
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Frame, Request, within},
    running::{Place, Running},
};

/// A tool that says something of every kind while it works.
fn talker() -> impl Tool {
    FnTool::named("demo.talk")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, context| async move {
            context.status("beginning");
            context.progress(ToolProgress {
                message: "half".to_owned(),
                percent: Some(50.0),
                ..ToolProgress::default()
            });
            context.log(LogLevel::Warn, "two\nlines\r\nand data: {}");
            context.artifact("part.txt", toolpost_model::ResultContent::text("a part"));
            let at = "2026-01-02T03:04:05Z".parse().ok();
            context.emit(EventBody::module_event(
                "demo:read",
                context.session_id(),
                at,
                json!({ "n": 1 }),
            ));
            Ok::<_, ToolFailure>(ToolOutput::text("said"))
        })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn streamed(server: &Running, request: Request) -> Vec<Frame> {
    let mut connection = server.begin(request.streamed()).await;
    let head = connection.head().await;
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
    assert_eq!(head.header("cache-control"), Some("no-store"));
    connection.frames().await
}

/// Ids count from 1 without a hole, and the one result is the last frame and what the record has.
async fn check_whole(server: &Running, frames: &[Frame]) -> Value {
    let (result, events) = frames.split_last().expect("at least the result");
    assert_eq!(result.event, "result");
    assert_eq!(result.id, None);
    assert!(
        events.iter().all(|frame| frame.event != "result"),
        "one result only"
    );
    let ids: Vec<u64> = events.iter().filter_map(|frame| frame.id).collect();
    assert_eq!(ids, (1..=events.len() as u64).collect::<Vec<_>>());
    let value: Value = serde_json::from_str(&result.data).unwrap();
    for (place, event) in events.iter().enumerate() {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(
            (&data["seq"], &data["kind"]),
            (&json!(place + 1), &json!(event.event))
        );
        assert_eq!(data["invocation_id"], value["invocation_id"]);
    }
    let told = server.ended(value["invocation_id"].as_str().unwrap()).await;
    let told = told.text();
    assert!(
        told.contains(&format!("\"result\":{}", result.data)),
        "{} is not in {told}",
        result.data
    );
    value
}

fn kinds(frames: &[Frame]) -> Vec<String> {
    let name = |frame: &Frame| match frame.event.as_str() {
        "stage" => serde_json::from_str::<Value>(&frame.data).unwrap()["stage"]
            .as_str()
            .unwrap()
            .to_owned(),
        other => format!("<{other}>"),
    };
    frames.iter().map(name).collect()
}

#[tokio::test]
async fn events_come_in_order_and_the_result_last() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(talker()))
        .await;
    let frames = streamed(&server, Request::call("talk", &json!({}))).await;
    let result = check_whole(&server, &frames).await;
    assert_eq!(
        (&result["outcome"], &result["content"][0]["text"]),
        (&json!("succeeded"), &json!("said"))
    );
    let expected = "resolve parse validate observe pre_hooks decide admit execute <status> <progress> <log> \
                    <artifact> <custom> map post_hooks persist emit <result>";
    assert_eq!(kinds(&frames).join(" "), expected);
    let module: Value = serde_json::from_str(&frames[12].data).unwrap();
    assert_eq!(module["name"], "module_event");
    assert_eq!(
        (&module["data"]["event"], &module["data"]["data"]),
        (&json!("demo:read"), &json!({ "n": 1 }))
    );
    assert_eq!(module["data"]["timestamp"], "2026-01-02T03:04:05Z");
    assert!(module["data"]["session_id"].is_string(), "{module}");
    let log: Value = serde_json::from_str(&frames[10].data).unwrap();
    assert_eq!(
        (&log["level"], &log["message"]),
        (&json!("warn"), &json!("two\nlines\r\nand data: {}"))
    );
}

#[tokio::test]
async fn a_call_that_never_runs_ends_its_stream_with_a_result_too() {
    let mut place = Place::new();
    place.config.mode = PermissionMode::Default;
    place.config.approvals.timeout = Duration::from_millis(10);
    let server = place.start().await;
    for (tool, body, class, last) in [
        ("nothing", "{}", "unknown_tool", "resolve"),
        (
            "file_info",
            r#"{"path":"x"}"#,
            "schema_not_loaded",
            "resolve",
        ),
        ("echo", "{", "schema_validation_failed", "parse"),
        ("echo", "{}", "invalid_arguments", "validate"),
        (
            "write_file",
            r#"{"path":"x","content":""}"#,
            "approval_rejected",
            "await_approval",
        ),
    ] {
        let frames = streamed(&server, Request::post(format!("/tools/{tool}/call"), body)).await;
        let result = check_whole(&server, &frames).await;
        assert_eq!(result["error"]["class"], class, "{tool}");
        let stages = kinds(&frames);
        let reached = stages
            .iter()
            .take_while(|stage| *stage != "map")
            .filter(|stage| !stage.starts_with('<'))
            .last()
            .unwrap();
        assert_eq!(reached, last, "{tool}: {stages:?}");
    }
}

#[tokio::test]
async fn a_refused_request_is_no_stream() {
    let server = Place::new().start().await;
    let refused = server
        .send(Request::post("/tools/echo/call?timeout=0", "{}").streamed())
        .await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (400, "bad_timeout")
    );
}

#[tokio::test]
async fn the_stream_is_heard_while_the_call_runs() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .output("through");
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    for accept in [
        "text/event-stream",
        "application/json;q=0.5, text/event-stream; charset=utf-8",
    ] {
        let request = Request::call("wait", &json!({})).header("Accept", accept);
        let mut connection = server.begin(request).await;
        assert_eq!(
            connection.head().await.header("content-type"),
            Some("text/event-stream"),
            "{accept}"
        );
        gate.entered(1).await;
        let mut heard = Vec::new();
        for _ in 0..8 {
            heard.push(connection.frame().await.expect("the stream goes on"));
        }
        assert_eq!(
            kinds(&heard).last().unwrap(),
            "execute",
            "before the tool is let through"
        );
        gate.let_through(1);
        heard.extend(connection.frames().await);
        check_whole(&server, &heard).await;
    }
    let plain =
        Request::call("wait", &json!({})).header("Accept", "application/json, text/*;q=0.1");
    gate.let_through(1);
    assert_eq!(server.send(plain).await.json()["outcome"], "succeeded");
}

#[tokio::test]
async fn a_streamed_repeat_gets_the_recorded_result() {
    let tool = MockNativeTool::named("demo.once").output("first");
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool.clone()))
        .await;
    let request = Request::call("once", &json!({})).key("k");
    let first = streamed(&server, request.clone()).await;
    let repeat = streamed(&server, request.clone()).await;
    assert_eq!(
        repeat,
        [first.last().unwrap().clone()],
        "the events are over, the result stays"
    );
    let plain = server.send(request).await;
    assert_eq!(plain.text(), first.last().unwrap().data);
    assert_eq!(tool.call_count(), 1);
}

/// A source that takes its time to open.
struct Slow {
    asked: Arc<Semaphore>,
    open: Arc<Semaphore>,
    tools: ToolSet,
}

impl Source for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn origin(&self) -> EffectOrigin {
        self.tools.origin()
    }

    fn naming(&self) -> WireNaming {
        self.tools.naming()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        self.tools.list()
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(async move {
            self.asked.add_permits(1);
            self.open.acquire().await.unwrap().forget();
            self.tools.open(session).await
        })
    }
}

#[tokio::test]
async fn a_stream_begins_once_its_call_is_on_record() {
    for key in [None, Some("k")] {
        let asked = Arc::new(Semaphore::new(0));
        let open = Arc::new(Semaphore::new(0));
        let tools = ToolSet::of(MockNativeTool::named("demo.one"));
        let source = Slow {
            asked: Arc::clone(&asked),
            open: Arc::clone(&open),
            tools,
        };
        let place = Place::without_native_tools();
        let server = place.start_with(|builder| builder.source(source)).await;
        let request = Request::call("one", &json!({})).streamed();
        let request = key.map_or(request.clone(), |key| request.key(key));
        let mut connection = server.begin(request).await;
        within(asked.acquire()).await.unwrap().forget();
        let head = tokio::spawn(async move { connection.head().await });
        // Time enough for an answer that comes too early.
        for _ in 0..50 {
            assert_eq!(server.send(Request::get("/health")).await.status(), 200);
        }
        assert!(
            !head.is_finished(),
            "answered before the call is on record, key {key:?}"
        );
        open.add_permits(1);
        assert_eq!(within(head).await.unwrap().status, 200);
        let reader = JournalReader::open(&place.data_dir().join("journal.db")).unwrap();
        let of_calls =
            |kind: &RecordKind| !matches!(kind, RecordKind::Catalog | RecordKind::Surface);
        let mut kinds = reader
            .read(1, 9)
            .unwrap()
            .into_iter()
            .map(|row| row.record.kind)
            .filter(of_calls);
        assert_eq!(kinds.next(), Some(RecordKind::Accepted), "key {key:?}");
    }
}
