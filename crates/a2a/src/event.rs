//! The three canonical event payloads.

use serde::Serialize;
use serde_json::Value;

/// A canonical event of a tool call. Each call has one `Call` and then one `Result` or `Error`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ToolEvent {
    /// The call begins.
    #[serde(rename = "tool-call", rename_all = "camelCase")]
    Call {
        /// The call's id within its response stream.
        tool_call_id: String,
        /// The tool, under the name that the model uses.
        tool_name: String,
        /// The arguments; `None` if the host did not read them.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The start of the call, in UTC with milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<String>,
    },
    /// The call succeeded.
    #[serde(rename = "tool-result", rename_all = "camelCase")]
    Result {
        /// The call's id.
        tool_call_id: String,
        /// The tool again, because the `tool-call` event may have been lost.
        tool_name: String,
        /// The arguments again, if they are small.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The output of the tool.
        output: Value,
        /// The duration of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// The call did not succeed.
    #[serde(rename = "tool-error", rename_all = "camelCase")]
    Error {
        /// The call's id.
        tool_call_id: String,
        /// The tool again.
        tool_name: String,
        /// The arguments again, if they are small.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The reason, for people.
        error: ToolEventError,
        /// The duration of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
}

/// The reason why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolEventError {
    /// A text for people, without stack traces or secrets.
    pub message: String,
}

impl ToolEvent {
    /// The id of the call that the event belongs to.
    pub fn tool_call_id(&self) -> &str {
        match self {
            Self::Call { tool_call_id, .. }
            | Self::Result { tool_call_id, .. }
            | Self::Error { tool_call_id, .. } => tool_call_id,
        }
    }
}
