//! What is refused, how, and that nothing of it harms what comes after.

use serde_json::{Value, json};
use toolpost_model::Role;
use toolpost_testkit::MockTool;

use super::{Era, Place, begin, meta, posted};

#[tokio::test]
async fn requests_that_are_wrong_get_the_code_and_status_of_their_era() {
    let place = Place::without_native_tools();
    let server = place.start_with(|builder| builder.tool(MockTool::named("demo.say").output("hi"))).await;
    let Era::Session(session) = begin(&server, json!({}), None).await else { unreachable!() };
    let body = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let plain = json!({ "name": "say", "arguments": {} });
    let with = |mut params: Value, meta: Value| {
        params["_meta"] = meta;
        params
    };
    let full = meta(&json!({}));
    let mut other_version = full.clone();
    other_version["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let mut incapable = full.clone();
    incapable.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let new = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "say")];
    let in_session = [("Mcp-Session-Id", session.as_str())];
    let cases: Vec<(&str, Value, Vec<(&str, &str)>, u16, i64)> = vec![
        ("no session", body("tools/call", plain.clone()), vec![], 400, -32600),
        ("a strange session", body("ping", json!({})), vec![("Mcp-Session-Id", "x")], 404, -32600),
        ("a method of the other era", body("server/discover", json!({})), in_session.to_vec(), 400, -32602),
        ("a method of no era", body("tools/eat", json!({})), in_session.to_vec(), 200, -32601),
        (
            "no tool of that name",
            body("tools/call", json!({ "name": "x" })),
            in_session.to_vec(),
            200,
            -32602,
        ),
        ("no resource", body("resources/read", json!({ "uri": "x://y" })), in_session.to_vec(), 200, -32002),
        ("odd parameters", body("tools/call", json!({ "name": 5 })), in_session.to_vec(), 200, -32602),
        ("a bad cursor", body("tools/list", json!({ "cursor": "x" })), in_session.to_vec(), 200, -32602),
        ("no version said", body("tools/call", plain.clone()), new.to_vec(), 400, -32602),
        (
            "no version header",
            body("tools/call", with(plain.clone(), full.clone())),
            new[1..].to_vec(),
            400,
            -32020,
        ),
        (
            "no method header",
            body("tools/call", with(plain.clone(), full.clone())),
            vec![new[0], new[2]],
            400,
            -32020,
        ),
        (
            "no name header",
            body("tools/call", with(plain.clone(), full.clone())),
            new[..2].to_vec(),
            400,
            -32020,
        ),
        (
            "another name",
            body("tools/call", with(plain.clone(), full.clone())),
            vec![new[0], new[1], ("Mcp-Name", "other")],
            400,
            -32020,
        ),
        (
            "another version",
            body("tools/call", with(plain.clone(), other_version)),
            vec![("MCP-Protocol-Version", "1900-01-01"), new[1], new[2]],
            400,
            -32022,
        ),
        (
            "no capabilities said",
            body("tools/call", with(plain.clone(), incapable)),
            new.to_vec(),
            400,
            -32602,
        ),
        (
            "a method that was removed",
            body("ping", with(json!({}), full.clone())),
            vec![new[0], ("Mcp-Method", "ping")],
            404,
            -32601,
        ),
        (
            "a state that was never given",
            body("tools/call", with(json!({ "name": "say", "requestState": "x" }), full)),
            new.to_vec(),
            200,
            -32602,
        ),
        ("two messages at once", json!([]), in_session.to_vec(), 400, -32600),
        (
            "no message",
            json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" }),
            in_session.to_vec(),
            400,
            -32600,
        ),
        (
            "an id that is none",
            json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }),
            in_session.to_vec(),
            400,
            -32600,
        ),
    ];
    for (what, body, headers, status, code) in cases {
        let request =
            headers.iter().fold(posted(&body), |request, (name, value)| request.header(name, value));
        let answer = server.send(request).await;
        assert_eq!(
            (answer.status(), answer.json()["error"]["code"].as_i64()),
            (status, Some(code)),
            "{what}"
        );
    }
    let era = Era::Session(session);
    assert_eq!(era.call(&server, "say", json!({})).await["content"][0]["text"], "hi");
}

#[tokio::test]
async fn who_is_not_meant_is_kept_out() {
    let place = Place::without_native_tools().with_token("ann", Role::Agent, "ann-has-a-token").with_token(
        "bob",
        Role::Agent,
        "bob-has-a-token",
    );
    let server = place.start().await;
    let Era::Session(session) = begin(&server, json!({}), Some("ann-has-a-token")).await else {
        unreachable!()
    };
    let ping =
        posted(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).header("Mcp-Session-Id", &session);
    for (what, request, status) in [
        ("its owner", ping.clone().bearer("ann-has-a-token"), 200),
        ("somebody else", ping.clone().bearer("bob-has-a-token"), 404),
        ("a bad token", ping.clone().bearer("x"), 401),
        (
            "a strange page",
            ping.clone().bearer("ann-has-a-token").header("Origin", "http://evil.example"),
            403,
        ),
        ("a strange name", ping.clone().bearer("ann-has-a-token").header("Host", "evil.example"), 403),
        ("no JSON", ping.clone().bearer("ann-has-a-token").header("Content-Type", "text/plain"), 415),
        ("nothing to read", ping.clone().bearer("ann-has-a-token").header("Accept", "text/html"), 406),
    ] {
        assert_eq!(server.send(request).await.status(), status, "{what}");
    }
}

#[tokio::test]
async fn a_session_ends_when_its_client_says_so() {
    let place = Place::without_native_tools();
    let server = place.start().await;
    let Era::Session(session) = begin(&server, json!({}), None).await else { unreachable!() };
    let end = super::Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &session);
    assert_eq!(server.send(end.clone()).await.status(), 204);
    assert_eq!(server.send(end).await.status(), 404);
    let era = Era::Session(session);
    assert_eq!(era.ask(&server, "ping", json!({})).await.status(), 404);
}
