//! `POST /sessions`, `GET` and `DELETE /sessions/{id}`.

use axum::{Extension, Json, body::Body, extract::State, http::StatusCode};
use serde_json::{Value, json};
use toolpost_core::Session;
use toolpost_model::{Principal, SessionId, SurfaceRequest};

use super::{HttpProblem, RouteParameter, RouteState, read_body};

fn describe(session: &Session) -> Value {
    let mut told = json!({
        "session_id": session.id(),
        "principal": session.principal().name,
        "role": session.principal().role,
        "surface": session.surface_request(),
    });
    if let Some(chars) = session.inline_chars() {
        told["surface"]["inline_chars"] = json!(chars);
    }
    told
}

/// Opens a session. The optional body requests a surface.
pub(super) async fn open(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    body: Body,
) -> Result<(StatusCode, Json<Value>), HttpProblem> {
    let body = read_body(body, shared.limits.body).await?;
    let request = if body.is_empty() {
        SurfaceRequest::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| HttpProblem::bad_request("bad_surface_request", error.to_string()))?
    };
    let session = shared.host.open_session(principal, request).await?;
    Ok((StatusCode::CREATED, Json(describe(&session))))
}

pub(super) async fn show(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
) -> Result<Json<Value>, HttpProblem> {
    let session = shared.host.session(&SessionId::new(id), &principal).await?;
    Ok(Json(describe(&session)))
}

/// Closes a session and ends its calls.
pub(super) async fn close(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
) -> Result<StatusCode, HttpProblem> {
    let session = shared.host.session(&SessionId::new(id), &principal).await?;
    shared.host.close_session(&session).await?;
    Ok(StatusCode::NO_CONTENT)
}
