//! `POST /tools/{name}/call`: arguments in, result out.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    body::{Body, Bytes},
    extract::{Path, Query, State, rejection::BytesRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use serde::Deserialize;
use tokio::sync::mpsc;
use toolpost_core::{Acknowledged, Answer, CallRequest, Explanation};
use toolpost_model::{ErrorClass, ModelInput, Principal, RequestId};

use super::{Problem, session_of, stream};
use crate::server::Shared;

/// Events a slow reader may fall behind before it loses some.
const EVENT_BUFFER: usize = 256;
/// The longest `Idempotency-Key`.
const MAX_KEY: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallQuery {
    /// The deadline the caller wishes for, in seconds.
    timeout: Option<f64>,
    correlation_id: Option<String>,
}

pub(super) async fn call(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    Path(tool): Path<String>,
    query: Result<Query<CallQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let mut request = read_request(&shared, &principal, tool, query, &headers, body).await?;
    request.request_id = idempotency_key(&headers)?;
    // A caller that can repeat its request will come back for the answer; one that cannot is gone for good.
    let can_repeat = request.request_id.is_some();
    let streams = accepts_events(&headers);
    let mut events = None;
    if streams {
        let (sender, receiver) = mpsc::channel(EVENT_BUFFER);
        request.events = Some(sender);
        request.acknowledged = Acknowledged::Early;
        events = Some(receiver);
    }
    let mut handle = shared.host.start(request).await;
    if can_repeat {
        handle.detach();
    }
    match events {
        None => Ok(respond(&handle.answer().await)),
        Some(events) => {
            handle.accepted().await;
            Ok(stream::respond(handle, events))
        }
    }
}

/// `POST /tools/{name}/explain`: what would happen, without it happening.
pub(super) async fn explain(
    State(shared): State<Shared>,
    Extension(principal): Extension<Principal>,
    Path(tool): Path<String>,
    query: Result<Query<CallQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Explanation>, Problem> {
    let request = read_request(&shared, &principal, tool, query, &headers, body).await?;
    Ok(Json(shared.host.explain(request).await))
}

async fn read_request(
    shared: &Shared,
    principal: &Principal,
    tool: String,
    query: Result<Query<CallQuery>, axum::extract::rejection::QueryRejection>,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<CallRequest, Problem> {
    let Query(query) = query.map_err(|error| Problem::bad_request("bad_query", error.body_text()))?;
    let input = arguments(headers, body)?;
    let session = session_of(&shared.host, principal, headers).await?;
    let mut request = CallRequest::new(session, tool, input);
    request.face = "http";
    request.correlation_id = query.correlation_id;
    request.timeout = query.timeout.map(seconds).transpose()?;
    Ok(request)
}

/// The body is the arguments. Only JSON is taken: a form that a browser posts across sites is not.
fn arguments(headers: &HeaderMap, body: Result<Bytes, BytesRejection>) -> Result<ModelInput, Problem> {
    let body = match body {
        Ok(body) => body,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => return Err(Problem::too_large()),
        Err(rejection) => return Err(Problem::bad_request("bad_body", rejection.body_text())),
    };
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_json = media_type.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("application/json"));
    if !is_json && !(body.is_empty() && media_type.is_empty()) {
        return Err(Problem::unsupported_media_type());
    }
    let text = std::str::from_utf8(&body)
        .map_err(|error| Problem::bad_request("not_utf8", format!("the body is not UTF-8: {error}")))?;
    Ok(ModelInput::text(text))
}

fn seconds(given: f64) -> Result<Duration, Problem> {
    Duration::try_from_secs_f64(given)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| Problem::bad_request("bad_timeout", format!("`timeout` must be seconds over 0, not {given}")))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<RequestId>, Problem> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    match key.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY => Ok(Some(RequestId::new(key))),
        _ => Err(Problem::bad_request("bad_key", format!("`Idempotency-Key` must be 1 to {MAX_KEY} printable characters"))),
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|part| part.trim().starts_with("text/event-stream"))
}

/// The answer's own bytes, with a status for callers that look no further.
fn respond(answer: &Arc<Answer>) -> Response {
    let mut response = Response::new(Body::from(answer.json().to_owned()));
    *response.status_mut() = status(answer.result().error_class());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(after) = answer.result().error.as_ref().and_then(|error| error.retry.after_ms) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(after.div_ceil(1_000)));
    }
    response
}

/// 200 whenever the tool ran, whatever came of it; 4xx and 5xx where the host did not let it.
fn status(class: Option<ErrorClass>) -> StatusCode {
    match class {
        None
        | Some(
            ErrorClass::ExecutionFailed
            | ErrorClass::Timeout
            | ErrorClass::Canceled
            | ErrorClass::DependencyUnavailable
            | ErrorClass::ResultTooLarge
            | ErrorClass::OutcomeUnknown,
        ) => StatusCode::OK,
        Some(ErrorClass::UnknownTool) => StatusCode::NOT_FOUND,
        Some(ErrorClass::SchemaValidationFailed) => StatusCode::BAD_REQUEST,
        Some(ErrorClass::InvalidArguments | ErrorClass::SandboxViolation) => StatusCode::UNPROCESSABLE_ENTITY,
        Some(ErrorClass::SchemaNotLoaded | ErrorClass::RequestConflict) => StatusCode::CONFLICT,
        Some(
            ErrorClass::PolicyBlocked
            | ErrorClass::PermissionDenied
            | ErrorClass::ApprovalRejected
            | ErrorClass::HookBlocked
            | ErrorClass::HookFailed,
        ) => StatusCode::FORBIDDEN,
        Some(ErrorClass::SetupRequired | ErrorClass::JournalUnavailable) => StatusCode::SERVICE_UNAVAILABLE,
        Some(ErrorClass::RateLimited) => StatusCode::TOO_MANY_REQUESTS,
    }
}
