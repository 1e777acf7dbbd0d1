//! A piece of a message or of an artifact.

use serde_json::{Map, Value, json};

use super::members::{JsonObjectWriter, ObjectMembers, PeerMessageError};
use super::{A2aDialect, narrowed};
use crate::ToolEvent;

/// The content of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartContent {
    /// Text.
    Text(String),
    /// JSON.
    Data(Value),
    /// Bytes, in base64.
    Raw(String),
    /// The address of a file.
    Url(String),
}

/// A piece of a message or of an artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The content.
    pub content: PartContent,
    /// The media type, such as `image/png`.
    pub media_type: Option<String>,
    /// A file name.
    pub filename: Option<String>,
    /// Further data of the author.
    pub metadata: Option<Map<String, Value>>,
}

/// 0.3 allows only objects as data. The official SDK puts other values under `value` and marks the part with this
/// member of its metadata.
const WRAPPED: &str = "data_part_compat";

impl Part {
    /// A part with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(PartContent::Text(text.into()))
    }

    /// A part with JSON.
    pub fn data(data: Value) -> Self {
        Self::of(PartContent::Data(data))
    }

    /// A part with a tool event.
    pub fn event(event: &ToolEvent) -> Self {
        // An event consists of strings, numbers and JSON values, so its serialization cannot fail.
        Self::data(serde_json::to_value(event).unwrap_or_default())
    }

    fn of(content: PartContent) -> Self {
        Self {
            content,
            media_type: None,
            filename: None,
            metadata: None,
        }
    }

    /// Reads a part of either dialect.
    pub fn read(value: &Value) -> Result<Self, PeerMessageError> {
        Self::read_at(value, "part")
    }

    pub(super) fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let part = ObjectMembers::of(value, place)?;
        let mut metadata = part.object("metadata")?;
        let file = part.get("file").map(|file| (file, part.path("file")));
        let mut media_type = part.said("mediaType")?;
        let mut filename = part.said("filename")?;
        let content = if let Some((file, place)) = &file {
            let file = ObjectMembers::of(file, place)?;
            media_type = file.said("mimeType")?.or(media_type);
            filename = file.said("name")?.or(filename);
            match (file.text("bytes")?, file.text("uri")?) {
                (Some(bytes), _) => PartContent::Raw(bytes),
                (None, Some(url)) => PartContent::Url(url),
                (None, None) => return Err(file.misread("uri", "or `bytes` must be given")),
            }
        } else if let Some(text) = part.text("text")? {
            PartContent::Text(text)
        } else if let Some(data) = part.raw("data") {
            PartContent::Data(unwrapped(data, &mut metadata))
        } else if let Some(raw) = part.text("raw")? {
            PartContent::Raw(raw)
        } else if let Some(url) = part.text("url")? {
            PartContent::Url(url)
        } else {
            return Err(PeerMessageError::new(
                place,
                "must hold `text`, `data`, `raw`, `url` or `file`",
            ));
        };
        Ok(Self {
            content,
            media_type,
            filename,
            metadata: metadata.filter(|map| !map.is_empty()),
        })
    }

    /// The part in the given dialect.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        match dialect {
            A2aDialect::V0_3 => self.older(),
            A2aDialect::V1_0 => self.newer(),
        }
    }

    /// The JSON of a data part, with whole numbers as integers.
    pub fn narrowed_data(&self) -> Option<Value> {
        match &self.content {
            PartContent::Data(data) => Some(narrowed(data.clone())),
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
        }
    }

    fn newer(&self) -> Value {
        let written = match &self.content {
            PartContent::Text(text) => JsonObjectWriter::default().with("text", text.as_str()),
            PartContent::Data(data) => JsonObjectWriter::default().with("data", data.clone()),
            PartContent::Raw(raw) => JsonObjectWriter::default().with("raw", raw.as_str()),
            PartContent::Url(url) => JsonObjectWriter::default().with("url", url.as_str()),
        };
        written
            .maybe("mediaType", self.media_type.as_deref())
            .maybe("filename", self.filename.as_deref())
            .maybe("metadata", self.metadata.clone())
            .done()
    }

    fn older(&self) -> Value {
        let mut metadata = self.metadata.clone();
        let file = |member: &str, value: &str| {
            JsonObjectWriter::default()
                .with(member, value)
                .maybe("mimeType", self.media_type.as_deref())
                .maybe("name", self.filename.as_deref())
                .done()
        };
        let (kind, member, value) = match &self.content {
            PartContent::Text(text) => ("text", "text", Value::from(text.as_str())),
            PartContent::Data(data @ Value::Object(_)) => ("data", "data", data.clone()),
            PartContent::Data(data) => {
                metadata
                    .get_or_insert_default()
                    .insert(WRAPPED.to_owned(), Value::Bool(true));
                ("data", "data", json!({ "value": data }))
            }
            PartContent::Raw(raw) => ("file", "file", file("bytes", raw)),
            PartContent::Url(url) => ("file", "file", file("uri", url)),
        };
        JsonObjectWriter::default()
            .with("kind", kind)
            .with(member, value)
            .maybe("metadata", metadata)
            .done()
    }
}

fn unwrapped(data: &Value, metadata: &mut Option<Map<String, Value>>) -> Value {
    let inner = match (data, metadata) {
        (Value::Object(map), Some(metadata))
            if metadata.get(WRAPPED) == Some(&Value::Bool(true)) =>
        {
            let inner = map.get("value");
            if inner.is_some() {
                metadata.remove(WRAPPED);
            }
            inner
        }
        _ => None,
    };
    inner.unwrap_or(data).clone()
}
