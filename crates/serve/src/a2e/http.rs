//! HTTP with server-sent events: `POST /session`, `POST /send`, `GET /stream`.
//!
//! Clients of this protocol retry a failed POST three times and then give up silently. Errors in a message are
//! therefore sent on the stream; only a request without a session gets an HTTP error.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};
use toolpost_a2e::codec::{MessageFraming, ReaderSide, decode};
use toolpost_core::CallHandleState;
use toolpost_model::RequestId;

use super::{
    A2eServerFace,
    conversation::{A2eConversation, MessageReceipt},
    outbox::{AnsweredCall, OutboxIdClaim, OutboxItem, OutboxToolList, ResendItem},
    sessions::{self, NoSession},
    tools::CallListener,
    wire::{self, too_large},
};
use crate::{
    auth::RequestAuthenticator,
    http::{BODY_TIMEOUT, STILL_HERE, UTF8_EVENTS, event_stream, header_text, keep_alive},
    refusals::{RefusalDesk, TurnedAway},
    streams::{self, StreamPlace, StreamsFull},
};

/// The paths that need no token. They check a session's id, and the token in its handshake.
pub(crate) const ROUTES: [&str; 3] = ["/session", "/send", "/stream"];

/// The header that names the session in every request but the first.
const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The kept beginning of a message that is too long, for finding its id.
pub(super) const HEAD: usize = 4 << 10;
/// The approximate size of one write to a stream.
const BATCH: usize = 64 << 10;

pub(crate) fn routes(face: Arc<A2eServerFace>) -> Router {
    let [session, send, stream] = ROUTES;
    Router::new()
        .route(session, post(open))
        .route(send, post(take))
        .route(stream, get(listen))
        .method_not_allowed_fallback(|| async {
            A2eHttpRefusal::of(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path does not support that method",
            )
        })
        .with_state(face)
}

async fn open(
    State(face): State<Arc<A2eServerFace>>,
    Extension(door): Extension<Arc<RequestAuthenticator>>,
) -> Json<Value> {
    Json(json!({ "session_id": sessions::open(&face, &door) }))
}

/// The refusal of a request without a session, in the form that other servers of this protocol use.
struct A2eHttpRefusal(StatusCode, Cow<'static, str>);

impl A2eHttpRefusal {
    fn of(status: StatusCode, detail: &'static str) -> Self {
        Self(status, Cow::Borrowed(detail))
    }
}

impl From<StreamsFull> for A2eHttpRefusal {
    fn from(full: StreamsFull) -> Self {
        Self(StatusCode::TOO_MANY_REQUESTS, full.to_string().into())
    }
}

impl IntoResponse for A2eHttpRefusal {
    fn into_response(self) -> Response {
        let mut response = (self.0, Json(json!({ "detail": self.1 }))).into_response();
        if self.0 == StatusCode::TOO_MANY_REQUESTS {
            let wait = HeaderValue::from(streams::RETRY_AFTER.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        response
    }
}

async fn conversation(
    face: &Arc<A2eServerFace>,
    door: &Arc<RequestAuthenticator>,
    desk: &RefusalDesk,
    headers: &HeaderMap,
) -> Result<Arc<A2eConversation>, A2eHttpRefusal> {
    let Some(id) = headers.get(SESSION) else {
        return Err(A2eHttpRefusal::of(
            StatusCode::BAD_REQUEST,
            "the `X-Session-Id` header is missing",
        ));
    };
    let found = match id.to_str() {
        Ok(id) => sessions::find(face, door, id).await,
        Err(_) => Err(NoSession::Unknown),
    };
    match found {
        Ok(conversation) => Ok(conversation),
        Err(NoSession::Unknown) => {
            desk.note(TurnedAway::UnknownSession).pass().await;
            Err(A2eHttpRefusal::of(
                StatusCode::NOT_FOUND,
                "there is no such session",
            ))
        }
        Err(NoSession::NotNow) => Err(A2eHttpRefusal::of(
            StatusCode::SERVICE_UNAVAILABLE,
            "the session is not available now",
        )),
    }
}

/// The bytes of a message, or the beginning of a message that is too long, which contains its id.
enum MessageBytes {
    Whole(Bytes),
    TooLong(Bytes),
}

async fn message(mut body: Body, limit: usize) -> Result<MessageBytes, A2eHttpRefusal> {
    let mut kept = BytesMut::new();
    let mut seen = 0;
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Err(A2eHttpRefusal::of(
                    StatusCode::BAD_REQUEST,
                    "the body is incomplete",
                ));
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            seen += data.len();
            if seen > limit {
                kept.extend_from_slice(&data[..data.len().min(HEAD)]);
                kept.truncate(HEAD);
                break;
            }
            kept.extend_from_slice(&data);
        }
        Ok(if seen <= limit {
            MessageBytes::Whole(kept.freeze())
        } else {
            MessageBytes::TooLong(kept.freeze())
        })
    };
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(read) => read,
        Err(_) => Err(A2eHttpRefusal::of(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )),
    }
}

async fn take(
    State(face): State<Arc<A2eServerFace>>,
    Extension(door): Extension<Arc<RequestAuthenticator>>,
    Extension(desk): Extension<RefusalDesk>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, A2eHttpRefusal> {
    let conversation = conversation(&face, &door, &desk, &headers).await?;
    let limit = face.settings.message_limit;
    let read = match message(body, limit).await? {
        MessageBytes::Whole(body) if body.trim_ascii().is_empty() => {
            return Ok(Json(json!({ "ok": true })));
        }
        MessageBytes::Whole(body) => decode(&body, ReaderSide::Host),
        MessageBytes::TooLong(head) => Err(too_large(&head, limit)),
    };
    let received = conversation.receive(read).await;
    if conversation.was_turned_away() {
        desk.note(TurnedAway::WrongToken).pass().await;
    }
    match received {
        MessageReceipt::Taken => Ok(Json(json!({ "ok": true }))),
        MessageReceipt::Flooded if conversation.is_over() => Err(A2eHttpRefusal::of(
            StatusCode::NOT_FOUND,
            "the session is over",
        )),
        MessageReceipt::Flooded => Err(A2eHttpRefusal::of(
            StatusCode::TOO_MANY_REQUESTS,
            "the stream has thousands of unread answers",
        )),
    }
}

async fn listen(
    State(face): State<Arc<A2eServerFace>>,
    Extension(door): Extension<Arc<RequestAuthenticator>>,
    Extension(desk): Extension<RefusalDesk>,
    headers: HeaderMap,
) -> Result<Response, A2eHttpRefusal> {
    let conversation = conversation(&face, &door, &desk, &headers).await?;
    let after = header_text(&headers, LAST_EVENT).and_then(|id| {
        let (epoch, number) = id.split_once('-')?;
        (epoch == face.epoch).then(|| number.parse().ok())?
    });
    // A session without a handshake has no owner yet, and a limit of its own.
    let owner = conversation
        .session()
        .map(|session| session.principal().clone());
    let place = match (&face.settings.streams, &owner) {
        (Some(streams), Some(owner)) => Some(streams.take(owner)?),
        (None, _) | (_, None) => None,
    };
    let reading = OutboxReader::begin(conversation, after, place);
    Ok(event_stream(UTF8_EVENTS, "no-cache", reading.frames()))
}

struct OutboxReader {
    conversation: Arc<A2eConversation>,
    reader: u64,
    again: std::vec::IntoIter<(u64, ResendItem)>,
    alive: Interval,
    _place: Option<StreamPlace>,
}

impl OutboxReader {
    fn begin(
        conversation: Arc<A2eConversation>,
        after: Option<u64>,
        place: Option<StreamPlace>,
    ) -> Self {
        let attached = conversation.outbox.attach(after);
        let again = attached.again.into_iter();
        Self {
            conversation,
            reader: attached.reader,
            again,
            alive: keep_alive(),
            _place: place,
        }
    }

    fn frames(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut reading| async move {
            reading.next().await.map(|frame| (Ok(frame), reading))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        while let Some((number, again)) = self.again.next() {
            if let Some(item) = self.recall(again).await {
                let mut frame = Vec::new();
                self.write(&mut frame, number, &item);
                return Some(frame.into());
            }
        }
        tokio::select! {
            biased;
            batch = self.conversation.outbox.take(self.reader, BATCH) => {
                let Some(batch) = batch else {
                    self.all_told();
                    return None;
                };
                let mut frames = Vec::with_capacity(512);
                for (number, item) in &batch {
                    self.write(&mut frames, *number, item);
                }
                Some(frames.into())
            }
            // The first tick is immediate, so that a reader sees at once that it is connected.
            _ = self.alive.tick() => Some(STILL_HERE),
        }
    }

    fn write(&self, frames: &mut Vec<u8>, number: u64, item: &OutboxItem) {
        frames.extend_from_slice(b"id: ");
        frames.extend_from_slice(self.conversation.face.epoch.as_bytes());
        frames.extend_from_slice(format!("-{number}\n").as_bytes());
        wire::write(frames, item, MessageFraming::Event);
    }

    /// Resends an item. `None`: it follows later by itself, or no longer exists.
    async fn recall(&self, again: ResendItem) -> Option<OutboxItem> {
        let host = &self.conversation.face.host;
        let (req_id, session) = match again {
            ResendItem::Message(message) => return Some(OutboxItem::Message(message)),
            ResendItem::List(req_id, filter) => {
                let tools = host.list(&*self.conversation.session()?, &filter).await;
                return Some(OutboxItem::List(Box::new(OutboxToolList {
                    req_id,
                    filter,
                    tools,
                    asked: None,
                })));
            }
            ResendItem::Answer(req_id) => (req_id, self.conversation.session()?),
        };
        let earlier = match host
            .earlier(&session, &RequestId::new(req_id.as_str()))
            .await
        {
            Ok(earlier) => earlier?,
            Err(error) => {
                tracing::warn!(%error, "an earlier answer could not be read from the record");
                return None;
            }
        };
        if let CallHandleState::Over(answer) = earlier.call.standing() {
            return Some(OutboxItem::Answer(Box::new(AnsweredCall {
                key: req_id.clone(),
                req_id,
                tool: earlier.tool,
                answer: Arc::clone(answer),
                events: Vec::new(),
                is_of_plugin: self.conversation.face.is_of_plugin(answer),
            })));
        }
        // A call of an earlier run that this host continues: its end goes through the outbox as usual.
        if self.conversation.outbox.begin(&req_id, None) == OutboxIdClaim::New {
            CallListener::of_earlier(&self.conversation, req_id, earlier.tool)
                .wait_for(earlier.call);
        }
        None
    }

    /// Removes the session if it is over. Otherwise another reader has taken over.
    fn all_told(&self) {
        if self.conversation.is_over() && self.conversation.outbox.is_over() {
            sessions::forget(&self.conversation.face, &self.conversation);
        }
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        self.conversation.touch();
        self.conversation.outbox.detach(self.reader);
    }
}

/// Removes idle sessions, and notifies the others when the tools change. Ends with the face.
pub(crate) async fn tend(face: std::sync::Weak<A2eServerFace>) {
    let Some(mut changes) = face.upgrade().map(|face| face.host.changes()) else {
        return;
    };
    let mut sweeps = interval(sessions::SWEEP_EVERY);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let changed = tokio::select! {
            _ = sweeps.tick() => None,
            changed = changes.changed() => Some(changed),
        };
        let Some(face) = face.upgrade() else { return };
        match changed {
            None => face.sessions.sweep(face.host.limits().session_idle),
            Some(Ok(())) => face.sessions.tell_of_changed_list(),
            Some(Err(_)) => return,
        }
    }
}
