//! Plain HTTP: one POST, one answer. The only module that knows this face's paths, headers and JSON.

mod calls;
pub(crate) mod formats;
mod invocations;
pub(crate) mod openapi;
mod problem;
mod sessions;
mod stream;
pub(crate) mod tools;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Request, State},
    http::HeaderMap,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use toolpost_core::{Host, Session};
use toolpost_model::{Principal, SessionId};

pub(crate) use problem::Problem;

use crate::{auth::Door, server::Shared};

/// The header that names a session opened with `POST /sessions`.
const SESSION_HEADER: &str = "toolpost-session";

pub(crate) fn router(host: Host, door: Door, body_limit: usize) -> Router {
    let shared = Shared { host, door: Arc::new(door) };
    let behind_token = Router::new()
        .route("/tools", get(tools::list))
        .route("/tools/{name}", get(tools::show))
        .route("/tools/{name}/call", post(calls::call))
        .route("/tools/{name}/explain", post(calls::explain))
        .route("/invocations/{id}", get(invocations::show))
        .route("/invocations/{id}/cancel", post(invocations::cancel))
        .route("/sessions", post(sessions::open))
        .route("/sessions/{id}", get(sessions::show).delete(sessions::close))
        .route("/openapi.json", get(openapi::serve))
        .layer(from_fn_with_state(shared.clone(), authenticate));
    Router::new()
        .route("/health", get(health))
        .merge(behind_token)
        .fallback(|| async { Problem::not_found("no_such_route", "there is nothing at this path") })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(from_fn_with_state(shared.clone(), check_origin))
        .with_state(shared)
}

async fn check_origin(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    match shared.door.check_origin(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn authenticate(State(shared): State<Shared>, mut request: Request, next: Next) -> Response {
    match shared.door.principal(request.headers()) {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// The session a request belongs to: the one it names, or the caller's own.
async fn session_of(host: &Host, principal: &Principal, headers: &HeaderMap) -> Result<Arc<Session>, Problem> {
    match headers.get(SESSION_HEADER) {
        None => Ok(host.default_session(principal)),
        Some(id) => {
            let id = id.to_str().map_err(|_| Problem::bad_request("bad_session", "the session id is not text"))?;
            Ok(host.session(&SessionId::new(id), principal).await?)
        }
    }
}

/// Answered without a token, so it tells nothing a stranger could use.
async fn health(State(shared): State<Shared>) -> Json<Value> {
    let health = shared.host.health();
    let status = match (health.shutting_down, health.journal_failing) {
        (true, _) => "shutting_down",
        (false, true) => "journal_failing",
        (false, false) => "ok",
    };
    Json(json!({
        "status": status,
        "version": env!("CARGO_PKG_VERSION"),
        "tools": health.tools,
        "running": health.running,
        "queued": health.queued,
        "sessions": health.sessions,
    }))
}
