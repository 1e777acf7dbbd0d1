//! The result of a module's tool, and its text for the model.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    ContentBlock, ContentError, JsonError, VerbatimJson,
    text::{is_falsy, python_json, python_str, sanitized},
};

/// The result of a module's tool.
///
/// Its fields are read-only, so that they cannot differ from the JSON text that the result was parsed from.
///
/// ```
/// use toolpost_amplifier::ToolResult;
///
/// let result = ToolResult::parse(r#"{"output": {"b": 1, "a": "é"}}"#)?;
/// assert_eq!(result.text_for_model(), r#"{"b": 1, "a": "\u00e9"}"#);
/// let failed = ToolResult::failure("no such file");
/// assert_eq!(failed.text_for_model(), "no such file");
/// # Ok::<(), toolpost_amplifier::ResultError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    success: bool,
    output: VerbatimJson,
    error: Option<VerbatimJson>,
    content: Vec<ContentBlock>,
}

/// Why a value is no tool result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// It is not JSON.
    #[error("the result is {0}")]
    Json(#[from] JsonError),
    /// It is JSON, but no object.
    #[error("the result must be an object with `success`, `output` and `error`, not {given}")]
    Shape {
        /// The kind of value that was given.
        given: &'static str,
    },
    /// `success` is not a boolean.
    #[error("`success` must be a boolean, not {given}")]
    Success {
        /// The value.
        given: Value,
    },
    /// `error` is not an object.
    #[error("`error` must be an object or null, not {given}")]
    Error {
        /// The kind of value that was given.
        given: &'static str,
    },
    /// `content` is malformed.
    #[error(transparent)]
    Content(#[from] ContentError),
}

impl ToolResult {
    /// A success.
    pub fn success(output: impl Into<Value>) -> Self {
        Self::of_parts(true, VerbatimJson::from(output.into()), None, Vec::new())
    }

    /// A failure.
    pub fn failure(message: impl Into<String>) -> Self {
        let mut error = Map::new();
        error.insert("message".to_owned(), Value::String(message.into()));
        Self::failure_of(error)
    }

    /// A failure with more than a message: `type`, and any further members.
    pub fn failure_of(error: Map<String, Value>) -> Self {
        Self::of_parts(false, VerbatimJson::default(), Some(error), Vec::new())
    }

    /// All fields at once. A failure without an output gets its error's message as output.
    pub fn of_parts(
        success: bool,
        output: VerbatimJson,
        error: Option<Map<String, Value>>,
        content: Vec<ContentBlock>,
    ) -> Self {
        Self::made(
            success,
            output,
            error.map(|error| VerbatimJson::from(Value::Object(error))),
            content,
        )
    }

    fn made(
        success: bool,
        mut output: VerbatimJson,
        error: Option<VerbatimJson>,
        content: Vec<ContentBlock>,
    ) -> Self {
        if !success && output.is_null() {
            let message = error.as_ref().and_then(|error| error.field("message"));
            if let Some(message) = message.filter(|message| !is_falsy(message.value())) {
                output = message;
            }
        }
        Self {
            success,
            output,
            error,
            content,
        }
    }

    /// Adds content blocks beside the text.
    #[must_use]
    pub fn with_content(mut self, content: Vec<ContentBlock>) -> Self {
        self.content = content;
        self
    }

    /// Adds an output to a failure, such as the output of a command before it failed.
    #[must_use]
    pub fn with_output(self, output: impl Into<Value>) -> Self {
        Self::made(
            self.success,
            VerbatimJson::from(output.into()),
            self.error,
            self.content,
        )
    }

    /// Parses a result's JSON. Keys of the output keep their order; unknown members are dropped.
    pub fn parse(text: &str) -> Result<Self, ResultError> {
        let raw: Box<RawValue> = serde_json::from_str(text).map_err(JsonError::from)?;
        let fields: ToolResultFields = match raw.get().trim_start().as_bytes().first() {
            Some(b'{') => serde_json::from_str(raw.get()).map_err(JsonError::from)?,
            _ => {
                return Err(ResultError::Shape {
                    given: kind(VerbatimJson::of_raw(raw)?.value()),
                });
            }
        };
        let success = fields.success.map_or(Ok(true), |given| {
            truth(VerbatimJson::of_raw(given)?.value())
        })?;
        let output = fields
            .output
            .map(VerbatimJson::of_raw)
            .transpose()?
            .unwrap_or_default();
        let error = fields
            .error
            .map(VerbatimJson::of_raw)
            .transpose()?
            .filter(|error| !error.is_null());
        if let Some(error) = error.as_ref().filter(|error| !error.value().is_object()) {
            return Err(ResultError::Error {
                given: kind(error.value()),
            });
        }
        let content = fields
            .content
            .map(VerbatimJson::of_raw)
            .transpose()?
            .unwrap_or_default();
        Ok(Self::made(
            success,
            output,
            error,
            ContentBlock::read_all(content.value())?,
        ))
    }

    /// Reads a result from a value. If you have the text, [`parse`](Self::parse) it instead: a value has lost the
    /// order of its keys.
    pub fn read(value: &Value) -> Result<Self, ResultError> {
        Self::parse(&value.to_string())
    }

    /// Whether the tool succeeded.
    pub fn is_success(&self) -> bool {
        self.success
    }

    /// The output. `null`: none.
    pub fn output(&self) -> &Value {
        self.output.value()
    }

    /// The error, by convention with `message` and `type`.
    pub fn error(&self) -> Option<&Map<String, Value>> {
        self.error
            .as_ref()
            .and_then(|error| error.value().as_object())
    }

    /// Content blocks beside the text.
    pub fn content(&self) -> &[ContentBlock] {
        &self.content
    }

    pub(crate) fn into_content(self) -> Vec<ContentBlock> {
        self.content
    }

    /// The message of the error, as text, if it has one.
    pub fn error_message(&self) -> Option<String> {
        let error = self
            .error
            .as_ref()
            .filter(|error| !is_falsy(error.value()))?;
        let message = error.field("message");
        Some(message.map_or_else(
            || "Unknown error".to_owned(),
            |message| python_str(&message),
        ))
    }

    /// The text for the model.
    pub fn text_for_model(&self) -> String {
        let text = match self.output.value() {
            Value::Null if self.success => "Success".to_owned(),
            Value::Null => {
                format!(
                    "Error: {}",
                    self.error_message().unwrap_or_else(|| "Failed".to_owned())
                )
            }
            Value::Object(_) | Value::Array(_) => python_json(&self.output),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => python_str(&self.output),
        };
        sanitized(&text).into_owned()
    }

    /// The text by Python's `str`, for people.
    pub fn text_for_people(&self) -> String {
        match (self.success, self.error_message()) {
            (true, _) if is_falsy(self.output.value()) => "Success".to_owned(),
            (true, _) => python_str(&self.output),
            (false, Some(message)) => format!("Error: {message}"),
            (false, None) => "Failed".to_owned(),
        }
    }

    /// As a value for events, with images only mentioned.
    pub fn for_events(&self) -> Value {
        let mut dump = self.to_value();
        if !self.content.is_empty() {
            dump["content"] = self
                .content
                .iter()
                .map(|block| Value::from(&block.for_events()))
                .collect();
        }
        dump
    }

    /// As a value. `content` is included if it is not empty.
    pub fn to_value(&self) -> Value {
        let mut dump =
            json!({"success": self.success, "output": self.output(), "error": self.error()});
        if !self.content.is_empty() {
            dump["content"] = self.content.iter().map(Value::from).collect();
        }
        dump
    }
}

/// The keys in Amplifier's order; `content` only if it is not empty.
impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut dump = serializer.serialize_struct("ToolResult", 4)?;
        dump.serialize_field("success", &self.success)?;
        dump.serialize_field("output", &self.output)?;
        dump.serialize_field("error", &self.error)?;
        match self.content.is_empty() {
            true => dump.skip_field("content")?,
            false => dump.serialize_field("content", &self.content)?,
        }
        dump.end()
    }
}

/// The raw fields. A field that is `null` differs from one that is missing.
#[derive(Deserialize)]
struct ToolResultFields {
    #[serde(default, deserialize_with = "written")]
    success: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "written")]
    output: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "written")]
    error: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "written")]
    content: Option<Box<RawValue>>,
}

fn written<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// The values that Amplifier's models accept as a boolean.
pub(crate) fn as_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(yes) => Some(*yes),
        Value::Number(number) => match number.as_f64() {
            Some(0.0) => Some(false),
            Some(1.0) => Some(true),
            Some(_) | None => None,
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
            "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn truth(value: &Value) -> Result<bool, ResultError> {
    as_bool(value).ok_or_else(|| ResultError::Success {
        given: value.clone(),
    })
}

pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
