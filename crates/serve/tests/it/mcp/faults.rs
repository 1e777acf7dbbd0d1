//! What is refused, how, and that nothing of it harms what comes after.

use serde_json::{Value, json};
use toolpost_model::PrincipalRole;
use toolpost_testkit::MockNativeTool;

use super::{Era, Place, Request, Running, begin, meta, posted, tools};

fn body(method: &str, params: Value) -> Value {
    let mut body = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    body["params"] = params;
    body
}

/// Sends a message with headers, and looks at the status and the code of the refusal.
async fn check(
    server: &Running,
    what: &str,
    body: &Value,
    headers: &[(&str, &str)],
    status: u16,
    code: i64,
) {
    let request = headers.iter().fold(posted(body), |request, (name, value)| {
        request.header(name, value)
    });
    let answer = server.send(request).await;
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_i64()),
        (status, Some(code)),
        "{what}"
    );
}

#[tokio::test]
async fn wrong_requests_of_a_session_get_its_eras_codes() {
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.say").output("hi")))
        .await;
    let Era::Session(session) = begin(&server, json!({}), None).await else {
        unreachable!()
    };
    let call = json!({ "name": "say", "arguments": {} });
    check(
        &server,
        "no session",
        &body("tools/call", call),
        &[],
        400,
        -32600,
    )
    .await;
    check(
        &server,
        "a strange one",
        &body("ping", json!({})),
        &[("Mcp-Session-Id", "x")],
        404,
        -32600,
    )
    .await;
    let message =
        |version: &str, id: Value| json!({ "jsonrpc": version, "id": id, "method": "ping" });
    for (what, body, status, code) in [
        (
            "a method of the other era",
            body("server/discover", json!({})),
            400,
            -32602,
        ),
        (
            "a method of no era",
            body("tools/eat", json!({})),
            200,
            -32601,
        ),
        (
            "no tool of that name",
            body("tools/call", json!({ "name": "x" })),
            200,
            -32602,
        ),
        (
            "no resource",
            body("resources/read", json!({ "uri": "x://y" })),
            200,
            -32002,
        ),
        (
            "odd parameters",
            body("tools/call", json!({ "name": 5 })),
            200,
            -32602,
        ),
        (
            "a bad cursor",
            body("tools/list", json!({ "cursor": "x" })),
            200,
            -32602,
        ),
        ("two messages at once", json!([]), 400, -32600),
        ("no message", message("1.0", json!(1)), 400, -32600),
        (
            "an id that is none",
            message("2.0", json!(null)),
            400,
            -32600,
        ),
    ] {
        check(
            &server,
            what,
            &body,
            &[("Mcp-Session-Id", &session)],
            status,
            code,
        )
        .await;
    }
    let era = Era::Session(session);
    assert_eq!(
        era.call(&server, "say", json!({})).await["content"][0]["text"],
        "hi"
    );
}

#[tokio::test]
async fn wrong_requests_that_stand_for_themselves_get_their_eras_codes() {
    let place = Place::without_native_tools();
    let server = place
        .start_with(|builder| builder.tool(MockNativeTool::named("demo.say").output("hi")))
        .await;
    let call = |meta: &Value| {
        body(
            "tools/call",
            json!({ "name": "say", "arguments": {}, "_meta": meta }),
        )
    };
    let full = meta(&json!({}));
    let mut elsewhen = full.clone();
    elsewhen["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let mut incapable = full.clone();
    incapable
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    let [version, method, name] = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "say"),
    ];
    let old = ("MCP-Protocol-Version", "1900-01-01");
    let sealed = body(
        "tools/call",
        json!({ "name": "say", "requestState": "x", "_meta": full }),
    );
    for (what, body, headers, status, code) in [
        (
            "no version said",
            call(&json!({})),
            [version, method, name],
            400,
            -32602,
        ),
        (
            "no capabilities said",
            call(&incapable),
            [version, method, name],
            400,
            -32602,
        ),
        (
            "no version header",
            call(&full),
            [method, method, name],
            400,
            -32020,
        ),
        (
            "no method header",
            call(&full),
            [version, version, name],
            400,
            -32020,
        ),
        (
            "no name header",
            call(&full),
            [version, method, method],
            400,
            -32020,
        ),
        (
            "another name",
            call(&full),
            [version, method, ("Mcp-Name", "x")],
            400,
            -32020,
        ),
        (
            "another version",
            call(&elsewhen),
            [old, method, name],
            400,
            -32022,
        ),
        (
            "a state that was never given",
            sealed,
            [version, method, name],
            200,
            -32602,
        ),
    ] {
        check(&server, what, &body, &headers, status, code).await;
    }
    let ping = body("ping", json!({ "_meta": full }));
    check(
        &server,
        "a method that was removed",
        &ping,
        &[version, ("Mcp-Method", "ping")],
        404,
        -32601,
    )
    .await;
    assert_eq!(
        Era::Stateless.call(&server, "say", json!({})).await["content"][0]["text"],
        "hi"
    );
}

#[tokio::test]
async fn who_is_not_meant_is_kept_out() {
    let place = Place::without_native_tools()
        .with_token("ann", PrincipalRole::Agent, "ann-has-a-token")
        .with_token("bob", PrincipalRole::Agent, "bob-has-a-token");
    let server = place.start().await;
    let Era::Session(session) = begin(&server, json!({}), Some("ann-has-a-token")).await else {
        unreachable!()
    };
    let ping = posted(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
        .header("Mcp-Session-Id", &session);
    for (what, request, status) in [
        ("its owner", ping.clone().bearer("ann-has-a-token"), 200),
        ("somebody else", ping.clone().bearer("bob-has-a-token"), 404),
        ("a bad token", ping.clone().bearer("x"), 401),
        (
            "a strange page",
            ping.clone()
                .bearer("ann-has-a-token")
                .header("Origin", "http://evil.example"),
            403,
        ),
        (
            "a strange name",
            ping.clone()
                .bearer("ann-has-a-token")
                .header("Host", "evil.example"),
            403,
        ),
        (
            "no JSON",
            ping.clone()
                .bearer("ann-has-a-token")
                .header("Content-Type", "text/plain"),
            415,
        ),
        (
            "nothing to read",
            ping.clone()
                .bearer("ann-has-a-token")
                .header("Accept", "text/html"),
            406,
        ),
    ] {
        assert_eq!(server.send(request).await.status(), status, "{what}");
    }
}

#[tokio::test]
async fn a_session_ends_when_its_client_says_so() {
    let place = Place::without_native_tools();
    let server = place.start().await;
    let Era::Session(session) = begin(&server, json!({}), None).await else {
        unreachable!()
    };
    let end = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &session);
    assert_eq!(server.send(end.clone()).await.status(), 204);
    assert_eq!(server.send(end).await.status(), 404);
    let era = Era::Session(session);
    assert_eq!(era.ask(&server, "ping", json!({})).await.status(), 404);
}

#[tokio::test]
async fn what_is_listed_by_place_is_no_message() {
    let server = Place::without_native_tools().start_with(tools).await;
    let Era::Session(session) = begin(&server, json!({}), None).await else {
        unreachable!()
    };
    let ping =
        |params: Value| json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": params });
    for (what, body, status, code) in [
        (
            "a message in a list",
            json!(["2.0", 7, "ping"]),
            400,
            -32600,
        ),
        ("a text", json!("ping"), 400, -32600),
        (
            "a method that is no text",
            json!({ "jsonrpc": "2.0", "id": 7, "method": 5 }),
            400,
            -32600,
        ),
        (
            "parameters in a list",
            ping(json!([{}, "say"])),
            200,
            -32602,
        ),
        ("a text for parameters", ping(json!("x")), 200, -32602),
        (
            "a name that is no text",
            ping(json!({ "name": 5 })),
            200,
            -32602,
        ),
    ] {
        let answer = server
            .send(posted(&body).header("Mcp-Session-Id", &session))
            .await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status(), error["code"].as_i64()),
            (status, Some(code)),
            "{what}: {error}"
        );
        let message = error["message"].as_str().unwrap();
        assert!(
            !message.contains("struct") && !message.contains("expected"),
            "{what}: {message}"
        );
    }
}

#[tokio::test]
async fn a_revision_that_nobody_knows_is_answered_with_those_that_are_spoken() {
    let server = Place::without_native_tools().start().await;
    let Era::Session(session) = begin(&server, json!({}), None).await else {
        unreachable!()
    };
    let ping = posted(&body("ping", json!({})));
    let note = posted(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let get = Request::get("/mcp").streamed();
    let delete = Request::new("DELETE", "/mcp");
    for request in [ping, note, get, delete] {
        let request = request
            .header("Mcp-Session-Id", &session)
            .header("MCP-Protocol-Version", "1900-01-01");
        let answer = server.send(request).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status(), &error["data"]["requested"]),
            (400, &json!("1900-01-01")),
            "{error}"
        );
        assert!(
            error["data"]["supported"]
                .as_array()
                .unwrap()
                .contains(&json!("2025-11-25")),
            "{error}"
        );
    }
    assert_eq!(
        Era::Session(session)
            .ask(&server, "ping", json!({}))
            .await
            .status(),
        200
    );
}

#[tokio::test]
async fn one_caller_takes_its_share_of_sessions_and_no_more() {
    let ann = "ann-has-a-token";
    let bob = "bob-has-a-token";
    let mut place = Place::without_native_tools();
    place = place
        .with_token("ann", PrincipalRole::Agent, ann)
        .with_token("bob", PrincipalRole::Agent, bob);
    place.config.limits.sessions = 40;
    let server = place.start().await;
    let open = async |token: &str| {
        let Era::Session(session) = begin(&server, json!({}), Some(token)).await else {
            unreachable!()
        };
        session
    };
    let ping = async |token: &str, session: &str| {
        let ping = posted(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
        server
            .send(ping.header("Mcp-Session-Id", session).bearer(token))
            .await
            .status()
    };
    let bobs = open(bob).await;
    let mut anns = Vec::new();
    for _ in 0..17 {
        anns.push(open(ann).await);
    }
    assert_eq!(ping(ann, &anns[0]).await, 404, "her oldest gave way");
    assert_eq!(
        (ping(ann, &anns[1]).await, ping(ann, &anns[16]).await),
        (200, 200)
    );
    let mut streams = Vec::new();
    for session in &anns[1..] {
        let get = Request::get("/mcp")
            .streamed()
            .header("Mcp-Session-Id", session)
            .bearer(ann);
        let mut stream = server.begin(get).await;
        assert_eq!(stream.head().await.status, 200);
        streams.push(stream);
    }
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
    let refused = server
        .send(posted(&body("initialize", params)).bearer(ann))
        .await;
    let message = refused.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(refused.status(), 429);
    assert!(
        message.starts_with("all 16 sessions of this caller are in use"),
        "{message}"
    );
    assert_eq!(ping(bob, &bobs).await, 200);
    assert_eq!(
        ping(bob, &open(bob).await).await,
        200,
        "others still get in"
    );
}

#[tokio::test]
async fn no_stream_promises_that_it_can_be_taken_up_again() {
    let server = Place::without_native_tools().start_with(tools).await;
    let era = begin(&server, json!({}), None).await;
    let Era::Session(session) = &era else {
        unreachable!()
    };
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": 1 } });
    let get = Request::get("/mcp")
        .streamed()
        .header("Mcp-Session-Id", session);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    for (request, pieces) in [
        (
            era.request(&json!(1), "tools/call", params.clone(), &json!({})),
            usize::MAX,
        ),
        (
            Era::Stateless.request(&json!(1), "tools/call", params, &json!({})),
            usize::MAX,
        ),
        (
            Era::Stateless.request(&json!(1), "subscriptions/listen", listen, &json!({})),
            1,
        ),
        // What was missed is not kept, so naming an event brings none of it.
        (get.clone().header("Last-Event-ID", "3"), 1),
        (get, 1),
    ] {
        let mut stream = server.begin(request).await;
        assert_eq!(
            stream.head().await.header("content-type"),
            Some("text/event-stream")
        );
        let mut seen = 0;
        while seen < pieces {
            let Some(piece) = stream.piece().await else {
                break;
            };
            let promises = |line: &str| line.starts_with("id") || line.starts_with("retry");
            assert!(!piece.lines().any(promises), "{piece}");
            seen += 1;
        }
        assert!(seen > 0);
    }
}
