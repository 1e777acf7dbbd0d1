//! A few messages to the letter.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use toolpost_a2e::{
    Body, ErrorCode, ErrorMessage, HandshakeRequest, HandshakeResponse, Message, Shutdown,
    ToolCallRequest, ToolCallResponse, ToolCancelRequest, ToolListResponse, codec,
    codec::MessageFraming,
};
use toolpost_model::ModelInput;

fn line(body: Body) -> String {
    let message = Message {
        id: "1".to_owned(),
        version: None,
        ts: Some(1_790_000_000.25),
        body,
    };
    String::from_utf8(codec::encode(&message, MessageFraming::Line))
        .unwrap()
        .trim_end()
        .to_owned()
}

#[test]
fn agents_say() {
    let hello = HandshakeRequest {
        agent_id: "tester".to_owned(),
        agent_caps: vec!["tools".to_owned()],
        auth_token: "t".to_owned(),
        surface: None,
        extensions: vec!["tool/list/changed".to_owned()],
    };
    let mut call = ToolCallRequest::new(
        "read_file",
        ModelInput::text(r#"{"path": "a\u2028", "n": 1.0}"#),
    );
    call.timeout = Duration::from_millis(1_001);
    call.streaming = true;
    let said = [
        Body::HandshakeRequest(hello),
        Body::ping(),
        Body::ToolCallRequest(call),
        Body::ToolCancelRequest(ToolCancelRequest {
            call_id: "0".to_owned(),
        }),
        Body::Shutdown(Shutdown::default()),
    ];
    assert_snapshot!(said.map(line).join("\n"));
}

#[test]
fn hosts_say() {
    let welcome = HandshakeResponse {
        req_id: "0".to_owned(),
        session_id: "5".to_owned(),
        accepted_caps: serde_json::from_value(
            json!([{ "capability": "tools", "metadata": { "name": "x" } }]),
        )
        .unwrap(),
        ..HandshakeResponse::default()
    };
    let tools = json!([{ "name": "t", "description": "Größe \u{1f600}", "input_parameters": [
        { "name": "p", "type": "string", "description": "", "required": true, "enum": ["1"] }
    ] }]);
    let event = json!({ "kind": "progress", "req_id": "0", "data": { "pct": 50, "message": "half" }, "seq": 2 });
    let result = json!({ "success": true, "tool_name": "t", "duration_ms": 3, "data": { "text": "a\u{85}b" } });
    let said = [
        Body::HandshakeResponse(welcome),
        Body::ToolListResponse(ToolListResponse {
            req_id: "0".to_owned(),
            tools: serde_json::from_value(tools).unwrap(),
        }),
        Body::ToolEvent(serde_json::from_value(event).unwrap()),
        Body::ToolCallResponse(ToolCallResponse {
            req_id: "0".to_owned(),
            data: serde_json::from_value(result).unwrap(),
            created_at: 1_790_000_000.5,
        }),
        Body::Error(ErrorMessage::new(ErrorCode::ParseError, "not JSON")),
        Body::tool_list_changed(),
    ];
    assert_snapshot!(said.map(line).join("\n"));
}
