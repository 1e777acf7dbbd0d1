//! JSON-RPC: messages of the host, and messages of servers, checked only as far as the host needs. Results stay plain
//! JSON, so that no member is lost.

use serde_json::{Map, Value};

use super::{
    super::{clean::shortened, consult::UpstreamQuestionAnswer},
    LONGEST, McpRequestError,
};

const INITIALIZED: &str = "notifications/initialized";

/// An object of these members, in this order.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

pub(super) struct HostMessage(Map<String, Value>);

impl HostMessage {
    pub(super) fn request(id: u64, method: &str, params: Map<String, Value>) -> Self {
        Self(object([
            ("jsonrpc", "2.0".into()),
            ("id", id.into()),
            ("method", method.into()),
            ("params", params.into()),
        ]))
    }

    pub(super) fn initialized() -> Self {
        let method = INITIALIZED.into();
        Self(object([("jsonrpc", "2.0".into()), ("method", method)]))
    }

    /// The host no longer waits for the answer to a request.
    pub(super) fn cancellation(id: u64, reason: &str) -> Self {
        let params = object([("requestId", id.into()), ("reason", reason.into())]);
        Self(object([
            ("jsonrpc", "2.0".into()),
            ("method", "notifications/cancelled".into()),
            ("params", params.into()),
        ]))
    }

    /// The answer to a question of the server.
    pub(super) fn answer(id: Value, answer: UpstreamQuestionAnswer) -> Self {
        let (member, value) = match answer {
            UpstreamQuestionAnswer::Value(value) => ("result", value),
            UpstreamQuestionAnswer::Refused { code, message } => {
                let error = object([("code", code.into()), ("message", message.into())]);
                ("error", error.into())
            }
        };
        Self(object([
            ("jsonrpc", "2.0".into()),
            ("id", id),
            (member, value),
        ]))
    }

    /// `None`: it is an answer.
    pub(super) fn method(&self) -> Option<&str> {
        self.0.get("method")?.as_str()
    }

    pub(super) fn param(&self, name: &str) -> Option<&Value> {
        self.0.get("params")?.get(name)
    }

    /// Whether it belongs to the handshake.
    pub(super) fn is_handshake(&self) -> bool {
        let method = self.method();
        matches!(method, Some("initialize" | "server/discover" | INITIALIZED))
    }

    pub(super) fn text(&self) -> Vec<u8> {
        // A map of plain values always serializes.
        serde_json::to_vec(&self.0).unwrap_or_default()
    }
}

pub(super) enum UpstreamMessage {
    /// The id is null in an error that names no request.
    Answer {
        id: Value,
        answer: Result<Value, McpRequestError>,
    },
    Question {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

impl UpstreamMessage {
    /// `None`: it is no message.
    pub(super) fn read(message: Value) -> Option<Self> {
        let Value::Object(mut members) = message else {
            return None;
        };
        let id = members.remove("id");
        let has_id = matches!(id, Some(Value::String(_) | Value::Number(_)));
        let has_method = members.contains_key("method");
        // Some servers leave out the revision of JSON-RPC in their results.
        if let (true, false, Some(result)) = (has_id, has_method, members.remove("result")) {
            let id = id.unwrap_or_default();
            return Some(Self::Answer {
                id,
                answer: Ok(result),
            });
        }
        if members.get("jsonrpc")? != "2.0" {
            return None;
        }
        let error = members.remove("error");
        match (members.remove("method"), id, error) {
            (Some(Value::String(method)), id, None) => {
                let params = members.remove("params").unwrap_or_default();
                match id {
                    Some(id) if has_id => Some(Self::Question { id, method, params }),
                    Some(_) => None,
                    None => Some(Self::Notification { method, params }),
                }
            }
            (None, id, Some(error)) if has_id || id.as_ref().is_none_or(Value::is_null) => {
                let id = id.unwrap_or_default();
                let answer = Err(remote_error(error)?);
                Some(Self::Answer { id, answer })
            }
            _ => None,
        }
    }
}

fn remote_error(mut error: Value) -> Option<McpRequestError> {
    Some(McpRequestError::Remote {
        code: i32::try_from(error["code"].as_i64()?).ok()?,
        message: shortened(error["message"].as_str()?, LONGEST),
        data: Some(error["data"].take()).filter(|data| !data.is_null()),
    })
}

/// An id or a progress token of the host. Some servers give it back as a text.
pub(super) fn id_of(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}
