//! The stream of the host's messages, reopened after its last event when it breaks.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE},
};
use tokio::time::{Instant, sleep, timeout};

use super::{HttpClientSession, HttpWire, LONGEST_PAUSE, pause};
use crate::{
    client::{
        notice::HostNotice,
        router::{self, AnswerRouter},
    },
    sse::{Sse, SseParser},
};

/// Hosts answer the request for a stream at once, even if they have no messages.
const HEADERS: Duration = Duration::from_secs(30);
/// A host that sends keep-alive comments counts as gone after this silence.
const SILENCE: Duration = Duration::from_secs(45);
/// After a stream of this age the next one is opened without a pause.
const GOOD: Duration = Duration::from_secs(1);

pub(super) struct HostMessageStream {
    session: Arc<HttpClientSession>,
    parser: SseParser,
    open: Option<OpenStreamResponse>,
    /// The tries since the last good stream.
    tries: u32,
    /// Whether an earlier stream existed.
    opened_before: bool,
}

struct OpenStreamResponse {
    response: Response,
    since: Instant,
    /// Whether the host sends keep-alive comments, so that its silence has a meaning.
    keeps_alive: bool,
}

#[derive(Debug)]
pub(super) struct SessionUnknown;

impl HostMessageStream {
    pub(super) fn new(session: Arc<HttpClientSession>, message_limit: usize) -> Self {
        Self {
            session,
            parser: SseParser::new(message_limit),
            open: None,
            tries: 0,
            opened_before: false,
        }
    }

    /// Reads the stream and reopens it as needed, until the host reports the session as unknown. Cancellation safe:
    /// nothing that was read is lost when this future is dropped and called again.
    pub(super) async fn read(&mut self, wire: &Arc<HttpWire>) -> SessionUnknown {
        loop {
            let Some(open) = &mut self.open else {
                match self.open_once(wire).await {
                    Ok(()) => continue,
                    Err(unknown) => return unknown,
                }
            };
            let piece = if open.keeps_alive {
                timeout(SILENCE, open.response.chunk())
                    .await
                    .unwrap_or(Ok(None))
            } else {
                open.response.chunk().await
            };
            match piece {
                Ok(Some(piece)) => {
                    let mut comment = false;
                    self.parser
                        .feed(&piece, &mut |sse| comment |= hear(&wire.router, sse));
                    open.keeps_alive |= comment;
                }
                Ok(None) | Err(_) => {
                    if open.since.elapsed() >= GOOD {
                        self.tries = 0;
                    }
                    self.open = None;
                }
            }
        }
    }

    /// One try after a pause. A failure leads to the next try.
    async fn open_once(&mut self, wire: &Arc<HttpWire>) -> Result<(), SessionUnknown> {
        sleep(pause(self.tries, LONGEST_PAUSE)).await;
        self.tries += 1;
        let mut request = wire
            .http
            .get(wire.routes.stream.clone())
            .header("x-session-id", &self.session.key)
            .header(ACCEPT, "text/event-stream")
            .header(CACHE_CONTROL, "no-cache");
        if let Some(id) = self.parser.last_id() {
            request = request.header("last-event-id", id);
        }
        let Ok(Ok(response)) = timeout(HEADERS, request.send()).await else {
            return Ok(());
        };
        match response.status() {
            StatusCode::NOT_FOUND | StatusCode::GONE => return Err(SessionUnknown),
            status if status.is_success() && is_event_stream(&response) => {}
            _ => return Ok(()),
        }
        self.parser.restart();
        self.open = Some(OpenStreamResponse {
            response,
            since: Instant::now(),
            keeps_alive: false,
        });
        if std::mem::replace(&mut self.opened_before, true) {
            router::add(&wire.router.counts.reconnects, 1);
            wire.router.tell(HostNotice::Reconnected);
            // A reopened stream continues after the last event that this client read, so an answer that the old stream
            // lost arrives by itself. A host that was restarted has no such backlog: it needs the unanswered requests
            // again, recognises their ids and answers from its record.
            wire.deliver_unanswered(&self.session);
        }
        Ok(())
    }
}

fn is_event_stream(response: &Response) -> bool {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| {
        kind.trim_start()
            .to_ascii_lowercase()
            .starts_with("text/event-stream")
    })
}

/// Hands an event to the router. Returns whether it was a comment.
fn hear(router: &AnswerRouter, sse: Sse<'_>) -> bool {
    match sse {
        Sse::Event(text) => router.receive(text),
        Sse::TooLong(head) => {
            router.receive_damaged(head, "it is over the size limit of this client".to_owned());
        }
        Sse::Comment => return true,
    }
    false
}
