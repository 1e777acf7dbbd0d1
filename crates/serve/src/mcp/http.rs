//! Streamable HTTP: `POST /mcp` takes every message, `GET` opens a session's own stream, `DELETE` closes a session.
//!
//! An answer is one JSON text, written at once. It becomes a stream only if there are messages before it.

mod answering;

use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::value::RawValue;
use toolpost_core::SessionError;
use toolpost_model::Principal;

use super::{
    McpServerFace,
    asked::{McpMethod, McpRequest},
    exchange::{McpExchange, WhenLeft},
    fault::McpFault,
    headers, news,
    opening::{self, OpenedRequest, cancellable, in_session, take_note},
    peer::{CAME_BY, McpPeer},
    sessions::{self, McpSession, McpSessionCapacityError},
    version::McpVersion,
    welcome,
    wire::{self, JsonRpcMessage, McpReply, McpRequestId},
};
use crate::{
    http::{HttpProblem, header_text, media_type, read_body},
    trace_headers::caller_span,
};
use answering::{McpAnswerContext, refused};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

pub(crate) fn routes(face: Arc<McpServerFace>) -> Router {
    Router::new()
        .route("/mcp", post(take).get(listen).delete(leave))
        .method_not_allowed_fallback(|| async { HttpProblem::method_not_allowed() })
        .with_state(face)
}

async fn take(
    State(face): State<Arc<McpServerFace>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpProblem> {
    if !accepts(&headers, &["application/json", "text/event-stream"]) {
        return Ok(not_acceptable(
            "`Accept` must name `application/json` and `text/event-stream`",
        ));
    }
    if !media_type(&headers).eq_ignore_ascii_case("application/json") {
        return Err(HttpProblem::unsupported_media_type());
    }
    let body = read_body(body, face.settings.message_limit).await?;
    let Ok(text) = std::str::from_utf8(&body) else {
        return Ok(refused(
            &face,
            None,
            McpFault::unreadable("the body is not UTF-8"),
            StatusCode::BAD_REQUEST,
        ));
    };
    if text.trim_start().starts_with('[') {
        let fault =
            McpFault::invalid_request("a request must hold one message; send them one by one");
        return Ok(refused(&face, None, fault, StatusCode::BAD_REQUEST));
    }
    let came = McpHttpMessage {
        face,
        principal,
        headers,
    };
    let response = match wire::read(text) {
        Err((id, fault)) => refused(&came.face, id.as_ref(), fault, StatusCode::BAD_REQUEST),
        Ok(JsonRpcMessage::Request { id, method, params }) => {
            came.request(id, &method, params).await
        }
        Ok(JsonRpcMessage::Notification { method, params }) => came.notification(&method, params),
        Ok(JsonRpcMessage::Response { id, outcome }) => match came.session() {
            Ok(stay) => {
                stay.answered(&id, outcome);
                StatusCode::ACCEPTED.into_response()
            }
            Err((status, fault)) => refused(&came.face, None, fault, status),
        },
    };
    Ok(response)
}

struct McpHttpMessage {
    face: Arc<McpServerFace>,
    principal: Principal,
    headers: HeaderMap,
}

impl McpHttpMessage {
    /// A request without a body, which only the older protocol has.
    fn without_body(
        face: Arc<McpServerFace>,
        principal: Principal,
        headers: HeaderMap,
    ) -> Result<Self, HttpProblem> {
        let came = Self {
            face,
            principal,
            headers,
        };
        match came.says_modern() {
            true => Err(HttpProblem::method_not_allowed()),
            false => Ok(came),
        }
    }

    async fn request(self, id: McpRequestId, method: &str, params: Option<&RawValue>) -> Response {
        let mut asked = match McpRequest::read(McpMethod::read(method), params) {
            Ok(asked) => asked,
            Err(fault) => {
                let status = if self.says_modern() {
                    StatusCode::BAD_REQUEST
                } else {
                    StatusCode::OK
                };
                return refused(&self.face, Some(&id), fault, status);
            }
        };
        asked.meta.note_request_id(id.to_text());
        if asked.meta.identity.trace.is_none() {
            asked.meta.identity.trace = caller_span(&self.headers);
        }
        // A request with a version in `_meta` and none in a handshake belongs to the stateless revision, which has no
        // `initialize`.
        let is_stateless = asked.meta.version.is_some() && asked.handshake.version.is_none();
        if asked.method == McpMethod::Initialize && !is_stateless {
            return self.initialize(&id, &asked).await;
        }
        let speaks_for_itself = asked.meta.version.is_some()
            || self.says_modern()
            || matches!(asked.method, McpMethod::Discover | McpMethod::Listen);
        if speaks_for_itself {
            return self.stateless(id, method, asked).await;
        }
        let stay = match self.session() {
            Ok(stay) => stay,
            Err((status, fault)) => return refused(&self.face, Some(&id), fault, status),
        };
        if !asked.method.is_of(false) {
            return refused(
                &self.face,
                Some(&id),
                McpFault::no_such_method(method),
                StatusCode::OK,
            );
        }
        let Some(running) = stay.begin(&id) else {
            let fault = McpFault::invalid_request(
                "a request with this id is running, or too many requests are running",
            );
            return refused(&self.face, Some(&id), fault, StatusCode::OK);
        };
        let peer = in_session(&self.face, &stay);
        let exchange = McpExchange::begin(WhenLeft::GoesOn, |outlet| {
            cancellable(peer, asked, running, outlet)
        });
        McpAnswerContext {
            face: self.face,
            id,
            asker: None,
        }
        .respond(exchange)
        .await
    }

    /// Whether the header names a revision without sessions. An unknown revision counts as one with sessions; the
    /// lookup of the session then reports it.
    fn says_modern(&self) -> bool {
        let said = header_text(&self.headers, headers::VERSION);
        said.and_then(McpVersion::read)
            .is_some_and(McpVersion::is_modern)
    }

    fn session(&self) -> Result<Arc<McpSession>, (StatusCode, McpFault)> {
        let bad = |fault| (StatusCode::BAD_REQUEST, fault);
        if let Some(said) = headers::one(&self.headers, headers::VERSION).map_err(bad)? {
            match McpVersion::read(said) {
                Some(version) if !version.is_modern() => {}
                Some(_) | None => return Err(bad(McpFault::unsupported_version(said))),
            }
        }
        let Some(wire_id) = self.headers.get(SESSION) else {
            return Err(bad(McpFault::invalid_request(
                "the header `Mcp-Session-Id` is missing; start a session with `initialize`",
            )));
        };
        let found = wire_id
            .to_str()
            .ok()
            .and_then(|id| self.face.sessions.find(id, &self.principal));
        found.ok_or_else(|| {
            (
                StatusCode::NOT_FOUND,
                McpFault::invalid_request("there is no such session"),
            )
        })
    }

    async fn initialize(self, id: &McpRequestId, asked: &McpRequest) -> Response {
        let version = match asked.handshake.version() {
            Ok(wished) => McpVersion::negotiated(wished),
            Err(fault) => return refused(&self.face, Some(id), fault, StatusCode::OK),
        };
        let can = asked.handshake.capabilities();
        let limit = self.face.host.limits().sessions;
        match self.face.sessions.make_room(limit, &self.principal) {
            Ok(None) => {}
            Ok(Some(unused)) => sessions::end(&self.face, &unused).await,
            Err(crowded) => return no_room(&self.face, id, &crowded),
        }
        let (wire_id, stay) =
            match sessions::open(&self.face.host, &self.principal, version, can).await {
                Ok(opened) => opened,
                Err(error) => return no_session(&self.face, id, &error),
            };
        match self.face.sessions.keep(limit, &wire_id, &stay) {
            Ok(None) => {}
            Ok(Some(unused)) => sessions::end(&self.face, &unused).await,
            Err(crowded) => {
                sessions::end(&self.face, &stay).await;
                return no_room(&self.face, id, &crowded);
            }
        }
        let told = welcome(&in_session(&self.face, &stay));
        let mut response = answering::json(&wire::answer(id, told));
        if let Ok(wire_id) = HeaderValue::from_str(&wire_id) {
            response.headers_mut().insert(SESSION, wire_id);
        }
        response
    }

    fn notification(self, method: &str, params: Option<&RawValue>) -> Response {
        // A notification of a client without a session has no effect.
        if self.says_modern()
            || !self.headers.contains_key(SESSION) && method != "notifications/initialized"
        {
            return StatusCode::ACCEPTED.into_response();
        }
        let stay = match self.session() {
            Ok(stay) => stay,
            Err((status, fault)) => return refused(&self.face, None, fault, status),
        };
        take_note(&stay, method, params);
        StatusCode::ACCEPTED.into_response()
    }

    async fn stateless(self, id: McpRequestId, method: &str, asked: McpRequest) -> Response {
        let peer = match self.checked(method, &asked) {
            Ok(peer) => peer,
            Err(fault) => {
                let status = fault.status;
                return refused(&self.face, Some(&id), fault, status);
            }
        };
        let (opened, digest) = opening::stateless(peer, asked, &id);
        let asker = Some((self.principal, digest));
        let speaking = McpAnswerContext {
            face: self.face,
            id,
            asker,
        };
        match opened {
            OpenedRequest::Exchange(exchange) => speaking.respond(exchange).await,
            OpenedRequest::Answered(outcome) => speaking.end(outcome),
        }
    }

    /// Checks the members and headers that every request of the stateless era must have.
    fn checked(&self, method: &str, asked: &McpRequest) -> Result<McpPeer, McpFault> {
        let Some(version) = asked.meta.version.as_deref() else {
            return Err(McpFault::missing_meta(&asked.meta.missing()));
        };
        match headers::one(&self.headers, headers::VERSION)? {
            Some(said) if said == version => {}
            Some(_) => {
                return Err(McpFault::header_mismatch(
                    "`MCP-Protocol-Version` differs from the version in the body",
                ));
            }
            None => {
                return Err(McpFault::header_mismatch(
                    "the header `MCP-Protocol-Version` is missing",
                ));
            }
        }
        let Some(version) = McpVersion::read(version).filter(|version| version.is_modern()) else {
            return Err(McpFault::unsupported_version(version));
        };
        headers::check(&self.headers, method, asked)?;
        let Some(can) = asked.meta.capabilities else {
            return Err(McpFault::missing_meta(&asked.meta.missing()));
        };
        if !asked.method.is_of(true) {
            return Err(McpFault::no_such_method(method));
        }
        let session = self.face.host.default_session(&self.principal);
        if asked.method == McpMethod::CallTool {
            headers::check_params(&self.headers, asked, &self.face.host.surface(&session))?;
        }
        let level = asked.meta.log_level;
        Ok(McpPeer {
            face: Arc::clone(&self.face),
            session,
            version,
            can,
            level,
            stay: None,
            came_by: CAME_BY,
        })
    }
}

async fn listen(
    State(face): State<Arc<McpServerFace>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let came = McpHttpMessage::without_body(face, principal, headers)?;
    if !accepts(&came.headers, &["text/event-stream"]) {
        return Ok(not_acceptable("`Accept` must name `text/event-stream`"));
    }
    let stay = match came.session() {
        Ok(stay) => stay,
        Err((status, fault)) => return Ok(refused(&came.face, None, fault, status)),
    };
    let place = came.face.streams.take(&came.principal);
    let place = place.map_err(|full| HttpProblem::too_many_streams(full.to_string()))?;
    let peer = in_session(&came.face, &stay);
    let reading = answering::WhileRead::begin(&stay);
    let mut exchange = McpExchange::begin(WhenLeft::Stops, |outlet| async move {
        let followed = news::follow(peer, stay, reading.token(), outlet).await;
        drop(place);
        followed.map(|_| McpReply::Nothing)
    });
    exchange.go_on_alone();
    let id = McpRequestId::none();
    Ok(McpAnswerContext {
        face: came.face,
        id,
        asker: None,
    }
    .stream(None, exchange))
}

async fn leave(
    State(face): State<Arc<McpServerFace>>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let came = McpHttpMessage::without_body(face, principal, headers)?;
    if let Err((status, fault)) = came.session() {
        return Ok(refused(&came.face, None, fault, status));
    }
    let wire_id = header_text(&came.headers, SESSION).unwrap_or_default();
    if let Some(stay) = came.face.sessions.remove(wire_id) {
        sessions::end(&came.face, &stay).await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn no_session(face: &McpServerFace, id: &McpRequestId, error: &SessionError) -> Response {
    let status = match error {
        SessionError::Full(_) => StatusCode::TOO_MANY_REQUESTS,
        SessionError::Unknown(_)
        | SessionError::Default
        | SessionError::SurfaceTooLarge(_)
        | SessionError::Journal(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    refused(
        face,
        Some(id),
        McpFault::internal(error.to_string()),
        status,
    )
}

fn no_room(face: &McpServerFace, id: &McpRequestId, crowded: &McpSessionCapacityError) -> Response {
    refused(
        face,
        Some(id),
        McpFault::internal(crowded.to_string()),
        StatusCode::TOO_MANY_REQUESTS,
    )
}

fn not_acceptable(message: &'static str) -> Response {
    (
        StatusCode::NOT_ACCEPTABLE,
        [(header::CONTENT_TYPE, "text/plain")],
        message,
    )
        .into_response()
}

/// Whether the caller accepts all of these media types. A caller without `Accept` accepts all types.
fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let lists = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let names: Vec<&str> = lists
        .flat_map(|list| list.split(','))
        .map(|entry| entry.split(';').next().unwrap_or_default().trim())
        .collect();
    let reads = |wanted: &str| {
        let (kind, _) = wanted.split_once('/').unwrap_or((wanted, ""));
        names.iter().any(|name| {
            name.eq_ignore_ascii_case(wanted)
                || *name == "*/*"
                || name.strip_suffix("/*") == Some(kind)
        })
    };
    names.is_empty() || wanted.iter().all(|wanted| reads(wanted))
}
