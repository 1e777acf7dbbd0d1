//! A call as server-sent events: its events, then its result.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval},
};
use toolpost_core::{CallHandle, Patience, PendingCall, RecordedResult};
use toolpost_model::{BoxFuture, Event, EventBody};

/// The interval of keep-alive comments, so that no proxy closes a silent connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
pub(crate) const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

use super::calls::pending_body;

/// `patience` ends the stream of a call that continues; without it the stream lasts as long as the call.
pub(super) fn respond(
    handle: CallHandle,
    events: mpsc::Receiver<Event>,
    patience: Option<Patience>,
) -> Response {
    event_stream(EVENTS, "no-store", frames(handle, events, patience))
}

/// The media types of event streams. Without a charset some clients decode the text as Latin-1.
pub(crate) const EVENTS: &str = "text/event-stream";
pub(crate) const UTF8_EVENTS: &str = "text/event-stream; charset=utf-8";

/// A response with `frames` as its body.
pub(crate) fn event_stream(
    media_type: &'static str,
    cache_control: &'static str,
    frames: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, cache_control),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

/// A timer for keep-alive comments: one at once, then one after each silence.
pub(crate) fn keep_alive() -> Interval {
    let mut alive = interval(KEEP_ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    alive
}

enum CallStreamPhase {
    /// Events arrive. The handle cancels the call if the stream is dropped.
    Events(CallHandle, mpsc::Receiver<Event>),
    /// All events were sent, and the answer follows. For a repeat, it follows when the first call ends.
    Answer(BoxFuture<'static, Result<Arc<RecordedResult>, PendingCall>>),
    Over,
}

/// The events until the call drops its sender, then the result. Dropping the stream drops the handle, which cancels the
/// call of a caller that disconnected.
fn frames(
    handle: CallHandle,
    events: mpsc::Receiver<Event>,
    patience: Option<Patience>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let mut alive = keep_alive();
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

/// The result, or the notice that the call continues after its stream.
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
