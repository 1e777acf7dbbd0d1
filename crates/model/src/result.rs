//! Layer 8: the result of a call and its outcome.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AppliedSandbox, ArtifactId, ArtifactRef, ErrorClass, InvocationId, Redactions,
    ResultPersistence, ToolError, ToolId,
};

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work was done.
    Succeeded,
    /// Some of it was done.
    Partial,
    /// The tool, or something before it, failed.
    Failed,
    /// A rule or the mode denied it.
    Denied,
    /// A person refused it, or the host did not accept the call.
    Rejected,
    /// It was stopped, or never started.
    Canceled,
    /// The deadline passed.
    TimedOut,
    /// Not known: the host ended while the call ran.
    Unknown,
}

impl Outcome {
    /// The name on the wire and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Rejected => "rejected",
            Self::Canceled => "canceled",
            Self::TimedOut => "timed_out",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the caller got the result, in full or in part.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::Partial)
    }
}

/// The handling of the content, apart from the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// In the result, whole.
    Inline,
    /// In the result in part; the rest was cut.
    Preview,
    /// Stored as an artifact; the result only names it.
    RefOnly,
    /// Removed by the operator's setting: neither in the result nor stored.
    Redacted,
    /// In the result in part; the rest could not be stored, and the result gives the reason.
    Dropped,
    /// The tool succeeded and had nothing to show. Not the same as a missing result.
    Empty,
    /// Made by the host, not by the tool: an error, a denial, an end after a restart.
    Synthetic,
}

impl Disposition {
    /// The name on the wire and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Preview => "preview",
            Self::RefOnly => "ref_only",
            Self::Redacted => "redacted",
            Self::Dropped => "dropped",
            Self::Empty => "empty",
            Self::Synthetic => "synthetic",
        }
    }
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "Content")]
pub enum ResultContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Base64 of the bytes.
        data: String,
        /// Such as `image/png`.
        media_type: String,
    },
    /// Bytes of another type.
    Binary {
        /// Base64 of the bytes, or of their head.
        data: String,
        /// The guessed type.
        media_type: String,
        /// The size of the whole, in bytes.
        size: u64,
    },
    /// Sound.
    Audio {
        /// Base64 of the bytes.
        data: String,
        /// Such as `audio/wav`.
        media_type: String,
    },
    /// Content with an address: a text or bytes.
    Resource {
        /// The address.
        uri: String,
        /// The type, where it is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        media_type: Option<String>,
        /// The text.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        text: Option<String>,
        /// Base64 of the bytes, where it is no text.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        data: Option<String>,
    },
    /// The address of further content.
    Link {
        /// The address.
        uri: String,
        /// The name.
        name: String,
        /// The name for people.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        title: Option<String>,
        /// A description of the content there.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        description: Option<String>,
        /// The type, where it is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        media_type: Option<String>,
        /// The size in bytes, where it is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        size: Option<u64>,
    },
}

impl ResultContent {
    /// The size of the content in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image { data, .. } | Self::Binary { data, .. } | Self::Audio { data, .. } => {
                data.len()
            }
            Self::Resource { text, data, .. } => {
                text.as_ref().map_or(0, String::len) + data.as_ref().map_or(0, String::len)
            }
            Self::Link { uri, .. } => uri.len(),
        }
    }

    /// The bytes as base64 and their type, for content that has bytes.
    pub fn encoded(&self) -> Option<(&str, &str)> {
        match self {
            Self::Image { data, media_type }
            | Self::Binary {
                data, media_type, ..
            }
            | Self::Audio { data, media_type } => Some((data, media_type)),
            Self::Resource {
                data: Some(data),
                media_type,
                ..
            } => Some((
                data,
                media_type.as_deref().unwrap_or("application/octet-stream"),
            )),
            Self::Text { .. } | Self::Resource { .. } | Self::Link { .. } => None,
        }
    }

    /// The content as plain text; `None` for bytes.
    pub fn reading(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text { text }
            | Self::Resource {
                text: Some(text), ..
            } => Some(Cow::Borrowed(text)),
            Self::Link { uri, name, .. } => Some(Cow::Owned(format!("[{name}: {uri}]"))),
            Self::Image { .. }
            | Self::Binary { .. }
            | Self::Audio { .. }
            | Self::Resource { .. } => None,
        }
    }

    /// Text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The cut of a result, and how to get the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncation {
    /// The size of the shown part, in `unit`s.
    pub shown: u64,
    /// The full size, where it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total: Option<u64>,
    /// `bytes`, `lines`, `entries`, `characters`.
    pub unit: String,
    /// How to get at the rest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The artifact that holds the whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub artifact: Option<ArtifactId>,
}

/// The output of a tool that did its work.
#[derive(Clone, Debug, Default)]
pub struct ToolOutput {
    /// For the model, in order.
    pub content: Vec<ResultContent>,
    /// For programs; fits the output schema where there is one.
    pub structured: Option<Value>,
    /// One line for people.
    pub summary: Option<String>,
    /// Exit code of a process, where one ran.
    pub exit_code: Option<i32>,
    /// The tool's own cut.
    pub truncated: Option<Truncation>,
    /// Only part of the work was done.
    pub partial: bool,
    /// There was nothing to show, as in an empty folder: content, if there is any, only states this.
    pub is_empty: bool,
    /// The confinement of the process, where one ran.
    pub sandbox: Option<Box<AppliedSandbox>>,
    /// Metadata of the tool's own system, for callers that use the same protocol: MCP's `_meta`.
    pub meta: Option<Box<Map<String, Value>>>,
}

impl ToolOutput {
    /// Text and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ResultContent::text(text)],
            ..Self::default()
        }
    }

    /// A value for programs.
    pub fn structured(value: Value) -> Self {
        Self {
            structured: Some(value),
            ..Self::default()
        }
    }

    /// Adds a line for people.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Marks that there was nothing to show. A blank text is replaced by the line for people: a model takes an empty
    /// text for a lost result.
    #[must_use]
    pub fn with_nothing_to_show(mut self) -> Self {
        self.is_empty = true;
        let is_blank = self
            .content
            .iter()
            .all(|piece| matches!(piece, ResultContent::Text { text } if text.is_empty()));
        if let Some(summary) = self.summary.as_ref().filter(|_| is_blank) {
            self.content = vec![ResultContent::text(summary.clone())];
        }
        self
    }

    /// Adds the confinement of the process.
    #[must_use]
    pub fn confined(mut self, sandbox: AppliedSandbox) -> Self {
        self.sandbox = Some(Box::new(sandbox));
        self
    }

    /// Adds a value for programs.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::structured(value)
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// The time of a call by phase, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// From the request to the result.
    pub total_us: u64,
    /// Waiting for a slot and for locks.
    pub queued_us: u64,
    /// In the tool.
    pub execute_us: u64,
}

/// The end of a call: one per invocation, recorded before it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub invocation_id: InvocationId,
    /// The tool, where one was found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool_id: Option<ToolId>,
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The handling of the content.
    pub disposition: Disposition,
    /// Not a success.
    pub is_error: bool,
    /// For the model, in order.
    pub content: Vec<ResultContent>,
    /// For programs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub structured_content: Option<Value>,
    /// One line for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub summary: Option<String>,
    /// Exit code of a process, where one ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// The cut, if the content is not whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated: Option<Truncation>,
    /// The call's artifacts, in the order in which the tool wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub artifacts: Vec<ArtifactRef>,
    /// The handling of the result's size, if it needed any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub persistence: Option<Box<ResultPersistence>>,
    /// Secrets that were redacted, by kind.
    #[serde(skip_serializing_if = "Redactions::is_empty", default)]
    pub redactions: Redactions,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ToolError>,
    /// The confinement of the process, where one ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Box<AppliedSandbox>>,
    /// The approval that the tool itself asks for, and the mode or rule that it gave way to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval_waived: Option<String>,
    /// Metadata of the tool's own system.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub meta: Option<Box<Map<String, Value>>>,
    /// The time of the call by phase.
    pub timings: Timings,
}

impl ToolResult {
    /// The class of the error, where there is one.
    pub fn error_class(&self) -> Option<ErrorClass> {
        self.error.as_ref().map(|error| error.class)
    }

    /// Facts about the content that it does not show itself, one line each: only a part is shown, there was nothing to
    /// show, secrets were redacted, the whole is in an artifact.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.outcome == Outcome::Partial {
            remarks.push("partial: only part of the work was done".to_owned());
        }
        let why = || {
            self.persistence
                .as_ref()
                .and_then(|kept| kept.reason.as_deref())
        };
        match self.disposition {
            // The text itself states that there was nothing.
            Disposition::Empty if self.has_text() => {}
            Disposition::Empty => {
                let why = self
                    .summary
                    .as_deref()
                    .unwrap_or("the tool succeeded and returned no content");
                remarks.push(format!("empty: {why}"));
            }
            Disposition::RefOnly => remarks.push("kept, and not shown".to_owned()),
            Disposition::Redacted => {
                remarks.push("redacted: the content is neither shown nor kept".to_owned());
            }
            Disposition::Dropped => {
                let why = why().unwrap_or("it could not be kept");
                remarks.push(format!(
                    "dropped: content that is not shown here is lost: {why}"
                ));
            }
            Disposition::Inline | Disposition::Preview | Disposition::Synthetic => {}
        }
        if let Some(cut) = &self.truncated {
            let total = cut
                .total
                .map(|total| format!(" of {total}"))
                .unwrap_or_default();
            let hint = cut
                .hint
                .as_deref()
                .map(|hint| format!("; {hint}"))
                .unwrap_or_default();
            remarks.push(format!("{}{total} {} shown{hint}", cut.shown, cut.unit));
        }
        for kept in &self.artifacts {
            let ArtifactRef {
                id,
                name,
                media_type,
                size,
                redactions,
                ..
            } = kept;
            let without = match redactions.is_empty() {
                true => String::new(),
                false => format!(", without its secrets: {redactions}"),
            };
            remarks.push(format!(
                "`{name}` is kept as {id} ({media_type}, {size} bytes{without})"
            ));
        }
        if !self.redactions.is_empty() {
            remarks.push(format!("secrets were removed: {}", self.redactions));
        }
        remarks
    }

    fn has_text(&self) -> bool {
        self.content
            .iter()
            .filter_map(ResultContent::reading)
            .any(|text| !text.is_empty())
    }

    /// The text for the model when a success had nothing to show: the tool's own text, then the remarks.
    fn empty_text(&self) -> String {
        match (&self.summary, self.remarks()) {
            (Some(summary), mut remarks) => {
                remarks.retain(|remark| !remark.starts_with("empty: "));
                let more = if remarks.is_empty() {
                    String::new()
                } else {
                    format!("\n[{}]", remarks.join("; "))
                };
                format!("{summary}{more}")
            }
            (None, remarks) => format!("[{}]", remarks.join("; ")),
        }
    }

    /// All text pieces joined, or the structured content as JSON: the text for a model without other inputs. An empty
    /// or partial content is stated in the text, because a model takes an empty text for a lost result.
    pub fn model_text(&self) -> String {
        let texts: Vec<Cow<'_, str>> = self
            .content
            .iter()
            .filter_map(ResultContent::reading)
            .collect();
        match (&self.error, &self.structured_content) {
            (Some(error), _) => {
                let hint = error
                    .hint
                    .as_deref()
                    .map(|hint| format!("\nhint: {hint}"))
                    .unwrap_or_default();
                let shown: String = texts.iter().map(|text| format!("\n{text}")).collect();
                format!("{}: {}{hint}{shown}", error.class, error.message)
            }
            (None, _) if self.disposition == Disposition::Empty && !self.has_text() => {
                self.empty_text()
            }
            (None, structured) => {
                let text = match structured {
                    Some(value) if !self.has_text() => value.to_string(),
                    None if !self.has_text() => {
                        // For images and sound alone, the text at least states that there are some.
                        self.summary
                            .clone()
                            .unwrap_or_else(|| "[the result holds no text]".to_owned())
                    }
                    Some(_) | None => texts.join("\n"),
                };
                match self.outcome {
                    Outcome::Partial => {
                        format!("[partial: only part of the work was done]\n{text}")
                    }
                    _ => text,
                }
            }
        }
    }
}
