//! `POST /a2a`: JSON-RPC, in both dialects.

use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use serde_json::Value;
use toolpost_a2a::wire::{
    self, A2aDialect, A2aMethod, A2aRefusal, A2aRequest, ErrorCode, ListParams, RequestId,
};
use toolpost_model::Principal;

use super::{
    A2aServerFace,
    answering::{
        self, A2aReply, A2aReplyBody, caller, json_response, marked, parsed, tellable, version,
    },
    card,
    operations::{self, no_push},
};
use crate::http::HttpProblem;

const JSON: &str = "application/json";

pub(super) async fn take(
    State(face): State<Arc<A2aServerFace>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpProblem> {
    let body = answering::json_body(&face, &headers, body).await?;
    // A caller with an unsupported version is answered in the newer dialect.
    let guess = |method: &str| {
        A2aDialect::of_request(version(&headers), method).unwrap_or(A2aDialect::V1_0)
    };
    let refuse = |id: &RequestId, refusal: A2aRefusal, dialect: A2aDialect| {
        json_response(&wire::refused(id, &tellable(&face, refusal), dialect), JSON)
    };
    let value = match parsed(&body) {
        Ok(value) => value,
        Err(refusal) => return Ok(refuse(&RequestId::NONE, refusal, guess(""))),
    };
    let guess = guess(
        value
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    );
    let request = match A2aRequest::read(&value) {
        Ok(request) => request,
        Err((id, refusal)) => return Ok(refuse(&id, refusal, guess)),
    };
    let id = request.id.clone();
    // A notification has no answer, and no method of A2A works without one.
    if value.get("id").is_none() {
        let refusal = A2aRefusal::new(
            ErrorCode::InvalidRequest,
            "`id` must be given: notifications are not supported",
        );
        return Ok(refuse(&id, refusal, guess));
    }
    drop(value);
    let dialect = match A2aDialect::of_request(version(&headers), &request.method) {
        Ok(dialect) => dialect,
        Err(error) => return Ok(refuse(&id, error.into(), guess)),
    };
    let answered = answer(&face, principal, &headers, dialect, request).await;
    Ok(match answered {
        Err(refusal) => refuse(&id, refusal, dialect),
        Ok(A2aReply {
            reply,
            tells_events,
        }) => {
            let response = match reply {
                A2aReplyBody::Value(value) => json_response(&wire::answer(&id, value), JSON),
                A2aReplyBody::Stream(response) => response,
            };
            marked(response, dialect, tells_events).into_response()
        }
    })
}

async fn answer(
    face: &Arc<A2aServerFace>,
    principal: Principal,
    headers: &HeaderMap,
    dialect: A2aDialect,
    request: A2aRequest,
) -> Result<A2aReply, A2aRefusal> {
    let A2aRequest { id, method, params } = request;
    let caller = caller(principal, headers, dialect);
    let Some((method, _)) = A2aMethod::named(&method) else {
        return Err(A2aRefusal::new(
            ErrorCode::MethodNotFound,
            "there is no such method",
        ));
    };
    match method {
        A2aMethod::Send => answering::send(face, &caller, &params).await,
        A2aMethod::SendStreaming => {
            answering::send_streaming(face, &caller, &params, Some(id)).await
        }
        A2aMethod::GetTask => answering::get(face, &caller, &params).await,
        A2aMethod::ListTasks => {
            let page = operations::list(face, &caller, &ListParams::read(&params)?).await?;
            Ok(A2aReply::value(page.to_value()))
        }
        A2aMethod::CancelTask => answering::cancel(face, &caller, &params).await,
        A2aMethod::Subscribe => answering::subscribe(face, &caller, &params, Some(id)).await,
        A2aMethod::ExtendedCard => Ok(A2aReply::value(
            card::extended(face, &caller.principal, headers).await,
        )),
        A2aMethod::PushConfig => Err(no_push()),
    }
}
