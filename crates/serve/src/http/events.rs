//! `GET /sessions/{id}/events`: a session's calls as they happen, for front ends; `GET /events`: the calls of all
//! sessions, for operators.

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderName, HeaderValue},
    response::Response,
};
use serde::Deserialize;
use toolpost_a2a::ui_stream::{self, UiVersion};
use toolpost_core::SessionError;
use toolpost_model::{Principal, SessionId};

use super::{
    EVENTS, HttpProblem, RouteParameter, RouteState, SESSION_HEADER, event_stream, operators_only,
};
use crate::feed::{FeedStart, StreamPump, StreamScope, StreamVocabulary};

/// The last event of a reader that reconnects.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const QUERY_HINT: &str = "`vocabulary` is `tool-events` or `ai-sdk`, `version` is 5, 6 or 7 and goes with `ai-sdk`, `from` is \
                          `now` or `start`, `after` is an event's id";
/// The path word for the caller's default session.
const OWN: &str = "default";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamOptions {
    #[serde(default)]
    vocabulary: VocabularyName,
    /// The version of the AI SDK that reads the stream.
    version: Option<u8>,
    #[serde(default)]
    from: FeedStartParameter,
    /// For readers that cannot send headers.
    after: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum VocabularyName {
    #[default]
    ToolEvents,
    AiSdk,
}

impl StreamOptions {
    /// The requested vocabulary. `None`: there is no such vocabulary.
    fn words(&self) -> Option<StreamVocabulary> {
        match (self.vocabulary, self.version) {
            (VocabularyName::ToolEvents, None) => Some(StreamVocabulary::ToolEvents),
            (VocabularyName::AiSdk, None | Some(5)) => Some(StreamVocabulary::AiSdk(UiVersion::V5)),
            (VocabularyName::AiSdk, Some(6)) => Some(StreamVocabulary::AiSdk(UiVersion::V6)),
            (VocabularyName::AiSdk, Some(7)) => Some(StreamVocabulary::AiSdk(UiVersion::V7)),
            (VocabularyName::ToolEvents | VocabularyName::AiSdk, Some(_)) => None,
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FeedStartParameter {
    #[default]
    Now,
    Start,
}

pub(super) async fn follow(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
    options: Result<Query<StreamOptions>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let session = if id == OWN {
        shared.host.default_session(&principal)
    } else {
        // The path names the session, so the error must not advise the caller to leave out a header.
        shared
            .host
            .session(&SessionId::new(id), &principal)
            .await
            .map_err(|error| match error {
                SessionError::Unknown(_) => {
                    HttpProblem::not_found("unknown_session", error.to_string())
                        .hint("open one with `POST /sessions`; `default` is the caller's own")
                }
                SessionError::Default
                | SessionError::Full(_)
                | SessionError::SurfaceTooLarge(_)
                | SessionError::Journal(_) => error.into(),
            })?
    };
    stream(
        shared,
        StreamScope::Session(session),
        &principal,
        options,
        &headers,
    )
    .await
}

pub(super) async fn follow_all(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    options: Result<Query<StreamOptions>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    operators_only(&principal)?;
    stream(
        shared,
        StreamScope::Everybody(principal.clone()),
        &principal,
        options,
        &headers,
    )
    .await
}

async fn stream(
    shared: RouteState,
    whose: StreamScope,
    reader: &Principal,
    options: Result<Query<StreamOptions>, QueryRejection>,
    headers: &HeaderMap,
) -> Result<Response, HttpProblem> {
    let refused = |why: String| HttpProblem::bad_request("bad_query", why).hint(QUERY_HINT);
    let Query(options) = options.map_err(|bad| refused(bad.body_text()))?;
    let vocabulary = options
        .words()
        .ok_or_else(|| refused("there is no such `version`".to_owned()))?;
    let from = match (last_event_id(headers)?.or(options.after), options.from) {
        (Some(seq), _) => FeedStart::After(seq),
        (None, FeedStartParameter::Now) => FeedStart::Now,
        (None, FeedStartParameter::Start) => FeedStart::Start,
    };
    let own_id = match &whose {
        StreamScope::Session(session) => HeaderValue::from_str(session.id().as_str()).ok(),
        StreamScope::Everybody(_) => None,
    };
    let wanted = (vocabulary, from);
    let pump = StreamPump::open(
        shared.host,
        &shared.feed,
        whose,
        reader,
        wanted,
        shared.closing,
    )
    .await?;
    let mut response = event_stream(EVENTS, "no-store", pump.frames());
    let headers = response.headers_mut();
    // Proxies that buffer answers would delay the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    // The id of the default session, so that other programs can make calls in it.
    if let Some(id) = own_id {
        headers.insert(SESSION_HEADER, id);
    }
    if matches!(vocabulary, StreamVocabulary::AiSdk(_)) {
        let (name, value) = ui_stream::HEADER;
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// The id of the reader's last event. Browsers send an empty header if they have none.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, HttpProblem> {
    let Some(given) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let text = given.to_str().unwrap_or("?").trim();
    if text.is_empty() {
        return Ok(None);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| is_number)
        .map(Some)
        .ok_or_else(|| {
            HttpProblem::bad_request(
                "bad_event_id",
                format!(
                    "`{}` is not an event id of such a stream",
                    text.escape_debug()
                ),
            )
            .hint("leave `Last-Event-ID` out to start again")
        })
}
