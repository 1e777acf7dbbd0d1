//! Plain HTTP: one POST, one answer. Only this module defines the paths, headers and JSON of this face.

mod approvals;
mod artifacts;
mod calls;
mod events;
pub(crate) mod formats;
mod gate;
mod invocations;
mod live;
pub(crate) mod openapi;
mod problem;
mod rules;
mod sessions;
pub(crate) mod sources;
mod stream;
pub(crate) mod tools;
mod upload;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    body::{Body, Bytes},
    extract::{FromRequestParts, Path, State},
    http::{HeaderMap, header, request::Parts},
    middleware::map_response_with_state,
    routing::{delete, get, post},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolpost_core::{Host, Session};
use toolpost_model::{Principal, PrincipalRole, SessionId};

use crate::{a2a, a2e, feed, join, mcp, refusals::RefusedRequests, reload::ActiveConfiguration};

pub(crate) use gate::{ConnectionOrigin, RequestFace, RequestGate, SocketPeer};
pub(crate) use problem::HttpProblem;
pub(crate) use stream::{EVENTS, STILL_HERE, UTF8_EVENTS, event_stream, keep_alive};

/// The state of the routes of plain HTTP.
#[derive(Clone)]
pub(crate) struct RouteState {
    pub(crate) host: Host,
    pub(crate) limits: RequestLimits,
    pub(crate) about: Arc<ServerStatus>,
    pub(crate) feed: Arc<feed::FeedHub>,
    /// Ends the streams that have no end of their own.
    pub(crate) closing: CancellationToken,
}

/// The faces that share the listeners with plain HTTP.
#[derive(Clone)]
pub(crate) struct ProtocolFaces {
    pub(crate) a2e: Arc<a2e::A2eServerFace>,
    pub(crate) a2a: Arc<a2a::A2aServerFace>,
    pub(crate) mcp: Arc<mcp::McpServerFace>,
    pub(crate) joining: Arc<join::JoinReception>,
}

/// The operator's limits for requests over plain HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// The largest body, in bytes.
    pub(crate) body: usize,
    /// The time that a call waits for approval if its caller sets no limit.
    pub(crate) patience: Duration,
}

/// Facts about the server for its operator.
pub(crate) struct ServerStatus {
    pub(crate) workspace: Option<PathBuf>,
    /// The address on the network, if the host listens there.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) loaded: ActiveConfiguration,
    pub(crate) refused: Arc<RefusedRequests>,
}

/// The time for a request's body to arrive.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// A path without a token. The only others are A2A's card, the files of the page in `live`, and the routes of A2E,
/// which check a token themselves.
pub(crate) const HEALTH: &str = "/health";
/// The header that names a session opened with `POST /sessions`.
const SESSION_HEADER: &str = "toolpost-session";

/// The routes of a server. They rely on the [`RequestGate`] in front of them.
pub(crate) fn server_routes(shared: RouteState, faces: &ProtocolFaces) -> Router {
    plain_routes(shared)
        .merge(live::routes())
        .merge(a2e::routes(Arc::clone(&faces.a2e)))
        .merge(a2a::routes(Arc::clone(&faces.a2a)))
        .merge(mcp::routes(Arc::clone(&faces.mcp)))
        .merge(join::routes(Arc::clone(&faces.joining)))
}

/// The routes of plain HTTP alone, which are all that the command line needs.
pub(crate) fn plain_routes(shared: RouteState) -> Router {
    Router::new()
        .route(HEALTH, get(health))
        .route("/host", get(host))
        .route("/tools", get(tools::list))
        .route("/tools/{name}", get(tools::show))
        .route("/tools/{name}/call", post(calls::call))
        .route("/tools/{name}/explain", post(calls::explain))
        .route("/invocations/{id}", get(invocations::show))
        .route("/invocations/{id}/cancel", post(invocations::cancel))
        .route("/artifacts/{id}", get(artifacts::serve))
        .route("/approvals", get(approvals::list))
        .route(
            "/approvals/{id}",
            get(approvals::show).post(approvals::answer),
        )
        .route("/rules", get(rules::list))
        .route("/rules/{id}", delete(rules::forget))
        .route("/sources", get(sources::list))
        .route("/sources/{name}/accept", post(sources::accept))
        .route("/sessions", post(sessions::open))
        .route(
            "/sessions/{id}",
            get(sessions::show).delete(sessions::close),
        )
        .route("/sessions/{id}/events", get(events::follow))
        .route("/events", get(events::follow_all))
        .route("/openapi.json", get(openapi::serve))
        .fallback(|| async { HttpProblem::not_found("no_such_route", "this path does not exist") })
        .method_not_allowed_fallback(|| async { HttpProblem::method_not_allowed() })
        .layer(map_response_with_state(
            shared.clone(),
            problem::without_secrets,
        ))
        .with_state(shared)
}

/// A name or id in a path. A value that is not text is refused with this face's own error.
struct RouteParameter(String);

impl<S: Send + Sync> FromRequestParts<S> for RouteParameter {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, HttpProblem> {
        let Path(name) = Path::from_request_parts(parts, state)
            .await
            .map_err(|_| HttpProblem::bad_request("bad_path", "the path cannot be read"))?;
        Ok(Self(name))
    }
}

/// The session of a request: the one that it names, or the caller's default one.
async fn session_of(
    host: &Host,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Arc<Session>, HttpProblem> {
    match headers.get(SESSION_HEADER) {
        None => Ok(host.default_session(principal)),
        Some(id) => {
            let id = id.to_str().map_err(|_| {
                HttpProblem::bad_request("bad_session", "the session id is not text")
            })?;
            Ok(host.session(&SessionId::new(id), principal).await?)
        }
    }
}

/// Reads a body within the limit. A larger body is never held in memory.
pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Bytes, HttpProblem> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await {
        Err(_) => Err(HttpProblem::too_slow()),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(HttpProblem::too_large()),
        Ok(Err(error)) => Err(HttpProblem::bad_request(
            "bad_body",
            format!("the body is incomplete: {error}"),
        )),
    }
}

/// Answered without a token, so it contains only the condition of the host and nothing about its use.
async fn health(State(shared): State<RouteState>) -> Json<Value> {
    let health = shared.host.health();
    let (failing, sources) = sources::counted(&shared);
    let status = match (health.shutting_down, health.journal_failing, failing) {
        (true, _, _) => "shutting_down",
        (false, true, _) => "journal_failing",
        (false, false, true) => "degraded",
        (false, false, false) => "ok",
    };
    Json(json!({
        "status": status,
        "version": env!("CARGO_PKG_VERSION"),
        "tools": health.tools,
        "running": health.running,
        "queued": health.queued,
        "approvals": health.approvals,
        "sessions": health.sessions,
        "sources": sources,
    }))
}

/// Describes the host. For operators, because it names folders.
async fn host(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<Value>, HttpProblem> {
    operators_only(&principal)?;
    let loaded = shared.about.loaded.told();
    Ok(Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "process": std::process::id(),
        "workspace": shared.about.workspace,
        "address": shared.about.address,
        "mode": loaded.mode,
        "configuration": {
            "reloads": loaded.reloads,
            "after_restart": loaded.after_restart,
            "problem": loaded.problem,
        },
        "refused_requests": shared.about.refused.counts(),
    })))
}

/// A header, if it has only visible ASCII characters.
pub(crate) fn header_text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The media type of a body, without parameters; empty if the request has none.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let given = header_text(headers, header::CONTENT_TYPE).unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim()
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = header_text(headers, header::ACCEPT).unwrap_or_default();
    accept
        .split(',')
        .any(|part| part.trim().starts_with("text/event-stream"))
}

fn operators_only(principal: &Principal) -> Result<(), HttpProblem> {
    match principal.role {
        PrincipalRole::Operator => Ok(()),
        PrincipalRole::Agent => Err(HttpProblem::operators_only("this requires an operator")),
    }
}
