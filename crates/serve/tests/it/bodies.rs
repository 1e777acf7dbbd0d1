//! What is taken as a request, and what is told to those that cannot be read.

use serde_json::{Value, json};
use toolpost_testkit::MockNativeTool;

use super::{
    client::Request,
    running::{Place, Running},
};

async fn server_with(tool: &MockNativeTool) -> Running {
    let mut place = Place::without_native_tools();
    place.config.http.body_limit = 2_000;
    let tool = tool.clone();
    place.start_with(|builder| builder.tool(tool)).await
}

#[tokio::test]
async fn only_json_is_taken_and_only_within_the_limit() {
    let tool = MockNativeTool::named("demo.take");
    let server = server_with(&tool).await;
    let over = format!(r#"{{"text":"{}"}}"#, "x".repeat(2_000));
    let check = async |request: Request, status: u16, code: &str| {
        let refused = server.send(request).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (status, code),
            "{refused:?}"
        );
        assert_eq!(tool.call_count(), 0);
    };
    for path in ["/tools/take/call", "/tools/take/explain"] {
        let post = |body: &[u8]| Request::post(path, body);
        for media_type in [
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain",
            "",
        ] {
            check(
                post(b"{}").header("Content-Type", media_type),
                415,
                "not_json",
            )
            .await;
        }
        check(post(b"{}").without("Content-Type"), 415, "not_json").await;
        check(
            post(b"").header("Content-Type", "text/plain"),
            415,
            "not_json",
        )
        .await;
        check(post(over.as_bytes()), 413, "too_large").await;
        check(post(b"{\"text\":\"\xff\"}"), 400, "not_utf8").await;
    }
    let chunked = Request::post("/tools/take/call", "").header("Transfer-Encoding", "chunked");
    let mut bytes = String::from_utf8(server.dressed(chunked).bytes()).unwrap();
    bytes = bytes.replace("Content-Length: 0\r\n", "");
    bytes.push_str(&format!("{:x}\r\n{over}\r\n0\r\n\r\n", over.len()));
    let mut connection = server.connect().await;
    connection.write(bytes.as_bytes()).await;
    let refused = connection.receive().await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (413, "too_large"),
        "in chunks"
    );
}

#[tokio::test]
async fn a_client_that_sends_far_too_much_reads_why_it_is_refused() {
    let server = server_with(&MockNativeTool::named("demo.take")).await;
    let body = vec![b' '; 20 << 20];
    for (path, status) in [
        ("/tools/take/call", 413),
        ("/sessions", 413),
        ("/mcp", 413),
        ("/a2a", 413),
        ("/nowhere", 404),
    ] {
        // Clients commonly send the whole request before they read anything.
        let refused = server.send(Request::post(path, body.as_slice())).await;
        assert_eq!(refused.status(), status, "{path}: {}", refused.text());
    }
    let mut connection = server.connect().await;
    connection
        .send(&Request::post("/tools/take/call", body.as_slice()).bearer("wrong"))
        .await;
    assert_eq!(connection.receive().await.status(), 401);
    // The connection goes on after a body that was thrown away.
    connection.send(&Request::get("/health")).await;
    assert_eq!(connection.receive().await.status(), 200);
}

#[tokio::test]
async fn a_body_that_waits_to_be_asked_for_is_not_asked_for_in_vain() {
    let server = server_with(&MockNativeTool::named("demo.take")).await;
    let mut connection = server.connect().await;
    let head = "POST /tools/take/call HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\
                Expect: 100-continue\r\n\r\n";
    connection.write(head.as_bytes()).await;
    assert_eq!(connection.head().await.status, 401);
}

#[tokio::test]
async fn arguments_that_are_no_object_end_in_a_result_that_says_why() {
    let tool = MockNativeTool::named("demo.take");
    let server = server_with(&tool).await;
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(300), "]".repeat(300));
    for (body, part) in [
        ("{", "EOF while parsing"),
        ("{\"a\":1,}", "trailing comma"),
        ("{\"a\":1} {}", "trailing characters"),
        ("nonsense", "expected ident"),
        ("[1]", "an array was given"),
        ("null", "null was given"),
        ("\"{}\"", "a string was given"),
        (r#"{"a":1,"a":2}"#, "the key `a` is given twice"),
        (r#"{"a":{"b":1,"\u0062":2}}"#, "the key `b` is given twice"),
        (&deep, "recursion limit exceeded"),
    ] {
        let answer = server.send(Request::post("/tools/take/call", body)).await;
        let result = answer.json();
        assert_eq!(answer.status(), 400, "{body}");
        assert_eq!(
            result["error"]["class"], "schema_validation_failed",
            "{body}"
        );
        assert_eq!(result["outcome"], "failed");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{body}: {message}");
        // Like every call it has its place in the record.
        let id = result["invocation_id"].as_str().unwrap();
        assert_eq!(server.ended(id).await.json()["result"], result);
    }
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_body_left_out_is_an_empty_object() {
    let tool = MockNativeTool::named("demo.take");
    let server = server_with(&tool).await;
    let media_type = |value| Request::post("/tools/take/call", "{}").header("Content-Type", value);
    for request in [
        Request::new("POST", "/tools/take/call"),
        Request::post("/tools/take/call", ""),
        Request::post("/tools/take/call", " \r\n"),
        Request::post("/tools/take/call", "{}"),
        media_type("application/json; charset=utf-8"),
        media_type("Application/JSON"),
    ] {
        let answer = server.send(request).await;
        assert_eq!(answer.status(), 200, "{answer:?}");
    }
    assert_eq!(tool.inputs(), vec![json!({}); 6]);
}

#[tokio::test]
async fn what_is_not_there_is_told_as_json() {
    let server = Place::new().start().await;
    let check = async |request: Request, status: u16, code: &str| {
        let refused = server.send(request).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (status, code),
            "{refused:?}"
        );
        let message = refused.json()["error"]["message"].clone();
        assert!(message.is_string(), "{message}");
    };
    for path in [
        "/",
        "/nowhere",
        "/tools/",
        "/tools/echo/",
        "/tools/echo/call/more",
        "/health/x",
    ] {
        check(Request::get(path), 404, "no_such_route").await;
    }
    for (method, path) in [
        ("POST", "/health"),
        ("PUT", "/tools"),
        ("DELETE", "/tools/echo"),
        ("GET", "/tools/echo/call"),
        ("GET", "/tools/echo/explain"),
        ("PATCH", "/sessions/x"),
        ("GET", "/sessions"),
        ("DELETE", "/invocations/x"),
        ("BREW", "/openapi.json"),
    ] {
        check(Request::new(method, path), 405, "method_not_allowed").await;
    }
    check(Request::get("/tools/nothing"), 404, "unknown_tool").await;
    for path in ["/tools/%ff", "/invocations/%ff", "/sessions/%ff"] {
        check(Request::get(path), 400, "bad_path").await;
    }
    for query in [
        "unknown=1",
        "timeout=1&timeout=2",
        "timeout=soon",
        "correlation_id",
    ] {
        let path = format!("/tools/echo/call?{query}");
        let status = if query == "correlation_id" { 422 } else { 400 };
        let code = if query == "correlation_id" {
            "invalid_arguments"
        } else {
            "bad_query"
        };
        check(Request::post(path, "{}"), status, code).await;
    }
}

#[tokio::test]
async fn arguments_over_their_own_limit_are_refused_by_name() {
    let mut place = Place::new();
    place.config.limits.argument_bytes = 100;
    let server = place.start().await;
    let answer = server
        .call("echo", json!({ "message": "x".repeat(100) }))
        .await;
    assert_eq!(
        (answer.status(), answer.code().as_str()),
        (422, "too_large")
    );
    let message: Value = answer.json()["error"]["message"].clone();
    assert!(
        message
            .as_str()
            .unwrap()
            .contains("`limits.argument_bytes`"),
        "{message}"
    );
}
