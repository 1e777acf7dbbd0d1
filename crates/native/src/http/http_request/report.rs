//! The report of a response, for the model and for programs.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use reqwest::{
    Response, StatusCode,
    header::{HeaderMap, SET_COOKIE},
};
use schemars::JsonSchema;
use serde::{Serialize, de::IgnoredAny};
use serde_json::Value;
use toolpost_model::{
    ResultContent, ToolFailure, ToolOutput, Truncation, visible_line, visible_text,
};
use toolpost_processes::{Credential, HttpTarget};

use super::super::{
    body::HttpResponseBody,
    charset,
    exchange::{FollowedRedirect, media_type},
};
use crate::files::SavedFile;

mod indent;
mod scrub;

use self::{indent::indented, scrub::CredentialScrubber};

/// The most headers.
const MAX_HEADERS: usize = 60;
/// The most characters of one header.
const HEADER_CHARS: usize = 1_000;
/// How much is shown of a body that is neither text nor an image.
const HEAD_BYTES: usize = 1024;
/// JSON up to this size is also returned as a value.
const JSON_BYTES: usize = 256 * 1024;
/// The headers in the text for the model; the structured result has all.
const TOLD: [&str; 10] = [
    "content-type",
    "content-disposition",
    "location",
    "link",
    "retry-after",
    "etag",
    "last-modified",
    "allow",
    "www-authenticate",
    "x-ratelimit-remaining",
];

/// An answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct RequestResult {
    /// The status.
    status: u16,
    /// What was requested in the end, after redirects.
    url: String,
    /// The redirects that were followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redirects: Vec<FollowedRedirect>,
    /// The headers. Values of cookies are left out.
    headers: BTreeMap<String, String>,
    /// What the answer says its body is.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    /// The charset the body was read with, where it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    charset: Option<String>,
    /// How many bytes of the body, decompressed, were read.
    bytes: u64,
    /// How many bytes the answer announced, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    announced_bytes: Option<u64>,
    /// The body as a value, where it is JSON of moderate size.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    /// The file the body was saved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_to: Option<String>,
    /// SHA-256 of the saved file.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A response that is being reported.
pub(super) struct HttpResponseReport<'c> {
    status: StatusCode,
    result: RequestResult,
    label: Option<String>,
    scrubber: CredentialScrubber<'c>,
}

impl<'c> HttpResponseReport<'c> {
    pub(super) fn new(
        response: &Response,
        target: &HttpTarget,
        hops: Vec<FollowedRedirect>,
        stopped_because: Option<String>,
        credential: Option<&'c Credential>,
    ) -> Self {
        let scrubber = CredentialScrubber::new(credential);
        let (said, label) = media_type(response.headers());
        let mut notes = Vec::new();
        let headers = told_headers(response.headers(), &scrubber, &mut notes);
        notes.extend(stopped_because.map(|because| scrubber.text(&because)));
        let redirects = hops
            .into_iter()
            .map(|hop| FollowedRedirect {
                to: scrubber.text(&hop.to),
                ..hop
            })
            .collect();
        let result = RequestResult {
            status: response.status().as_u16(),
            url: scrubber.text(target.url.as_str()),
            redirects,
            headers,
            media_type: said,
            charset: None,
            bytes: 0,
            announced_bytes: None,
            json: None,
            saved_to: None,
            sha256: None,
            notes,
        };
        Self {
            status: response.status(),
            result,
            label,
            scrubber,
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.result.notes.push(note);
    }

    /// Whether the media type is an image.
    pub(super) fn is_image(&self) -> bool {
        self.result
            .media_type
            .as_deref()
            .is_some_and(|said| said.starts_with("image/"))
    }

    /// The media type of the body.
    pub(super) fn media_type(&self) -> &str {
        self.result
            .media_type
            .as_deref()
            .unwrap_or("application/octet-stream")
    }

    /// Whether only the beginning of a complete body is shown, because it is neither text nor an image.
    pub(super) fn shows_only_the_head_of(&self, bytes: &[u8]) -> bool {
        bytes.len() > HEAD_BYTES
            && !charset::is_text(
                self.result.media_type.as_deref(),
                self.label.as_deref(),
                bytes,
            )
            && image_type(bytes).is_none()
    }

    /// The output for a body that was saved to a file.
    pub(super) fn saved(mut self, saved: SavedFile) -> Result<ToolOutput, ToolFailure> {
        let new = if saved.created { " (new)" } else { "" };
        let note = format!("saved {} bytes to {}{new}", saved.bytes, saved.path);
        self.result.bytes = saved.bytes;
        self.result.saved_to = Some(saved.path);
        self.result.sha256 = Some(saved.sha256);
        self.note(note);
        self.output(None, None)
    }

    /// The output for a body that was read up to some limit. `most` is the limit of any call.
    pub(super) fn shown(
        mut self,
        body: HttpResponseBody,
        most: u64,
    ) -> Result<ToolOutput, ToolFailure> {
        let HttpResponseBody {
            bytes,
            whole,
            announced,
            kept,
        } = body;
        self.result.bytes = bytes.len() as u64;
        self.result.announced_bytes = announced;
        let total = if whole {
            Some(self.result.bytes)
        } else {
            kept.as_ref().map(|kept| kept.size).or(announced)
        };
        let kept = kept.map(|kept| kept.id);
        let said = self.result.media_type.clone();
        if bytes.is_empty() {
            return Ok(ToolOutput {
                is_empty: true,
                ..self.output(None, None)?
            });
        }
        let cut = |shown: u64| {
            (!whole || shown < bytes.len() as u64).then(|| Truncation {
                shown,
                total,
                unit: "bytes".to_owned(),
                hint: Some(match (kept, bytes.len() as u64 >= most) {
                    (Some(id), _) => {
                        format!("`read_result` with `ref` `{id}` reads any part of it, `search_result` finds lines")
                    }
                    (None, true) => "`save_to` saves the whole body to a file".to_owned(),
                    (None, false) => {
                        format!("give `max_bytes` up to {most}, or `save_to` for the whole body in a file")
                    }
                }),
                artifact: kept,
            })
        };
        if charset::is_text(said.as_deref(), self.label.as_deref(), &bytes) {
            let text = self.text(&bytes, whole);
            let truncated = cut(bytes.len() as u64);
            return self.output(Some(ResultContent::text(text)), truncated);
        }
        if let Some(media_type) = image_type(&bytes).filter(|_| whole) {
            let content = ResultContent::Image {
                data: BASE64.encode(&bytes),
                media_type: media_type.to_owned(),
            };
            return self.output(Some(content), None);
        }
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        let content = ResultContent::Binary {
            data: BASE64.encode(head),
            media_type: said.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size: total.unwrap_or(bytes.len() as u64),
        };
        self.note(format!(
            "the body is binary; only its first {} bytes are shown",
            head.len()
        ));
        let truncated = cut(head.len() as u64);
        self.output(Some(content), truncated)
    }

    fn text(&mut self, bytes: &[u8], whole: bool) -> String {
        let said = self.result.media_type.as_deref();
        let is_html = charset::is_html(said, bytes);
        let decoded = charset::decode(bytes, self.label.as_deref(), is_html, !whole);
        self.result.charset = Some(decoded.charset.to_owned());
        let text = self.scrubber.text(&decoded.text);
        if decoded.damaged {
            self.note(format!(
                "some bytes are not {} and were replaced",
                decoded.charset
            ));
        }
        if !charset::is_json(self.result.media_type.as_deref()) || !whole {
            return text;
        }
        // A larger value is only validated, because it could take a hundred times the memory of its text.
        let read = match text.len() <= JSON_BYTES {
            true => serde_json::from_str::<Value>(&text).map(Some),
            false => serde_json::from_str::<IgnoredAny>(&text).map(|_| None),
        };
        match read {
            Ok(value) => {
                self.result.json = value;
                indented(text)
            }
            Err(error) => {
                self.note(format!(
                    "the body is declared as JSON but is invalid: {error}"
                ));
                text
            }
        }
    }

    fn output(
        self,
        body: Option<ResultContent>,
        truncated: Option<Truncation>,
    ) -> Result<ToolOutput, ToolFailure> {
        let result = self.result;
        let mut text = format!("HTTP {}\n{}", self.status, result.url);
        for hop in &result.redirects {
            text.push_str(&format!(
                "\n(redirected with {} to {})",
                hop.status,
                visible_line(&hop.to)
            ));
        }
        for (name, value) in TOLD
            .iter()
            .filter_map(|name| Some((name, result.headers.get(*name)?)))
        {
            text.push_str(&format!("\n{name}: {}", visible_line(value)));
        }
        for note in &result.notes {
            text.push_str(&format!("\n[{}]", visible_line(note)));
        }
        let summary = format!(
            "{} from {}, {} bytes",
            self.status,
            host(&result.url),
            result.bytes
        );
        let mut content = Vec::new();
        match body {
            Some(ResultContent::Text { text: body }) => {
                text.push_str("\n\n");
                text.push_str(&visible_text(&body));
                content.push(ResultContent::text(end_of(text, truncated.as_ref())));
            }
            Some(other) => {
                content.push(ResultContent::text(end_of(text, truncated.as_ref())));
                content.push(other);
            }
            None => content.push(ResultContent::text(text)),
        }
        let structured = Some(serde_json::to_value(&result)?);
        Ok(ToolOutput {
            content,
            structured,
            summary: Some(summary),
            truncated,
            ..ToolOutput::default()
        })
    }
}

fn end_of(mut text: String, truncated: Option<&Truncation>) -> String {
    if let Some(Truncation {
        shown,
        total,
        hint: Some(hint),
        ..
    }) = truncated
    {
        let total = total
            .map(|total| format!(" of {total}"))
            .unwrap_or_default();
        text.push_str(&format!("\n[the first {shown}{total} bytes; {hint}]"));
    }
    text
}

fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

/// The headers, bounded. Only the names of cookies are shown: their values open a session, and this client has no
/// cookie jar that would need them.
fn told_headers(
    headers: &HeaderMap,
    scrubber: &CredentialScrubber<'_>,
    notes: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = match name == SET_COOKIE {
            true => format!(
                "{}=[left out]",
                value.split('=').next().unwrap_or_default().trim()
            ),
            false => scrubber.text(&value),
        };
        let value: String = value.chars().take(HEADER_CHARS).collect();
        if let Some(before) = told.get_mut(name.as_str()) {
            if before.len() < HEADER_CHARS {
                before.push_str(", ");
                before.push_str(&value);
            }
        } else if told.len() < MAX_HEADERS {
            told.insert(name.as_str().to_owned(), value);
        }
    }
    if headers.keys_len() > told.len() {
        notes.push(format!(
            "{} more headers are not shown",
            headers.keys_len() - told.len()
        ));
    }
    told
}

/// The media types of images that models can see, by the first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    MAGIC
        .iter()
        .find(|(magic, _)| bytes.starts_with(magic))
        .map(|(_, media_type)| *media_type)
}
