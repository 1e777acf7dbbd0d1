//! Tasks under way and done: found, listed, followed and stopped.

use serde_json::{Value, json};
use toolpost_model::{EffectClass, PrincipalRole};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    super::{
        client::{Connection, Request},
        running::{Place, Running},
    },
    Dialect, add, items, refused, result, rpc, serve,
};

fn sent(dialect: Dialect, id: &str, context: &str, n: u32) -> Value {
    let mut message = dialect.message(id, &[dialect.call("c", "add", &json!({ "a": n }))]);
    message["contextId"] = json!(context);
    json!({ "message": message })
}

/// A stream about a new task, and the task's id.
async fn streamed(server: &Running, dialect: Dialect, id: &str) -> (Connection, String) {
    let mut stream = server
        .begin(rpc(dialect.method("stream"), &sent(dialect, id, "ctx", 1)))
        .await;
    stream.head().await;
    let first = stream.data().await.unwrap();
    let (_, task) = dialect.item(&first["result"]);
    (stream, task["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_message_sent_twice_is_one_task() {
    let gate = MockToolGate::new();
    let tool = add().class(EffectClass::Write).gate(&gate);
    let server = serve(&tool).await;
    let dialect = Dialect::Newer;
    let (mut first, id) = streamed(&server, dialect, "m1").await;
    gate.entered(1).await;
    let mut second = server
        .begin(rpc("SendMessage", &sent(dialect, "m1", "ctx", 1)))
        .await;
    let (mut third, again) = streamed(&server, dialect, "m1").await;
    assert_eq!(again, id);
    assert_eq!(
        refused(&server, rpc("SendMessage", &sent(dialect, "m1", "ctx", 2))).await,
        -32602
    );
    gate.let_through(2);
    let told = second.receive().await.json();
    assert_eq!(dialect.task(&told["result"])["id"], json!(id));
    assert_eq!(
        items(&mut first).await,
        items(&mut third).await,
        "everybody is told the same"
    );
    assert_eq!(tool.call_count(), 1);
    let other = dialect.task(
        &result(
            &server,
            rpc("SendMessage", &sent(dialect, "m1", "other", 1)),
        )
        .await,
    );
    assert_ne!(
        other["id"],
        json!(id),
        "the same id in another context is another message"
    );
    assert_eq!(tool.call_count(), 2);
}

#[tokio::test]
async fn a_reader_that_leaves_leaves_the_task_and_can_come_back() {
    for dialect in Dialect::BOTH {
        let gate = MockToolGate::new();
        let tool = add().gate(&gate);
        let server = serve(&tool).await;
        let (stream, id) = streamed(&server, dialect, "m1").await;
        gate.entered(1).await;
        drop(stream);
        let subscribe = rpc(dialect.method("subscribe"), &json!({ "id": id }));
        let mut readers = [
            server.begin(subscribe.clone()).await,
            server.begin(subscribe.clone()).await,
        ];
        for reader in &mut readers {
            assert_eq!(reader.head().await.status, 200);
            let (kind, task) = dialect.item(&reader.data().await.unwrap()["result"]);
            assert_eq!(
                (kind.as_str(), &task["status"]["state"]),
                ("task", &json!(dialect.state("working")))
            );
        }
        gate.let_through(1);
        let [mut one, mut other] = readers;
        let rest = items(&mut one).await;
        assert_eq!(rest, items(&mut other).await);
        let (_, last) = dialect.item(rest.last().unwrap());
        assert_eq!(last["status"]["state"], dialect.state("completed"));
        assert_eq!(tool.call_count(), 1);
        match dialect {
            Dialect::Newer => assert_eq!(refused(&server, subscribe).await, -32004),
            Dialect::Older => {
                let mut late = server.begin(subscribe).await;
                late.head().await;
                let items = items(&mut late).await;
                assert_eq!(
                    (items.len(), &items[0]["status"]["state"]),
                    (1, &json!("completed"))
                );
            }
        }
    }
}

#[tokio::test]
async fn cancelling_stops_the_calls_once() {
    for dialect in Dialect::BOTH {
        let gate = MockToolGate::new();
        let server = serve(&add().gate(&gate)).await;
        let (mut stream, id) = streamed(&server, dialect, "m1").await;
        gate.entered(1).await;
        let cancel = rpc(dialect.method("cancel"), &json!({ "id": id }));
        let task = result(&server, cancel.clone()).await;
        assert_eq!(task["status"]["state"], dialect.state("canceled"), "{task}");
        let (_, last) = dialect.item(items(&mut stream).await.last().unwrap());
        assert_eq!(last["status"]["state"], dialect.state("canceled"));
        assert_eq!(refused(&server, cancel).await, -32002);
    }
}

#[tokio::test]
async fn only_its_owner_and_operators_find_a_task() {
    let tool = add();
    let place = Place::without_native_tools()
        .with_token("bob", PrincipalRole::Agent, "bob-has-a-token")
        .with_token("olga", PrincipalRole::Operator, "olga-has-a-token");
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let task = result(
        &server,
        rpc("message/send", &sent(Dialect::Older, "m1", "ctx", 1)),
    )
    .await;
    let id = json!({ "id": task["id"] });
    let as_bob = |request: Request| request.bearer("bob-has-a-token");
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        assert_eq!(
            refused(&server, as_bob(rpc(method, &id))).await,
            -32001,
            "{method}"
        );
    }
    assert_eq!(
        result(&server, as_bob(rpc("ListTasks", &json!({})))).await["totalSize"],
        0
    );
    let seen = result(&server, rpc("tasks/get", &id).bearer("olga-has-a-token")).await;
    assert_eq!(seen["id"], task["id"]);
    let his = result(
        &server,
        as_bob(rpc("message/send", &sent(Dialect::Older, "m1", "ctx", 1))),
    )
    .await;
    assert_ne!(his["id"], task["id"], "contexts of two callers are two");
    assert_eq!(tool.call_count(), 2);
    for (unknown, code) in [
        ("x", -32001),
        ("01a1e16e-9fc2-777b-a5e6-92c590cac3fc", -32001),
        ("", -32602),
    ] {
        assert_eq!(
            refused(&server, rpc("GetTask", &json!({ "id": unknown }))).await,
            code,
            "{unknown}"
        );
    }
    let forged = Request::post(
        format!(
            "/tools/add/call?correlation_id={}",
            task["id"].as_str().unwrap()
        ),
        json!({ "a": 1 }).to_string(),
    );
    server.send(as_bob(forged)).await;
    let seen = result(&server, rpc("tasks/get", &id)).await;
    assert_eq!(
        seen["history"].as_array().unwrap().len(),
        task["history"].as_array().unwrap().len()
    );
}

#[tokio::test]
async fn tasks_are_listed_page_by_page() {
    let server = serve(&add()).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let context = if n == 4 { "two" } else { "one" };
        let told = result(
            &server,
            rpc(
                "SendMessage",
                &sent(Dialect::Newer, &format!("m{n}"), context, n),
            ),
        )
        .await;
        ids.push(told["task"]["id"].as_str().unwrap().to_owned());
    }
    let list = async |params: Value| result(&server, rpc("ListTasks", &params)).await;
    let all = list(json!({})).await;
    let listed: Vec<&str> = all["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    let newest_first: Vec<&str> = ids.iter().rev().map(String::as_str).collect();
    assert_eq!(listed, newest_first);
    assert_eq!(
        (&all["totalSize"], &all["nextPageToken"], &all["pageSize"]),
        (&json!(5), &json!(""), &json!(50))
    );
    assert!(
        all["tasks"][0].get("history").is_none() && all["tasks"][0].get("artifacts").is_none(),
        "{all}"
    );
    let page = list(
        json!({ "contextId": "one", "pageSize": 3, "includeArtifacts": true, "historyLength": 9 }),
    )
    .await;
    assert_eq!(
        (&page["totalSize"], page["tasks"].as_array().unwrap().len()),
        (&json!(4), 3)
    );
    assert_eq!(
        page["tasks"][0]["artifacts"][0]["parts"][0]["data"],
        json!({ "sum": 5 })
    );
    let token = page["nextPageToken"].clone();
    let rest = list(json!({ "contextId": "one", "pageSize": 3, "pageToken": token })).await;
    assert_eq!(
        (&rest["tasks"][0]["id"], &rest["nextPageToken"]),
        (&json!(ids[0]), &json!(""))
    );
    assert_eq!(
        list(json!({ "status": "TASK_STATE_FAILED" })).await["totalSize"],
        0
    );
    assert_eq!(
        list(json!({ "statusTimestampAfter": "2200-01-01T00:00:00Z" })).await["totalSize"],
        0
    );
    for bad in [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 101 }),
        json!({ "pageToken": "x" }),
        json!({ "statusTimestampAfter": "then" }),
    ] {
        assert_eq!(
            refused(&server, rpc("ListTasks", &bad)).await,
            -32602,
            "{bad}"
        );
    }
    let rest = server
        .send(Request::get("/a2a/tasks?contextId=two&pageSize=1"))
        .await
        .json();
    assert_eq!(rest["tasks"][0]["id"], json!(ids[4]));
}

#[tokio::test]
async fn a_page_goes_on_where_the_last_one_ended_also_when_its_task_moved() {
    let gate = MockToolGate::new();
    let slow = MockNativeTool::named("demo.slow")
        .class(EffectClass::Read)
        .gate(&gate);
    let tools = [add(), slow];
    let with =
        |builder, tool: &MockNativeTool| toolpost_serve::ServerBuilder::tool(builder, tool.clone());
    let server = Place::without_native_tools()
        .start_with(|builder| tools.iter().fold(builder, with))
        .await;
    let older = result(
        &server,
        rpc("SendMessage", &sent(Dialect::Newer, "m0", "one", 0)),
    )
    .await;
    let call = Dialect::Newer.call("c", "slow", &json!({}));
    let params = json!({
        "message": Dialect::Newer.message("m1", &[call]), "configuration": { "returnImmediately": true }
    });
    let last = result(&server, rpc("SendMessage", &params)).await["task"]["id"].clone();
    let first_page = result(&server, rpc("ListTasks", &json!({ "pageSize": 1 }))).await;
    assert_eq!(first_page["tasks"][0]["id"], last, "{first_page}");
    let stopped = server.send(rpc("CancelTask", &json!({ "id": last }))).await;
    assert_eq!(stopped.head.header("a2a-extensions"), Some(super::URI));
    assert_eq!(
        stopped.json()["result"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    let token = &first_page["nextPageToken"];
    let next = result(
        &server,
        rpc("ListTasks", &json!({ "pageSize": 1, "pageToken": token })),
    )
    .await;
    assert_eq!(
        (&next["tasks"][0]["id"], &next["nextPageToken"]),
        (&older["task"]["id"], &json!(""))
    );
}

#[tokio::test]
async fn the_same_over_rest() {
    let gate = MockToolGate::new();
    let server = serve(&add()).await;
    let told = server
        .send(Request::post(
            "/a2a/message:send",
            sent(Dialect::Newer, "m1", "c", 1).to_string(),
        ))
        .await;
    assert_eq!(told.status(), 200);
    let task = told.json()["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let path = format!("/a2a/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(server.send(Request::get(&path)).await.json(), task);
    let own = server
        .send(Request::get(&path).header("Accept", "application/a2a+json"))
        .await;
    assert_eq!(
        own.head.header("content-type"),
        Some("application/a2a+json")
    );
    let mut stream = server
        .begin(Request::post(
            "/a2a/message:stream",
            sent(Dialect::Newer, "m2", "c", 1).to_string(),
        ))
        .await;
    assert_eq!(stream.head().await.status, 200);
    let mut last = Value::Null;
    while let Some(item) = stream.data().await {
        last = item;
    }
    assert_eq!(
        last["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    for (request, status, reason) in [
        (Request::get("/a2a/tasks/x"), 404, "TASK_NOT_FOUND"),
        (
            Request::post(format!("{path}:cancel"), ""),
            400,
            "TASK_NOT_CANCELABLE",
        ),
        (
            Request::post(format!("{path}:subscribe"), ""),
            400,
            "UNSUPPORTED_OPERATION",
        ),
        (
            Request::get(format!("{path}:subscribe")),
            400,
            "UNSUPPORTED_OPERATION",
        ),
        (
            Request::post(format!("{path}:explode"), ""),
            404,
            "METHOD_NOT_FOUND",
        ),
        (
            Request::get(format!("{path}/pushNotificationConfigs")),
            400,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
        (Request::post("/a2a/message:send", "{"), 400, "PARSE_ERROR"),
        (
            Request::post("/a2a/message:send", "{}"),
            400,
            "INVALID_PARAMS",
        ),
        (
            Request::get(&path).header("A2A-Version", "0.3"),
            400,
            "VERSION_NOT_SUPPORTED",
        ),
        (
            Request::get(&path).header("A2A-Version", "2.0"),
            400,
            "VERSION_NOT_SUPPORTED",
        ),
    ] {
        let told = server.send(request).await;
        let error = &told.json()["error"];
        assert_eq!(
            (told.status(), &error["details"][0]["reason"]),
            (status, &json!(reason)),
            "{error}"
        );
        assert_eq!(error["code"], status);
    }
    drop(gate);
    let slow = MockNativeTool::named("demo.slow").gate(&MockToolGate::new());
    let server = serve(&slow).await;
    let call = Dialect::Newer.call("c", "slow", &json!({}));
    let params = json!({
        "message": Dialect::Newer.message("m", &[call]), "configuration": { "returnImmediately": true }
    });
    let task = server
        .send(Request::post("/a2a/message:send", params.to_string()))
        .await
        .json()["task"]
        .clone();
    let path = format!("/a2a/tasks/{}", task["id"].as_str().unwrap());
    for follow in [
        Request::get(format!("{path}:subscribe")),
        Request::post(format!("{path}:subscribe"), "{}"),
    ] {
        let mut stream = server.begin(follow).await;
        assert_eq!(stream.head().await.status, 200);
        assert_eq!(stream.data().await.unwrap()["task"]["id"], task["id"]);
    }
    let stopped = server
        .send(Request::post(format!("{path}:cancel"), "{}"))
        .await
        .json();
    assert_eq!(stopped["status"]["state"], "TASK_STATE_CANCELED");
}
