//! The three payloads that are sent.

use serde::Serialize;
use serde_json::Value;

/// What happened to a tool call, in the canonical vocabulary. A call, then exactly one of the other two.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ToolEvent {
    /// It begins.
    #[serde(rename = "tool-call", rename_all = "camelCase")]
    Call {
        /// Which call, within its response stream.
        tool_call_id: String,
        /// The tool, as the model knows it.
        tool_name: String,
        /// The arguments; `None` where they are not known, because the host did not read them.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// When, in UTC with milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<String>,
    },
    /// It succeeded.
    #[serde(rename = "tool-result", rename_all = "camelCase")]
    Result {
        /// Which call.
        tool_call_id: String,
        /// The tool once more: the event before it may have been lost.
        tool_name: String,
        /// The arguments once more, where they are small.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// What came of it.
        output: Value,
        /// How long it took.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// It did not.
    #[serde(rename = "tool-error", rename_all = "camelCase")]
    Error {
        /// Which call.
        tool_call_id: String,
        /// The tool once more.
        tool_name: String,
        /// The arguments once more, where they are small.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// What a person may read of it.
        error: ToolEventError,
        /// How long it took.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
}

/// Why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolEventError {
    /// For people: no stack, no secret.
    pub message: String,
}

impl ToolEvent {
    /// The call it tells of.
    pub fn tool_call_id(&self) -> &str {
        match self {
            Self::Call { tool_call_id, .. }
            | Self::Result { tool_call_id, .. }
            | Self::Error { tool_call_id, .. } => tool_call_id,
        }
    }
}
