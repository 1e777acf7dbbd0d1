//! Questions to the client: forms of tools, and the approvals of operators.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_model::{EffectClass, PermissionMode, PrincipalRole};
use toolpost_testkit::MockNativeTool;

use super::{Era, Place, Request, Running, begin, ended, posted, told, tools};

const OLGA: &str = "olga-has-a-token";
const ANN: &str = "ann-has-a-token";
/// So long that a question is asked, and not longer.
const SHORT: Duration = Duration::from_millis(300);

fn forms() -> Value {
    json!({ "elicitation": {} })
}

/// The call of a tool in the stateless era, with what a client adds when it comes back.
fn call(tool: &str, arguments: &Value, more: &Value) -> Request {
    let mut params = json!({ "name": tool, "arguments": arguments });
    params
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    Era::Stateless.request(&json!(1), "tools/call", params, &forms())
}

/// Sends a request on a session's behalf, answers the one question it raises, and gives the end.
async fn answered(
    server: &Running,
    session: &str,
    request: Request,
    token: &str,
    answer: &Value,
) -> (Value, Value) {
    let mut stream = server.begin(request).await;
    assert_eq!(
        stream.head().await.header("content-type"),
        Some("text/event-stream")
    );
    let question: Value = serde_json::from_str(&stream.frame().await.unwrap().data).unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    let sent = server
        .send(
            posted(&reply)
                .header("Mcp-Session-Id", session)
                .bearer(token),
        )
        .await;
    assert_eq!(sent.status(), 202);
    let end: Value = serde_json::from_str(&stream.frame().await.unwrap().data).unwrap();
    (question, end["result"].clone())
}

#[tokio::test]
async fn a_session_is_asked_on_the_stream_of_its_request() {
    let server = Place::without_native_tools().start_with(tools).await;
    let era = begin(&server, forms(), None).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    let request = era.request(
        &json!(1),
        "tools/call",
        json!({ "name": "asks" }),
        &json!({}),
    );
    let token = server.token().to_owned();
    let answer = json!({ "action": "accept", "content": { "name": "Ann" } });
    let (_, end) = answered(&server, session, request, &token, &answer).await;
    assert_eq!(end["content"][0]["text"], "hello, Ann");
    let mute = begin(&server, json!({}), None).await;
    assert_eq!(mute.call(&server, "asks", json!({})).await["isError"], true);
}

#[tokio::test]
async fn a_request_that_stands_for_itself_is_asked_by_its_answer() {
    let place = Place::without_native_tools().with_token("ann", PrincipalRole::Agent, ANN);
    let server = place.start_with(tools).await;
    let asked = server
        .send(call("asks", &json!({}), &json!({})))
        .await
        .json()["result"]
        .clone();
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(
        asked["inputRequests"]["who"]["method"],
        "elicitation/create"
    );
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let answer = |state: &str| {
        json!({ "requestState": state, "inputResponses": {
            "who": { "action": "accept", "content": { "name": "Ann" } }, "more": {} } })
    };
    let mut forged = state.clone();
    forged.replace_range(0..1, if state.starts_with('0') { "1" } else { "0" });
    for (what, request) in [
        ("forged", call("asks", &json!({}), &answer(&forged))),
        (
            "another's",
            call("asks", &json!({}), &answer(&state)).bearer(ANN),
        ),
        (
            "of other arguments",
            call("asks", &json!({ "x": 1 }), &answer(&state)),
        ),
        (
            "of another tool",
            call("steps", &json!({}), &answer(&state)),
        ),
    ] {
        assert_eq!(
            server.send(request).await.json()["error"]["code"],
            -32602,
            "{what}"
        );
    }
    let again = json!({ "requestState": state, "inputResponses": { "other": {} } });
    let again = server.send(call("asks", &json!({}), &again)).await.json()["result"].clone();
    assert_eq!(
        again["resultType"], "input_required",
        "what is missing is asked for again"
    );
    let old = server.send(call("asks", &json!({}), &answer(&state))).await;
    assert_eq!(
        old.json()["error"]["code"],
        -32602,
        "a state is good for one round"
    );
    let state = again["requestState"].as_str().unwrap();
    let end = server
        .send(call("asks", &json!({}), &answer(state)))
        .await
        .json()["result"]
        .clone();
    assert_eq!(
        (&end["resultType"], &end["content"][0]["text"]),
        (&json!("complete"), &json!("hello, Ann"))
    );
    let replayed = server.send(call("asks", &json!({}), &answer(state))).await;
    assert_eq!(replayed.json()["error"]["code"], -32602);
    let mute = Era::Stateless
        .ask(
            &server,
            "tools/call",
            json!({ "name": "asks", "arguments": {} }),
        )
        .await;
    assert_eq!(
        (mute.status(), &mute.json()["error"]["code"]),
        (400, &json!(-32021))
    );
    assert_eq!(
        mute.json()["error"]["data"]["requiredCapabilities"],
        json!({ "elicitation": {} })
    );
}

#[tokio::test]
async fn a_client_that_comes_back_is_told_of_progress_by_the_token_it_comes_back_with() {
    let server = Place::without_native_tools().start_with(tools).await;
    let with_token = |token: &str, more: Value| {
        let mut more = more;
        more["_meta"] = json!({ "progressToken": token });
        call("asks", &json!({}), &more)
    };
    let asked = server.send(with_token("first", json!({}))).await;
    let asked = ended(&asked);
    let answer = json!({ "requestState": asked["requestState"], "inputResponses": {
        "who": { "action": "accept", "content": { "name": "Ann" } } } });
    let messages = told(&mut server.begin(with_token("second", answer)).await).await;
    let (end, before) = messages.split_last().unwrap();
    assert!(!before.is_empty(), "{end}");
    assert!(
        before
            .iter()
            .all(|message| message["params"]["progressToken"] == "second"),
        "{before:?}"
    );
    assert_eq!(end["result"]["content"][0]["text"], "hello, Ann");
}

async fn guarded(wait: Duration) -> (Place, Running) {
    let mut place = Place::without_native_tools()
        .with_token("olga", PrincipalRole::Operator, OLGA)
        .with_token("ann", PrincipalRole::Agent, ANN);
    place.config.mode = PermissionMode::Default;
    let push = MockNativeTool::named("demo.push")
        .class(EffectClass::Execute)
        .output("pushed");
    place.config.mcp.approval_wait = wait;
    let server = place.start_with(|builder| builder.tool(push)).await;
    (place, server)
}

#[tokio::test]
async fn an_operator_approves_through_the_client_in_both_eras() {
    let (_place, server) = guarded(Duration::from_secs(30)).await;
    let allow = json!({ "action": "accept", "content": { "decision": "allow" } });
    let deny =
        json!({ "action": "accept", "content": { "decision": "deny", "reason": "not today" } });
    let era = begin(&server, forms(), Some(OLGA)).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    for (branch, answer, text) in [("a", &allow, "pushed"), ("b", &deny, "not today")] {
        let params = json!({ "name": "push", "arguments": { "branch": branch } });
        let request = era
            .request(&json!(branch), "tools/call", params, &json!({}))
            .bearer(OLGA);
        let (question, end) = answered(&server, session, request, OLGA, answer).await;
        assert!(
            question["params"]["message"]
                .as_str()
                .unwrap()
                .contains("push")
        );
        assert!(
            end["content"][0]["text"].as_str().unwrap().contains(text),
            "{end}"
        );
    }
    let arguments = json!({ "branch": "c" });
    let asked = server
        .send(call("push", &arguments, &json!({})).bearer(OLGA))
        .await
        .json();
    let more = json!({ "requestState": asked["result"]["requestState"], "inputResponses": { "approval": allow } });
    let end = server
        .send(call("push", &arguments, &more).bearer(OLGA))
        .await
        .json();
    assert_eq!(end["result"]["content"][0]["text"], "pushed");
}

#[tokio::test]
async fn nothing_hides_in_the_form_that_an_operator_answers() {
    let (_place, server) = guarded(Duration::from_secs(30)).await;
    let hidden = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{1b}'];
    let arguments =
        json!({ "branch": "main\u{202e}\u{2066}", "no\u{200b}te": "\u{feff}\u{1b}[2J" });
    let asked = server
        .send(call("push", &arguments, &json!({})).bearer(OLGA))
        .await
        .json();
    let text = asked["result"]["inputRequests"]["approval"]["params"]["message"].as_str();
    let text = text.unwrap_or_else(|| panic!("{asked}"));
    assert!(!text.contains(hidden), "{text:?}");
    for part in ["main\\u{202e}\\u{2066}", "no\\u{200b}te", "\\u{feff}"] {
        assert!(text.contains(part), "{text}");
    }
    let question = open(&server).await.remove(0);
    assert!(
        !question["summary"].as_str().unwrap().contains(hidden),
        "{question}"
    );
    assert_eq!(
        question["arguments"], arguments,
        "the arguments are as the call has them"
    );
}

#[tokio::test]
async fn the_end_of_a_call_that_somebody_else_allowed_is_still_there_for_its_client() {
    let (_place, server) = guarded(Duration::from_secs(30)).await;
    let first = json!({ "branch": "a" });
    let second = json!({ "branch": "b" });
    let asked = server
        .send(call("push", &first, &json!({})).bearer(OLGA))
        .await
        .json();
    let question = open(&server).await.remove(0);
    allow(&server, &question).await;
    let route = format!(
        "/invocations/{}?wait=20",
        question["ask_id"].as_str().unwrap()
    );
    assert_eq!(
        server.send(Request::get(&route).bearer(OLGA)).await.json()["result"]["outcome"],
        "succeeded"
    );
    // Another question makes the host look through those that wait.
    server
        .send(call("push", &second, &json!({})).bearer(OLGA))
        .await;
    let yes = json!({ "action": "accept", "content": { "decision": "allow" } });
    let more = json!({ "requestState": asked["result"]["requestState"], "inputResponses": { "approval": yes } });
    let end = server
        .send(call("push", &first, &more).bearer(OLGA))
        .await
        .json();
    assert_eq!(end["result"]["content"][0]["text"], "pushed", "{end}");
}

#[tokio::test]
async fn an_agent_is_told_to_wait_and_never_asked() {
    let (_place, server) = guarded(SHORT).await;
    let arguments = json!({ "branch": "a" });
    let told = server
        .send(call("push", &arguments, &json!({})).bearer(ANN))
        .await
        .json()["result"]
        .clone();
    assert_eq!(
        (&told["resultType"], &told["isError"]),
        (&json!("complete"), &json!(true))
    );
    assert_eq!(told["_meta"]["toolpost/class"], "approval_pending");
    let question = told["_meta"]["toolpost/questionId"].as_str().unwrap();
    assert!(
        told["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains(question)
    );
    let route = format!("/approvals/{question}");
    let own = Request::post(&route, r#"{"decision":"allow"}"#).bearer(ANN);
    assert_eq!(server.send(own).await.status(), 403);
    let yes = Request::post(&route, r#"{"decision":"allow"}"#).bearer(OLGA);
    assert_eq!(server.send(yes).await.status(), 200);
    let end = server
        .send(call("push", &arguments, &json!({})).bearer(ANN))
        .await
        .json();
    assert_eq!(
        end["result"]["content"][0]["text"], "pushed",
        "the answer is for the call that comes again"
    );
}

/// The questions that are open.
async fn open(server: &Running) -> Vec<Value> {
    let listed = server.send(Request::get("/approvals").bearer(OLGA)).await;
    listed.json()["approvals"].as_array().unwrap().clone()
}

async fn allow(server: &Running, question: &Value) {
    let route = format!("/approvals/{}", question["ask_id"].as_str().unwrap());
    let yes = Request::post(&route, r#"{"decision":"allow"}"#).bearer(OLGA);
    assert_eq!(server.send(yes).await.status(), 200);
}

#[tokio::test]
async fn a_form_that_is_put_aside_leaves_the_question_to_others_in_both_eras() {
    let (_place, server) = guarded(SHORT).await;
    let aside = json!({ "action": "cancel" });
    let era = begin(&server, forms(), Some(OLGA)).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    let params = json!({ "name": "push", "arguments": { "branch": "a" } });
    let request = || {
        era.request(&json!(1), "tools/call", params.clone(), &json!({}))
            .bearer(OLGA)
    };
    let (_, end) = answered(&server, session, request(), OLGA, &aside).await;
    assert_eq!(end["_meta"]["toolpost/class"], "approval_pending", "{end}");
    let questions = open(&server).await;
    assert_eq!(questions.len(), 1);
    allow(&server, &questions[0]).await;
    let end = server.send(request()).await.json();
    assert_eq!(end["result"]["content"][0]["text"], "pushed", "{end}");
    let arguments = json!({ "branch": "b" });
    let asked = server
        .send(call("push", &arguments, &json!({})).bearer(OLGA))
        .await
        .json();
    let more = json!({ "requestState": asked["result"]["requestState"], "inputResponses": { "approval": aside } });
    let end = server
        .send(call("push", &arguments, &more).bearer(OLGA))
        .await
        .json();
    assert_eq!(
        end["result"]["_meta"]["toolpost/class"], "approval_pending",
        "{end}"
    );
    assert_eq!(open(&server).await.len(), 1);
}

#[tokio::test]
async fn an_operator_who_takes_long_is_still_heard_in_both_eras() {
    let (_place, server) = guarded(SHORT).await;
    let yes = json!({ "action": "accept", "content": { "decision": "allow" } });
    let era = begin(&server, forms(), Some(OLGA)).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    let params = json!({ "name": "push", "arguments": { "branch": "a" } });
    let request = || {
        era.request(&json!(1), "tools/call", params.clone(), &json!({}))
            .bearer(OLGA)
    };
    let mut stream = server.begin(request()).await;
    stream.head().await;
    let question: Value = serde_json::from_str(&stream.frame().await.unwrap().data).unwrap();
    let end: Value = serde_json::from_str(&stream.frame().await.unwrap().data).unwrap();
    assert_eq!(
        end["result"]["_meta"]["toolpost/class"], "approval_pending",
        "nobody answered: {end}"
    );
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": yes });
    let sent = server
        .send(
            posted(&reply)
                .header("Mcp-Session-Id", session)
                .bearer(OLGA),
        )
        .await;
    assert_eq!(sent.status(), 202);
    let mut looks = 0;
    while !open(&server).await.is_empty() {
        looks += 1;
        assert!(looks < 10_000, "the late answer never counts");
    }
    let end = server.send(request()).await.json();
    assert_eq!(end["result"]["content"][0]["text"], "pushed", "{end}");
    let arguments = json!({ "branch": "b" });
    let asked = server
        .send(call("push", &arguments, &json!({})).bearer(OLGA))
        .await
        .json();
    // An agent with the same wish is told to wait; by then so is the operator's own call.
    let told = server
        .send(call("push", &json!({ "branch": "c" }), &json!({})).bearer(ANN))
        .await
        .json();
    assert_eq!(
        told["result"]["_meta"]["toolpost/class"],
        "approval_pending"
    );
    let more = json!({ "requestState": asked["result"]["requestState"], "inputResponses": { "approval": yes } });
    let end = server
        .send(call("push", &arguments, &more).bearer(OLGA))
        .await
        .json();
    assert_eq!(end["result"]["content"][0]["text"], "pushed", "{end}");
}
