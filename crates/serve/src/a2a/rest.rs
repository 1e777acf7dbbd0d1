//! The REST routes of A2A 1.0 below `/a2a`: the operations of JSON-RPC without its envelope.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension,
    body::Body,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use toolpost_a2a::wire::{A2aDialect, A2aRefusal, ErrorCode, ListParams};
use toolpost_model::Principal;

use super::{
    A2aServerFace,
    answering::{
        self, A2aReply, A2aReplyBody, caller, json_response, marked, parsed, tellable, version,
    },
    card,
    operations::{self, A2aCaller, no_push},
};
use crate::http::{HttpProblem, header_text};

type TheFace = State<Arc<A2aServerFace>>;
type RestPrincipal = Extension<Principal>;
type QueryParameters = Query<BTreeMap<String, String>>;

/// The media type that 1.0.1 prefers, for clients that accept it.
fn media_type(headers: &HeaderMap) -> &'static str {
    const OWN: &str = "application/a2a+json";
    let accept = header_text(headers, header::ACCEPT).unwrap_or_default();
    if accept.contains(OWN) {
        OWN
    } else {
        "application/json"
    }
}

/// The caller of a REST request. Only 1.0 has these routes.
fn asking(principal: Principal, headers: &HeaderMap) -> Result<A2aCaller, A2aRefusal> {
    let dialect = version(headers).map_or(Ok(A2aDialect::V1_0), A2aDialect::of_version)?;
    match dialect {
        A2aDialect::V1_0 => Ok(caller(principal, headers, dialect)),
        A2aDialect::V0_3 => Err(A2aRefusal::new(
            ErrorCode::VersionNotSupported,
            "these routes are of A2A 1.0; send requests of 0.3 as JSON-RPC to `/a2a`",
        )),
    }
}

fn respond(
    face: &A2aServerFace,
    headers: &HeaderMap,
    answered: Result<A2aReply, A2aRefusal>,
) -> Response {
    match answered {
        Ok(A2aReply {
            reply,
            tells_events,
        }) => {
            let response = match reply {
                A2aReplyBody::Value(value) => json_response(&value, media_type(headers)),
                A2aReplyBody::Stream(response) => response,
            };
            marked(response, A2aDialect::V1_0, tells_events)
        }
        Err(refusal) => {
            let refusal = tellable(face, refusal);
            let status = StatusCode::from_u16(refusal.code.http_status());
            let mut response = json_response(&refusal.to_rest(), media_type(headers));
            *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response
        }
    }
}

pub(super) async fn send(
    State(face): TheFace,
    Extension(principal): RestPrincipal,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpProblem> {
    let body = answering::json_body(&face, &headers, body).await?;
    let answered = async {
        let caller = asking(principal, &headers)?;
        answering::send(&face, &caller, &parsed(&body)?).await
    };
    Ok(respond(&face, &headers, answered.await))
}

pub(super) async fn stream(
    State(face): TheFace,
    Extension(principal): RestPrincipal,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpProblem> {
    let body = answering::json_body(&face, &headers, body).await?;
    let answered = async {
        let caller = asking(principal, &headers)?;
        answering::send_streaming(&face, &caller, &parsed(&body)?, None).await
    };
    Ok(respond(&face, &headers, answered.await))
}

/// The parameters of a method from a query string.
fn params(words: BTreeMap<String, String>) -> Value {
    Value::Object(
        words
            .into_iter()
            .map(|(name, value)| (name, Value::String(value)))
            .collect(),
    )
}

pub(super) async fn list(
    State(face): TheFace,
    Extension(principal): RestPrincipal,
    headers: HeaderMap,
    Query(words): QueryParameters,
) -> Response {
    let answered = async {
        let caller = asking(principal, &headers)?;
        let page = operations::list(&face, &caller, &ListParams::read(&params(words))?).await?;
        Ok(A2aReply::value(page.to_value()))
    };
    respond(&face, &headers, answered.await)
}

/// `GET /a2a/tasks/{id}` and `GET /a2a/tasks/{id}:subscribe`.
pub(super) async fn get(
    State(face): TheFace,
    Extension(principal): RestPrincipal,
    Path(name): Path<String>,
    Query(words): QueryParameters,
    headers: HeaderMap,
) -> Response {
    let answered = async {
        let caller = asking(principal, &headers)?;
        let mut params = params(words);
        match name.split_once(':') {
            None => {
                params["id"] = json!(name);
                answering::get(&face, &caller, &params).await
            }
            Some((id, "subscribe")) => {
                params["id"] = json!(id);
                answering::subscribe(&face, &caller, &params, None).await
            }
            Some(_) => Err(no_such_thing()),
        }
    };
    respond(&face, &headers, answered.await)
}

/// `POST /a2a/tasks/{id}:cancel` and `POST /a2a/tasks/{id}:subscribe`. Their bodies are ignored, because the path has
/// all parameters.
pub(super) async fn act(
    State(face): TheFace,
    Extension(principal): RestPrincipal,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let answered = async {
        let caller = asking(principal, &headers)?;
        match name.split_once(':') {
            Some((id, "cancel")) => answering::cancel(&face, &caller, &json!({ "id": id })).await,
            Some((id, "subscribe")) => {
                answering::subscribe(&face, &caller, &json!({ "id": id }), None).await
            }
            Some(_) | None => Err(no_such_thing()),
        }
    };
    respond(&face, &headers, answered.await)
}

fn no_such_thing() -> A2aRefusal {
    A2aRefusal::new(
        ErrorCode::MethodNotFound,
        "a task supports only get, cancel and subscribe",
    )
}

pub(super) async fn push(State(face): TheFace, headers: HeaderMap) -> Response {
    respond(&face, &headers, Err(no_push()))
}

pub(super) async fn card(
    State(face): TheFace,
    Extension(principal): RestPrincipal,
    headers: HeaderMap,
) -> Response {
    let answered = async {
        let caller = asking(principal, &headers)?;
        Ok(A2aReply::value(
            card::extended(&face, &caller.principal, &headers).await,
        ))
    };
    respond(&face, &headers, answered.await).into_response()
}
