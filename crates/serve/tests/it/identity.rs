//! The caller's own id of a call, on every face, as an export tells it.

use serde_json::{Value, json};
use toolpost_a2e::{CallOptions, ToolApi};
use toolpost_core::{Export, ExportFormat};
use toolpost_model::{EffectClass, PrincipalRole};
use toolpost_testkit::MockNativeTool;

use super::{
    a2e::embedded,
    client::{Request, within},
    running::{Place, Running},
};

/// What an export tells of every call, in the order of their ends.
pub(crate) async fn exported(server: &Running) -> Vec<Value> {
    let mut export = Export::new(ExportFormat::AgentTool);
    let mut lines = Vec::new();
    for row in server
        .server
        .host()
        .records(0, usize::MAX >> 1)
        .await
        .unwrap()
        .rows
    {
        export.take(&row, &mut lines).unwrap();
    }
    export.finish(&mut lines);
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) async fn invocations(server: &Running) -> Vec<Value> {
    let mut lines = exported(server).await;
    lines.retain(|line| line["record"] == "invocation");
    lines
}

fn reading() -> MockNativeTool {
    MockNativeTool::named("demo.read")
        .class(EffectClass::Read)
        .output("text")
}

/// A call over MCP in the stateless era.
pub(crate) fn over_mcp(id: &Value, meta: &Value) -> Request {
    let mut said = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    said.as_object_mut()
        .unwrap()
        .extend(meta.as_object().unwrap().clone());
    let params = json!({ "name": "read", "arguments": {}, "_meta": said });
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    Request::post("/mcp", body.to_string())
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "read")
}

/// A message over A2A that asks for calls of `read`.
pub(crate) fn over_a2a(message: &str, calls: &[&str]) -> Request {
    let parts: Vec<Value> = calls
        .iter()
        .map(|id| json!({ "data": { "type": "tool-call", "toolCallId": id, "toolName": "read", "input": {} } }))
        .collect();
    let params =
        json!({ "message": { "messageId": message, "role": "ROLE_USER", "parts": parts } });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": params });
    Request::post("/a2a", body.to_string()).header("A2A-Version", "1.0")
}

#[tokio::test]
async fn every_face_exports_the_callers_own_id() {
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(reading()))
        .await;
    for id in ["call_9pWn", "toolu_01Xy", "call_9pWn"] {
        let told = server
            .send(Request::call("read", &json!({})).header("Toolpost-Call-Id", id))
            .await;
        assert_eq!(told.status(), 200, "{told:?}");
    }
    for id in [json!(41), json!("req-\"7\"")] {
        assert_eq!(server.send(over_mcp(&id, &json!({}))).await.status(), 200);
    }
    assert_eq!(
        server
            .send(over_a2a("m1", &["first", "second"]))
            .await
            .status(),
        200
    );
    let client = embedded(&server.server).await;
    within(ToolApi::new(&client).start(CallOptions::new("read", json!({}))))
        .await
        .unwrap()
        .detach();
    within(ToolApi::new(&client).call("read", json!({})))
        .await
        .unwrap();

    let calls = within(async {
        loop {
            let calls = invocations(&server).await;
            if calls.len() == 9 && calls.iter().all(|call| !call["outcome"].is_null()) {
                break calls;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let of = |face: &str| -> Vec<String> {
        let of_face = calls
            .iter()
            .filter(|call| call["face"].as_str().unwrap().starts_with(face));
        of_face
            .map(|call| call["native_call_id"].as_str().unwrap_or("none").to_owned())
            .collect()
    };
    assert_eq!(of("http"), ["call_9pWn", "toolu_01Xy", "call_9pWn"]);
    assert_eq!(of("mcp"), ["41", "req-\"7\""]);
    let mut of_a2a = of("a2a");
    of_a2a.sort();
    assert_eq!(of_a2a, ["first", "second"]);
    let of_a2e = of("a2e");
    assert!(
        of_a2e.len() == 2 && !of_a2e.contains(&"none".to_owned()),
        "{of_a2e:?}"
    );
}

#[tokio::test]
async fn a_call_id_over_http_is_no_key_and_is_bounded() {
    let tool = reading();
    let counted = tool.clone();
    let server = Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await;
    let call = || Request::call("read", &json!({})).header("Toolpost-Call-Id", "call_1");
    let [first, second] = [
        server.send(call()).await.json(),
        server.send(call()).await.json(),
    ];
    assert_ne!(first["invocation_id"], second["invocation_id"]);
    assert_eq!(counted.call_count(), 2);
    for odd in ["", "two words", "caf\u{e9}", &"x".repeat(257)] {
        let told = server
            .send(Request::call("read", &json!({})).header("Toolpost-Call-Id", odd))
            .await;
        assert_eq!(
            (told.status(), told.code().as_str()),
            (400, "bad_call_id"),
            "{odd:?}"
        );
    }
    let longest = Request::call("read", &json!({})).header("Toolpost-Call-Id", "x".repeat(256));
    assert_eq!(server.send(longest).await.status(), 200);
}

#[tokio::test]
async fn a_token_brings_its_tenant() {
    let mut place =
        Place::without_native_tools().with_token("ci", PrincipalRole::Agent, "the token of ci");
    place.config.tokens[0].tenant = Some("acme".to_owned());
    let server = place.start_with(|builder| builder.tool(reading())).await;
    let with_token = |request: Request| request.bearer("the token of ci");
    server
        .send(with_token(Request::call("read", &json!({}))))
        .await;
    server
        .send(with_token(over_mcp(&json!(1), &json!({}))))
        .await;
    server.send(with_token(over_a2a("m1", &["one"]))).await;
    server.send(Request::call("read", &json!({}))).await;
    let lines = exported(&server).await;
    let surfaces: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["record"] == "tool_surface")
        .map(|line| (&line["scope"], &line["tenant"]))
        .collect();
    assert_eq!(
        surfaces,
        [
            (&json!("tenant"), &json!("acme")),
            (&json!("session"), &Value::Null)
        ]
    );
    let calls = lines.iter().filter(|line| line["record"] == "invocation");
    let first = &lines
        .iter()
        .find(|line| line["record"] == "tool_surface")
        .unwrap()["surface_id"];
    assert_eq!(calls.filter(|call| call["surface_id"] == *first).count(), 3);
}
