//! The result of a call in MCP's form: its content, its error as text and as data, and links to artifacts.

use std::borrow::Cow;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::{Value, json};
use toolpost_model::{ArtifactRef, Disposition, ErrorClass, Outcome, ResultContent, ToolResult};

use super::{
    artifacts,
    version::McpVersion,
    wire::{self, McpReply},
};

/// The member that names the server in every result of the stateless era.
pub(super) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

#[derive(Serialize)]
pub(super) struct ServerInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

pub(super) const THIS_SERVER: ServerInfo = ServerInfo {
    name: "toolpost",
    title: "Toolpost",
    version: env!("CARGO_PKG_VERSION"),
};

/// The result of a call. `kept` is its structured content, if that was stored as an artifact.
pub(super) fn of_call(result: &ToolResult, kept: Option<&Value>, version: McpVersion) -> McpReply {
    McpReply::Text(wire::json(&CallToolResult {
        result,
        structured: result.structured_content.as_ref().or(kept),
        version,
    }))
}

/// The result of a call whose host ended before the answer.
pub(super) fn of_lost_call(is_modern: bool) -> String {
    let text = "outcome_unknown: the host stopped before it answered; the call may or may not have taken effect\n\
         hint: check whether the call took effect before you send it again";
    let mut meta = json!({
        "toolpost/outcome": Outcome::Unknown.as_str(),
        "toolpost/class": ErrorClass::OutcomeUnknown.as_str(),
        "toolpost/code": "restart",
    });
    let content = [TextContent::of(text)];
    let mut result = json!({ "content": content, "isError": true });
    if is_modern {
        meta[SERVER_INFO] = json!(THIS_SERVER);
        result["resultType"] = json!("complete");
    }
    result["_meta"] = meta;
    result.to_string()
}

struct CallToolResult<'a> {
    result: &'a ToolResult,
    structured: Option<&'a Value>,
    version: McpVersion,
}

impl Serialize for CallToolResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            result,
            structured,
            version,
        } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &ContentBlocks { result, version })?;
        // Before the stateless era it must be an object.
        if let Some(value) = structured.filter(|value| version.is_modern() || value.is_object()) {
            map.serialize_entry("structuredContent", value)?;
        }
        map.serialize_entry("isError", &result.is_error)?;
        map.serialize_entry("_meta", &ResultMeta(result, version))?;
        if version.is_modern() {
            map.serialize_entry("resultType", "complete")?;
        }
        map.end()
    }
}

/// The `_meta` of the tool's own server, and the outcome of the call in this host's terms.
struct ResultMeta<'a>(&'a ToolResult, McpVersion);

impl Serialize for ResultMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(result, version) = self;
        let mut map = serializer.serialize_map(None)?;
        let own = |key: &str| key.starts_with("toolpost/") || key == SERVER_INFO;
        let said = result.meta.iter().flat_map(|meta| meta.iter());
        for (key, value) in said.filter(|(key, _)| !own(key)) {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("toolpost/invocationId", &result.invocation_id)?;
        map.serialize_entry("toolpost/outcome", result.outcome.as_str())?;
        if let Some(waived) = &result.approval_waived {
            map.serialize_entry("toolpost/approvalWaived", waived)?;
        }
        if let Some(error) = &result.error {
            map.serialize_entry("toolpost/class", error.class.as_str())?;
            if error.code != error.class.as_str() {
                map.serialize_entry("toolpost/code", &error.code)?;
            }
            if let Some(id) = error
                .details
                .as_ref()
                .and_then(|details| details.get("ask_id"))
            {
                map.serialize_entry("toolpost/questionId", id)?;
            }
        }
        if version.is_modern() {
            map.serialize_entry(SERVER_INFO, &THIS_SERVER)?;
        }
        map.end()
    }
}

/// The content in this order: the error, the tool's content, remarks on missing content, links to artifacts.
struct ContentBlocks<'a> {
    result: &'a ToolResult,
    version: McpVersion,
}

impl Serialize for ContentBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { result, version } = *self;
        let mut list = serializer.serialize_seq(None)?;
        if let Some(text) = error_text(result) {
            list.serialize_element(&TextContent::of(&text))?;
        }
        for (place, content) in result.content.iter().enumerate() {
            list.serialize_element(&McpContentBlock {
                content,
                result,
                place,
                version,
            })?;
        }
        // For clients that ignore structured content, and for revisions without it.
        if let (Some(value), true) = (&result.structured_content, result.content.is_empty()) {
            list.serialize_element(&TextContent::of(&value.to_string()))?;
        }
        if let Some(text) = remarks(result) {
            list.serialize_element(&TextContent::of(&text))?;
        }
        if version >= McpVersion::V2025June {
            for kept in &result.artifacts {
                list.serialize_element(&ArtifactLink(kept))?;
            }
        }
        list.end()
    }
}

/// The error with its hint. `None` if the tool's content contains it already.
fn error_text(result: &ToolResult) -> Option<String> {
    let error = result.error.as_ref()?;
    let said = |content: &ResultContent| {
        content
            .reading()
            .is_some_and(|text| text.contains(&error.message))
    };
    if error.class == ErrorClass::ExecutionFailed
        && error.hint.is_none()
        && result.content.iter().any(said)
    {
        return None;
    }
    let hint = error
        .hint
        .as_deref()
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    let how = match error.class {
        ErrorClass::ApprovalPending => {
            "\nan operator answers it with `toolpost approvals`, over HTTP or on the host's terminal; \
             the same call with the same arguments then runs"
        }
        _ => "",
    };
    Some(format!("{}: {}{hint}{how}", error.class, error.message))
}

/// Remarks that the content alone does not show.
fn remarks(result: &ToolResult) -> Option<String> {
    let is_plain = result.disposition == Disposition::Inline
        && result.outcome != Outcome::Partial
        && result.truncated.is_none()
        && result.artifacts.is_empty();
    if is_plain || result.error.is_some() && result.artifacts.is_empty() {
        return None;
    }
    let remarks = result.remarks();
    (!remarks.is_empty()).then(|| format!("[{}]", remarks.join("; ")))
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl<'a> TextContent<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            r#type: "text",
            text,
        }
    }
}

struct McpContentBlock<'a> {
    content: &'a ResultContent,
    result: &'a ToolResult,
    place: usize,
    version: McpVersion,
}

impl Serialize for McpContentBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.content {
            ResultContent::Text { text } => TextContent::of(text).serialize(serializer),
            ResultContent::Image { data, media_type } => {
                bytes("image", data, media_type).serialize(serializer)
            }
            ResultContent::Audio { data, media_type } => {
                bytes("audio", data, media_type).serialize(serializer)
            }
            ResultContent::Binary {
                data, media_type, ..
            } => {
                let uri = format!(
                    "toolpost://invocations/{}/content/{}",
                    self.result.invocation_id, self.place
                );
                embedded(&uri, Some(media_type), None, Some(data)).serialize(serializer)
            }
            ResultContent::Resource {
                uri,
                media_type,
                text,
                data,
            } => embedded(uri, media_type.as_deref(), text.as_deref(), data.as_deref())
                .serialize(serializer),
            ResultContent::Link {
                uri,
                name,
                title,
                description,
                media_type,
                size,
            } => {
                if self.version < McpVersion::V2025June {
                    let reading = self.content.reading().unwrap_or(Cow::Borrowed(uri));
                    return TextContent::of(&reading).serialize(serializer);
                }
                ResourceLink {
                    r#type: "resource_link",
                    uri,
                    name,
                    title: title.as_deref(),
                    description: description.as_deref(),
                    mime_type: media_type.as_deref(),
                    size: *size,
                }
                .serialize(serializer)
            }
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MediaContent<'a> {
    r#type: &'static str,
    data: &'a str,
    mime_type: &'a str,
}

fn bytes<'a>(kind: &'static str, data: &'a str, mime_type: &'a str) -> MediaContent<'a> {
    MediaContent {
        r#type: kind,
        data,
        mime_type,
    }
}

#[derive(Serialize)]
struct EmbeddedResource<'a> {
    r#type: &'static str,
    resource: ResourceContents<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceContents<'a> {
    pub(super) uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blob: Option<&'a str>,
}

fn embedded<'a>(
    uri: &'a str,
    mime_type: Option<&'a str>,
    text: Option<&'a str>,
    blob: Option<&'a str>,
) -> EmbeddedResource<'a> {
    // The protocol requires a text or a blob.
    let text = if blob.is_some() {
        None
    } else {
        Some(text.unwrap_or_default())
    };
    EmbeddedResource {
        r#type: "resource",
        resource: ResourceContents {
            uri,
            mime_type,
            text,
            blob,
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLink<'a> {
    r#type: &'static str,
    uri: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

struct ArtifactLink<'a>(&'a ArtifactRef);

impl Serialize for ArtifactLink<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kept = self.0;
        ResourceLink {
            r#type: "resource_link",
            uri: &artifacts::uri(kept.id),
            name: &kept.name,
            title: None,
            description: Some("the whole result; add `?offset=0&length=65536` to read a part"),
            mime_type: Some(&kept.media_type),
            size: Some(kept.size),
        }
        .serialize(serializer)
    }
}
