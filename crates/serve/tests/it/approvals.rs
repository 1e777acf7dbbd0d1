//! Questions over HTTP: who sees and answers them, what an answer does, and what a feed tells.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_config::ApprovalsConfig;
use toolpost_model::{EffectClass, PermissionMode, PrincipalRole};
use toolpost_testkit::MockNativeTool;

use super::{
    client::{Connection, Request, Response},
    running::{Place, Running},
};

const BOB: &str = "bob-has-a-token";
const OLGA: &str = "olga-has-a-token";
const OTTO: &str = "otto-has-a-token";

fn place() -> Place {
    let mut place = Place::without_native_tools()
        .with_token("bob", PrincipalRole::Agent, BOB)
        .with_token("olga", PrincipalRole::Operator, OLGA)
        .with_token("otto", PrincipalRole::Operator, OTTO);
    place.config.mode = PermissionMode::Default;
    place
}

/// A tool that asks in the mode `default`.
fn push() -> MockNativeTool {
    MockNativeTool::named("demo.push").class(EffectClass::Execute).output("pushed").schema(json!({
        "type": "object",
        "properties": { "branch": { "type": "string" }, "secret": { "type": "string", "x-sensitive": true } },
        "required": ["branch"], "additionalProperties": false
    }))
}

async fn serve(place: &Place, tool: &MockNativeTool) -> Running {
    let tool = tool.clone();
    place.start_with(|builder| builder.tool(tool)).await
}

fn ask(branch: &str) -> Request {
    Request::call("push", &json!({ "branch": branch }))
}

/// The questions, once there are `count`.
async fn pending(server: &Running, count: usize) -> Vec<Value> {
    for _ in 0..10_000 {
        let listed = server.send(Request::get("/approvals").bearer(OLGA)).await;
        assert_eq!(listed.status(), 200);
        let questions = listed.json()["approvals"].as_array().unwrap().clone();
        if questions.len() == count {
            return questions;
        }
    }
    panic!("there are never {count} questions");
}

fn id(question: &Value) -> String {
    question["ask_id"].as_str().unwrap().to_owned()
}

async fn answer(server: &Running, token: &str, id: &str, verdict: &Value) -> Response {
    let request = Request::post(format!("/approvals/{id}"), verdict.to_string());
    server.send(request.bearer(token)).await
}

async fn result(connection: &mut Connection) -> Value {
    connection.receive().await.json()
}

#[tokio::test]
async fn agents_neither_see_nor_answer_questions() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut call = server.begin(ask("main")).await;
    let question = pending(&server, 1).await.remove(0);
    let path = format!("/approvals/{}", id(&question));
    let yes = json!({ "decision": "allow" }).to_string();
    for token in [server.token(), BOB] {
        for request in [
            Request::get("/approvals"),
            Request::get("/approvals").streamed(),
            Request::get(&path),
            Request::post(&path, yes.clone()),
            Request::get("/rules"),
            Request::new("DELETE", format!("/rules/{}", id(&question))),
        ] {
            let refused = server.send(request.bearer(token)).await;
            assert_eq!(
                (refused.status(), refused.code().as_str()),
                (403, "operators_only")
            );
        }
    }
    assert_eq!(tool.call_count(), 0);
    let told = answer(
        &server,
        OLGA,
        &id(&question),
        &json!({ "decision": "allow" }),
    )
    .await;
    assert_eq!(told.json()["decided"]["by"], "olga");
    assert_eq!(result(&mut call).await["outcome"], "succeeded");
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_question_tells_what_would_happen_and_why() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let _call = server
        .begin(Request::call(
            "push",
            &json!({ "branch": "main", "secret": "hunter22" }),
        ))
        .await;
    let question = pending(&server, 1).await.remove(0);
    assert_eq!(question["tool_id"], "demo.push");
    assert_eq!(
        question["principal"],
        json!({ "name": "agent", "role": "agent" })
    );
    assert_eq!(question["arguments"]["branch"], "main");
    assert_eq!(
        (&question["redacted"], &question["waiting"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(question["decision"]["behavior"], "ask");
    assert!(!question.to_string().contains("hunter22"));
    let shown = server
        .send(Request::get(format!("/approvals/{}", id(&question))).bearer(OLGA))
        .await;
    assert_eq!(shown.json(), question);
    let edited = json!({ "decision": "allow", "arguments": { "branch": "other" } });
    let refused = answer(&server, OLGA, &id(&question), &edited).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (422, "redacted")
    );
}

#[tokio::test]
async fn of_two_deciders_one_counts_and_the_other_hears_who() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut call = server.begin(ask("main")).await;
    let question = pending(&server, 1).await.remove(0);
    let yes = json!({ "decision": "allow" });
    let no = json!({ "decision": "deny", "feedback": "not today" });
    let id = id(&question);
    let (one, other) = tokio::join!(
        answer(&server, OLGA, &id, &yes),
        answer(&server, OTTO, &id, &no)
    );
    let mut statuses = [one.status(), other.status()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one:?} {other:?}");
    let (winner, loser) = if one.status() == 200 {
        (&one, &other)
    } else {
        (&other, &one)
    };
    assert_eq!(loser.code(), "already_decided");
    let by = winner.json()["decided"]["by"].as_str().unwrap().to_owned();
    assert!(
        loser.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains(&by),
        "{loser:?}"
    );
    let result = result(&mut call).await;
    if by == "olga" {
        assert_eq!(
            (&result["outcome"], tool.call_count()),
            (&json!("succeeded"), 1)
        );
    } else {
        assert_eq!(
            (&result["error"]["class"], tool.call_count()),
            (&json!("approval_rejected"), 0)
        );
        assert!(
            result["error"]["message"]
                .as_str()
                .unwrap()
                .contains("not today"),
            "{result}"
        );
    }
    let again = server
        .send(Request::get(format!("/approvals/{id}")).bearer(OLGA))
        .await;
    assert_eq!(
        (again.status(), again.code().as_str()),
        (409, "already_decided")
    );
}

#[tokio::test]
async fn edited_arguments_are_checked_and_are_what_runs() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut call = server.begin(ask("mian")).await;
    let question = id(&pending(&server, 1).await[0]);
    for bad in [
        json!({ "branch": 5 }),
        json!({}),
        json!({ "branch": "x", "force": true }),
        json!([]),
    ] {
        let verdict = json!({ "decision": "allow", "arguments": bad });
        let refused = answer(&server, OLGA, &question, &verdict).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (422, "bad_arguments"),
            "{bad}"
        );
    }
    pending(&server, 1).await;
    let verdict = json!({ "decision": "allow", "arguments": { "branch": "main" } });
    assert_eq!(
        answer(&server, OLGA, &question, &verdict).await.status(),
        200
    );
    assert_eq!(result(&mut call).await["outcome"], "succeeded");
    assert_eq!(tool.inputs(), [json!({ "branch": "main" })]);
}

#[tokio::test]
async fn answers_that_cannot_be_meant_leave_the_question() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut call = server.begin(ask("main")).await;
    let question = id(&pending(&server, 1).await[0]);
    for body in [
        "",
        "yes",
        "{}",
        r#"{"decision":"maybe"}"#,
        r#"{"decision":"allow","scop":"session"}"#,
    ] {
        let request = Request::post(format!("/approvals/{question}"), body).bearer(OLGA);
        let refused = server.send(request).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_verdict"),
            "{body}"
        );
    }
    let rule = json!({ "decision": "allow", "scope": "remember", "rule": "allow *" });
    let refused = answer(&server, OLGA, &question, &rule).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (422, "nothing_to_remember")
    );
    for (path, status, code) in [
        ("/approvals/x", 400, "bad_id"),
        (
            "/approvals/01a1e16e-9fc2-777b-a5e6-92c590cac3fc",
            404,
            "unknown_approval",
        ),
    ] {
        let refused = server.send(Request::get(path).bearer(OLGA)).await;
        assert_eq!((refused.status(), refused.code().as_str()), (status, code));
    }
    let no = json!({ "decision": "deny", "feedback": "use a branch of your own" });
    assert_eq!(answer(&server, OLGA, &question, &no).await.status(), 200);
    let denied = result(&mut call).await;
    assert_eq!(
        (&denied["error"]["class"], tool.call_count()),
        (&json!("approval_rejected"), 0)
    );
    assert!(
        denied["error"]["message"]
            .as_str()
            .unwrap()
            .contains("use a branch of your own"),
        "{denied}"
    );
}

#[tokio::test]
async fn the_same_call_twice_is_one_question() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut calls = [
        server.begin(ask("main")).await,
        server.begin(ask("main")).await,
    ];
    let mut other = server.begin(ask("other").bearer(BOB)).await;
    let questions = loop {
        let questions = pending(&server, 2).await;
        if questions.iter().any(|question| question["waiting"] == 2) {
            break questions;
        }
    };
    let shared = questions
        .iter()
        .find(|question| question["waiting"] == 2)
        .unwrap();
    let told = answer(&server, OLGA, &id(shared), &json!({ "decision": "allow" }))
        .await
        .json();
    assert_eq!(told["decided"]["waiting"], 2);
    for call in &mut calls {
        assert_eq!(result(call).await["outcome"], "succeeded");
    }
    assert_eq!(tool.call_count(), 2);
    let rest = pending(&server, 1).await;
    answer(&server, OLGA, &id(&rest[0]), &json!({ "decision": "deny" })).await;
    assert_eq!(
        result(&mut other).await["error"]["class"],
        "approval_rejected"
    );
}

#[tokio::test]
async fn a_feed_tells_what_waits_what_comes_and_what_became_of_it() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut first = server.begin(ask("one")).await;
    let before = id(&pending(&server, 1).await[0]);
    let mut feed = server
        .begin(Request::get("/approvals").bearer(OLGA).streamed())
        .await;
    assert_eq!(
        feed.head().await.header("content-type"),
        Some("text/event-stream")
    );
    let told = feed.frame().await.unwrap();
    let question: Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(
        (told.event.as_str(), id(&question)),
        ("asked", before.clone())
    );
    assert_eq!(question["arguments"], json!({ "branch": "one" }));

    answer(&server, OTTO, &before, &json!({ "decision": "allow" })).await;
    let told = feed.frame().await.unwrap();
    let decided: Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(told.event, "decided");
    assert_eq!(
        (&decided["ask_id"], &decided["decision"], &decided["by"]),
        (&json!(before), &json!("allow"), &json!("otto"))
    );
    assert_eq!(result(&mut first).await["outcome"], "succeeded");

    let second = server.begin(ask("two")).await;
    let told = feed.frame().await.unwrap();
    assert_eq!(told.event, "asked");
    let question: Value = serde_json::from_str(&told.data).unwrap();
    // Its caller hangs up, so nobody wants to know any more.
    drop(second);
    let told = feed.frame().await.unwrap();
    let gone: Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(
        (told.event.as_str(), &gone["ask_id"]),
        ("withdrawn", &json!(id(&question)))
    );
    let late = answer(
        &server,
        OLGA,
        &id(&question),
        &json!({ "decision": "allow" }),
    )
    .await;
    assert_eq!((late.status(), late.code().as_str()), (410, "withdrawn"));
    assert_eq!(tool.call_count(), 1);
    server.shut_down().await;
    assert_eq!(feed.frame().await, None, "the feed ends with the host");
}

#[tokio::test]
async fn no_answer_in_time_is_a_no() {
    let mut place = place();
    let tool = push();
    place.config.approvals = ApprovalsConfig {
        timeout: Duration::from_millis(50),
        ..ApprovalsConfig::default()
    };
    let server = serve(&place, &tool).await;
    let refused = server.send(ask("main")).await;
    let result = refused.json();
    assert_eq!(refused.status(), 403);
    assert_eq!(
        (&result["error"]["class"], &result["error"]["code"]),
        (&json!("approval_rejected"), &json!("approval_expired"))
    );
    let question = result["invocation_id"].as_str().unwrap();
    let late = answer(&server, OLGA, question, &json!({ "decision": "allow" })).await;
    assert_eq!((late.status(), late.code().as_str()), (410, "expired"));
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_caller_that_waits_no_longer_may_come_back_once() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let hasty = Request::post(
        "/tools/push/call?patience=0.5",
        json!({ "branch": "main" }).to_string(),
    );
    let early = server.send(hasty.clone()).await;
    let result = early.json();
    assert_eq!(
        (early.status(), &result["error"]["class"]),
        (409, &json!("approval_pending"))
    );
    assert_eq!(result["error"]["retry"]["needs_approval"], true);
    let question = pending(&server, 1).await.remove(0);
    assert_eq!(question["waiting"], 0);
    let told = answer(
        &server,
        OLGA,
        &id(&question),
        &json!({ "decision": "allow" }),
    )
    .await
    .json();
    assert!(told["decided"]["kept_until"].is_string(), "{told}");
    let other = Request::post(
        "/tools/push/call?patience=0.5",
        json!({ "branch": "other" }).to_string(),
    );
    assert_eq!(
        server.send(other).await.json()["error"]["class"],
        "approval_pending",
        "another call asks"
    );
    let stranger = hasty.clone().bearer(BOB);
    assert_eq!(
        server.send(stranger).await.json()["error"]["class"],
        "approval_pending",
        "so does another caller"
    );
    assert_eq!(
        server.send(hasty.clone()).await.json()["outcome"],
        "succeeded"
    );
    assert_eq!(
        server.send(hasty).await.json()["error"]["class"],
        "approval_pending",
        "the grant is used up"
    );
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn a_watched_call_tells_that_it_waits() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut call = server.begin(ask("main").streamed()).await;
    call.head().await;
    let pending_event = loop {
        let frame = call.frame().await.unwrap();
        if frame.event == "approval" {
            break serde_json::from_str::<Value>(&frame.data).unwrap();
        }
    };
    let question = pending(&server, 1).await.remove(0);
    assert_eq!(
        (
            &pending_event["permission"],
            &pending_event["ask_id"],
            &pending_event["expires_at"]
        ),
        (
            &json!("pending"),
            &question["ask_id"],
            &question["expires_at"]
        )
    );
    let cancel = Request::post(format!("/invocations/{}/cancel", id(&question)), "");
    assert_eq!(server.send(cancel).await.json()["cancel"], "requested");
    let last = call.frames().await.pop().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&last.data).unwrap()["outcome"],
        "canceled"
    );
    pending(&server, 0).await;
}

#[tokio::test]
async fn the_unix_socket_is_an_operators() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let mut call = server.begin(ask("main")).await;
    let question = id(&pending(&server, 1).await[0]);
    let mut socket = Connection::unix(server.server.socket().unwrap()).await;
    let yes = json!({ "decision": "allow" }).to_string();
    socket
        .send(&Request::post(format!("/approvals/{question}"), yes))
        .await;
    assert_eq!(socket.receive().await.json()["decided"]["by"], "local");
    assert_eq!(result(&mut call).await["outcome"], "succeeded");
}

#[tokio::test]
async fn a_question_outlives_its_host() {
    let place = place();
    let tool = push();
    let first = serve(&place, &tool).await;
    let call = first.begin(ask("main").key("k1")).await;
    let question = id(&pending(&first, 1).await[0]);
    // Dropped and not shut down: the nearest to a crash within one process.
    drop(call);
    drop(first);
    let second = loop {
        let again = tool.clone();
        if let Ok(server) = place.builder().tool(again).start().await {
            break Running { server };
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(id(&pending(&second, 1).await[0]), question);
    assert_eq!(
        answer(&second, OLGA, &question, &json!({ "decision": "allow" }))
            .await
            .status(),
        200
    );
    let repeat = second.send(ask("main").key("k1")).await.json();
    assert_eq!(
        (&repeat["invocation_id"], &repeat["outcome"]),
        (&json!(question), &json!("succeeded"))
    );
    assert_eq!(tool.call_count(), 1);
}
