//! Layer 8: what came back, and which kind of outcome it is.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AppliedSandbox, ArtifactId, ArtifactRef, ErrorClass, InvocationId, Redactions,
    ResultPersistence, ToolError, ToolId,
};

/// How the call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work was done.
    Succeeded,
    /// Some of it was done.
    Partial,
    /// The tool, or something before it, failed.
    Failed,
    /// A rule or mode said no.
    Denied,
    /// A person said no, or the host would not take the call.
    Rejected,
    /// It was stopped, or never started.
    Canceled,
    /// The deadline passed.
    TimedOut,
    /// Nobody knows: the host died while it ran.
    Unknown,
}

impl Outcome {
    /// The word on the wire and in records.
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

    /// Whether the caller got what it asked for, wholly or in part.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Succeeded | Self::Partial)
    }
}

/// What happened to the content, apart from how the call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Here, whole.
    Inline,
    /// Here in part; the rest was cut.
    Preview,
    /// Kept, and only named here.
    RefOnly,
    /// Taken out by the operator's wish: neither here nor kept.
    Redacted,
    /// Here in part, and what was cut could not be kept; the reason is told.
    Dropped,
    /// The tool succeeded and had nothing to say. Not the same as a missing result.
    Empty,
    /// Made by the host, not by the tool: an error, a denial, an end after a restart.
    Synthetic,
}

impl Disposition {
    /// The word on the wire and in records.
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
    /// Bytes that are neither.
    Binary {
        /// Base64 of the bytes, or of their head.
        data: String,
        /// The best guess.
        media_type: String,
        /// How many bytes the whole has.
        size: u64,
    },
    /// Sound.
    Audio {
        /// Base64 of the bytes.
        data: String,
        /// Such as `audio/wav`.
        media_type: String,
    },
    /// Something that has an address, with what is found there: a text or bytes.
    Resource {
        /// The address.
        uri: String,
        /// What it is, where that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        media_type: Option<String>,
        /// The text.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        text: Option<String>,
        /// Base64 of the bytes, where it is no text.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        data: Option<String>,
    },
    /// An address where more is to be had.
    Link {
        /// The address.
        uri: String,
        /// What it is called.
        name: String,
        /// What it is called for people.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        title: Option<String>,
        /// What is found there.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        description: Option<String>,
        /// What it is, where that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        media_type: Option<String>,
        /// How many bytes it has, where that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        size: Option<u64>,
    },
}

impl ResultContent {
    /// How many bytes it holds.
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

    /// Its bytes as base64 and what they are, where it has any.
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

    /// What a reader of text alone is given of it. Bytes give nothing.
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

/// What was cut, and how to get at the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncation {
    /// How much is shown, in `unit`s.
    pub shown: u64,
    /// How much there is, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total: Option<u64>,
    /// `bytes`, `lines`, `entries`, `characters`.
    pub unit: String,
    /// How to get at the rest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// Where the whole is kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub artifact: Option<ArtifactId>,
}

/// What a tool returns when it has done its work.
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
    /// What the tool itself cut.
    pub truncated: Option<Truncation>,
    /// Only part of the work was done.
    pub partial: bool,
    /// There was nothing to show, as in an empty folder: the content, where there is any, only says so.
    pub is_empty: bool,
    /// What confined the process, where one ran.
    pub sandbox: Option<Box<AppliedSandbox>>,
    /// What the tool's own system said beside it, for callers that speak the same: MCP's `_meta`.
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

    /// Marks that there was nothing to show. A blank text is replaced by the line for people: a model takes silence for a
    /// lost result.
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

    /// Adds what confined the process.
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

/// Where the time went, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// From the request to the result.
    pub total_us: u64,
    /// Waiting for a slot and for resources.
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
    /// How it ended.
    pub outcome: Outcome,
    /// What happened to the content.
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
    /// What was cut.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated: Option<Truncation>,
    /// What is kept of it, in the order it was handed over.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub artifacts: Vec<ArtifactRef>,
    /// What was done about its size, where anything was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub persistence: Option<Box<ResultPersistence>>,
    /// Secrets that were taken out of it, by kind.
    #[serde(skip_serializing_if = "Redactions::is_empty", default)]
    pub redactions: Redactions,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<ToolError>,
    /// What confined the process, where one ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Box<AppliedSandbox>>,
    /// The approval that the tool itself asks for, and the mode or rule that it gave way to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval_waived: Option<String>,
    /// What the tool's own system said beside it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub meta: Option<Box<Map<String, Value>>>,
    /// Where the time went.
    pub timings: Timings,
}

impl ToolResult {
    /// The class of the error, where there is one.
    pub fn error_class(&self) -> Option<ErrorClass> {
        self.error.as_ref().map(|error| error.class)
    }

    /// What a reader of the content alone would not know, a line each: that it is only a part, that there was nothing,
    /// that something was taken out, where the rest is.
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
            // A text that is there says it itself.
            Disposition::Empty if self.has_text() => {}
            Disposition::Empty => {
                let why = self
                    .summary
                    .as_deref()
                    .unwrap_or("the tool succeeded and had nothing to say");
                remarks.push(format!("empty: {why}"));
            }
            Disposition::RefOnly => remarks.push("kept, and not shown".to_owned()),
            Disposition::Redacted => {
                remarks.push("redacted: what it says is neither shown nor kept".to_owned());
            }
            Disposition::Dropped => {
                let why = why().unwrap_or("it could not be kept");
                remarks.push(format!("dropped: what is not shown here is lost: {why}"));
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
            remarks.push(format!("secrets were taken out: {}", self.redactions));
        }
        remarks
    }

    fn has_text(&self) -> bool {
        self.content
            .iter()
            .filter_map(ResultContent::reading)
            .any(|text| !text.is_empty())
    }

    /// What a model is given of a success that had nothing to show: the tool's own words for it, then what else there is
    /// to know.
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

    /// All text pieces joined, or the structured content as JSON: what a text-only model is given. Where there is
    /// nothing, or only a part, the text says so: silence would look like a lost result.
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
                        // Pictures and sound alone: a reader of text learns at least that there are some.
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
