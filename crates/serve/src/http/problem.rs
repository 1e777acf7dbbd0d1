//! What goes wrong before there is a call: one JSON shape, the right status, and what to do about it.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use toolpost_core::{JournalError, SessionError};

/// A refusal of a request.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not take that method")
    }

    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "the body is over the limit (setting `http.body_limit`)",
        )
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time")
    }

    pub(crate) fn unsupported_media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            "the body must be sent as `application/json`",
        )
        .hint("with curl, use `--json '{…}'`")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Problem {
    /// A question that does not wait for an answer.
    pub(crate) fn not_open(id: InvocationId, closed: Option<&Closed>) -> Self {
        match closed {
            None => Self::not_found("unknown_approval", format!("no question `{id}` waits for an answer"))
                .hint("`GET /approvals` lists those that do"),
            Some(Closed::Decided { by, at, allowed }) => {
                let word = if *allowed { "allowed" } else { "denied" };
                let message = format!("the question `{id}` was answered already: {word} by {by} at {at}");
                Self::new(StatusCode::CONFLICT, "already_decided", message)
            }
            Some(Closed::Expired) => {
                let message = format!("the question `{id}` has expired, which was a no");
                Self::new(StatusCode::GONE, "expired", message)
            }
            Some(Closed::Withdrawn) => {
                let message = format!("the call behind the question `{id}` was given up");
                Self::new(StatusCode::GONE, "withdrawn", message)
            }
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        match error {
            SessionError::Unknown(_) => Self::not_found("unknown_session", message)
                .hint("open one with `POST /sessions`, or leave the header out"),
            SessionError::Default => Self::bad_request("default_session", message),
            SessionError::Full(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", message),
            SessionError::Journal(error) => error.into(),
        }
    }
}

impl From<super::formats::UnknownFormat> for Problem {
    fn from(error: super::formats::UnknownFormat) -> Self {
        Self::bad_request("bad_format", error.to_string())
    }
}

impl From<JournalError> for Problem {
    fn from(error: JournalError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal_unavailable", error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = match self.hint {
            Some(hint) => json!({ "error": { "code": self.code, "message": self.message, "hint": hint } }),
            None => json!({ "error": { "code": self.code, "message": self.message } }),
        };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
