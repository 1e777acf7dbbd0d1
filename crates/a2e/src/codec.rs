//! The wire form of a message: one JSON object in pure ASCII, on one line or as one server-sent event.
//!
//! Existing clients split their input at every character that Unicode calls a line break, and reread an incomplete line
//! with every few hundred bytes. Therefore text is escaped and long messages are broken into lines between tokens.

mod format;
mod heading;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value, value::RawValue};

use crate::{Body, ErrorCode, ErrorMessage, Message, OtherBody, ToolEventMessage};
use format::AsciiFormatter;
pub use heading::MessageHeading;

/// The protocol version of this crate.
pub const VERSION: &str = "1.0";
/// Messages with deeper nesting are refused.
pub const MAX_DEPTH: usize = 128;
/// Messages with longer ids are refused.
pub const MAX_ID: usize = 256;
/// The length of the quoted reason why a message cannot be read, in characters.
const MAX_REASON: usize = 200;
/// The limit of a request that is not a call.
const MAX_SMALL: usize = 64 << 10;
/// A line of a server-sent event is broken between two tokens after this many bytes.
const EVENT_LINE: usize = 8 << 10;

/// The framing of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFraming {
    /// One line: stdio.
    Line,
    /// A server-sent event.
    Event,
}

/// A message to be written. Its body may be borrowed.
#[derive(Serialize)]
pub struct OutgoingMessage<'a, B> {
    /// The message type.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The id; left out if empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub id: &'a str,
    /// The protocol version.
    pub version: &'a str,
    /// The time, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<f64>,
    /// The fields.
    #[serde(flatten)]
    pub body: B,
}

impl<'a> From<&'a Message> for OutgoingMessage<'a, WireBody<'a>> {
    fn from(message: &'a Message) -> Self {
        let version = message.version.as_deref().unwrap_or(VERSION);
        Self {
            kind: message.body.kind(),
            id: &message.id,
            version,
            ts: message.ts,
            body: WireBody(&message.body),
        }
    }
}

/// A body that is written without its type.
pub struct WireBody<'a>(&'a Body);

impl Serialize for WireBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

/// Writes events inside another message as whole messages, with their type.
pub(crate) fn whole_events<S: Serializer>(
    events: &(impl AsRef<[ToolEventMessage]> + ?Sized),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.as_ref().iter().map(WholeEvent))
}

struct WholeEvent<'a>(&'a ToolEventMessage);

impl Serialize for WholeEvent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(body) = self;
        let id = body.message_id();
        OutgoingMessage {
            kind: "tool/event",
            id: &id,
            version: VERSION,
            ts: body.at,
            body,
        }
        .serialize(serializer)
    }
}

/// Appends a message in its frame. A server-sent event gets its id as event id, so that a reader can resume after it.
pub fn encode_into<B: Serialize>(
    out: &mut Vec<u8>,
    message: &OutgoingMessage<'_, B>,
    framing: MessageFraming,
) {
    let formatter = match framing {
        MessageFraming::Line => AsciiFormatter::on_one_line(),
        MessageFraming::Event => {
            out.extend_from_slice(b"data: ");
            AsciiFormatter::broken_after(EVENT_LINE)
        }
    };
    let start = out.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
    if message.serialize(&mut serializer).is_err() {
        // Serialization fails only for text that claims to be JSON and is not. The reader gets an error instead of
        // silence.
        out.truncate(start);
        let lost = ErrorMessage::new(ErrorCode::RuntimeError, "an answer could not be written");
        let body = OutgoingMessage {
            kind: "error",
            id: message.id,
            version: VERSION,
            ts: None,
            body: lost,
        };
        let _ = serde_json::to_writer(&mut *out, &body);
    }
    out.extend_from_slice(match framing {
        MessageFraming::Line => b"\n",
        MessageFraming::Event => b"\n\n",
    });
}

/// A message as a line or an event.
pub fn encode(message: &Message, framing: MessageFraming) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    encode_into(&mut out, &OutgoingMessage::from(message), framing);
    out
}

/// The envelope of a message whose body is not read yet.
#[derive(Deserialize)]
struct RawMessageEnvelope<'a> {
    #[serde(default, borrow, rename = "type", deserialize_with = "present")]
    kind: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    a2e: Option<&'a RawValue>,
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
}

/// A present field, `null` included.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The reading side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderSide {
    /// A host. It reads only the type of messages that only hosts send.
    Host,
    /// An agent.
    Agent,
}

/// Reads one message. An unreadable message is refused with the error that its sender should get.
pub fn decode(bytes: &[u8], side: ReaderSide) -> Result<Message, Box<ErrorMessage>> {
    let unreadable = |reason: String| {
        Box::new(ErrorMessage::new(ErrorCode::ParseError, shortened(&reason)).to(id_in(bytes)))
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| unreadable(format!("the message is not UTF-8: {error}")))?;
    if depth(text) > MAX_DEPTH {
        return Err(unreadable(format!(
            "the message is nested deeper than {MAX_DEPTH}"
        )));
    }
    if !text.trim_start().starts_with('{') {
        return Err(match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => invalid("", "a message must be a JSON object"),
            Err(error) => unreadable(format!("the message is not JSON: {error}")),
        });
    }
    let head: RawMessageEnvelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            invalid(&id_in(bytes), shortened(&error.to_string()))
        } else {
            unreadable(format!("the message is not JSON: {error}"))
        }
    })?;
    let id = match head.id.map(words) {
        None => Cow::Borrowed(""),
        Some(Some(id)) if id.len() <= MAX_ID => id,
        Some(Some(_)) => {
            return Err(invalid(
                "",
                format!("the `id` is longer than {MAX_ID} bytes"),
            ));
        }
        Some(None) => return Err(invalid("", "the `id` must be a string")),
    };
    let kind = match head.kind.map(words) {
        None => return Err(invalid(&id, "the message has no `type`")),
        Some(None) => return Err(invalid(&id, "the `type` must be a string")),
        Some(Some(kind)) => kind,
    };
    let version = match head
        .version
        .or(head.a2e)
        .filter(|given| given.get() != "null")
    {
        None => None,
        Some(given) => match words(given) {
            Some(version) => Some(version.into_owned()),
            None => return Err(invalid(&id, "the `version` must be a string")),
        },
    };
    // Calls and messages of other capabilities may be large. All other requests are limited, because their text is kept
    // for a while.
    let is_small = Body::is_request(&kind) && Body::is_known(&kind) && kind != "tool/call/req";
    if side == ReaderSide::Host && is_small && text.len() > MAX_SMALL {
        let reason = format!("a `{}` may be {MAX_SMALL} bytes long", shortened(&kind));
        return Err(Box::new(
            ErrorMessage::new(ErrorCode::SchemaViolation, reason).to(&*id),
        ));
    }
    let is_known = side == ReaderSide::Agent || Body::is_request(&kind);
    let read = if is_known {
        Body::read(&kind, text)
    } else {
        None
    };
    let body = match read {
        Some(Ok(body)) => body,
        Some(Err(error)) => return Err(violation(&id, &error)),
        None => Body::Other(other(&kind, text).map_err(|error| unreadable(error.to_string()))?),
    };
    let ts = head.ts.and_then(|ts| ts.get().parse().ok());
    Ok(Message {
        id: id.into_owned(),
        version,
        ts,
        body,
    })
}

/// Reads the fields of a body. An error names the place of the wrong field.
pub(crate) fn fields<B: DeserializeOwned>(
    text: &str,
) -> Result<B, serde_path_to_error::Error<serde_json::Error>> {
    // The plain parse comes first, because tracking the place costs as much as parsing.
    match serde_json::from_str(text) {
        Ok(body) => Ok(body),
        Err(_) => serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text)),
    }
}

fn other(kind: &str, text: &str) -> serde_json::Result<OtherBody> {
    let mut fields: Map<String, Value> = serde_json::from_str(text)?;
    for name in ["type", "id", "version", "ts"] {
        fields.remove(name);
    }
    Ok(OtherBody {
        kind: kind.to_owned(),
        fields,
    })
}

fn words(raw: &RawValue) -> Option<Cow<'_, str>> {
    if !raw.get().starts_with('"') {
        return None;
    }
    serde_json::from_str(raw.get())
        .ok()
        .map(|BorrowedJsonText(text)| text)
}

#[derive(Deserialize)]
struct BorrowedJsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Shortens a reason. It may quote the message, which can have megabytes.
fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

/// The id of a message that cannot be read as a whole, if its beginning holds one.
pub fn id_in(head: &[u8]) -> String {
    let mut place = 0;
    let mut depth = 0_usize;
    while let Some(byte) = head.get(place) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = string_end(head, place) else {
                    break;
                };
                if depth == 1
                    && &head[place..end] == b"\"id\""
                    && let Some(value) = head[end..].trim_ascii_start().strip_prefix(b":")
                {
                    let value = value.trim_ascii_start();
                    let end = if value.first() == Some(&b'"') {
                        string_end(value, 0)
                    } else {
                        None
                    };
                    let id =
                        end.and_then(|end| serde_json::from_slice::<String>(&value[..end]).ok());
                    return id.filter(|id| id.len() <= MAX_ID).unwrap_or_default();
                }
                place = end;
                continue;
            }
            _ => {}
        }
        place += 1;
    }
    String::new()
}

/// The end of the string that begins at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut place = start + 1;
    loop {
        match text.get(place)? {
            b'"' => return Some(place + 1),
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
}

fn invalid(id: &str, message: impl Into<String>) -> Box<ErrorMessage> {
    Box::new(ErrorMessage::new(ErrorCode::InvalidMessage, message).to(id))
}

fn violation(id: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> Box<ErrorMessage> {
    let path = shortened(&error.path().to_string());
    let reason = error.inner().to_string();
    // The column refers to the whole message, which the sender did not write by hand, so it is left out.
    let reason = shortened(reason.split(" at line ").next().unwrap_or_default());
    let reason = reason.as_str();
    let missing = reason
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'));
    let (field, message) = match (path.as_str(), missing) {
        (".", Some(missing)) => (missing, format!("`{missing}` is missing")),
        (".", None) => ("", reason.to_owned()),
        (path, _) => (path, format!("`{path}`: {reason}")),
    };
    let mut refused = ErrorMessage::new(ErrorCode::SchemaViolation, message).to(id);
    if !field.is_empty() {
        refused
            .detail
            .insert("field".to_owned(), Value::from(field));
    }
    Box::new(refused)
}

/// Whether a reader with this crate's limit would refuse a text for its nesting.
pub(crate) fn is_too_deep(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| depth(text) > MAX_DEPTH)
}

/// The depth of the brackets of a text, strings left out.
fn depth(text: &str) -> usize {
    let mut deepest = 0_usize;
    let mut now = 0_usize;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' => now = now.saturating_sub(1),
            b'"' => loop {
                match bytes.next() {
                    None | Some(b'"') => break,
                    Some(b'\\') => {
                        bytes.next();
                    }
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    deepest
}
