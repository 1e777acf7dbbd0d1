//! JSON-RPC around it all.

use serde_json::Value;

use super::members::JsonObjectWriter;
use super::{A2aDialect, A2aRefusal, ErrorCode};

/// What a peer calls its request. Given back as it came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestId(Value);

impl RequestId {
    /// A longer text is no id: it would come back in every item of a stream.
    const LONGEST: usize = 256;

    /// Of a request that could not be read as far as its id.
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

/// A request, apart from what its method makes of the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct A2aRequest {
    /// What the peer calls it.
    pub id: RequestId,
    /// The method by its name in whichever dialect.
    pub method: String,
    /// What the method takes; `null` where there is nothing.
    pub params: Value,
}

impl A2aRequest {
    /// Reads the envelope. A refusal comes with the id to answer under, as far as there is one.
    pub fn read(value: &Value) -> Result<Self, (RequestId, A2aRefusal)> {
        let invalid = |id: RequestId, message: &str| {
            (id, A2aRefusal::new(ErrorCode::InvalidRequest, message))
        };
        let Value::Object(members) = value else {
            return Err(invalid(
                RequestId::NONE,
                "a request must be one object; batches are not taken",
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

/// The answer to a request that was not done.
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
