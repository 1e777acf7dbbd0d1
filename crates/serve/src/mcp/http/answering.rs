//! HTTP answers: one JSON text, or a stream of events that ends with it.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use hyper::body::{Frame, SizeHint};
use tokio::time::Interval;
use tokio_util::sync::CancellationToken;
use toolpost_model::Principal;

use crate::{
    http::{EVENTS, STILL_HERE, event_stream, keep_alive},
    mcp::{
        McpServerFace,
        exchange::{ExchangeResult, ExchangeStep, McpExchange},
        fault::McpFault,
        sessions::McpSession,
        wire::{self, McpReply, McpRequestId},
    },
    streams,
};

const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The request and the caller of an answer.
pub(super) struct McpAnswerContext {
    pub(super) face: Arc<McpServerFace>,
    pub(super) id: McpRequestId,
    /// The caller and the digest of a request in the stateless era, in which faults have their own HTTP status.
    pub(super) asker: Option<(Principal, [u8; 32])>,
}

impl McpAnswerContext {
    /// Waits for the first item. An end becomes one text, and any other item begins a stream.
    pub(super) async fn respond(self, mut exchange: McpExchange) -> Response {
        match exchange.next().await {
            ExchangeStep::Done(outcome) => self.end(outcome),
            ExchangeStep::Ask(round) => {
                let kept = self.keep(exchange, round);
                self.end(kept)
            }
            ExchangeStep::Note(first) => {
                exchange.go_on_alone();
                self.stream(Some(first), exchange)
            }
        }
    }

    fn keep(
        &self,
        exchange: McpExchange,
        round: crate::mcp::exchange::QuestionRound,
    ) -> ExchangeResult {
        match &self.asker {
            Some((principal, digest)) => self.face.rounds.keep(exchange, round, principal, digest),
            None => Err(McpFault::internal(
                "this client cannot be asked with `requestState`",
            )),
        }
    }

    /// The whole answer as one text.
    pub(super) fn end(self, outcome: ExchangeResult) -> Response {
        match outcome {
            Ok(McpReply::Nothing) => StatusCode::ACCEPTED.into_response(),
            Ok(reply) => json(&wire::answer(&self.id, reply)),
            Err(fault) => {
                let status = if self.asker.is_some() {
                    fault.status
                } else {
                    StatusCode::OK
                };
                refused(&self.face, Some(&self.id), fault, status)
            }
        }
    }

    /// A stream of the messages, up to the end.
    pub(super) fn stream(self, first: Option<Bytes>, exchange: McpExchange) -> Response {
        let mut alive = keep_alive();
        if first.is_some() {
            alive.reset();
        }
        let telling = ExchangeStream {
            speaking: self,
            first,
            exchange: Some(exchange),
            alive,
        };
        let frames = stream::unfold(telling, |mut telling| async move {
            telling
                .next()
                .await
                .map(|frame| (Ok::<_, Infallible>(frame), telling))
        });
        let mut response = event_stream(EVENTS, "no-cache, no-store", frames);
        let unbuffered = HeaderValue::from_static("no");
        response.headers_mut().insert(UNBUFFERED, unbuffered);
        response
    }
}

/// A running stream. Dropping it drops the exchange, which then stops or continues its work.
struct ExchangeStream {
    speaking: McpAnswerContext,
    first: Option<Bytes>,
    exchange: Option<McpExchange>,
    alive: Interval,
}

impl ExchangeStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(frame(&[first]));
        }
        let exchange = self.exchange.as_mut()?;
        let step = tokio::select! {
            biased;
            step = exchange.next() => step,
            // The first tick is immediate on a stream without a first message, so that a reader sees at once that it is
            // connected.
            _ = self.alive.tick() => return Some(STILL_HERE),
        };
        let outcome = match step {
            ExchangeStep::Note(message) => return Some(frame(&[message])),
            ExchangeStep::Done(outcome) => outcome,
            ExchangeStep::Ask(round) => {
                let exchange = self.exchange.take()?;
                self.speaking.keep(exchange, round)
            }
        };
        self.exchange = None;
        let McpAnswerContext { face, id, .. } = &self.speaking;
        match outcome {
            Ok(McpReply::Nothing) => None,
            Ok(reply) => Some(frame(&wire::answer(id, reply))),
            Err(fault) => Some(frame(&[wire::refusal(Some(id), &face.tellable(fault))])),
        }
    }
}

/// One event. JSON never holds a raw line break, so one data line is enough.
fn frame(pieces: &[Bytes]) -> Bytes {
    const BEFORE: &[u8] = b"event: message\ndata: ";
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let mut frame = BytesMut::with_capacity(BEFORE.len() + length + 2);
    frame.extend_from_slice(BEFORE);
    pieces
        .iter()
        .for_each(|piece| frame.extend_from_slice(piece));
    frame.extend_from_slice(b"\n\n");
    frame.freeze()
}

pub(super) fn json(pieces: &[Bytes; 3]) -> Response {
    let body = match pieces {
        [whole, rest, last] if rest.is_empty() && last.is_empty() => Body::from(whole.clone()),
        pieces => Body::new(SharedBodyPieces(
            pieces
                .iter()
                .filter(|piece| !piece.is_empty())
                .cloned()
                .collect(),
        )),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

pub(super) fn refused(
    face: &McpServerFace,
    id: Option<&McpRequestId>,
    fault: McpFault,
    status: StatusCode,
) -> Response {
    let mut response = Response::new(Body::from(wire::refusal(id, &face.tellable(fault))));
    *response.status_mut() = status;
    if status == StatusCode::TOO_MANY_REQUESTS {
        let wait = HeaderValue::from(streams::RETRY_AFTER.as_secs());
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

/// A body of known length in shared pieces.
struct SharedBodyPieces(VecDeque<Bytes>);

impl hyper::body::Body for SharedBodyPieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(
            self.get_mut()
                .0
                .pop_front()
                .map(|piece| Ok(Frame::data(piece))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Marks a session as read while this value exists.
pub(super) struct WhileRead {
    stay: Arc<McpSession>,
    until: CancellationToken,
}

impl WhileRead {
    pub(super) fn begin(stay: &Arc<McpSession>) -> Self {
        Self {
            stay: Arc::clone(stay),
            until: stay.attach_reader(),
        }
    }

    pub(super) fn token(&self) -> CancellationToken {
        self.until.clone()
    }
}

impl Drop for WhileRead {
    fn drop(&mut self) {
        self.until.cancel();
        self.stay.was_read();
    }
}
