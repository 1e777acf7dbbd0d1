//! `POST /tools/{name}/call`: arguments in, result out.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Query, Request, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolpost_core::{
    AcknowledgementTiming, CallHandle, CallHandleState, CallRequest, Explanation, Patience,
    PendingCall, PendingCause, RecordedResult, RequestIdentity,
};
use toolpost_model::{
    BatchPlace, ErrorClass, InvocationId, ModelInput, NativeCallId, Outcome, RequestId,
};

use super::{
    HttpProblem, RequestFace, RouteParameter, RouteState, accepts_events, header_text, media_type,
    read_body, session_of, stream,
};
use crate::trace_headers::caller_span;

/// The most events that wait for a slow reader before events are lost.
const EVENT_BUFFER: usize = 256;
/// A day; the host's own limit is far below.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);
/// The header with the call id of the model's provider.
const CALL_ID: &str = "toolpost-call-id";
const MAX_KEY: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallQuery {
    /// The requested deadline, in seconds.
    timeout: Option<f64>,
    correlation_id: Option<String>,
    /// The caller's patience for a free slot or for approval, in seconds. 0 does not wait for approval, and waits for a
    /// slot without limit.
    patience: Option<f64>,
    /// The call's place among the calls of one turn, as JSON, because the body holds the arguments.
    batch: Option<String>,
    /// Whether to answer at once and let the call continue.
    #[serde(default)]
    background: bool,
}

type CallQueryResult = Result<Query<CallQuery>, QueryRejection>;

pub(super) async fn call(
    State(shared): State<RouteState>,
    RouteParameter(tool): RouteParameter,
    query: CallQueryResult,
    request: Request,
) -> Result<Response, HttpProblem> {
    let (head, body) = request.into_parts();
    let mut call = read_request(&shared, tool, query, &head, body).await?;
    call.identity.request_id = idempotency_key(&head.headers)?;
    // A caller with an `Idempotency-Key` can fetch the answer later, so its call stays when the patience is over: it
    // runs after an approval, even on the next host. A caller without a key can never read that answer, so its call
    // ends with the patience. One treatment for both would run calls without a reader, or lose approved ones.
    let can_repeat = call.identity.request_id.is_some();
    if call.delivery.background {
        return Ok(in_background(shared.host.start(call).await).await);
    }
    if !accepts_events(&head.headers) {
        let patience = call
            .times
            .patience
            .take()
            .unwrap_or(Patience::Approval(shared.limits.patience));
        let (Patience::Approval(time) | Patience::Turn(time)) = patience;
        call.times.nested_patience = Some(time);
        if !can_repeat {
            call.times.patience = Some(patience);
            return Ok(respond(&shared.host.call(call).await));
        }
        let call = call.acknowledge(AcknowledgementTiming::Early);
        return Ok(
            match shared
                .host
                .start(call)
                .await
                .answer_within(Some(patience))
                .await
            {
                Ok(answer) => respond(&answer),
                Err(pending) => accepted(pending.invocation_id, &pending_body(&pending)),
            },
        );
    }
    let (sender, events) = mpsc::channel(EVENT_BUFFER);
    // For a call that cannot be repeated, patience ends the call. For a call that can be repeated, patience ends only
    // the stream.
    let patience = call.times.patience.take_if(|_| can_repeat);
    let face = face_of(&head);
    let call = call
        .notify(Arc::new(sender))
        .acknowledge(face.acknowledgement);
    let mut handle = shared.host.start(call).await;
    if can_repeat {
        handle.detach();
    }
    if face.acknowledgement == AcknowledgementTiming::Early {
        handle.accepted().await;
    }
    Ok(stream::respond(handle, events, patience))
}

/// 202: the call continues, and this is its address.
fn accepted(id: InvocationId, body: &Value) -> Response {
    let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
    if let Ok(address) = HeaderValue::try_from(format!("/invocations/{id}")) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

/// The body for a caller whose call continues without it.
pub(super) fn pending_body(pending: &PendingCall) -> Value {
    let id = pending.invocation_id;
    match pending.cause {
        PendingCause::Approval { ask_id, expires_at } => json!({
            "invocation_id": id,
            "status": ErrorClass::ApprovalPending,
            "ask_id": ask_id,
            "expires_at": expires_at,
        }),
        PendingCause::Queue => json!({ "invocation_id": id, "status": ErrorClass::Queued }),
    }
}

/// The id of a call that continues, once it is on record; the result, if the call has ended already.
async fn in_background(handle: CallHandle) -> Response {
    if let CallHandleState::Over(answer) = handle.standing() {
        return respond(answer);
    }
    handle.accepted().await;
    let id = handle.invocation_id();
    accepted(
        id,
        &json!({ "invocation_id": id, "status": "backgrounded" }),
    )
}

/// `POST /tools/{name}/explain`: a dry run of the call.
pub(super) async fn explain(
    State(shared): State<RouteState>,
    RouteParameter(tool): RouteParameter,
    query: CallQueryResult,
    request: Request,
) -> Result<Json<Explanation>, HttpProblem> {
    let (head, body) = request.into_parts();
    let call = read_request(&shared, tool, query, &head, body).await?;
    Ok(Json(shared.host.explain(call).await))
}

async fn read_request(
    shared: &RouteState,
    tool: String,
    query: CallQueryResult,
    head: &Parts,
    body: Body,
) -> Result<CallRequest, HttpProblem> {
    let Query(query) =
        query.map_err(|error| HttpProblem::bad_request("bad_query", error.body_text()))?;
    let principal = head
        .extensions
        .get()
        .ok_or_else(|| HttpProblem::unauthorized("a token is required"))?;
    let input = arguments(&head.headers, body, shared.limits.body).await?;
    let session = session_of(&shared.host, principal, &head.headers).await?;
    let mut call = CallRequest::new(session, tool, input)
        .record_face(face_of(head).name)
        .identify(RequestIdentity {
            request_id: None,
            native_call_id: native_call_id(&head.headers)?,
            correlation_id: query.correlation_id,
            trace: caller_span(&head.headers),
        });
    call.times.timeout = query
        .timeout
        .map(|given| seconds("timeout", given))
        .transpose()?;
    call.times.patience = query.patience.map(patience).transpose()?;
    call.batch = query.batch.as_deref().map(place_in_batch).transpose()?;
    call.delivery.background = query.background;
    Ok(call)
}

fn face_of(head: &Parts) -> RequestFace {
    head.extensions.get().copied().unwrap_or(RequestFace {
        name: "http",
        acknowledgement: AcknowledgementTiming::Early,
    })
}

/// Reads the arguments from the body. Only JSON is accepted, because a browser can post a form across sites.
async fn arguments(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<ModelInput, HttpProblem> {
    let body = read_body(body, limit).await?;
    let is_json = media_type(headers).eq_ignore_ascii_case("application/json");
    let given = header_text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let is_absent = body.is_empty() && given.is_empty();
    if !is_json && !is_absent {
        return Err(HttpProblem::unsupported_media_type());
    }
    let text = std::str::from_utf8(&body).map_err(|error| {
        HttpProblem::bad_request("not_utf8", format!("the body is not UTF-8: {error}"))
    })?;
    Ok(ModelInput::text(text))
}

fn place_in_batch(text: &str) -> Result<BatchPlace, HttpProblem> {
    let hint = r#"such as {"id":"turn-1","index":1,"depends_on":[0]}"#;
    serde_json::from_str(text).map_err(|error| {
        HttpProblem::bad_request("bad_batch", format!("`batch` cannot be read: {error}")).hint(hint)
    })
}

/// A patience of 0 is for callers that never wait for a person. It does not apply to the queue, where it would refuse
/// calls at random.
fn patience(given: f64) -> Result<Patience, HttpProblem> {
    if given == 0.0 {
        return Ok(Patience::Approval(Duration::ZERO));
    }
    seconds("patience", given).map(Patience::Turn)
}

pub(super) fn seconds(name: &str, given: f64) -> Result<Duration, HttpProblem> {
    Duration::try_from_secs_f64(given)
        .ok()
        .filter(|time| !time.is_zero() && *time <= LONGEST_TIMEOUT)
        .ok_or_else(|| {
            let code = match name {
                "timeout" => "bad_timeout",
                "patience" => "bad_patience",
                _ => "bad_wait",
            };
            HttpProblem::bad_request(
                code,
                format!("`{name}` must be seconds over 0 and at most a day"),
            )
        })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<RequestId>, HttpProblem> {
    let Some(key) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match key.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY => Ok(Some(RequestId::new(key))),
        _ => Err(HttpProblem::bad_request(
            "bad_key",
            format!("`Idempotency-Key` must be 1 to {MAX_KEY} printable characters"),
        )),
    }
}

/// The call id of the model's provider. It is recorded, and two calls can have the same one.
fn native_call_id(headers: &HeaderMap) -> Result<Option<NativeCallId>, HttpProblem> {
    let Some(id) = headers.get(CALL_ID) else {
        return Ok(None);
    };
    let id = id.to_str().ok().and_then(NativeCallId::visible);
    id.map(Some).ok_or_else(|| {
        let longest = NativeCallId::LONGEST;
        let message = format!(
            "`Toolpost-Call-Id` must be 1 to {longest} visible ASCII characters without blanks"
        );
        HttpProblem::bad_request("bad_call_id", message)
    })
}

/// The recorded result, with a status for callers that read nothing else.
fn respond(answer: &Arc<RecordedResult>) -> Response {
    let mut response = Response::new(Body::from(Bytes::from_owner(AnswerBytes(Arc::clone(
        answer,
    )))));
    let outcome = answer.result().outcome;
    let class = answer.result().error_class();
    // A host that shuts down also uses `canceled` for calls that it did not take.
    let not_taken = outcome == Outcome::Rejected && class == Some(ErrorClass::Canceled);
    *response.status_mut() = match outcome {
        // This includes results that a hook withholds, because the call was executed.
        Outcome::Succeeded | Outcome::Partial => StatusCode::OK,
        _ if not_taken => StatusCode::SERVICE_UNAVAILABLE,
        _ => status(class),
    };
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if let Some(after) = answer
        .result()
        .error
        .as_ref()
        .and_then(|error| error.retry.after_ms)
    {
        headers.insert(
            header::RETRY_AFTER,
            HeaderValue::from(after.div_ceil(1_000)),
        );
    }
    response
}

/// The result's JSON as bytes, without a copy.
struct AnswerBytes(Arc<RecordedResult>);

impl AsRef<[u8]> for AnswerBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.json().as_bytes()
    }
}

/// 200 if the tool ran and the caller is not responsible for a failure; 4xx if the call must change, 5xx if the host
/// must.
fn status(class: Option<ErrorClass>) -> StatusCode {
    match class {
        None
        | Some(
            ErrorClass::ExecutionFailed
            | ErrorClass::Timeout
            | ErrorClass::Canceled
            | ErrorClass::SiblingCanceled
            | ErrorClass::DependencyUnavailable
            | ErrorClass::ResultTooLarge
            | ErrorClass::OutcomeUnknown,
        ) => StatusCode::OK,
        Some(ErrorClass::UnknownTool) => StatusCode::NOT_FOUND,
        Some(ErrorClass::SchemaValidationFailed) => StatusCode::BAD_REQUEST,
        Some(ErrorClass::InvalidArguments | ErrorClass::SandboxViolation) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        Some(
            ErrorClass::SchemaNotLoaded | ErrorClass::RequestConflict | ErrorClass::ApprovalPending,
        ) => StatusCode::CONFLICT,
        Some(
            ErrorClass::PolicyBlocked
            | ErrorClass::PermissionDenied
            | ErrorClass::ApprovalRejected
            | ErrorClass::HookBlocked
            | ErrorClass::HookFailed,
        ) => StatusCode::FORBIDDEN,
        Some(ErrorClass::SetupRequired | ErrorClass::JournalUnavailable) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Some(ErrorClass::RateLimited | ErrorClass::Queued) => StatusCode::TOO_MANY_REQUESTS,
    }
}
