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
    self, Dialect, ErrorCode, ListParams, Method, Refusal, Request, RequestId,
};
use toolpost_model::Principal;

use super::{
    Face,
    answering::{self, Answered, Reply, caller, json_response, marked, parsed, tellable, version},
    card,
    operations::{self, no_push},
};
use crate::http::Problem;

const JSON: &str = "application/json";

pub(super) async fn take(
    State(face): State<Arc<Face>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = answering::json_body(&face, &headers, body).await?;
    // Whoever names a version that nobody speaks knows the newer of the two.
    let guess =
        |method: &str| Dialect::of_request(version(&headers), method).unwrap_or(Dialect::V1_0);
    let refuse = |id: &RequestId, refusal: Refusal, dialect: Dialect| {
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
    let request = match Request::read(&value) {
        Ok(request) => request,
        Err((id, refusal)) => return Ok(refuse(&id, refusal, guess)),
    };
    let id = request.id.clone();
    // A notification would have no answer, and there is nothing to ask for that needs none.
    if value.get("id").is_none() {
        let refusal = Refusal::new(
            ErrorCode::InvalidRequest,
            "`id` must be given: notifications are not taken",
        );
        return Ok(refuse(&id, refusal, guess));
    }
    drop(value);
    let dialect = match Dialect::of_request(version(&headers), &request.method) {
        Ok(dialect) => dialect,
        Err(error) => return Ok(refuse(&id, error.into(), guess)),
    };
    let answered = answer(&face, principal, &headers, dialect, request).await;
    Ok(match answered {
        Err(refusal) => refuse(&id, refusal, dialect),
        Ok(Answered {
            reply,
            tells_events,
        }) => {
            let response = match reply {
                Reply::Value(value) => json_response(&wire::answer(&id, value), JSON),
                Reply::Stream(response) => response,
            };
            marked(response, dialect, tells_events).into_response()
        }
    })
}

async fn answer(
    face: &Arc<Face>,
    principal: Principal,
    headers: &HeaderMap,
    dialect: Dialect,
    request: Request,
) -> Result<Answered, Refusal> {
    let Request { id, method, params } = request;
    let caller = caller(principal, headers, dialect);
    let Some((method, _)) = Method::named(&method) else {
        return Err(Refusal::new(
            ErrorCode::MethodNotFound,
            "there is no such method",
        ));
    };
    match method {
        Method::Send => answering::send(face, &caller, &params).await,
        Method::SendStreaming => answering::send_streaming(face, &caller, &params, Some(id)).await,
        Method::GetTask => answering::get(face, &caller, &params).await,
        Method::ListTasks => {
            let page = operations::list(face, &caller, &ListParams::read(&params)?).await?;
            Ok(Answered::value(page.to_value()))
        }
        Method::CancelTask => answering::cancel(face, &caller, &params).await,
        Method::Subscribe => answering::subscribe(face, &caller, &params, Some(id)).await,
        Method::ExtendedCard => Ok(Answered::value(
            card::extended(face, &caller.principal, headers).await,
        )),
        Method::PushConfig => Err(no_push()),
    }
}
