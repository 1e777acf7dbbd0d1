//! MCP over a pair of pipes: one message a line, many concurrent requests, one client a process.
//!
//! Each pipe has its own thread. A client that stops reading blocks only the writing thread.

use std::{
    io::{BufReader, Read, Write},
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use toolpost_model::Principal;

use super::{
    McpServerFace,
    asked::{McpMethod, McpRequest},
    exchange::{ExchangeResult, ExchangeStep, McpExchange, WhenLeft},
    fault::McpFault,
    meta::McpClientCapabilities,
    news,
    opening::{self, OpenedRequest},
    peer::McpPeer,
    sessions::{self, McpSession},
    version::McpVersion,
    welcome,
    wire::{self, JsonRpcMessage, McpReply, McpRequestId},
};
use crate::a2e::{InputLine, read_lines};

/// The most lines that wait to be handled, and messages that wait to be read.
const ROOM: usize = 1_024;
/// The time after which a client that reads nothing counts as gone.
const UNREAD: Duration = Duration::from_secs(60);
/// The time that running requests get after the client has closed its end.
const LAST_CALLS: Duration = Duration::from_millis(1_500);

/// Serves the client until the input ends, then lets running requests finish for a moment.
pub(crate) async fn converse(
    face: &Arc<McpServerFace>,
    principal: Principal,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) {
    let limit = face.settings.message_limit;
    let (lines, mut to_handle) = mpsc::channel(ROOM);
    std::thread::spawn(move || {
        read_lines(BufReader::with_capacity(64 << 10, input), limit, &lines);
    });
    let (writer, messages) = mpsc::channel(ROOM);
    let mut written = write_lines(messages, output);
    let pipe = McpStdioClient {
        face: Arc::clone(face),
        principal,
        writer,
        with_handshake: OnceLock::new(),
        without: OnceLock::new(),
        tasks: TaskTracker::new(),
    };
    loop {
        let line = tokio::select! {
            biased;
            line = to_handle.recv() => line,
            _ = &mut written => None,
        };
        let goes_on = match line {
            None => break,
            Some(InputLine::Whole(line)) => pipe.take(&line).await,
            Some(InputLine::TooLong(_)) => {
                pipe.say(wire::refusal(None, &McpFault::line_too_long(limit)))
                    .await
            }
        };
        if !goes_on {
            break;
        }
    }
    pipe.leave().await;
    // The last answers are written in the time that the client leaves.
    let _ = tokio::time::timeout(Duration::from_millis(500), written).await;
}

struct McpStdioClient {
    face: Arc<McpServerFace>,
    principal: Principal,
    writer: mpsc::Sender<Bytes>,
    /// The session of the handshake.
    with_handshake: OnceLock<Arc<McpSession>>,
    /// The session of requests in the stateless era.
    without: OnceLock<Arc<McpSession>>,
    tasks: TaskTracker,
}

impl McpStdioClient {
    /// Sends a message. `false`: the client does not read any more.
    async fn say(&self, message: Bytes) -> bool {
        say(&self.writer, &[message]).await
    }

    async fn refuse(&self, id: Option<&McpRequestId>, fault: McpFault) -> bool {
        self.say(wire::refusal(id, &self.face.tellable(fault)))
            .await
    }

    async fn take(&self, line: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(line) else {
            return self
                .refuse(None, McpFault::unreadable("the line is not UTF-8"))
                .await;
        };
        match wire::read(text) {
            Err((id, fault)) => self.refuse(id.as_ref(), fault).await,
            Ok(JsonRpcMessage::Request { id, method, params }) => {
                match McpRequest::read(McpMethod::read(&method), params) {
                    Err(fault) => self.refuse(Some(&id), fault).await,
                    Ok(asked) => match self.request(&id, &method, asked).await {
                        Ok(()) => true,
                        Err(fault) => self.refuse(Some(&id), fault).await,
                    },
                }
            }
            Ok(JsonRpcMessage::Notification { method, params }) => {
                for stay in [&self.with_handshake, &self.without]
                    .into_iter()
                    .filter_map(OnceLock::get)
                {
                    opening::take_note(stay, &method, params);
                }
                true
            }
            Ok(JsonRpcMessage::Response { id, outcome }) => {
                if let Some(stay) = self.with_handshake.get() {
                    stay.answered(&id, outcome);
                }
                true
            }
        }
    }

    async fn request(
        &self,
        id: &McpRequestId,
        method: &str,
        mut asked: McpRequest,
    ) -> Result<(), McpFault> {
        asked.meta.note_request_id(id.to_text());
        if asked.method == McpMethod::Initialize {
            return self.initialize(id, &asked).await;
        }
        let speaks_for_itself = asked.meta.version.is_some()
            || matches!(asked.method, McpMethod::Discover | McpMethod::Listen);
        if !speaks_for_itself {
            let Some(stay) = self.with_handshake.get() else {
                let is_probe = asked.method == McpMethod::Ping;
                return match is_probe {
                    true => self.end(id, Ok(McpReply::Text("{}".to_owned()))).await,
                    false => Err(McpFault::missing_meta_or_session(&asked.meta.missing())),
                };
            };
            if !asked.method.is_of(false) {
                return Err(McpFault::no_such_method(method));
            }
            let peer = McpPeer {
                came_by: CAME_BY,
                ..opening::in_session(&self.face, stay)
            };
            let exchange =
                McpExchange::begin(WhenLeft::Stops, |outlet| super::answer(peer, asked, outlet));
            return self.follow(stay, id, exchange, None);
        }
        let (peer, stay) = self.stateless(method, &asked).await?;
        let (opened, digest) = opening::stateless(peer, asked, id);
        match opened {
            OpenedRequest::Answered(outcome) => self.end(id, outcome).await,
            OpenedRequest::Exchange(exchange) => self.follow(&stay, id, exchange, Some(digest)),
        }
    }

    async fn end(&self, id: &McpRequestId, outcome: ExchangeResult) -> Result<(), McpFault> {
        say(&self.writer, &wire::answer(id, outcome?)).await;
        Ok(())
    }

    async fn initialize(&self, id: &McpRequestId, asked: &McpRequest) -> Result<(), McpFault> {
        let wished = asked.handshake.version()?;
        if self.with_handshake.get().is_some() {
            return Err(McpFault::invalid_request("the handshake is already done"));
        }
        let can = asked.handshake.capabilities();
        let opened = sessions::open(
            &self.face.host,
            &self.principal,
            McpVersion::negotiated(wished),
            can,
        )
        .await;
        let (_, stay) = opened.map_err(|error| McpFault::internal(error.to_string()))?;
        let peer = McpPeer {
            came_by: CAME_BY,
            ..opening::in_session(&self.face, &stay)
        };
        self.end(id, Ok(welcome(&peer))).await?;
        let reader = stay.attach_reader();
        let followed = Arc::clone(&stay);
        let _ = self.with_handshake.set(stay);
        let writer = self.writer.clone();
        let over = followed.over.clone();
        let mut exchange = McpExchange::begin(WhenLeft::Stops, |outlet| {
            news::follow(peer, followed, reader, outlet)
        });
        self.tasks.spawn(async move {
            while let Some(ExchangeStep::Note(message)) =
                over.run_until_cancelled(exchange.next()).await
            {
                if !say(&writer, &[message]).await {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Checks the members that a request of the stateless era requires.
    async fn stateless(
        &self,
        method: &str,
        asked: &McpRequest,
    ) -> Result<(McpPeer, Arc<McpSession>), McpFault> {
        let missing = asked.meta.missing();
        let (Some(version), true) = (asked.meta.version.as_deref(), missing.is_empty()) else {
            return Err(McpFault::missing_meta(&missing));
        };
        let Some(version) = McpVersion::read(version).filter(|version| version.is_modern()) else {
            return Err(McpFault::unsupported_version(version));
        };
        if !asked.method.is_of(true) {
            return Err(McpFault::no_such_method(method));
        }
        let stay = match self.without.get() {
            Some(stay) => Arc::clone(stay),
            None => {
                let opened = sessions::open(
                    &self.face.host,
                    &self.principal,
                    version,
                    McpClientCapabilities::default(),
                )
                .await;
                let (_, stay) = opened.map_err(|error| McpFault::internal(error.to_string()))?;
                let _ = self.without.set(Arc::clone(&stay));
                stay
            }
        };
        let peer = McpPeer {
            stay: None,
            can: asked.meta.capabilities.unwrap_or_default(),
            level: asked.meta.log_level,
            came_by: CAME_BY,
            ..opening::in_session(&self.face, &stay)
        };
        Ok((peer, stay))
    }

    /// Sends the messages and the answer of a request, in a separate task.
    fn follow(
        &self,
        stay: &Arc<McpSession>,
        id: &McpRequestId,
        mut exchange: McpExchange,
        digest: Option<[u8; 32]>,
    ) -> Result<(), McpFault> {
        let Some(running) = stay.begin(id) else {
            return Err(McpFault::invalid_request(
                "a request with this id is running, or too many requests are running",
            ));
        };
        let face = Arc::clone(&self.face);
        let principal = self.principal.clone();
        let writer = self.writer.clone();
        let id = id.clone();
        self.tasks.spawn(async move {
            let outcome = loop {
                match running.cancel.run_until_cancelled(exchange.next()).await {
                    Some(ExchangeStep::Note(message)) => {
                        // From now on a slow client must not delay the work.
                        exchange.go_on_alone();
                        if !say(&writer, &[message]).await {
                            return;
                        }
                    }
                    Some(ExchangeStep::Done(outcome)) => break outcome,
                    Some(ExchangeStep::Ask(round)) => {
                        break match &digest {
                            Some(digest) => face.rounds.keep(exchange, round, &principal, digest),
                            None => Err(McpFault::internal(
                                "this client cannot be asked with `requestState`",
                            )),
                        };
                    }
                    None => return,
                }
            };
            match outcome {
                Ok(McpReply::Nothing) => {}
                Ok(reply) => {
                    let _ = say(&writer, &wire::answer(&id, reply)).await;
                }
                Err(fault) => {
                    let _ = say(&writer, &[wire::refusal(Some(&id), &face.tellable(fault))]).await;
                }
            }
        });
        Ok(())
    }

    /// The client has closed its end. Running requests may finish for a moment, then they are canceled.
    async fn leave(self) {
        self.tasks.close();
        let stays: Vec<&Arc<McpSession>> = [&self.with_handshake, &self.without]
            .into_iter()
            .filter_map(OnceLock::get)
            .collect();
        stays.iter().for_each(|stay| stay.stop_telling());
        let _ = tokio::time::timeout(LAST_CALLS, self.tasks.wait()).await;
        for stay in stays {
            sessions::end(&self.face, stay).await;
        }
    }
}

/// The face name of this transport on record.
const CAME_BY: &str = "mcp-stdio";

async fn say(writer: &mpsc::Sender<Bytes>, pieces: &[Bytes]) -> bool {
    let mut line = Vec::with_capacity(pieces.iter().map(Bytes::len).sum::<usize>() + 1);
    pieces
        .iter()
        .for_each(|piece| line.extend_from_slice(piece));
    line.push(b'\n');
    matches!(
        tokio::time::timeout(UNREAD, writer.send(line.into())).await,
        Ok(Ok(()))
    )
}

/// Writes the messages in a thread. Resolves when everything is written or the output is closed.
pub(crate) fn write_lines(
    mut messages: mpsc::Receiver<Bytes>,
    mut output: impl Write + Send + 'static,
) -> oneshot::Receiver<()> {
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        while let Some(first) = messages.blocking_recv() {
            let mut text = Vec::from(first);
            // All waiting messages are written at once.
            while let Ok(next) = messages.try_recv() {
                text.extend_from_slice(&next);
            }
            if output
                .write_all(&text)
                .and_then(|()| output.flush())
                .is_err()
            {
                break;
            }
        }
        let _ = done.send(());
    });
    written
}
