//! A call as server-sent events: what happens on the way, then the result.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use bytes::Bytes;
use futures_util::Stream;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval},
};
use toolpost_core::{CallHandle, Patience, PendingCall, RecordedResult};
use toolpost_model::{BoxFuture, Event, EventBody};

/// A sign of life where nothing else is said, so that no proxy takes the silence for death.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
pub(crate) const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

use super::calls::pending_body;

/// `patience` ends the stream of a call that stays; without it the stream lasts as long as the call.
pub(super) fn respond(
    handle: CallHandle,
    events: mpsc::Receiver<Event>,
    patience: Option<Patience>,
) -> Response {
    let mut response = Response::new(Body::from_stream(frames(handle, events, patience)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

enum CallStreamPhase {
    /// Events come in; the handle cancels the call if the stream is dropped meanwhile.
    Events(CallHandle, mpsc::Receiver<Event>),
    /// There are no more; the answer is on its way, at once or, for a repeat, when the first call ends.
    Answer(BoxFuture<'static, Result<Arc<RecordedResult>, PendingCall>>),
    Over,
}

/// Events until the call lets go of its sender, then the result. Dropping the stream drops the handle, which
/// cancels a call nobody listens to any more.
fn frames(
    handle: CallHandle,
    events: mpsc::Receiver<Event>,
    patience: Option<Patience>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let mut alive = interval(KEEP_ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    alive.reset();
    let since = Instant::now();
    futures_util::stream::unfold(
        (CallStreamPhase::Events(handle, events), alive),
        move |(mut phase, mut alive)| async move {
            loop {
                let (frame, next) = match phase {
                    CallStreamPhase::Over => return None,
                    CallStreamPhase::Events(handle, mut events) => tokio::select! {
                        biased;
                        event = events.recv() => match event {
                            Some(event) => (frame(&event), CallStreamPhase::Events(handle, events)),
                            None => {
                                phase = CallStreamPhase::Answer(Box::pin(handle.answer_within(patience)));
                                continue;
                            }
                        },
                        pending = handle.pending(patience, since) => (last_frame(Err(pending)), CallStreamPhase::Over),
                        _ = alive.tick() => (STILL_HERE, CallStreamPhase::Events(handle, events)),
                    },
                    CallStreamPhase::Answer(mut answer) => tokio::select! {
                        biased;
                        answer = &mut answer => (last_frame(answer), CallStreamPhase::Over),
                        _ = alive.tick() => (STILL_HERE, CallStreamPhase::Answer(answer)),
                    },
                };
                return Some((Ok(frame), (next, alive)));
            }
        },
    )
}

/// The call's end, or that the call stays when its stream ends.
fn last_frame(answer: Result<Arc<RecordedResult>, PendingCall>) -> Bytes {
    Bytes::from(match answer {
        Ok(answer) => format!("event: result\ndata: {}\n\n", answer.json()),
        Err(pending) => format!("event: pending\ndata: {}\n\n", pending_body(&pending)),
    })
}

fn frame(event: &Event) -> Bytes {
    let name = match event.body {
        EventBody::Stage { .. } => "stage",
        EventBody::Progress(_) => "progress",
        EventBody::Status { .. } => "status",
        EventBody::Log { .. } => "log",
        EventBody::Artifact { .. } => "artifact",
        EventBody::Kept(_) => "kept",
        EventBody::Output(_) => "output",
        EventBody::Approval(_) => "approval",
        EventBody::Custom { .. } => "custom",
        EventBody::Message { .. } => "message",
    };
    // JSON never holds a raw line break, so one data line is enough.
    let data = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!(
        "event: {name}\nid: {}\ndata: {data}\n\n",
        event.seq
    ))
}
