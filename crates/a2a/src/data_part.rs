//! The parts that a bridge sends: received calls as canonical events.

use serde::Serialize;
use serde_json::Number;

use crate::part::{JsonText, PartError, ToolCallPart, UNKNOWN_TOOL};

/// A data part of A2A that holds one canonical event. It is written with the `kind` member of dialect 0.3: peers of 0.3
/// require it, and peers of 1.0 accept it.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename = "data")]
pub struct DataPart<'a> {
    data: DataPartPayload<'a>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DataPartPayload<'a> {
    r#type: DataPartType,
    tool_call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a PartError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, Serialize)]
enum DataPartType {
    #[serde(rename = "tool-call")]
    Call,
    #[serde(rename = "tool-result")]
    Result,
    #[serde(rename = "tool-error")]
    Error,
}

/// Whether an end repeats the arguments of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentRepetition {
    /// The end repeats the arguments, for readers that missed the call.
    Arguments,
    /// No event gave the arguments, so the end leaves them out.
    Nothing,
}

impl ToolCallPart {
    /// The call, as `tool-call`.
    pub fn to_call(&self) -> DataPart<'_> {
        let data = DataPartPayload {
            r#type: DataPartType::Call,
            tool_call_id: &self.id,
            tool_name: Some(&self.name),
            input: Some(&self.args),
            output: None,
            error: None,
            duration_ms: None,
            started_at: self.started_at.as_deref(),
        };
        DataPart { data }
    }

    /// The end of the call, as `tool-result` or `tool-error`; `None` while it is in flight.
    pub fn to_end(&self, repeat: ArgumentRepetition) -> Option<DataPart<'_>> {
        let (r#type, output, error) = match (&self.error, &self.result) {
            (Some(error), _) => (DataPartType::Error, None, Some(error)),
            (None, Some(output)) => (DataPartType::Result, Some(output), None),
            (None, None) => return None,
        };
        let data = DataPartPayload {
            r#type,
            tool_call_id: &self.id,
            tool_name: Some(self.name.as_str()).filter(|name| *name != UNKNOWN_TOOL),
            input: Some(&self.args).filter(|_| repeat == ArgumentRepetition::Arguments),
            output,
            error,
            duration_ms: self.duration_ms.as_ref(),
            started_at: self.started_at.as_deref(),
        };
        Some(DataPart { data })
    }
}
