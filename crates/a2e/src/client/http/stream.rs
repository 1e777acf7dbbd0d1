//! The stream on which the host speaks, opened again where it broke off.

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

/// A host answers the request for a stream at once, whatever there is to say.
const HEADERS: Duration = Duration::from_secs(30);
/// A host that says every few seconds that it is alive, and then does not, is not.
const SILENCE: Duration = Duration::from_secs(45);
/// A stream that lived so long was a good one, and its successor need not wait.
const GOOD: Duration = Duration::from_secs(1);

pub(super) struct HostMessageStream {
    session: Arc<HttpClientSession>,
    parser: SseParser,
    open: Option<OpenStreamResponse>,
    /// Tries since the last good stream.
    tries: u32,
    /// Whether there was a stream before.
    opened_before: bool,
}

struct OpenStreamResponse {
    response: Response,
    since: Instant,
    /// The host sends comments, so that its silence means something.
    keeps_alive: bool,
}

/// The host does not know the session.
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

    /// Reads, and opens as often as necessary, until the host says that there is no such session. May be dropped
    /// and called again at any time: what was read stays read.
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

    /// One try, after a pause. A failure is left to the next one.
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

/// Whether it was a comment.
fn hear(router: &AnswerRouter, sse: Sse<'_>) -> bool {
    match sse {
        Sse::Event(text) => router.receive(text),
        Sse::TooLong(head) => {
            router.receive_damaged(head, "it is longer than this client reads".to_owned());
        }
        Sse::Comment => return true,
    }
    false
}
