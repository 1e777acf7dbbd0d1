//! A call as server-sent events: what happens on the way, then the result.

use std::{convert::Infallible, pin::Pin, time::Duration};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use bytes::Bytes;
use futures_util::Stream;
use tokio::{
    sync::mpsc,
    time::{Interval, MissedTickBehavior, interval},
};
use toolpost_core::CallHandle;
use toolpost_model::{Event, EventBody};

/// A sign of life where nothing else is said, so that no proxy takes the silence for death.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) fn respond(handle: CallHandle, events: mpsc::Receiver<Event>) -> Response {
    let mut response = Response::new(Body::from_stream(frames(handle, events)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

struct State {
    handle: Option<CallHandle>,
    events: mpsc::Receiver<Event>,
    alive: Pin<Box<Interval>>,
}

/// Events until the call lets go of its sender, then the result. Dropping the stream drops the handle, which
/// cancels a call nobody listens to any more.
fn frames(handle: CallHandle, events: mpsc::Receiver<Event>) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let mut alive = interval(KEEP_ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    alive.reset();
    let state = State { handle: Some(handle), events, alive: Box::pin(alive) };
    futures_util::stream::unfold(state, |mut state| async move {
        state.handle.as_ref()?;
        let frame = tokio::select! {
            biased;
            event = state.events.recv() => match event {
                Some(event) => frame(&event),
                None => {
                    let answer = state.handle.take()?.answer().await;
                    Bytes::from(format!("event: result\ndata: {}\n\n", answer.json()))
                }
            },
            _ = state.alive.tick() => Bytes::from_static(b": still here\n\n"),
        };
        Some((Ok(frame), state))
    })
}

fn frame(event: &Event) -> Bytes {
    let name = match event.body {
        EventBody::Stage { .. } => "stage",
        EventBody::Progress(_) => "progress",
        EventBody::Status { .. } => "status",
        EventBody::Log { .. } => "log",
        EventBody::Artifact { .. } => "artifact",
    };
    // JSON never holds a raw line break, so one data line is enough.
    let data = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!("event: {name}\nid: {}\ndata: {data}\n\n", event.seq))
}
