//! Content blocks of a result beside its text: more text, and images.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::{Value, json};
use toolpost_model::ResultContent;

/// Replaces images in events and logs, where their data would only be in the way.
const IMAGE_PLACEHOLDER: &str =
    "[Image omitted from tool event; original retained for model request if unmodified.]";

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentBlock {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Begins with `image/`.
        media_type: String,
        /// Base64 of its bytes.
        data: String,
    },
}

/// Why a list of blocks is refused, as in Amplifier's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Not a list, or a block of a kind that results cannot have.
    #[error("invalid tool result content")]
    Block,
    /// An image by reference, without its data.
    #[error("invalid tool result image source")]
    Source,
    /// Something that is not an image.
    #[error("invalid tool result image media type")]
    MediaType,
    /// Not base64, or nothing.
    #[error("invalid tool result image data")]
    Data,
}

impl ContentBlock {
    /// An image of these bytes.
    pub fn image(media_type: impl Into<String>, bytes: &[u8]) -> Result<Self, ContentError> {
        Self::encoded_image(media_type.into(), STANDARD.encode(bytes))
    }

    /// An image in base64.
    pub fn encoded_image(media_type: String, data: String) -> Result<Self, ContentError> {
        let is_image = media_type
            .strip_prefix("image/")
            .is_some_and(|kind| !kind.is_empty());
        if !is_image {
            return Err(ContentError::MediaType);
        }
        match STANDARD.decode(&data) {
            Ok(bytes) if !bytes.is_empty() => Ok(Self::Image { media_type, data }),
            Ok(_) | Err(_) => Err(ContentError::Data),
        }
    }

    /// Reads a result's list; `null` is an empty one. Members of a block that Amplifier does not define are left out.
    pub fn read_all(value: &Value) -> Result<Vec<Self>, ContentError> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(blocks) => blocks.iter().map(Self::read).collect(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                Err(ContentError::Block)
            }
        }
    }

    fn read(value: &Value) -> Result<Self, ContentError> {
        match value["type"].as_str() {
            Some("text") => value["text"]
                .as_str()
                .map(|text| Self::Text(text.to_owned()))
                .ok_or(ContentError::Block),
            Some("image") => {
                let source = &value["source"];
                if source["type"] != "base64" {
                    return Err(ContentError::Source);
                }
                let media_type = source["media_type"]
                    .as_str()
                    .ok_or(ContentError::MediaType)?;
                let data = source["data"].as_str().ok_or(ContentError::Data)?;
                Self::encoded_image(media_type.to_owned(), data.to_owned())
            }
            Some(_) | None => Err(ContentError::Block),
        }
    }

    /// The form for events and logs, where images are only mentioned.
    #[must_use]
    pub fn for_events(&self) -> Self {
        match self {
            Self::Text(text) => Self::Text(text.clone()),
            Self::Image { .. } => Self::Text(IMAGE_PLACEHOLDER.to_owned()),
        }
    }

    pub(crate) fn into_content(self) -> ResultContent {
        match self {
            Self::Text(text) => ResultContent::Text { text },
            Self::Image { media_type, data } => ResultContent::Image { data, media_type },
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Source<'a> {
            r#type: &'static str,
            media_type: &'a str,
            data: &'a str,
        }
        let mut block = serializer.serialize_struct("ContentBlock", 2)?;
        match self {
            Self::Text(text) => {
                block.serialize_field("type", "text")?;
                block.serialize_field("text", text)?;
            }
            Self::Image { media_type, data } => {
                block.serialize_field("type", "image")?;
                block.serialize_field(
                    "source",
                    &Source {
                        r#type: "base64",
                        media_type,
                        data,
                    },
                )?;
            }
        }
        block.end()
    }
}

impl From<&ContentBlock> for Value {
    fn from(block: &ContentBlock) -> Self {
        match block {
            ContentBlock::Text(text) => json!({"type": "text", "text": text}),
            ContentBlock::Image { media_type, data } => json!({
                "type": "image",
                "source": {"type": "base64", "media_type": media_type, "data": data},
            }),
        }
    }
}
