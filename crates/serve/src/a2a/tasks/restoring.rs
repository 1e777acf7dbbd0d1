//! A task put together again from the records of its calls.

use std::sync::Arc;

use serde_json::json;
use toolpost_core::CallOnRecord;
use toolpost_model::RequestId;

use super::{
    super::task::{CallOfTask, Making, Task},
    context_of,
};

/// What a call is known by: the message that asked for it, and its id in there.
pub(super) fn request_id(message_id: &str, tool_call_id: &str) -> RequestId {
    RequestId::new(json!([message_id, tool_call_id]).to_string())
}

/// The reverse. `None`: the ids looked like secrets, so the record has a hash of them.
fn ids_in(request: &RequestId) -> Option<(String, String)> {
    serde_json::from_str(request.as_str()).ok()
}

pub(super) fn call_of_task(call: &CallOnRecord) -> CallOfTask {
    let ids = call.request_id.as_ref().and_then(ids_in);
    CallOfTask {
        invocation_id: call.invocation_id,
        tool_call_id: ids.map_or_else(|| call.invocation_id.to_string(), |(_, tool_call)| tool_call),
        tool: call.tool.clone(),
        input: call.arguments.clone().unwrap_or_else(|| json!({})),
        began_at: call.began_at,
    }
}

/// The task of some calls that carry one mark. `None` where they cannot be one task.
pub(super) fn task(mut calls: Vec<CallOnRecord>) -> Option<Arc<Task>> {
    calls.sort_by_key(|call| call.invocation_id);
    let first = calls.first()?;
    let owner = first.principal.clone();
    let context_id = context_of(&first.session_id, &owner)?;
    let id = first.correlation_id.clone()?;
    let ids = first.request_id.as_ref().and_then(ids_in);
    let message_id = ids.map_or_else(|| format!("{id}-0"), |(message, _)| message);
    if calls.iter().any(|call| call.principal != owner) {
        return None;
    }
    let task = Task::new(Making {
        id,
        context_id,
        owner,
        message_id,
        calls: calls.iter().map(call_of_task).collect(),
        tells_events: true,
    });
    let mut ends: Vec<_> = calls
        .iter()
        .enumerate()
        .filter_map(|(place, call)| call.end.as_ref().map(|end| (end.at, place, end)))
        .collect();
    ends.sort_by_key(|(at, place, _)| (*at, *place));
    for (at, place, end) in ends {
        task.ended(place, end.answer.result(), at);
    }
    Some(task)
}
