//! The faults of a request: their JSON-RPC code and their HTTP status.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::version;
use crate::streams::{self, StreamsFull};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct McpFault {
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) data: Option<Value>,
    /// The status in the stateless era; sessions answer most faults with 200.
    pub(super) status: StatusCode,
}

impl McpFault {
    fn new(code: i32, status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            status,
        }
    }

    pub(super) fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(super) fn unreadable(message: impl Into<String>) -> Self {
        Self::new(-32700, StatusCode::BAD_REQUEST, message)
    }

    /// The JSON is not a message.
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn line_too_long(limit: usize) -> Self {
        let message = format!("a message has at most {limit} bytes (setting `http.body_limit`)");
        Self::invalid_request(message)
    }

    pub(super) fn no_such_method(method: &str) -> Self {
        let shown: String = method
            .chars()
            .take(80)
            .flat_map(char::escape_debug)
            .collect();
        Self::new(
            -32601,
            StatusCode::NOT_FOUND,
            format!("the method `{shown}` is not supported"),
        )
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, StatusCode::OK, message)
    }

    /// A request of the stateless era without its required `_meta` members. The request itself is malformed.
    pub(super) fn missing_meta(missing: &[&str]) -> Self {
        let message = format!(
            "`_meta` has missing or invalid members: {}",
            missing.join(", ")
        );
        Self::new(-32602, StatusCode::BAD_REQUEST, message)
    }

    /// The same for a client that could also open a session.
    pub(super) fn missing_meta_or_session(missing: &[&str]) -> Self {
        let mut fault = Self::missing_meta(missing);
        fault
            .message
            .push_str("; or open a session with `initialize`");
        fault
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, StatusCode::OK, message)
    }

    pub(super) fn too_many_streams(full: StreamsFull) -> Self {
        let wait = json!({ "retryAfter": streams::RETRY_AFTER.as_secs() });
        Self::new(-32603, StatusCode::TOO_MANY_REQUESTS, full.to_string()).with(wait)
    }

    pub(super) fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(-32020, StatusCode::BAD_REQUEST, message)
    }

    /// The client does not support a capability that the request needs.
    pub(super) fn missing_capability(required: &Value) -> Self {
        let message = "the request requires a capability that the client does not have";
        Self::new(-32021, StatusCode::BAD_REQUEST, message)
            .with(json!({ "requiredCapabilities": required }))
    }

    pub(super) fn unsupported_version(requested: &str) -> Self {
        let requested: String = requested.chars().take(80).collect();
        Self::new(
            -32022,
            StatusCode::BAD_REQUEST,
            "this version of the protocol is not supported",
        )
        .with(json!({ "supported": version::supported(), "requested": requested }))
    }

    /// No resource has this address. The code differs between the eras.
    pub(super) fn no_such_resource(uri: &str, modern: bool) -> Self {
        let shown: String = uri.chars().take(500).collect();
        let code = if modern { -32602 } else { -32002 };
        Self::new(code, StatusCode::OK, "there is no such resource").with(json!({ "uri": shown }))
    }
}
