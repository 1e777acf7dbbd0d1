//! The common parts of both bindings: headers, and answers to messages.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use toolpost_a2a::{
    CANONICAL_URI,
    wire::{
        A2aDialect, A2aRefusal, EXTENSIONS_0_3, EXTENSIONS_1_0, ErrorCode, RequestId, SendAnswer,
        SendParams, TaskParams, VERSION, activates,
    },
};
use toolpost_model::Principal;

use super::{
    A2aServerFace,
    operations::{self, A2aCaller, SendMessageResult},
    stream::{self, TaskStreamFormat, TaskStreamStart},
    task::A2aTask,
};
use crate::{
    http::{HttpProblem, header_text, media_type, read_body},
    streams::{self, StreamPlace},
    trace_headers::caller_span,
};

/// The most levels of nested lists and objects, which is the limit of the JSON reader.
const DEEPEST: usize = 127;

/// An answer before it gets its envelope.
pub(super) enum A2aReplyBody {
    Value(Value),
    Stream(Response),
}

/// An answer, and whether it uses the extension.
pub(super) struct A2aReply {
    pub(super) reply: A2aReplyBody,
    pub(super) tells_events: bool,
}

impl A2aReply {
    pub(super) fn value(value: Value) -> Self {
        Self {
            reply: A2aReplyBody::Value(value),
            tells_events: false,
        }
    }

    fn task(task: &A2aTask, history_length: Option<u64>, dialect: A2aDialect) -> Self {
        let told = operations::told(task, None, history_length);
        Self::value(told.to_value(dialect)).telling(task.tells_events)
    }

    fn telling(mut self, tells_events: bool) -> Self {
        self.tells_events = tells_events;
        self
    }
}

pub(super) fn version(headers: &HeaderMap) -> Option<&str> {
    header_text(headers, VERSION)
}

/// Whether a peer names the extension in a header of either spelling.
pub(super) fn knows_events(headers: &HeaderMap) -> bool {
    let named = [EXTENSIONS_1_0, EXTENSIONS_0_3]
        .into_iter()
        .flat_map(|name| headers.get_all(name));
    activates(named.filter_map(|value| value.to_str().ok()))
}

/// Reads a JSON body within the limit. Only `application/json` is accepted, because a browser can post a form across
/// sites.
pub(super) async fn json_body(
    face: &A2aServerFace,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, HttpProblem> {
    let name = media_type(headers);
    if !["application/json", "application/a2a+json"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
    {
        return Err(HttpProblem::unsupported_media_type());
    }
    read_body(body, face.body_limit).await
}

pub(super) fn parsed(body: &[u8]) -> Result<Value, A2aRefusal> {
    serde_json::from_slice(body).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        // The JSON reader has no error kind for its recursion limit, only this text.
        let why = match error.to_string().starts_with("recursion limit exceeded") {
            true => format!("the body is nested more than {DEEPEST} levels deep: {place}"),
            false => format!("the body is not JSON: {place}"),
        };
        A2aRefusal::new(ErrorCode::ParseError, why)
    })
}

/// Adds the extension's header in the caller's spelling, if the answer uses the extension.
pub(super) fn marked(mut response: Response, dialect: A2aDialect, tells_events: bool) -> Response {
    if tells_events {
        let name = HeaderName::from_static(dialect.extensions_header());
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(CANONICAL_URI));
    }
    response
}

pub(super) fn json_response(value: &Value, media_type: &'static str) -> Response {
    ([(header::CONTENT_TYPE, media_type)], value.to_string()).into_response()
}

/// The refusal without secrets: its text may repeat parts of the request.
pub(super) fn tellable(face: &A2aServerFace, mut refusal: A2aRefusal) -> A2aRefusal {
    refusal.message = face.host.redacted(&refusal.message).into_owned();
    refusal
}

pub(super) fn caller(principal: Principal, headers: &HeaderMap, dialect: A2aDialect) -> A2aCaller {
    A2aCaller {
        principal,
        dialect,
        knows_events: knows_events(headers),
        span: caller_span(headers),
    }
}

/// Sends a message and answers with a task or a message.
pub(super) async fn send(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &Value,
) -> Result<A2aReply, A2aRefusal> {
    let params = SendParams::read(params, caller.dialect)?;
    let blocking = params.blocking;
    let history_length = params.history_length;
    let (answer, tells_events) = match operations::send(face, caller, params).await? {
        SendMessageResult::Message(message) => (SendAnswer::Message(message), caller.knows_events),
        SendMessageResult::Task { task, remark, .. } => {
            if blocking {
                operations::settled(face, &task).await;
            }
            (
                SendAnswer::Task(operations::told(&task, remark, history_length)),
                task.tells_events,
            )
        }
    };
    Ok(A2aReply::value(answer.to_value(caller.dialect)).telling(tells_events))
}

/// Sends a message and answers with a stream.
pub(super) async fn send_streaming(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &Value,
    envelope: Option<RequestId>,
) -> Result<A2aReply, A2aRefusal> {
    let params = SendParams::read(params, caller.dialect)?;
    let history_length = params.history_length;
    let written = TaskStreamFormat {
        dialect: caller.dialect,
        envelope,
    };
    // The place is taken before the calls begin. If the limit refused the stream afterwards, the task would run without
    // a reader.
    let place = take_place(face, caller)?;
    let (response, tells_events) = match operations::send(face, caller, params).await? {
        SendMessageResult::Message(message) => {
            (stream::of_message(message, &written), caller.knows_events)
        }
        SendMessageResult::Task {
            task,
            remark,
            is_new,
        } => {
            // A stream of a new task begins with its first entry, even if the task has progressed since.
            let length = if is_new { 1 } else { task.length() };
            let tells_events = task.tells_events;
            let from = TaskStreamStart {
                task,
                length,
                remark,
                history_length,
            };
            (stream::of_task(face, from, written, place), tells_events)
        }
    };
    Ok(A2aReply {
        reply: A2aReplyBody::Stream(response),
        tells_events,
    })
}

fn take_place(face: &A2aServerFace, caller: &A2aCaller) -> Result<StreamPlace, A2aRefusal> {
    face.streams.take(&caller.principal).map_err(|full| {
        A2aRefusal::new(ErrorCode::RateLimited, full.to_string())
            .fact("retryAfter", format!("{}s", streams::RETRY_AFTER.as_secs()))
    })
}

pub(super) async fn get(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &Value,
) -> Result<A2aReply, A2aRefusal> {
    let params = TaskParams::read(params)?;
    let task = operations::find(face, caller, &params.id).await?;
    Ok(A2aReply::task(&task, params.history_length, caller.dialect))
}

pub(super) async fn cancel(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &Value,
) -> Result<A2aReply, A2aRefusal> {
    let params = TaskParams::read(params)?;
    let task = operations::cancel(face, caller, &params).await?;
    Ok(A2aReply::task(&task, params.history_length, caller.dialect))
}

/// Continues a task's stream. For an ended task, 1.0 has no stream and 0.3 answers with the task.
pub(super) async fn subscribe(
    face: &Arc<A2aServerFace>,
    caller: &A2aCaller,
    params: &Value,
    envelope: Option<RequestId>,
) -> Result<A2aReply, A2aRefusal> {
    let params = TaskParams::read(params)?;
    let task = operations::find(face, caller, &params.id).await?;
    let length = task.length();
    let is_over = task.snapshot(length).status.state.is_terminal();
    match caller.dialect {
        A2aDialect::V1_0 if is_over => {
            let why = "this task has ended; get it instead";
            return Err(A2aRefusal::new(ErrorCode::UnsupportedOperation, why)
                .fact("taskId", task.id.as_str()));
        }
        A2aDialect::V0_3 | A2aDialect::V1_0 => {}
    }
    let tells_events = task.tells_events;
    let from = TaskStreamStart {
        task,
        length,
        remark: None,
        history_length: params.history_length,
    };
    let place = take_place(face, caller)?;
    let response = stream::of_task(
        face,
        from,
        TaskStreamFormat {
            dialect: caller.dialect,
            envelope,
        },
        place,
    );
    Ok(A2aReply {
        reply: A2aReplyBody::Stream(response),
        tells_events,
    })
}
