//! Rebuilds a task from the records of its calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_core::CallOnRecord;
use toolpost_model::RequestId;

use super::{
    super::task::{A2aTask, CallOfTask, NewTask},
    context_of,
};

/// A fingerprint of the message in the request id of each of its calls. From the record alone it tells whether a
/// message is a repetition, and whether all calls of a message were begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MessageFingerprint {
    pub(super) calls: usize,
    /// Whether the sender accepts tool events.
    pub(super) events: bool,
    /// The digest of the message's id and its calls, with their arguments and in their order.
    pub(super) digest: String,
}

/// The request id of a call: the message, the call's id in it, and the fingerprint of the message.
pub(super) fn request_id(
    message_id: &str,
    tool_call_id: &str,
    mark: &MessageFingerprint,
) -> RequestId {
    RequestId::new(json!([message_id, tool_call_id, mark]).to_string())
}

/// Parses a request id. `None`: redaction replaced the id by a hash, because it contained a secret.
fn ids_in(request: &RequestId) -> Option<(String, String, MessageFingerprint)> {
    serde_json::from_str(request.as_str()).ok()
}

pub(super) fn call_of_task(call: &CallOnRecord) -> CallOfTask {
    let ids = call.request_id.as_ref().and_then(ids_in);
    CallOfTask {
        invocation_id: call.invocation_id,
        tool_call_id: ids.map_or_else(
            || call.invocation_id.to_string(),
            |(_, tool_call, _)| tool_call,
        ),
        tool: call.tool.clone(),
        input: call.sent.clone(),
        began_at: call.began_at,
    }
}

/// Whether these calls make a complete task: all calls of the message are present and have ended.
pub(super) fn is_whole(calls: &[CallOnRecord]) -> bool {
    let mark = calls
        .iter()
        .find_map(|call| ids_in(call.request_id.as_ref()?));
    mark.is_some_and(|(_, _, mark)| mark.calls == calls.len())
        && calls.iter().all(|call| call.end.is_some())
}

/// Builds the task of calls that share a fingerprint. `None` if they cannot belong to one task.
pub(super) fn task(mut calls: Vec<CallOnRecord>) -> Option<Arc<A2aTask>> {
    calls.sort_by_key(|call| call.invocation_id);
    let first = calls.first()?;
    let owner = first.principal.clone();
    let context_id = context_of(&first.session_id, &owner)?;
    let id = first.correlation_id.clone()?;
    let ids = calls
        .iter()
        .find_map(|call| ids_in(call.request_id.as_ref()?));
    let (message_id, mark) = match ids {
        Some((message_id, _, mark)) => (message_id, Some(mark)),
        None => (format!("{id}-0"), None),
    };
    if calls.iter().any(|call| call.principal != owner) {
        return None;
    }
    let task = A2aTask::new(NewTask {
        id,
        context_id,
        owner,
        message_id,
        calls: calls.iter().map(call_of_task).collect(),
        tells_events: mark.as_ref().is_none_or(|mark| mark.events),
        missing: mark
            .as_ref()
            .map_or(0, |mark| mark.calls.saturating_sub(calls.len())),
        digest: mark.map(|mark| mark.digest),
    });
    let mut ends: Vec<_> = calls
        .iter()
        .enumerate()
        .filter_map(|(place, call)| call.end.as_ref().map(|end| (end.at, place, call, end)))
        .collect();
    ends.sort_by_key(|(at, place, ..)| (*at, *place));
    for (_, place, call, end) in ends {
        task.ended_on_record(place, call.arguments.as_ref(), end);
    }
    Some(task)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use toolpost_a2a::wire::TaskState;
    use toolpost_core::CallOnRecord;
    use toolpost_model::{InvocationId, Principal, SessionId};

    use super::{MessageFingerprint, request_id, task};

    fn call(id: &str, of: usize) -> CallOnRecord {
        let mark = MessageFingerprint {
            calls: of,
            events: true,
            digest: "d".to_owned(),
        };
        CallOnRecord {
            invocation_id: InvocationId::new(),
            session_id: SessionId::new("a2a:ann:ctx"),
            tool: "add".to_owned(),
            sent: Some(json!({ "a": 1 })),
            arguments: Some(json!({ "a": 1 })),
            principal: Principal::agent("ann"),
            face: "a2a".to_owned(),
            request_id: Some(request_id("m", id, &mark)),
            native_call_id: None,
            correlation_id: Some(InvocationId::new().to_string()),
            parent: None,
            began_at: Timestamp::UNIX_EPOCH,
            question: None,
            end: None,
        }
    }

    /// Ended tasks stay in memory up to a number of bytes, so the size of the arguments counts.
    #[test]
    fn the_arguments_of_a_task_count_for_its_memory() {
        assert!(task(vec![call("c", 1)]).unwrap().bytes() < 10_000);
        let small = json!([{ "n": 1 }]);
        for (sent, least) in [
            (json!("x".repeat(1 << 20)), 3 << 20),
            (json!(vec![small; 1_000]), 300_000),
        ] {
            let call = CallOnRecord {
                sent: Some(sent),
                ..call("c", 1)
            };
            let bytes = task(vec![call]).unwrap().bytes();
            assert!(bytes > least, "{bytes}");
        }
    }

    /// A host that is killed between two calls of a message leaves only the first one on record.
    #[test]
    fn a_message_that_was_begun_in_part_fails_and_says_so() {
        let result = json!({
            "invocation_id": InvocationId::new(), "outcome": "succeeded", "disposition": "inline", "is_error": false,
            "content": [], "timings": { "total_us": 1, "queued_us": 0, "execute_us": 1 },
        });
        let result = serde_json::from_value(result).unwrap();
        let all = [(1, TaskState::Completed), (3, TaskState::Failed)];
        for (of, end) in all {
            let task = task(vec![call("c", of)]).unwrap();
            assert_eq!(task.task_state(), TaskState::Working);
            task.ended(0, None, &result, Timestamp::UNIX_EPOCH);
            let told = task.snapshot(task.length());
            assert_eq!((told.status.state, told.artifacts.len()), (end, 1));
            let why = told
                .status
                .message
                .map(|message| format!("{:?}", message.parts))
                .unwrap_or_default();
            assert_eq!(why.contains("2 of the 3 calls"), of == 3, "{why}");
        }
    }
}
