//! Tasks after the host that ran them: what the record has of them is all there is, and it is enough.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_model::{EffectClass, ToolFailure};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    super::running::{Place, Running},
    Dialect, add, events, refused, result, rpc,
};

async fn serve(place: &Place, tools: &[MockNativeTool]) -> Running {
    let add =
        |builder, tool: &MockNativeTool| toolpost_serve::ServerBuilder::tool(builder, tool.clone());
    place
        .start_with(|builder| tools.iter().fold(builder, add))
        .await
}

/// The same, whatever the host called its messages and whichever call was faster.
fn told_again(task: &Value) -> Value {
    let mut task = task.clone();
    let history = task["history"].as_array_mut().unwrap();
    for message in history.iter_mut() {
        message.as_object_mut().unwrap().remove("messageId");
    }
    history.sort_by_key(Value::to_string);
    if let Some(artifacts) = task.get_mut("artifacts").and_then(Value::as_array_mut) {
        artifacts.sort_by_key(Value::to_string);
    }
    if let Some(message) = task["status"].get_mut("message") {
        message.as_object_mut().unwrap().remove("messageId");
    }
    task
}

#[tokio::test]
async fn a_task_is_told_the_same_after_a_restart_and_a_repeat_runs_nothing() {
    let place = Place::without_native_tools();
    let broken = MockNativeTool::named("demo.broken").failing(ToolFailure::new("it broke"));
    let tools = [add().class(EffectClass::Write), broken];
    for dialect in Dialect::BOTH {
        let server = serve(&place, &tools).await;
        let calls = [
            dialect.call("c1", "add", &json!({ "a": 1 })),
            dialect.call("c2", "broken", &json!({})),
            dialect.call("c3", "missing", &json!({})),
        ];
        let mut message = dialect.message("m1", &calls);
        message["contextId"] = json!(format!("ctx-{dialect:?}"));
        let send = rpc(dialect.method("send"), &json!({ "message": message }));
        let first = dialect.task(&result(&server, send.clone()).await);
        assert_eq!(first["status"]["state"], dialect.state("failed"), "{first}");
        let ran = tools[0].call_count();
        server.shut_down().await;

        let server = serve(&place, &tools).await;
        let again = result(
            &server,
            rpc(dialect.method("get"), &json!({ "id": first["id"] })),
        )
        .await;
        assert_eq!(told_again(&again), told_again(&first));
        assert_eq!(events(&again["history"]).len(), 9);
        let repeated = dialect.task(&result(&server, send).await);
        assert_eq!(told_again(&repeated), told_again(&first));
        assert_eq!(tools[0].call_count(), ran, "nothing ran again");
        if dialect == Dialect::Newer {
            let listed = result(&server, rpc("ListTasks", &json!({}))).await;
            assert_eq!(listed["totalSize"], 2, "{listed}");
        }
        server.shut_down().await;
    }
}

/// A host that is killed: nothing of it runs to an end, as with the power cut.
#[test]
fn a_call_that_was_cut_off_is_told_as_it_is() {
    let place = Place::without_native_tools();
    let tools = [add().class(EffectClass::Write).gate(&MockToolGate::new())];
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let killed = runtime();
    let call = Dialect::Newer.call("c1", "add", &json!({ "a": 1 }));
    let params = json!({
        "message": Dialect::Newer.message("m1", &[call]), "configuration": { "returnImmediately": true }
    });
    let (server, id) = killed.block_on(async {
        let server = serve(&place, &tools).await;
        let mut stream = server.begin(rpc("SendStreamingMessage", &params)).await;
        stream.head().await;
        let task = stream.data().await.unwrap()["result"]["task"].clone();
        while tools[0].call_count() == 0 {
            tokio::task::yield_now().await;
        }
        (server, task["id"].clone())
    });
    killed.shutdown_timeout(Duration::from_secs(60));
    drop(server);
    runtime().block_on(async {
        let server = serve(&place, &tools).await;
        let task = result(&server, rpc("GetTask", &json!({ "id": id }))).await;
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
        assert_eq!(
            events(&task["history"]),
            ["tool-call", "tool-call", "tool-error"]
        );
        let why = task["status"]["message"]["parts"][0]["text"]
            .as_str()
            .unwrap();
        assert!(why.contains("may or may not"), "{why}");
        assert_eq!(tools[0].call_count(), 1, "it was not run again");
    });
}

#[tokio::test]
async fn a_message_id_belongs_to_one_message_also_after_a_restart() {
    let place = Place::without_native_tools();
    let tools = [add().class(EffectClass::Write)];
    let dialect = Dialect::Newer;
    let call = |id: &str, a: i32| dialect.call(id, "add", &json!({ "a": a }));
    let send = |calls: &[Value]| {
        let mut message = dialect.message("m1", calls);
        message["contextId"] = json!("ctx");
        rpc("SendMessage", &json!({ "message": message }))
    };
    let genuine = [call("c1", 1), call("c2", 2)];
    let server = serve(&place, &tools).await;
    let first = dialect.task(&result(&server, send(&genuine)).await);
    assert_eq!(first["status"]["state"], "TASK_STATE_COMPLETED", "{first}");
    let others: [&[Value]; 6] = [
        &[call("c1", 1), call("c2", 2), call("c3", 3)],
        &[call("c1", 1)],
        &[call("c2", 2), call("c1", 1)],
        &[call("c1", 1), call("c2", 7)],
        &[call("x", 1), call("y", 2)],
        &[
            call("c1", 1),
            dialect.call("c2", "other", &json!({ "a": 2 })),
        ],
    ];
    let check = async |server: &Running| {
        for other in others {
            assert_eq!(refused(server, send(other)).await, -32602, "{other:?}");
        }
        let again = dialect.task(&result(server, send(&genuine)).await);
        assert_eq!(told_again(&again), told_again(&first));
        let listed = result(server, rpc("ListTasks", &json!({}))).await;
        assert_eq!(
            (&listed["totalSize"], tools[0].call_count()),
            (&json!(1), 2),
            "nothing ran: {listed}"
        );
    };
    check(&server).await;
    server.shut_down().await;
    let server = serve(&place, &tools).await;
    check(&server).await;
}

#[tokio::test]
async fn a_task_without_events_has_none_after_a_restart() {
    let place = Place::without_native_tools();
    let tools = [add()];
    let server = serve(&place, &tools).await;
    let call = json!({
        "data": { "id": "f", "name": "add", "args": { "a": 1 } }, "metadata": { "adk_type": "function_call" }
    });
    let params = json!({ "message": Dialect::Newer.message("m1", &[call]) });
    let first = Dialect::Newer.task(&result(&server, rpc("SendMessage", &params)).await);
    assert_eq!(
        events(&first["history"]),
        ["tool-call"],
        "only the user's own: {first}"
    );
    server.shut_down().await;
    let server = serve(&place, &tools).await;
    let again = result(&server, rpc("GetTask", &json!({ "id": first["id"] }))).await;
    assert_eq!(told_again(&again), told_again(&first));
}

/// What only the call knows for a secret is hashed on record, and the whole request id with it.
#[tokio::test]
async fn a_call_whose_id_is_its_secret_is_known_again() {
    let place = Place::without_native_tools();
    let tools = [MockNativeTool::named("demo.unlock")
        .class(EffectClass::Read)
        .output("open")
        .schema(json!({
            "type": "object", "properties": { "pin": { "type": "string", "x-sensitive": true } }
        }))];
    let dialect = Dialect::Newer;
    let send = |pin: &str| {
        let mut message = dialect.message(
            "m1",
            &[dialect.call("horse-battery", "unlock", &json!({ "pin": pin }))],
        );
        message["contextId"] = json!("ctx");
        rpc("SendMessage", &json!({ "message": message }))
    };
    let server = serve(&place, &tools).await;
    let first = dialect.task(&result(&server, send("horse-battery")).await);
    assert_eq!(first["status"]["state"], "TASK_STATE_COMPLETED", "{first}");
    server.shut_down().await;
    let server = serve(&place, &tools).await;
    assert_eq!(refused(&server, send("staple")).await, -32602);
    let again = dialect.task(&result(&server, send("horse-battery")).await);
    assert_eq!(
        (&again["id"], tools[0].call_count()),
        (&first["id"], 1),
        "{again}"
    );
}
