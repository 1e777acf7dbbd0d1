//! A stream of events, which is opened again after an interruption.

use std::{io, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream::BoxStream};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::{super::message::UpstreamMessage, McpEndpoint, text_of};
use crate::desk::McpMessageRouter;

/// The pause before a stream is opened again, unless the server names another. It doubles with each failure.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the rest of a stream is read. HTTP reuses only a connection with a response that was read to its end.
const DRAIN: Duration = Duration::from_millis(50);

pub(super) struct UpstreamEvents<'a> {
    endpoint: &'a McpEndpoint,
    desk: &'a McpMessageRouter,
    stream: BoxStream<'static, Result<Sse, SseError>>,
    /// It is opened again even if no event had an id. The stream of a request is not, because without an id the server
    /// cannot find the events that are missing.
    is_unasked: bool,
    last_id: Option<String>,
    /// The pause that the server named.
    pause: Option<Duration>,
}

/// Why a stream is not opened.
pub(super) enum StreamRefusal {
    /// Another try would not help.
    Final,
    Passing,
}

impl<'a> UpstreamEvents<'a> {
    /// Reads the response to a request.
    pub(super) fn of_answer(
        endpoint: &'a McpEndpoint,
        desk: &'a McpMessageRouter,
        response: Response,
    ) -> Self {
        Self {
            endpoint,
            desk,
            stream: events(response, endpoint.longest),
            is_unasked: false,
            last_id: None,
            pause: None,
        }
    }

    /// Opens the stream for unsolicited messages.
    pub(super) async fn unasked(
        endpoint: &'a McpEndpoint,
        desk: &'a McpMessageRouter,
    ) -> Result<Self, StreamRefusal> {
        let response = open(endpoint, desk, None).await?;
        Ok(Self {
            is_unasked: true,
            ..Self::of_answer(endpoint, desk, response)
        })
    }

    /// The next message. `None`: the stream is over.
    pub(super) async fn next(&mut self) -> Option<UpstreamMessage> {
        loop {
            let event = match self.stream.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) if is_too_long(&error) => return None,
                broken => {
                    let pause = match broken {
                        Some(_) => Duration::ZERO,
                        None => self.pause.take().unwrap_or(PAUSE),
                    };
                    self.reopen(pause).await?;
                    continue;
                }
            };
            self.pause = event.retry.map(Duration::from_millis).or(self.pause);
            self.last_id = event.id.or(self.last_id.take());
            if !matches!(event.event.as_deref(), None | Some("" | "message")) {
                continue;
            }
            let message = event.data.and_then(|data| serde_json::from_str(&data).ok());
            if let Some(message) = message.and_then(UpstreamMessage::read) {
                return Some(message);
            }
        }
    }

    async fn reopen(&mut self, pause: Duration) -> Option<()> {
        if !self.is_unasked && self.last_id.is_none() {
            return None;
        }
        let mut wait = pause;
        for failures in 1.. {
            tokio::time::sleep(wait).await;
            match open(self.endpoint, self.desk, self.last_id.as_deref()).await {
                Ok(response) => {
                    self.stream = events(response, self.endpoint.longest);
                    return Some(());
                }
                Err(StreamRefusal::Final) => return None,
                Err(StreamRefusal::Passing) => {
                    let pause = PAUSE.saturating_mul(2_u32.saturating_pow(failures));
                    wait = pause.max(self.pause.unwrap_or_default());
                }
            }
        }
        None
    }

    /// Reads the rest of the stream, usually only its end.
    pub(super) fn drain(mut self) {
        if !matches!(self.stream.next().now_or_never(), Some(None)) {
            let rest = async move { while self.stream.next().await.is_some() {} };
            tokio::spawn(tokio::time::timeout(DRAIN, rest));
        }
    }
}

/// Opens a stream after the event of this id.
async fn open(
    endpoint: &McpEndpoint,
    desk: &McpMessageRouter,
    last_id: Option<&str>,
) -> Result<Response, StreamRefusal> {
    let agreed = endpoint.agreed.lock().clone();
    let mut request = endpoint
        .client
        .get(endpoint.url.clone())
        .header(ACCEPT, "text/event-stream, application/json");
    if let Some(id) = last_id {
        request = request.header("last-event-id", id);
    }
    let sent = endpoint.with_headers(request, &agreed).send().await;
    let response = sent.map_err(|_| StreamRefusal::Passing)?;
    let media = text_of(&response, &CONTENT_TYPE);
    let is_challenge = response.headers().contains_key(WWW_AUTHENTICATE);
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => Err(StreamRefusal::Final),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if is_challenge => {
            Err(StreamRefusal::Final)
        }
        status if status.is_client_error() || status.is_server_error() => {
            // Before the first stream, 404 only means that the server offers none.
            if status == StatusCode::NOT_FOUND && endpoint.streamed.load(Ordering::Acquire) {
                desk.expire();
            }
            Err(StreamRefusal::Passing)
        }
        _ if ["text/event-stream", "application/json"]
            .iter()
            .any(|known| media.starts_with(known)) =>
        {
            endpoint.streamed.store(true, Ordering::Release);
            Ok(response)
        }
        _ => Err(StreamRefusal::Passing),
    }
}

/// The events of an answer, each of at most so many bytes.
fn events(response: Response, longest: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut length = EventLength::default();
    let bounded = move |piece: reqwest::Result<Bytes>| {
        let piece = piece.map_err(io::Error::other)?;
        match length.add(&piece) <= longest {
            true => Ok(piece),
            false => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
        }
    };
    // SSE comments produce no events. Without this pause, a stream of nothing but comments (which compress well) would
    // occupy its thread until it ends.
    let paused = |piece| tokio::task::consume_budget().map(|()| piece);
    let pieces = response.bytes_stream().map(bounded).then(paused).boxed();
    SseStream::from_bytes_stream(pieces).boxed()
}

fn is_too_long(error: &SseError) -> bool {
    matches!(error, SseError::Body(error) if error.downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::FileTooLarge))
}

/// The length of the current event.
#[derive(Default)]
struct EventLength {
    event: usize,
    /// The current line is empty so far.
    line_empty: bool,
}

impl EventLength {
    /// Adds bytes; returns the greatest length that an event reached.
    fn add(&mut self, bytes: &[u8]) -> usize {
        let mut longest = 0;
        for byte in bytes {
            self.event += 1;
            longest = longest.max(self.event);
            match byte {
                b'\n' if self.line_empty => self.event = 0,
                b'\n' => self.line_empty = true,
                b'\r' => {}
                _ => self.line_empty = false,
            }
        }
        longest
    }
}
