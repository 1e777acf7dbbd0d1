//! The part that a receiver builds from the events of a call, in the shape that chat clients draw.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Number, Value, value::RawValue};

/// The name of a call while no event has named its tool.
pub const UNKNOWN_TOOL: &str = "unknown";

/// One tool call, as far as it is known. The call is in flight while it has neither a result nor an error.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "tool_call")]
pub struct ToolCallPart {
    /// The call's id within its response stream.
    pub id: String,
    /// The tool, or [`UNKNOWN_TOOL`].
    pub name: String,
    /// The arguments: `{}` before any arrive, and a string while they arrive as incomplete text.
    pub args: JsonText,
    /// The result; `null` if the call finished without output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonText>,
    /// The reason of a failure. Never present together with a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PartError>,
    /// The duration, as the peer measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Number>,
    /// The start, as the peer wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

impl ToolCallPart {
    /// Whether the call has neither a result nor an error. A preliminary result counts as a result, as it does in the
    /// shape itself.
    pub fn is_in_flight(&self) -> bool {
        self.result.is_none() && self.error.is_none()
    }

    pub(crate) fn has_arguments(&self) -> bool {
        self.args.as_str() != "{}"
    }
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartError {
    /// A text for people.
    pub message: String,
}

/// A JSON value that is kept as text: numbers stay exact, members keep their order, and a value is only built when
/// [`to_value`](Self::to_value) asks for it. The text holds no line break.
#[derive(Clone)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// A peer's JSON, with line breaks replaced by spaces.
    pub(crate) fn of(raw: &RawValue) -> Self {
        let text = raw.get();
        // Strings cannot hold a bare line break, so every line break is space between tokens.
        if text.contains(['\n', '\r'])
            && let Ok(joined) = RawValue::from_string(text.replace(['\n', '\r'], " "))
        {
            return Self(joined);
        }
        Self(raw.to_owned())
    }

    /// A text that is a complete object or list.
    pub(crate) fn parsed(text: &str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(Self::of)
    }

    pub(crate) fn string(text: &str) -> Self {
        serde_json::value::to_raw_value(text).map_or_else(|_| Self::null(), Self)
    }

    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// `{}`, used when no arguments were given.
    pub(crate) fn empty_object() -> Self {
        Self(
            serde_json::from_str::<&RawValue>("{}")
                .unwrap_or(RawValue::NULL)
                .to_owned(),
        )
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed value. A text that `serde_json` cannot hold (half a surrogate pair, a number beyond `f64`, nesting
    /// beyond its limit) is returned as a JSON string of that text.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.as_str())
            .unwrap_or_else(|_| Value::String(self.as_str().to_owned()))
    }
}

impl From<&Value> for JsonText {
    fn from(value: &Value) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), Self)
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
