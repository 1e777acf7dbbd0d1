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
    /// Only tools of this kind; empty for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub filter_kind: String,
    /// Only tools that have all of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filter_tags: Vec<String>,
    /// Search words; empty lists everything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Deferred tools too.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub include_deferred: bool,
    /// At most so many; 0 for all. An extension.
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
    /// The request.
    #[serde(default)]
    pub req_id: String,
    /// What was found, best first in a search.
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
}

/// `tool/call/req`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// The session, where the agent wants to be explicit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    /// The tool.
    #[serde(default, deserialize_with = "lax::name")]
    pub tool_name: String,
    /// The arguments, as they came.
    #[serde(deserialize_with = "arguments", serialize_with = "write_arguments")]
    pub arguments: ModelInput,
    /// The agent's word for what belongs together.
    #[serde(
        default,
        deserialize_with = "lax::name",
        skip_serializing_if = "String::is_empty"
    )]
    pub correlation_id: String,
    /// Whether events are wanted.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub streaming: bool,
    /// How long the agent waits.
    #[serde(
        default = "half_a_minute",
        deserialize_with = "lax::seconds",
        serialize_with = "lax::whole_seconds"
    )]
    pub timeout: Duration,
    /// Whether the answer shall hold the events. An extension.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub collect_events: bool,
    /// Its place among the calls of one turn. An extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchPlace>,
    /// Whether to be answered at once and to let the call go on. An extension.
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
    /// What vendors add to it. An extension.
    #[serde(
        default,
        deserialize_with = "lax::name",
        skip_serializing_if = "String::is_empty"
    )]
    pub tracestate: String,
}

impl ToolCallRequest {
    /// How long an agent waits that does not say.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// A call without events, with the protocol's own timeout.
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

/// Kept as text from the wire to the record; only that it is an object is looked at here.
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
    /// The request.
    #[serde(default)]
    pub req_id: String,
    /// How it ended.
    pub data: ToolResult,
    /// When, in Unix seconds.
    #[serde(default, deserialize_with = "lax::number")]
    pub created_at: f64,
}

/// How a call ended, in A2E's words. The fields after `events` are extensions; other hosts leave them out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether the tool did its work.
    #[serde(deserialize_with = "lax::flag")]
    pub success: bool,
    /// The tool as it was called.
    pub tool_name: String,
    /// From the request to the result.
    #[serde(deserialize_with = "lax::count")]
    pub duration_ms: u64,
    /// What came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Whether something was cut.
    #[serde(
        default,
        deserialize_with = "lax::maybe_flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub truncated: bool,
    /// Exit code of a process, where one ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// What happened on the way, where it was asked for.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "crate::codec::whole_events"
    )]
    pub events: Vec<ToolEventMessage>,
    /// The call in the host's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_id: Option<InvocationId>,
    /// How it ended, in finer words than `success`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What became of the content: whole, cut, kept apart, taken out, empty, or the host's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disposition: Option<Disposition>,
    /// What the host keeps of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// What the host did about its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Box<ResultPersistence>>,
    /// Secrets that were taken out of it, by kind.
    #[serde(default, skip_serializing_if = "Redactions::is_empty")]
    pub redactions: Redactions,
    /// The kind of a failure, finer than `error_code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<ErrorClass>,
    /// What to do about a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether sending the call again cannot do harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_safe: Option<bool>,
    /// What sending the call again needs: other arguments, a look at the tool first, approval, a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryGuidance>,
    /// What confined the process, where one ran.
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
    /// The request.
    #[serde(default)]
    pub req_id: String,
    /// The call that was to stop.
    #[serde(default)]
    pub call_id: String,
    /// Whether it was running. Its own answer still comes.
    #[serde(default, deserialize_with = "lax::flag")]
    pub ok: bool,
}
