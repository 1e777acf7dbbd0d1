//! The JSON-RPC envelope.

use serde_json::Value;

use super::members::JsonObjectWriter;
use super::{A2aDialect, A2aRefusal, ErrorCode};

/// The id that a peer gives its request. Answers return it unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestId(Value);

impl RequestId {
    /// A longer text is refused as an id: every item of a stream repeats it.
    const LONGEST: usize = 256;

    /// The id for a request whose id could not be read.
    pub const NONE: Self = Self(Value::Null);

    fn read(value: &Value) -> Option<Self> {
        let fits = match value {
            Value::Null | Value::Number(_) => true,
            Value::String(text) => text.len() <= Self::LONGEST,
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        };
        fits.then(|| Self(value.clone()))
    }
}

/// A request whose parameters are not read yet.
#[derive(Clone, Debug, PartialEq)]
pub struct A2aRequest {
    /// The request's id.
    pub id: RequestId,
    /// The method under its name in either dialect.
    pub method: String,
    /// The parameters; `null` if there are none.
    pub params: Value,
}

impl A2aRequest {
    /// Reads the envelope. An error holds the id to answer under, as far as it could be read.
    pub fn read(value: &Value) -> Result<Self, (RequestId, A2aRefusal)> {
        let invalid = |id: RequestId, message: &str| {
            (id, A2aRefusal::new(ErrorCode::InvalidRequest, message))
        };
        let Value::Object(members) = value else {
            return Err(invalid(
                RequestId::NONE,
                "a request must be one object; batches are not supported",
            ));
        };
        let Some(id) = members
            .get("id")
            .map_or(Some(RequestId::NONE), RequestId::read)
        else {
            let message = "`id` must be a number, or a text of at most 256 bytes";
            return Err(invalid(RequestId::NONE, message));
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(id, "`jsonrpc` must be `2.0`"));
        }
        match (members.get("method"), members.get("params")) {
            (Some(Value::String(method)), None | Some(Value::Null)) => Ok(Self {
                id,
                method: method.clone(),
                params: Value::Null,
            }),
            (Some(Value::String(method)), Some(params @ Value::Object(_))) => Ok(Self {
                id,
                method: method.clone(),
                params: params.clone(),
            }),
            (Some(Value::String(_)), Some(_)) => Err((
                id,
                A2aRefusal::new(ErrorCode::InvalidParams, "`params` must be an object"),
            )),
            (None | Some(_), _) => Err(invalid(id, "`method` must be a text")),
        }
    }
}

/// The answer to a request, or one item of a stream that answers it.
pub fn answer(id: &RequestId, result: Value) -> Value {
    envelope(id, "result", result)
}

/// The answer to a refused request.
pub fn refused(id: &RequestId, refusal: &A2aRefusal, dialect: A2aDialect) -> Value {
    envelope(id, "error", refusal.to_value(dialect))
}

fn envelope(id: &RequestId, member: &str, value: Value) -> Value {
    JsonObjectWriter::default()
        .with("jsonrpc", "2.0")
        .with("id", id.0.clone())
        .with(member, value)
        .done()
}
