//! Errors before a call: one JSON shape, the right status, and a hint.

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use toolpost_core::{ApprovalError, JournalError, RuleStoreError, SessionError};
use toolpost_model::ArtifactError;

use super::RouteState;
use crate::{feed::FeedOpenError, streams};

#[derive(Debug)]
pub(crate) struct HttpProblem {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<String>,
    retry_after: Option<Duration>,
}

impl HttpProblem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: None,
            retry_after: None,
        }
    }

    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(super) fn operators_only(message: impl Into<String>) -> Self {
        Self::forbidden("operators_only", message).hint(
            "use an operator's token, or a command on this machine, such as `toolpost approvals`",
        )
    }

    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub(super) fn range_not_satisfiable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            message,
        )
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    fn unprocessable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path does not support that method",
        )
    }

    pub(crate) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "the body is over the limit (setting `http.body_limit`)",
        )
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "too_slow",
            "the body did not arrive in time",
        )
    }

    pub(crate) fn unsupported_media_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "not_json",
            "the body must be sent as `application/json`",
        )
        .hint("with curl, use `--json '{…}'`")
    }

    pub(crate) fn too_many_streams(message: impl Into<String>) -> Self {
        Self {
            retry_after: Some(streams::RETRY_AFTER),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams", message)
        }
        .hint("close an unused stream")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ApprovalError> for HttpProblem {
    fn from(error: ApprovalError) -> Self {
        let message = error.to_string();
        match error {
            ApprovalError::Unknown(_) => Self::not_found("unknown_approval", message)
                .hint("`GET /approvals` lists the open questions"),
            ApprovalError::AlreadyDecided { .. } => Self::conflict("already_decided", message),
            ApprovalError::Expired => Self::new(StatusCode::GONE, "expired", message),
            ApprovalError::Withdrawn => Self::new(StatusCode::GONE, "withdrawn", message),
            ApprovalError::NotOperator => Self::operators_only(message),
            ApprovalError::OwnCall(_) => Self::forbidden("own_call", message),
            ApprovalError::BadArguments(_) => Self::unprocessable("bad_arguments", message),
            ApprovalError::NothingToRemember { .. }
            | ApprovalError::NothingOffered
            | ApprovalError::RuleBesideOffer(_) => {
                Self::unprocessable("nothing_to_remember", message)
            }
            ApprovalError::Redacted => Self::unprocessable("redacted", message),
            ApprovalError::Journal(_) => Self::unavailable("journal_unavailable", message),
            ApprovalError::Rules(_) => Self::unavailable("rules_unavailable", message),
        }
    }
}

impl From<RuleStoreError> for HttpProblem {
    fn from(error: RuleStoreError) -> Self {
        Self::unavailable("rules_unavailable", error.to_string())
    }
}

impl From<ArtifactError> for HttpProblem {
    fn from(error: ArtifactError) -> Self {
        let message = error.to_string();
        match error {
            ArtifactError::Unknown(_) => Self::not_found("unknown_artifact", message)
                .hint("the result of the call that kept it lists its `artifacts`"),
            ArtifactError::Gone(_) => Self::new(StatusCode::GONE, "artifact_gone", message)
                .hint("`retention.artifacts` limits how long results are kept"),
            ArtifactError::Damaged(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "artifact_damaged",
                message,
            ),
            ArtifactError::Full { .. }
            | ArtifactError::Shared(_)
            | ArtifactError::TooLarge { .. }
            | ArtifactError::Storage(_) => Self::unavailable("artifacts_unavailable", message),
        }
    }
}

impl From<SessionError> for HttpProblem {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        match error {
            SessionError::Unknown(_) => Self::not_found("unknown_session", message)
                .hint("open one with `POST /sessions`, or leave the header out"),
            SessionError::Default => Self::bad_request("default_session", message),
            SessionError::SurfaceTooLarge(_) => Self::bad_request("bad_surface_request", message),
            SessionError::Full(_) => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_sessions", message)
            }
            SessionError::Journal(error) => error.into(),
        }
    }
}

impl From<FeedOpenError> for HttpProblem {
    fn from(error: FeedOpenError) -> Self {
        match error {
            FeedOpenError::Crowded(crowded) => Self::too_many_streams(crowded.to_string()),
            FeedOpenError::Journal(error) => error.into(),
        }
    }
}

impl From<super::formats::UnknownFormat> for HttpProblem {
    fn from(error: super::formats::UnknownFormat) -> Self {
        Self::bad_request("bad_format", error.to_string())
    }
}

impl From<JournalError> for HttpProblem {
    fn from(error: JournalError) -> Self {
        Self::unavailable("journal_unavailable", error.to_string())
    }
}

/// The body of a problem. It may repeat parts of a request, so it is redacted before it is sent.
#[derive(Clone)]
struct ProblemBody(String);

/// Redacts the body of a problem. Other answers were redacted when they were made.
pub(super) async fn without_secrets(
    State(shared): State<RouteState>,
    mut response: Response,
) -> Response {
    let Some(ProblemBody(told)) = response.extensions_mut().remove::<ProblemBody>() else {
        return response;
    };
    if let Cow::Owned(clean) = shared.host.redacted(&told) {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(clean);
    }
    response
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let body = match self.hint {
            Some(hint) => {
                json!({ "error": { "code": self.code, "message": self.message, "hint": hint } })
            }
            None => json!({ "error": { "code": self.code, "message": self.message } }),
        };
        let mut response = (self.status, Json(&body)).into_response();
        response
            .extensions_mut()
            .insert(ProblemBody(body.to_string()));
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(
                header::RETRY_AFTER,
                HeaderValue::from(wait.as_secs().max(1)),
            );
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
