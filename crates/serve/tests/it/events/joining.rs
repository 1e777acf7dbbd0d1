//! What a stream says besides the calls and their ends: which calls run when it begins, which wait for a person, and why
//! it ends.

use std::path::Path;

use serde_json::{Value, json};
use toolpost_model::{EffectClass, PermissionMode, PrincipalRole};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    super::{
        client::{Connection, Request},
        running::{Place, Running},
    },
    chunks, closing, follow, next, opened, own, payload, reader, rest, told,
};

/// The ids of calls that a stream says are open.
async fn open_now(server: &Running, query: &str) -> (Connection, Value) {
    let (stream, opening) = opened(
        server,
        Request::get(format!("/sessions/default/events{query}")),
    )
    .await;
    (stream, payload(&opening)["open"].clone())
}

/// What is told of a question: whose it is, which, how far, and under which id.
async fn approval(stream: &mut Connection) -> (Value, Option<u64>) {
    let frame = stream.frame().await.expect("the stream goes on");
    assert_eq!(frame.event, "approval");
    (payload(&frame), frame.id)
}

#[tokio::test]
async fn whoever_joins_is_told_the_calls_that_run() {
    let gate = MockToolGate::new();
    let server = Place::without_native_tools()
        .start_with(|builder| {
            let writer = MockNativeTool::named("demo.write")
                .class(EffectClass::Write)
                .gate(&gate)
                .output("w");
            builder
                .tool(reader("demo.wait").gate(&gate).output("r"))
                .tool(writer)
        })
        .await;
    let (_, none) = open_now(&server, "").await;
    assert_eq!(none, json!([]));
    let mut calls = Vec::new();
    // One that is on record by then, and one that is not.
    for tool in ["write", "wait"] {
        calls.push(
            server
                .begin(Request::call(tool, &json!({ "path": tool })))
                .await,
        );
        gate.entered(1).await;
    }
    let mut streams = Vec::new();
    for query in ["", "?from=start", "?after=1", "?after=1000000"] {
        let (mut stream, open) = open_now(&server, query).await;
        let begun = [next(&mut stream).await, next(&mut stream).await];
        let told_ids = begun
            .each_ref()
            .map(|frame| payload(frame)["toolCallId"].clone());
        assert_eq!(open, json!(told_ids), "{query}");
        for (frame, tool) in begun.iter().zip(["write", "wait"]) {
            assert_eq!(frame.id, None, "who breaks off here must get it again");
            let expected =
                json!({ "type": "tool-call", "toolName": tool, "input": { "path": tool } });
            assert_eq!(told(frame), expected, "{query}");
        }
        streams.push(stream);
    }
    let path = "/sessions/default/events?vocabulary=ai-sdk";
    let mut sdk = server.begin(Request::get(path)).await;
    sdk.head().await;
    gate.let_through(2);
    for call in &mut calls {
        call.receive().await;
    }
    for stream in &mut streams {
        let mut ends = Vec::new();
        for _ in 0..2 {
            let end = payload(&next(stream).await);
            assert_eq!(end["type"], "tool-result", "each call was told once");
            ends.push(end["toolName"].as_str().unwrap().to_owned());
        }
        ends.sort();
        assert_eq!(ends, ["wait", "write"]);
    }
    let (_, none) = open_now(&server, "").await;
    assert_eq!(none, json!([]));
    server.shut_down().await;
    let kinds: Vec<Value> = chunks(&rest(&mut sdk).await)
        .iter()
        .map(|chunk| chunk["type"].clone())
        .collect();
    let input = "tool-input-available";
    let output = "tool-output-available";
    assert_eq!(
        kinds,
        [
            json!("start"),
            json!(input),
            json!(input),
            json!(output),
            json!(output),
            json!("finish"),
            json!(null)
        ]
    );
}

#[tokio::test]
async fn a_question_is_told_to_those_who_watch_and_those_who_join() {
    let mut place = Place::without_native_tools().with_token(
        "boss",
        PrincipalRole::Operator,
        "token-of-the-operator",
    );
    place.config.mode = PermissionMode::Default;
    let tool = MockNativeTool::named("demo.push")
        .class(EffectClass::Execute)
        .output("pushed");
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let mut early = own(&server, "").await;
    let mut call = server.begin(Request::call("push", &json!({}))).await;
    let id = payload(&next(&mut early).await)["toolCallId"].clone();
    let (asked, seq) = approval(&mut early).await;
    assert_eq!(
        (&asked["toolCallId"], &asked["state"]),
        (&id, &json!("asked"))
    );
    assert!(seq.is_some(), "it is on record");
    let (mut late, open) = open_now(&server, "").await;
    assert_eq!(open, json!([id]));
    assert_eq!(payload(&next(&mut late).await)["type"], "tool-call");
    assert_eq!(approval(&mut late).await, (asked.clone(), None));
    let answer = Request::post(
        format!("/approvals/{}", asked["approvalId"].as_str().unwrap()),
        json!({ "decision": "allow" }).to_string(),
    );
    let answered = server.send(answer.bearer("token-of-the-operator")).await;
    assert_eq!(answered.status(), 200, "{}", answered.json());
    call.receive().await;
    for stream in [&mut early, &mut late] {
        let (decided, seq) = approval(stream).await;
        assert_eq!(
            (&decided["toolCallId"], &decided["approvalId"]),
            (&id, &asked["approvalId"])
        );
        assert_eq!(decided["state"], "decided");
        assert!(seq.is_some());
        assert_eq!(payload(&next(stream).await)["type"], "tool-result");
    }
    let mut whole = own(&server, "?from=start").await;
    assert_eq!(
        next(&mut whole).await.id,
        None,
        "who breaks off here must get the question too"
    );
    assert_eq!(approval(&mut whole).await, (asked, seq));
    assert_eq!(approval(&mut whole).await.0["state"], "decided");
    assert_eq!(payload(&next(&mut whole).await)["type"], "tool-result");
}

#[tokio::test]
async fn a_session_that_is_closed_says_so_last() {
    let server = Place::without_native_tools().start().await;
    let session = server.open_session(Request::post("/sessions", "")).await;
    let mut stream = follow(&server, Request::get(format!("/sessions/{session}/events"))).await;
    assert_eq!(
        server
            .send(Request::new("DELETE", format!("/sessions/{session}")))
            .await
            .status(),
        204
    );
    assert_eq!(closing(&mut stream).await, "session_closed");
}

/// What a host that is killed in this moment leaves behind, for another one to begin with.
fn killed(place: &Place) -> Place {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir(to).unwrap();
        std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            let target = to.join(entry.file_name());
            // The memory that its processes shared is gone with them.
            let is_shared = entry.file_name().to_string_lossy().ends_with("-shm");
            if kind.is_dir() {
                copy(&entry.path(), &target);
            } else if kind.is_file() && !is_shared {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let next = Place::without_native_tools();
    copy(&place.data_dir(), &next.data_dir());
    next
}

#[tokio::test]
async fn a_reader_that_comes_back_after_a_kill_can_settle_every_call() {
    let gate = MockToolGate::new();
    let place = Place::without_native_tools();
    let writer = || {
        MockNativeTool::named("demo.write")
            .class(EffectClass::Write)
            .output("w")
    };
    let dying = place
        .start_with(|builder| {
            builder
                .tool(reader("demo.wait").gate(&gate).output("r"))
                .tool(writer().gate(&gate))
        })
        .await;
    let (mut stream, opening) = opened(&dying, Request::get("/sessions/default/events")).await;
    let mut calls = Vec::new();
    let mut ids = Vec::new();
    for tool in ["write", "wait"] {
        calls.push(dying.begin(Request::call(tool, &json!({}))).await);
        gate.entered(1).await;
        ids.push(payload(&next(&mut stream).await)["toolCallId"].clone());
    }
    let left = killed(&place);
    let server = left.start_with(|builder| builder.tool(writer())).await;
    let (mut again, open) = open_now(&server, &format!("?after={}", opening.id.unwrap())).await;
    assert_eq!(open, json!([]), "neither runs here");
    let begun = payload(&next(&mut again).await);
    let ended = payload(&next(&mut again).await);
    assert_eq!(
        (&begun["type"], &begun["toolCallId"]),
        (&json!("tool-call"), &ids[0])
    );
    assert_eq!(
        (&ended["type"], &ended["toolCallId"]),
        (&json!("tool-error"), &ids[0])
    );
    assert!(
        ended["error"]["message"]
            .as_str()
            .unwrap()
            .contains("may or may not"),
        "{ended}"
    );
    assert_eq!(
        ended.get("durationMs"),
        None,
        "nobody knows how long it ran"
    );
    // Of the other one nothing was on record, so nothing more is told.
    let other = server.call("write", json!({ "other": 1 })).await.json();
    assert_eq!(
        payload(&next(&mut again).await)["toolCallId"],
        other["invocation_id"]
    );
    gate.let_through(2);
}

#[tokio::test]
async fn the_ai_sdk_is_told_of_approvals_from_version_6_on() {
    let mut place = Place::without_native_tools().with_token(
        "boss",
        PrincipalRole::Operator,
        "token-of-the-operator",
    );
    place.config.mode = PermissionMode::Default;
    let tool = MockNativeTool::named("demo.push")
        .class(EffectClass::Execute)
        .output("pushed");
    let server = place.start_with(|builder| builder.tool(tool)).await;
    for verdict in [
        json!({ "decision": "allow" }),
        json!({ "decision": "deny", "feedback": "not today" }),
    ] {
        let mut watch = own(&server, "").await;
        let mut call = server.begin(Request::call("push", &json!({}))).await;
        next(&mut watch).await;
        let (asked, _) = approval(&mut watch).await;
        let path = format!("/approvals/{}", asked["approvalId"].as_str().unwrap());
        let answer = Request::post(path, verdict.to_string()).bearer("token-of-the-operator");
        assert_eq!(server.send(answer).await.status(), 200);
        call.receive().await;
    }
    let mut streams = Vec::new();
    for version in ["", "&version=5", "&version=6", "&version=7"] {
        let path = format!("/sessions/default/events?vocabulary=ai-sdk&from=start{version}");
        let mut stream = server.begin(Request::get(path)).await;
        stream.head().await;
        streams.push(stream);
    }
    for odd in [
        "vocabulary=ai-sdk&version=8",
        "version=6",
        "vocabulary=ai-sdk&version=x",
    ] {
        let refused = server
            .send(Request::get(format!("/sessions/default/events?{odd}")))
            .await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_query"),
            "{odd}"
        );
    }
    server.shut_down().await;
    let mut told = Vec::new();
    for stream in &mut streams {
        let kinds = chunks(&rest(stream).await);
        told.push(
            kinds
                .iter()
                .filter_map(|chunk| chunk["type"].as_str().map(str::to_owned))
                .collect::<Vec<_>>(),
        );
        let answers: Vec<&Value> = kinds
            .iter()
            .filter(|chunk| chunk["type"] == "tool-approval-response")
            .collect();
        if let [yes, no] = answers[..] {
            assert_eq!(
                (&yes["approved"], &yes["reason"]),
                (&json!(true), &Value::Null)
            );
            assert_eq!(
                (&no["approved"], &no["reason"]),
                (&json!(false), &json!("not today"))
            );
        }
    }
    let input = "tool-input-available";
    let output = "tool-output-available";
    let asks = "tool-approval-request";
    let answers = "tool-approval-response";
    assert_eq!(
        told[0],
        ["start", input, output, input, "tool-output-error", "finish"]
    );
    assert_eq!(told[1], told[0]);
    assert_eq!(
        told[2],
        [
            "start",
            input,
            asks,
            output,
            input,
            asks,
            "tool-output-denied",
            "finish"
        ]
    );
    let whole = [
        "start",
        input,
        asks,
        answers,
        output,
        input,
        asks,
        answers,
        "tool-output-denied",
        "finish",
    ];
    assert_eq!(told[3], whole);
}
