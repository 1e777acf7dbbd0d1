//! The input of a hook's program on its standard input: one JSON object, then end of file.

use serde::Serialize;
use toolpost_core::HookCall;
use toolpost_model::{HookEvent, InvocationId, ObservableInput, Principal, SessionId, ToolResult};

#[derive(Serialize)]
struct HookProgramRequest<'a> {
    event: HookEvent,
    invocation_id: InvocationId,
    session_id: &'a SessionId,
    principal: &'a Principal,
    tool: HookRequestTool<'a>,
    arguments: &'a ObservableInput,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a ToolResult>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

#[derive(Serialize)]
struct HookRequestTool<'a> {
    id: &'a str,
    name: &'a str,
}

pub(super) fn written(call: &HookCall<'_>, result: Option<&ToolResult>) -> Vec<u8> {
    let id = &call.declaration.tool_id;
    let request = HookProgramRequest {
        event: call.event,
        invocation_id: call.invocation_id,
        session_id: call.session_id,
        principal: call.principal,
        tool: HookRequestTool {
            id: id.as_str(),
            name: id.name(),
        },
        arguments: call.input,
        result,
        dry_run: call.is_dry_run,
    };
    // Serialising plain data cannot fail. Without input the program would still have to answer.
    let mut text = serde_json::to_vec(&request).unwrap_or_default();
    text.push(b'\n');
    text
}
