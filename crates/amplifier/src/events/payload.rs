//! The payloads of the three events around a call.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::ToolResult;

/// The facts of a call that every event has, for hooks in every language.
#[derive(Clone, Debug)]
pub struct CallFacts<'a> {
    /// The tool, by the name it is called by.
    pub tool_name: &'a str,
    /// The arguments as hooks may see them.
    pub tool_input: &'a Value,
    /// The caller's own id of the call, or else the host's.
    pub tool_call_id: &'a str,
    /// The id that the calls of one turn share.
    pub parallel_group_id: Option<&'a str>,
    /// The session.
    pub session_id: &'a str,
    /// The parent call.
    pub parent_id: Option<&'a str>,
    /// When the event happened.
    pub timestamp: Timestamp,
}

impl CallFacts<'_> {
    /// The common members of the events around a call.
    pub(super) fn payload(&self) -> Map<String, Value> {
        let mut payload = self.base();
        payload.insert("tool_input".to_owned(), self.tool_input.clone());
        payload
    }

    /// The common members of all events of a call.
    pub(super) fn base(&self) -> Map<String, Value> {
        let fields = [
            ("tool_name", json!(self.tool_name)),
            ("tool_call_id", json!(self.tool_call_id)),
            ("parallel_group_id", json!(self.parallel_group_id)),
            ("session_id", json!(self.session_id)),
            ("parent_id", json!(self.parent_id)),
            ("timestamp", json!(self.timestamp.to_string())),
        ];
        fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}

/// The payload of `tool:pre`.
pub fn tool_pre(call: &CallFacts<'_>) -> Value {
    Value::Object(call.payload())
}

/// The payload of `tool:post`: the result as a dump, images only mentioned.
pub fn tool_post(call: &CallFacts<'_>, duration_ms: u64, result: &ToolResult) -> Value {
    let mut payload = call.payload();
    payload.insert("duration_ms".to_owned(), json!(duration_ms));
    payload.insert("result".to_owned(), result.for_events());
    Value::Object(payload)
}

/// The payload of `tool:error`. The message has both names that Amplifier's loops use for it.
pub fn tool_error(call: &CallFacts<'_>, duration_ms: u64, result: &ToolResult) -> Value {
    let mut payload = call.payload();
    let message = result
        .error_message()
        .unwrap_or_else(|| "Failed".to_owned());
    let kind = result
        .error()
        .and_then(|error| error.get("type"))
        .cloned()
        .unwrap_or_else(|| json!("ToolError"));
    payload.insert("duration_ms".to_owned(), json!(duration_ms));
    payload.insert(
        "error".to_owned(),
        json!({"type": kind, "msg": message, "message": message}),
    );
    payload.insert("result".to_owned(), result.for_events());
    Value::Object(payload)
}
