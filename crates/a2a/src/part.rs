//! What a receiver makes of a call's events: one part, in the shape that chat clients draw.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Number, Value, value::RawValue};

/// The name of a call whose tool nobody has named yet.
pub const UNKNOWN_TOOL: &str = "unknown";

/// One tool call, as far as it is known. In flight while it has neither a result nor an error.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename = "tool_call")]
pub struct ToolCallPart {
    /// The call's id within its response stream.
    pub id: String,
    /// The tool, or [`UNKNOWN_TOOL`].
    pub name: String,
    /// The arguments: `{}` before any came, and a string while they arrive as text that is not whole yet.
    pub args: JsonText,
    /// What came of it; `null` where it finished without saying anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<JsonText>,
    /// Why it failed. Never beside a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PartError>,
    /// How long it took, as the peer measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Number>,
    /// When it began, as the peer wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

impl ToolCallPart {
    /// Whether nothing came of it yet. A preliminary result counts as something, as it does in the shape itself.
    pub fn is_in_flight(&self) -> bool {
        self.result.is_none() && self.error.is_none()
    }

    /// Whether any arguments are known, be they in pieces.
    pub(crate) fn has_arguments(&self) -> bool {
        self.args.as_str() != "{}"
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartError {
    /// For people.
    pub message: String,
}

/// A JSON value kept as its text: numbers stay exact, members stay in order, and nothing is built that nobody looks
/// at. The text holds no line break.
#[derive(Clone)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// What a peer wrote.
    pub(crate) fn of(raw: &RawValue) -> Self {
        let text = raw.get();
        // Strings cannot hold a bare line break, so every one is space between tokens.
        if text.contains(['\n', '\r'])
            && let Ok(joined) = RawValue::from_string(text.replace(['\n', '\r'], " "))
        {
            return Self(joined);
        }
        Self(raw.to_owned())
    }

    /// A text that is an object or a list as a whole.
    pub(crate) fn parsed(text: &str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(text).ok().map(Self::of)
    }

    pub(crate) fn string(text: &str) -> Self {
        serde_json::value::to_raw_value(text).map_or_else(|_| Self::null(), Self)
    }

    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// `{}`, which stands for arguments that nobody gave.
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

    /// The value, for those who want to look inside. What `serde_json` cannot hold (half a surrogate pair, a number
    /// beyond `f64`, nesting beyond its limit) is given as a string of its JSON text.
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
