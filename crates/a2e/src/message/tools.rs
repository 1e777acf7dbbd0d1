//! The messages of the `tools` capability.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, value::RawValue};
use toolpost_model::{
    AppliedSandbox, ArtifactRef, BatchPlace, Disposition, ErrorClass, InvocationId, ModelInput,
    Outcome, Redactions, ResultPersistence, RetryGuidance,
};

use super::InvokeEvent;
use crate::{ToolDefinition, lax};

/// `tool/event`.
pub type ToolEventMessage = InvokeEvent;

/// `tool/list/req`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolListRequest {
    /// Limits the list to tools of this kind; empty for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter_kind: String,
    /// Limits the list to tools with all of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter_tags: Vec<String>,
    /// Search words; empty lists all tools.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Whether the list includes deferred tools.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub include_deferred: bool,
    /// The most tools of the list; 0 for all. An extension.
    #[serde(
        default,
        deserialize_with = "lax::count",
        skip_serializing_if = "lax::is_zero"
    )]
    pub limit: u64,
}

/// `tool/list/resp`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToolListResponse {
    /// The id of the request.
    #[serde(default)]
    pub req_id: String,
    /// The tools, best first in a search.
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
}

/// `tool/call/req`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// The session, if the agent names it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    /// The tool.
    #[serde(default, deserialize_with = "lax::name")]
    pub tool_name: String,
    /// The arguments, exactly as received.
    #[serde(deserialize_with = "arguments", serialize_with = "write_arguments")]
    pub arguments: ModelInput,
    /// The agent's id for related calls.
    #[serde(
        default,
        deserialize_with = "lax::name",
        skip_serializing_if = "String::is_empty"
    )]
    pub correlation_id: String,
    /// Whether the agent asks for events.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub streaming: bool,
    /// The time that the agent waits.
    #[serde(
        default = "half_a_minute",
        deserialize_with = "lax::seconds",
        serialize_with = "lax::whole_seconds"
    )]
    pub timeout: Duration,
    /// Whether the answer includes the events. An extension.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub collect_events: bool,
    /// The call's place among the calls of one turn. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchPlace>,
    /// Whether the host answers at once and lets the call continue. An extension.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub background: bool,
    /// The span that the call is part of, as in W3C Trace Context. An extension.
    #[serde(
        default,
        deserialize_with = "lax::name",
        skip_serializing_if = "String::is_empty"
    )]
    pub traceparent: String,
    /// Data of tracing vendors. An extension.
    #[serde(
        default,
        deserialize_with = "lax::name",
        skip_serializing_if = "String::is_empty"
    )]
    pub tracestate: String,
}

impl ToolCallRequest {
    /// The default time that an agent waits.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A call without events, with the default time limit of the protocol.
    pub fn new(tool_name: impl Into<String>, arguments: ModelInput) -> Self {
        Self {
            session_id: String::new(),
            tool_name: tool_name.into(),
            arguments,
            correlation_id: String::new(),
            streaming: false,
            timeout: Self::TIMEOUT,
            collect_events: false,
            batch: None,
            background: false,
            traceparent: String::new(),
            tracestate: String::new(),
        }
    }
}

fn half_a_minute() -> Duration {
    ToolCallRequest::TIMEOUT
}

/// Reads the arguments. They stay text from the wire to the record; here they are only checked to be an object.
fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelInput, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    if !raw.get().starts_with('{') {
        return Err(D::Error::custom("the arguments must be a JSON object"));
    }
    Ok(ModelInput::Text(Arc::from(raw.get())))
}

fn write_arguments<S: Serializer>(
    arguments: &ModelInput,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match arguments {
        ModelInput::Value(value) => value.serialize(serializer),
        ModelInput::Text(text) => {
            let raw: &RawValue = serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
            raw.serialize(serializer)
        }
    }
}

/// `tool/call/resp`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCallResponse {
    /// The id of the request.
    #[serde(default)]
    pub req_id: String,
    /// The result of the call.
    pub data: ToolResult,
    /// The time of the end, in Unix seconds.
    #[serde(default, deserialize_with = "lax::number")]
    pub created_at: f64,
}

/// The result of a call in A2E's form. The fields after `events` are extensions, which other hosts leave out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether the tool succeeded.
    #[serde(deserialize_with = "lax::flag")]
    pub success: bool,
    /// The tool, under the name of the request.
    pub tool_name: String,
    /// The time from the request to the result.
    #[serde(deserialize_with = "lax::count")]
    pub duration_ms: u64,
    /// The output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Whether content was cut.
    #[serde(
        default,
        deserialize_with = "lax::maybe_flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub truncated: bool,
    /// The exit code of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The error message of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error code of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The events of the call, if the request asked for them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "crate::codec::whole_events"
    )]
    pub events: Vec<ToolEventMessage>,
    /// The call's id in the host's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
    /// The outcome, finer than `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The delivery of the content: inline, preview, reference only, redacted, dropped, empty or synthetic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disposition: Option<Disposition>,
    /// The artifacts that the host keeps of the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// The host's handling of the result's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Box<ResultPersistence>>,
    /// The secrets that were removed, by kind.
    #[serde(default, skip_serializing_if = "Redactions::is_empty")]
    pub redactions: Redactions,
    /// The kind of a failure, finer than `error_code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<ErrorClass>,
    /// A hint for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether it is safe to send the call again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_safe: Option<bool>,
    /// The condition for sending the call again: other arguments, a look at the tool, approval, a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryGuidance>,
    /// The sandbox of the process, if one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<AppliedSandbox>>,
}

/// `tool/cancel/req`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCancelRequest {
    /// The id of the `tool/call/req` to stop.
    pub call_id: String,
}

/// `tool/cancel/resp`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToolCancelResponse {
    /// The id of the request.
    #[serde(default)]
    pub req_id: String,
    /// The call to stop.
    #[serde(default)]
    pub call_id: String,
    /// Whether the call was running. Its own answer still follows.
    #[serde(default, deserialize_with = "lax::flag")]
    pub ok: bool,
}
