//! A stream of events over HTTP, reopened after it broke.

use std::{path::PathBuf, time::Duration};

use reqwest::{Response, StatusCode, Url};
use tokio::time::{Instant, sleep, timeout};
use toolpost_a2e::sse::{Sse, SseParser};

use super::{
    connection::{StreamConnector, StreamOpenFailure, StreamShape, reason},
    frames::{HostControlFrame, StreamCloseReason, StreamClosingFrame},
    heard::{StreamLinkStatus, WatchInputMessage, WatchInputSender},
};

/// Longer events and lines are dropped.
const LONGEST: usize = 16 << 20;
/// A host sends a heartbeat every few seconds. After this silence the connection counts as dead.
const SILENCE: Duration = Duration::from_secs(45);
/// A stream that lasted this long is reopened without a pause.
const GOOD: Duration = Duration::from_secs(2);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct StreamAddress {
    pub(super) url: Url,
    pub(super) token: Option<String>,
    /// The socket of the host, if it is not reached over the network.
    pub(super) socket: Option<HostSocket>,
}

/// The socket of the host of a workspace.
pub(super) struct HostSocket {
    pub(super) path: PathBuf,
    /// The watched session, if there is one.
    pub(super) session: Option<String>,
}

impl StreamAddress {
    /// The name for messages.
    pub(super) fn name(&self) -> String {
        match &self.socket {
            Some(HostSocket { session: None, .. }) => "the running host".to_owned(),
            Some(HostSocket {
                session: Some(session),
                ..
            }) => format!("session `{session}` of the running host"),
            // A query may contain a secret.
            None => format!(
                "{}{}",
                self.url.origin().ascii_serialization(),
                self.url.path()
            ),
        }
    }

    /// The name for use in a sentence.
    pub(super) fn quoted(&self) -> String {
        match &self.socket {
            Some(_) => self.name(),
            None => format!("`{}`", self.name()),
        }
    }

    /// Whether it is a stream of a host's calls, which lasts as long as the host. Other streams end with their task.
    fn goes_on(&self) -> bool {
        self.socket.is_some() || self.url.path().ends_with("/events")
    }
}

/// The reaction to a stream that ended or broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamReconnectPolicy {
    /// It is reopened.
    Yes,
    /// It is finished.
    No,
}

/// Reads a stream until it ends for good, and sends its messages.
pub(super) async fn read(
    address: StreamAddress,
    again: StreamReconnectPolicy,
    to: WatchInputSender,
) {
    let end = EventStreamReader {
        parser: SseParser::new(LONGEST),
        to: &to,
        address: &address,
        line: Vec::new(),
        skips_line: false,
        closing: None,
    };
    let end = end.run(again).await;
    let _ = to.send(WatchInputMessage::End(end)).await;
}

struct EventStreamReader<'a> {
    parser: SseParser,
    to: &'a WatchInputSender,
    address: &'a StreamAddress,
    /// The incomplete line at the end of the data.
    line: Vec<u8>,
    /// The current line is too long and is dropped.
    skips_line: bool,
    /// The reason for the coming end of the stream, if its host sent one.
    closing: Option<StreamCloseReason>,
}

enum StreamReadEnd {
    /// It ended regularly.
    Cleanly,
    /// Its session was closed.
    Closed,
    Broken(String),
    /// The receiver is gone.
    Unheard,
}

impl EventStreamReader<'_> {
    async fn run(mut self, again: StreamReconnectPolicy) -> anyhow::Result<()> {
        let connector = StreamConnector::new(self.address)?;
        let (mut response, mut shape) = connector
            .open(self.address, None)
            .await
            .map_err(StreamOpenFailure::into_error)?;
        let _ = self
            .to
            .send(WatchInputMessage::Link(StreamLinkStatus::Up))
            .await;
        let mut tries = 0;
        loop {
            let since = Instant::now();
            let why = match self.follow(response, shape).await {
                StreamReadEnd::Unheard => return Ok(()),
                StreamReadEnd::Closed => {
                    let _ = self
                        .to
                        .send(WatchInputMessage::Link(StreamLinkStatus::Closed))
                        .await;
                    return Ok(());
                }
                StreamReadEnd::Cleanly
                    if again == StreamReconnectPolicy::No || !self.address.goes_on() =>
                {
                    return Ok(());
                }
                StreamReadEnd::Cleanly => match self.closing {
                    Some(StreamCloseReason::Shutdown) => "the host stopped".to_owned(),
                    Some(StreamCloseReason::SessionClosed) | None => {
                        "the host closed the stream".to_owned()
                    }
                },
                StreamReadEnd::Broken(why) if again == StreamReconnectPolicy::No => {
                    anyhow::bail!("the stream of {} broke: {why}", self.address.quoted())
                }
                StreamReadEnd::Broken(why) => why,
            };
            if since.elapsed() >= GOOD {
                tries = 0;
            }
            if self
                .to
                .send(WatchInputMessage::Link(StreamLinkStatus::Lost { why }))
                .await
                .is_err()
            {
                return Ok(());
            }
            match self.open_again(&connector, &mut tries).await? {
                Some(opened) => (response, shape) = opened,
                None => return Ok(()),
            }
            let _ = self
                .to
                .send(WatchInputMessage::Link(StreamLinkStatus::Back))
                .await;
        }
    }

    /// Tries to reopen the stream. `None`: its session has ended.
    async fn open_again(
        &mut self,
        connector: &StreamConnector,
        tries: &mut u32,
    ) -> anyhow::Result<Option<(Response, StreamShape)>> {
        loop {
            sleep(pause(*tries)).await;
            *tries += 1;
            match connector.open(self.address, self.parser.last_id()).await {
                Ok(opened) => return Ok(Some(opened)),
                Err(StreamOpenFailure::Unreachable(_) | StreamOpenFailure::Busy(_))
                    if !self.to.is_closed() => {}
                Err(StreamOpenFailure::Refused {
                    status: StatusCode::NOT_FOUND | StatusCode::GONE,
                    ..
                }) => {
                    let _ = self
                        .to
                        .send(WatchInputMessage::Link(StreamLinkStatus::Closed))
                        .await;
                    return Ok(None);
                }
                Err(failed) => return Err(failed.into_error()),
            }
        }
    }

    /// Reads one connection to its end.
    async fn follow(&mut self, mut response: Response, shape: StreamShape) -> StreamReadEnd {
        self.parser.restart();
        self.line.clear();
        self.skips_line = false;
        self.closing = None;
        if shape != StreamShape::Events
            && !self
                .send_messages([WatchInputMessage::Unproven(self.address.quoted())])
                .await
        {
            return StreamReadEnd::Unheard;
        }
        let is_host = self.address.goes_on();
        let mut keeps_alive = false;
        loop {
            let piece = match timeout(SILENCE, response.chunk()).await {
                Ok(piece) => piece,
                Err(_) if keeps_alive => {
                    return StreamReadEnd::Broken("no data arrived in time".to_owned());
                }
                Err(_) => continue,
            };
            let piece = match piece {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    let rest = std::mem::take(&mut self.line);
                    return if self.send_messages(texts(&rest)).await {
                        StreamReadEnd::Cleanly
                    } else {
                        StreamReadEnd::Unheard
                    };
                }
                Err(error) => return StreamReadEnd::Broken(reason(&error)),
            };
            let mut heard = Vec::new();
            let mut closing = self.closing;
            match shape {
                StreamShape::Events => self.parser.feed(&piece, &mut |sse| match sse {
                    Sse::Event(data) => match host_frame(data).filter(|_| is_host) {
                        Some(HostControlFrame::Opening(opening)) => {
                            heard.push(WatchInputMessage::Opening(opening));
                        }
                        Some(HostControlFrame::Approval(approval)) => {
                            heard.push(WatchInputMessage::Approval(approval));
                        }
                        Some(HostControlFrame::Closing(StreamClosingFrame { reason })) => {
                            closing = Some(reason);
                        }
                        None => heard.extend(texts(data)),
                    },
                    Sse::TooLong(_) => heard.push(too_long()),
                    Sse::Comment => keeps_alive = true,
                }),
                StreamShape::Lines => heard = self.lines(&piece),
                StreamShape::Whole if self.line.len() + piece.len() > LONGEST => {
                    return StreamReadEnd::Broken("the response is too long".to_owned());
                }
                StreamShape::Whole => self.line.extend_from_slice(&piece),
            }
            self.closing = closing;
            if !self.send_messages(heard).await {
                return StreamReadEnd::Unheard;
            }
            if self.closing == Some(StreamCloseReason::SessionClosed) {
                return StreamReadEnd::Closed;
            }
        }
    }

    /// The complete lines in the data so far.
    fn lines(&mut self, piece: &[u8]) -> Vec<WatchInputMessage> {
        let mut heard = Vec::new();
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            // The end of a dropped line.
            if !std::mem::take(&mut self.skips_line) {
                heard.extend(texts(&self.line));
            }
            self.line.clear();
            rest = &rest[end + 1..];
        }
        if !self.skips_line {
            self.line.extend_from_slice(rest);
        }
        if self.line.len() > LONGEST {
            self.line = Vec::new();
            self.skips_line = true;
            heard.push(too_long());
        }
        heard
    }

    /// Sends messages. Returns whether the receiver still exists.
    async fn send_messages(&self, heard: impl IntoIterator<Item = WatchInputMessage>) -> bool {
        for heard in heard {
            if self.to.send(heard).await.is_err() {
                return false;
            }
        }
        true
    }
}

fn host_frame(data: &[u8]) -> Option<HostControlFrame> {
    std::str::from_utf8(data)
        .ok()
        .and_then(|text| HostControlFrame::read(text.trim()))
}

fn too_long() -> WatchInputMessage {
    WatchInputMessage::Note("an event is left out: it is too long".to_owned())
}

/// The text of a piece of data, if it is text and not empty.
fn texts(data: &[u8]) -> Option<WatchInputMessage> {
    match std::str::from_utf8(data) {
        Ok(text) => payload(text).map(|text| WatchInputMessage::Json(text.to_owned())),
        Err(_) => Some(WatchInputMessage::Note(
            "an event is left out: it is not UTF-8".to_owned(),
        )),
    }
}

/// The JSON in a line, if there is any.
fn payload(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches('\u{feff}');
    let data = match line.split_once(':') {
        Some(("data", data)) => data.trim(),
        Some(("" | "event" | "id" | "retry", _)) => return None,
        Some(_) | None => line,
    };
    // The marker that ends a stream for AI SDK's clients.
    (!data.is_empty() && data != "[DONE]").then_some(data)
}

/// The pause before an attempt: a quarter of a second, doubled each time.
fn pause(tries: u32) -> Duration {
    LONGEST_PAUSE.min(Duration::from_millis(250 << tries.min(10)))
}

#[cfg(test)]
mod tests {
    use super::{pause, payload};

    #[test]
    fn what_a_line_holds() {
        for (line, expected) in [
            (r#"{"type":"tool-call"}"#, Some(r#"{"type":"tool-call"}"#)),
            ("  {} \r", Some("{}")),
            (r#"data: {"a":1}"#, Some(r#"{"a":1}"#)),
            ("data:{}", Some("{}")),
            ("data: [DONE]", None),
            ("event: tool-event", None),
            ("id: 7", None),
            (": still here", None),
            ("retry: 1", None),
            ("", None),
            ("\u{feff}{}", Some("{}")),
            // Reported as broken, not dropped.
            ("hello: you", Some("hello: you")),
        ] {
            assert_eq!(payload(line), expected, "{line:?}");
        }
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let pauses: Vec<_> = (0..7).map(|tries| pause(tries).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(pause(u32::MAX).as_millis(), 5_000);
    }
}
