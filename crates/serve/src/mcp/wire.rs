//! The JSON-RPC form of messages. A message is read without copying its contents, and answers are built from texts that
//! are JSON already.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::fault::McpFault;

/// A received message. Its contents stay text until they are used.
#[derive(Debug)]
pub(super) enum JsonRpcMessage<'a> {
    Request {
        id: McpRequestId,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// The answer to a question of this host.
    Response {
        id: McpRequestId,
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

/// The id of a request, exactly as received: a JSON string or number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct McpRequestId(Box<str>);

/// The longest id. It is repeated in answers, kept while its request runs, and recorded.
const LONGEST_ID: usize = 512;

impl McpRequestId {
    fn read(raw: &RawValue) -> Result<Self, McpFault> {
        let text = raw.get();
        let is_id = matches!(text.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
        if !is_id || text.len() > LONGEST_ID {
            return Err(McpFault::invalid_request(
                "an id must be a string or a number of at most 512 bytes",
            ));
        }
        Ok(Self(text.into()))
    }

    /// For a stream that answers no request.
    pub(super) fn none() -> Self {
        Self("null".into())
    }

    pub(super) fn as_json(&self) -> &str {
        &self.0
    }

    /// The id as the client would print it.
    pub(super) fn to_text(&self) -> String {
        serde_json::from_str(&self.0).unwrap_or_else(|_| (*self.0).to_owned())
    }
}

#[derive(Deserialize)]
struct JsonRpcEnvelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Distinguishes a `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Whether a text that may be JSON is an object. Serde would also read a list into a struct, by the order of the
/// fields.
pub(super) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn envelope(text: &str) -> Result<JsonRpcEnvelope<'_>, McpFault> {
    let unreadable =
        |error: &serde_json::Error| McpFault::unreadable(format!("this is not JSON: {error}"));
    if !is_object(text) {
        let is_json = serde_json::from_str::<IgnoredAny>(text);
        is_json.map_err(|error| unreadable(&error))?;
        return Err(McpFault::invalid_request(
            "a message must be one object; send several messages one by one",
        ));
    }
    serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => McpFault::invalid_request(format!(
            "this is not a JSON-RPC message: `jsonrpc` and `method` must be texts, and no member may occur twice ({})",
            place(&error)
        )),
        false => unreadable(&error),
    })
}

/// The place of an error in a text. The rest of the parser's message describes internal types and is left out.
fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

/// Reads one message. A fault comes with the id of its request, if that could be read.
pub(super) fn read(text: &str) -> Result<JsonRpcMessage<'_>, (Option<McpRequestId>, McpFault)> {
    let envelope = envelope(text).map_err(|fault| (None, fault))?;
    let id = envelope
        .id
        .map(McpRequestId::read)
        .transpose()
        .map_err(|fault| (None, fault))?;
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err((id, McpFault::invalid_request("`jsonrpc` must be \"2.0\"")));
    }
    let shape = (id, envelope.method, envelope.result, envelope.error);
    match shape {
        (Some(id), Some(method), None, None) => Ok(JsonRpcMessage::Request {
            id,
            method,
            params: envelope.params,
        }),
        (None, Some(method), None, None) => Ok(JsonRpcMessage::Notification {
            method,
            params: envelope.params,
        }),
        (Some(id), None, Some(result), None) => Ok(JsonRpcMessage::Response {
            id,
            outcome: Ok(result),
        }),
        (Some(id), None, None, Some(error)) => Ok(JsonRpcMessage::Response {
            id,
            outcome: Err(error),
        }),
        (id, _, _, _) => Err((
            id,
            McpFault::invalid_request("a message must be a request, a notification or an answer"),
        )),
    }
}

pub(super) fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, McpFault> {
    let text = params.map_or("{}", RawValue::get);
    if !is_object(text) {
        return Err(McpFault::invalid_params(
            "`params` must be an object of named parameters",
        ));
    }
    serde_json::from_str(text).map_err(|error| {
        let place = place(&error);
        McpFault::invalid_params(format!(
            "a parameter has a wrong type or occurs twice ({place} of `params`)"
        ))
    })
}

/// The result of a request, as JSON text in up to three pieces: long lists are shared and not copied.
#[derive(Clone, Debug)]
pub(super) enum McpReply {
    Text(String),
    Pieces {
        before: String,
        shared: Bytes,
        after: String,
    },
    /// No answer: the client canceled the request.
    Nothing,
}

/// Serializes a value. The values are this crate's own types, whose serialization cannot fail.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// A whole answer to a request with this JSON id.
pub(super) fn answer_text(id: &str, result: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ))
}

/// A whole answer, as pieces to be sent in order.
pub(super) fn answer(id: &McpRequestId, result: McpReply) -> [Bytes; 3] {
    let head = |room: usize| {
        let mut text = String::with_capacity(room + id.as_json().len() + 40);
        text.push_str(r#"{"jsonrpc":"2.0","id":"#);
        text.push_str(id.as_json());
        text.push_str(r#","result":"#);
        text
    };
    match result {
        McpReply::Text(result) => {
            let mut text = head(result.len());
            text.push_str(&result);
            text.push('}');
            [Bytes::from(text), Bytes::new(), Bytes::new()]
        }
        McpReply::Pieces {
            before,
            shared,
            mut after,
        } => {
            let mut text = head(before.len());
            text.push_str(&before);
            after.push('}');
            [Bytes::from(text), shared, Bytes::from(after)]
        }
        McpReply::Nothing => [Bytes::new(), Bytes::new(), Bytes::new()],
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a serde_json::Value>,
}

/// A whole refusal. If it belongs to no request it has no id, because MCP does not allow `null`.
pub(super) fn refusal(id: Option<&McpRequestId>, fault: &McpFault) -> Bytes {
    refusal_text(id.map(McpRequestId::as_json), fault)
}

/// A whole refusal of a request with this JSON id.
pub(super) fn refusal_text(id: Option<&str>, fault: &McpFault) -> Bytes {
    let body = ErrorBody {
        code: fault.code,
        message: &fault.message,
        data: fault.data.as_ref(),
    };
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0",{id}"error":{}}}"#,
        json(&body)
    ))
}

/// A whole notification.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{}}}"#,
        json(params)
    ))
}

/// A whole request of this host.
pub(super) fn request(id: &str, method: &str, params: &impl Serialize) -> Bytes {
    let id = json(&id);
    let params = json(params);
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
    ))
}
