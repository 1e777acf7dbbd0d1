//! What is no request, or none that is taken.

use serde_json::{Value, json};

use super::{super::client::Request, Dialect, add, refused, rpc, serve};

#[tokio::test]
async fn what_is_no_request_is_refused_in_json_rpcs_words() {
    let server = serve(&add()).await;
    for (body, code, id) in [
        ("{", -32700, Value::Null),
        ("", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#,
            -32600,
            Value::Null,
        ),
        ("5", -32600, Value::Null),
        (r#"{"id":1,"method":"GetTask"}"#, -32600, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":5}"#,
            -32600,
            json!("a"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"GetTask","params":[]}"#,
            -32602,
            json!(1.5),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#,
            -32602,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"FlyAway"}"#,
            -32601,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{}}}"#,
            -32602,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{}}"#,
            -32003,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{}}"#,
            -32003,
            json!(1),
        ),
    ] {
        let told = server.send(Request::post("/a2a", body)).await;
        assert_eq!(told.status(), 200, "{body}");
        let told = told.json();
        assert_eq!(
            (&told["error"]["code"], &told["id"]),
            (&json!(code), &id),
            "{body}: {told}"
        );
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let told = server.send(Request::post("/a2a", deep)).await.json();
    assert_eq!(told["error"]["code"], -32700);
    assert!(
        told["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nested"),
        "{told}"
    );
    for (body, has_details) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":[]}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"SendMessage","params":{}}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":[]}"#,
            false,
        ),
    ] {
        let told = server.send(Request::post("/a2a", body)).await.json();
        assert_eq!(
            told["error"]["data"][0]["reason"].is_string(),
            has_details,
            "{body}: {told}"
        );
    }
}

#[tokio::test]
async fn versions_choose_the_dialect() {
    let server = serve(&add()).await;
    let get = |method: &str| rpc(method, &json!({ "id": "x" }));
    for (request, has_details) in [
        (get("GetTask"), true),
        (get("tasks/get"), false),
        (get("tasks/get").header("A2A-Version", "1.0"), true),
        (get("GetTask").header("A2A-Version", "0.3"), false),
    ] {
        let told = server.send(request).await.json();
        assert_eq!(told["error"]["code"], -32001);
        assert_eq!(
            told["error"]["data"][0]["reason"].is_string(),
            has_details,
            "{told}"
        );
    }
    for version in ["2.0", "0.2", "x"] {
        assert_eq!(
            refused(&server, get("GetTask").header("A2A-Version", version)).await,
            -32009,
            "{version}"
        );
    }
}

#[tokio::test]
async fn messages_that_cannot_be_meant_run_nothing() {
    let tool = add();
    let server = serve(&tool).await;
    let dialect = Dialect::Newer;
    let call = dialect.call("c", "add", &json!({ "a": 1 }));
    let message = |change: &dyn Fn(&mut Value)| {
        let mut message = dialect.message("m", std::slice::from_ref(&call));
        change(&mut message);
        rpc("SendMessage", &json!({ "message": message }))
    };
    for (request, code) in [
        (
            message(&|message| message["contextId"] = json!("a b")),
            -32602,
        ),
        (
            message(&|message| message["contextId"] = json!("x".repeat(129))),
            -32602,
        ),
        (
            message(&|message| message["contextId"] = json!("../x")),
            -32602,
        ),
        (
            message(&|message| message["messageId"] = json!("x".repeat(257))),
            -32602,
        ),
        (message(&|message| message["messageId"] = json!("")), -32602),
        (message(&|message| message["role"] = json!(null)), -32602),
        (
            message(&|message| message["role"] = json!("ROLE_AGENT")),
            -32602,
        ),
        (message(&|message| message["parts"] = json!([])), -32602),
        (
            message(&|message| message["parts"] = json!([{ "data": { "type": "tool-call" } }])),
            -32602,
        ),
        (
            message(&|message| message["parts"] = json!(vec![call.clone(); 65])),
            -32602,
        ),
        (
            message(&|message| message["taskId"] = json!("01a1e16e-9fc2-777b-a5e6-92c590cac3fc")),
            -32001,
        ),
    ] {
        assert_eq!(refused(&server, request).await, code);
    }
    let push = json!({
        "message": dialect.message("m", std::slice::from_ref(&call)),
        "configuration": { "taskPushNotificationConfig": { "url": "https://x" } },
    });
    assert_eq!(refused(&server, rpc("SendMessage", &push)).await, -32003);
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_context_that_was_closed_stays_closed() {
    let tool = add();
    let server = serve(&tool).await;
    let mut message =
        Dialect::Newer.message("m", &[Dialect::Newer.call("c", "add", &json!({ "a": 1 }))]);
    message["contextId"] = json!("ctx");
    let send = rpc("SendMessage", &json!({ "message": message }));
    assert_eq!(
        server.send(send.clone()).await.json()["result"]["task"]["contextId"],
        "ctx"
    );
    let close = Request::new("DELETE", "/sessions/a2a:agent:ctx");
    assert_eq!(server.send(close).await.status(), 204);
    assert_eq!(refused(&server, send).await, -32602);
    assert_eq!(tool.call_count(), 1);
}

#[tokio::test]
async fn what_is_no_json_is_refused_by_http() {
    let server = serve(&add()).await;
    let body = rpc("GetTask", &json!({ "id": "x" }));
    for (request, status, code) in [
        (
            body.clone().header("Content-Type", "text/plain"),
            415,
            "not_json",
        ),
        (body.clone().without("Content-Type"), 415, "not_json"),
        (Request::get("/a2a"), 405, "method_not_allowed"),
        (Request::new("DELETE", "/a2a"), 405, "method_not_allowed"),
        (Request::get("/a2a/message:send"), 405, "method_not_allowed"),
        (Request::get("/a2a/nothing"), 404, "no_such_route"),
        (
            Request::post("/a2a", "x".repeat((4 << 20) + 1)),
            413,
            "too_large",
        ),
    ] {
        let told = server.send(request).await;
        assert_eq!((told.status(), told.code().as_str()), (status, code));
    }
    let kept = body.header("Content-Type", "application/a2a+json; charset=utf-8");
    assert_eq!(refused(&server, kept).await, -32001);
    let stranger = server
        .send_bare(rpc("GetTask", &json!({ "id": "x" })))
        .await;
    assert_eq!(
        (stranger.status(), stranger.code().as_str()),
        (401, "unauthorized")
    );
}
