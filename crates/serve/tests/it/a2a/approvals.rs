//! A call that asks: the task waits, and an operator's word lets it go on.

use serde_json::{Value, json};
use toolpost_core::{Hook, HookCall, HookError, HookOutput};
use toolpost_model::{BoxFuture, EffectClass, PermissionMode, PrincipalRole};
use toolpost_testkit::MockNativeTool;

use super::{
    super::{
        client::Request,
        running::{Place, Running},
    },
    Dialect, items, refused, result, rpc,
};

const OLGA: &str = "olga-has-a-token";

fn place() -> Place {
    let mut place = Place::without_native_tools().with_token("olga", PrincipalRole::Operator, OLGA);
    place.config.mode = PermissionMode::Default;
    place
}

fn push() -> MockNativeTool {
    MockNativeTool::named("demo.push")
        .class(EffectClass::Execute)
        .output("pushed")
}

async fn serve(place: &Place, tool: &MockNativeTool) -> Running {
    let tool = tool.clone();
    place.start_with(|builder| builder.tool(tool)).await
}

/// A task that waits for an answer.
async fn waiting(server: &Running, dialect: Dialect, id: &str) -> Value {
    let call = dialect.call("c", "push", &json!({ "branch": "main" }));
    let params = json!({ "message": dialect.message(id, &[call]) });
    let task = dialect.task(&result(server, rpc(dialect.method("send"), &params)).await);
    assert_eq!(
        task["status"]["state"],
        dialect.state("input-required"),
        "{task}"
    );
    task
}

fn answer(dialect: Dialect, task: &Value, part: Value) -> Request {
    let mut message = dialect.message("answer", &[part]);
    message["taskId"] = task["id"].clone();
    rpc(dialect.method("send"), &json!({ "message": message }))
}

#[tokio::test]
async fn an_operator_answers_in_the_task() {
    for dialect in Dialect::BOTH {
        let place = place();
        let tool = push();
        let server = serve(&place, &tool).await;
        let task = waiting(&server, dialect, "m1").await;
        let asked = &task["status"]["message"];
        assert!(
            asked["parts"][0]["text"]
                .as_str()
                .unwrap()
                .contains("`push`"),
            "{asked}"
        );
        let question = asked["metadata"]["approvalId"].clone();
        assert_eq!(asked["metadata"]["toolCallId"], "c");
        assert!(asked["metadata"]["expiresAt"].is_string());

        let yes = dialect.data(
            &json!({ "type": "tool-approval-response", "approved": true, "approvalId": question }),
        );
        let still = dialect.task(&result(&server, answer(dialect, &task, yes.clone())).await);
        assert_eq!(still["status"]["state"], dialect.state("input-required"));
        assert!(
            still["status"]["message"]["parts"][0]["text"]
                .as_str()
                .unwrap()
                .contains("operator"),
            "{still}"
        );
        assert_eq!(tool.call_count(), 0, "an agent's yes is none");

        let unclear = answer(dialect, &task, json!({ "text": "perhaps" })).bearer(OLGA);
        assert_eq!(refused(&server, unclear).await, -32602);
        let done = dialect.task(&result(&server, answer(dialect, &task, yes).bearer(OLGA)).await);
        assert_eq!(
            done["status"]["state"],
            dialect.state("completed"),
            "{done}"
        );
        assert_eq!(tool.call_count(), 1);
        let late = answer(dialect, &task, json!({ "text": "yes" })).bearer(OLGA);
        assert_eq!(refused(&server, late).await, -32004);
    }
}

#[tokio::test]
async fn nothing_hides_in_what_a_task_says_of_its_question() {
    for dialect in Dialect::BOTH {
        let place = place();
        let tool = push();
        let server = serve(&place, &tool).await;
        let call = dialect.call("c\u{202e}d", "push", &json!({ "branch": "main" }));
        let params = json!({ "message": dialect.message("m1", &[call]) });
        let task = dialect.task(&result(&server, rpc(dialect.method("send"), &params)).await);
        assert_eq!(
            task["status"]["state"],
            dialect.state("input-required"),
            "{task}"
        );
        let text = task["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap();
        assert!(
            text.contains("c\\u{202e}d") && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }
}

#[tokio::test]
async fn a_no_fails_the_task_and_says_so() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let dialect = Dialect::Newer;
    let task = waiting(&server, dialect, "m1").await;
    let no = json!({ "data": { "type": "tool-approval-response", "approved": false, "reason": "not today" } });
    let done = dialect.task(&result(&server, answer(dialect, &task, no).bearer(OLGA)).await);
    assert_eq!(
        (&done["status"]["state"], tool.call_count()),
        (&json!("TASK_STATE_FAILED"), 0)
    );
    let why = done["status"]["message"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(why.contains("not today"), "{why}");
}

#[tokio::test]
async fn a_stream_stays_open_while_somebody_else_answers() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let dialect = Dialect::Older;
    let call = dialect.call("c", "push", &json!({}));
    let params = json!({ "message": dialect.message("m1", &[call]) });
    let mut stream = server.begin(rpc("message/stream", &params)).await;
    stream.head().await;
    let question = loop {
        let item = stream.data().await.unwrap()["result"].clone();
        if item["status"]["state"] == "input-required" {
            assert_eq!(item["final"], false);
            break item["status"]["message"]["metadata"]["approvalId"]
                .as_str()
                .unwrap()
                .to_owned();
        }
    };
    let verdict = json!({ "decision": "allow" }).to_string();
    let told = server
        .send(Request::post(format!("/approvals/{question}"), verdict).bearer(OLGA))
        .await;
    assert_eq!(told.status(), 200);
    let rest = items(&mut stream).await;
    let states: Vec<_> = rest
        .iter()
        .filter_map(|item| item["status"]["state"].as_str())
        .collect();
    assert_eq!(states, ["working", "working", "completed"], "{rest:?}");
}

#[tokio::test]
async fn a_task_that_waits_can_be_cancelled_and_one_that_works_asks_nothing() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let dialect = Dialect::Newer;
    let task = waiting(&server, dialect, "m1").await;
    let stopped = result(&server, rpc("CancelTask", &json!({ "id": task["id"] }))).await;
    assert_eq!(
        (&stopped["status"]["state"], tool.call_count()),
        (&json!("TASK_STATE_CANCELED"), 0)
    );
    let open = server
        .send(Request::get("/approvals").bearer(OLGA))
        .await
        .json();
    assert_eq!(open["approvals"], json!([]), "nobody is asked any more");
}

#[tokio::test]
async fn a_question_outlives_its_host() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let dialect = Dialect::Newer;
    let task = waiting(&server, dialect, "m1").await;
    server.shut_down().await;
    let server = serve(&place, &tool).await;
    let waiting = result(
        &server,
        rpc(
            "ListTasks",
            &json!({ "status": "TASK_STATE_INPUT_REQUIRED" }),
        ),
    )
    .await;
    assert_eq!(
        waiting["tasks"][0]["id"], task["id"],
        "the first list shows it: {waiting}"
    );
    let again = result(&server, rpc("GetTask", &json!({ "id": task["id"] }))).await;
    assert_eq!(
        again["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{again}"
    );
    assert_eq!(
        again["status"]["message"]["metadata"]["approvalId"],
        task["status"]["message"]["metadata"]["approvalId"]
    );
    let done = dialect.task(
        &result(
            &server,
            answer(dialect, &task, json!({ "text": "approve" })).bearer(OLGA),
        )
        .await,
    );
    assert_eq!(
        (&done["status"]["state"], tool.call_count()),
        (&json!("TASK_STATE_COMPLETED"), 1),
        "{done}"
    );
}

#[tokio::test]
async fn the_first_look_after_a_restart_shows_the_question() {
    for method in ["GetTask", "SubscribeToTask"] {
        let place = place();
        let tool = push();
        let server = serve(&place, &tool).await;
        let task = waiting(&server, Dialect::Newer, "m1").await;
        server.shut_down().await;
        let server = serve(&place, &tool).await;
        let look = rpc(method, &json!({ "id": task["id"] }));
        let first = if method == "GetTask" {
            result(&server, look).await
        } else {
            let mut stream = server.begin(look).await;
            stream.head().await;
            stream.data().await.unwrap()["result"]["task"].clone()
        };
        assert_eq!(
            first["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
            "{method}: {first}"
        );
        assert_eq!(
            first["status"]["message"]["metadata"],
            task["status"]["message"]["metadata"]
        );
    }
}

#[tokio::test]
async fn an_answer_that_contradicts_itself_decides_nothing() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let dialect = Dialect::Newer;
    let task = waiting(&server, dialect, "m1").await;
    let data = |approved: bool| json!({ "data": { "type": "tool-approval-response", "approved": approved } });
    let say = |parts: &[Value]| {
        let mut message = dialect.message("answer", parts);
        message["taskId"] = task["id"].clone();
        rpc("SendMessage", &json!({ "message": message })).bearer(OLGA)
    };
    for parts in [
        [json!({ "text": "yes" }), data(false)],
        [data(false), json!({ "text": "yes" })],
        [data(true), data(false)],
        [json!({ "text": "no" }), data(true)],
        [
            json!({ "text": "yes" }),
            json!({ "text": "but only tomorrow" }),
        ],
        [data(true), dialect.call("c", "push", &json!({}))],
    ] {
        assert_eq!(refused(&server, say(&parts)).await, -32602, "{parts:?}");
    }
    let still = result(&server, rpc("GetTask", &json!({ "id": task["id"] }))).await;
    assert_eq!((&still["status"], tool.call_count()), (&task["status"], 0));
    let done = dialect.task(&result(&server, say(&[json!({ "text": "no" }), data(false)])).await);
    assert_eq!(
        (&done["status"]["state"], tool.call_count()),
        (&json!("TASK_STATE_FAILED"), 0)
    );
}

#[tokio::test]
async fn of_several_questions_the_status_names_one_that_is_open() {
    let place = place();
    let tool = push();
    let server = serve(&place, &tool).await;
    let dialect = Dialect::Newer;
    let calls = ["a", "b", "c"].map(|id| dialect.call(id, "push", &json!({ "branch": id })));
    let params = json!({
        "message": dialect.message("m1", &calls), "configuration": { "returnImmediately": true }
    });
    let id = dialect.task(&result(&server, rpc("SendMessage", &params)).await)["id"].clone();
    let look = async |open: usize| loop {
        let task = result(&server, rpc("GetTask", &json!({ "id": id }))).await;
        let told = task["status"]["message"]["metadata"]["open"]
            .as_array()
            .map_or(0, Vec::len);
        if told == open {
            break task;
        }
        tokio::task::yield_now().await;
    };
    for open in [3, 2, 1] {
        let task = look(open).await;
        let text = &task["status"]["message"]["parts"][0]["text"];
        let metadata = &task["status"]["message"]["metadata"];
        let first = &metadata["open"][0];
        assert_eq!(metadata["approvalId"], first["approvalId"], "{task}");
        assert_eq!(metadata["toolCallId"], first["toolCallId"]);
        let call = format!("`push` (call `{}`)", first["toolCallId"].as_str().unwrap());
        assert!(text.as_str().unwrap().starts_with(&call), "{text}");
        let waits = server
            .send(Request::get("/approvals").bearer(OLGA))
            .await
            .json();
        let waits = waits["approvals"].as_array().unwrap().clone();
        assert_eq!(waits.len(), open, "{waits:?}");
        if open > 1 {
            let word = answer(dialect, &task, json!({ "text": "yes" })).bearer(OLGA);
            assert_eq!(refused(&server, word).await, -32602, "which one?");
        }
        let yes = json!({ "type": "tool-approval-response", "approved": true, "approvalId": first["approvalId"] });
        result(
            &server,
            answer(dialect, &task, dialect.data(&yes)).bearer(OLGA),
        )
        .await;
    }
    let done = look(0).await;
    assert_eq!(
        (&done["status"]["state"], tool.call_count()),
        (&json!("TASK_STATE_COMPLETED"), 3),
        "{done}"
    );
}

/// Sends every push to the branch `hooked`.
struct Rewriter;

impl Hook for Rewriter {
    fn name(&self) -> &str {
        "rewriter"
    }

    fn before<'a>(&'a self, _: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let output = HookOutput::rewrite(json!({ "branch": "hooked" }), "the team's branch");
        Box::pin(std::future::ready(Ok(output)))
    }
}

/// The inputs of the user's message, of each `tool-call` and of each end in a task's history.
fn inputs(task: &Value) -> Vec<(String, Value)> {
    let messages = task["history"].as_array().unwrap().iter();
    let parts = messages.flat_map(|message| {
        let role = message["role"].as_str().unwrap();
        message["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |part| (role, &part["data"]))
    });
    let events = parts.filter(|(_, data)| data["type"].is_string());
    events
        .map(|(role, data)| {
            (
                format!("{role} {}", data["type"].as_str().unwrap()),
                data["input"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn the_history_has_what_the_model_sent_and_the_end_what_ran_live_and_after_a_restart() {
    for answered_by_the_next_host in [false, true] {
        let place = place();
        let tool = push();
        let start = || place.start_with(|builder| builder.tool(tool.clone()).hook(Rewriter));
        let mut server = start().await;
        let task = waiting(&server, Dialect::Newer, "m1").await;
        if answered_by_the_next_host {
            server.shut_down().await;
            server = start().await;
        }
        let get = rpc("GetTask", &json!({ "id": task["id"] }));
        let question =
            result(&server, get.clone()).await["status"]["message"]["metadata"]["approvalId"]
                .clone();
        let mut stream = server
            .begin(Request::get("/events?from=start").bearer(OLGA))
            .await;
        stream.head().await;
        let verdict = json!({ "decision": "allow", "arguments": { "branch": "edited" } });
        let path = format!("/approvals/{}", question.as_str().unwrap());
        let decided = server
            .send(Request::post(path, verdict.to_string()).bearer(OLGA))
            .await;
        assert_eq!(decided.status(), 200, "{decided:?}");
        let done = loop {
            let task = result(&server, get.clone()).await;
            if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                break task;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(tool.inputs(), [json!({ "branch": "edited" })]);
        let branch = |name: &str| json!({ "branch": name });
        let expected = [
            ("ROLE_USER tool-call".to_owned(), branch("main")),
            ("ROLE_AGENT tool-call".to_owned(), branch("main")),
            ("ROLE_AGENT tool-result".to_owned(), branch("edited")),
        ];
        assert_eq!(inputs(&done), expected, "live");

        let mut told = Vec::new();
        while told.len() < 2 {
            let frame = stream.frame().await.expect("the stream goes on");
            if frame.event == "tool-event" {
                let event: Value = serde_json::from_str(&frame.data).unwrap();
                told.push((event["type"].clone(), event["input"].clone()));
            }
        }
        let streamed = [
            (json!("tool-call"), branch("main")),
            (json!("tool-result"), branch("edited")),
        ];
        assert_eq!(told, streamed, "a stream of all sessions");
        server.shut_down().await;

        let server = start().await;
        assert_eq!(
            inputs(&result(&server, get).await),
            expected,
            "after a restart"
        );
        server.shut_down().await;
    }
}
