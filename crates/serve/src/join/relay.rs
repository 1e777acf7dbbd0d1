//! Carries the lines between an agent and its host, and keeps the agent when the host is replaced.
//!
//! The relay acts on no message. It remembers what the next host must be told (the handshake) and what the agent still
//! waits for (open requests); the protocols themselves know how ([`RelayedProtocol`]).

use std::{
    io::{BufReader, Read, Write},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{connection::HostConnection, request::StdioFace};
use crate::{
    a2e::{A2eRelay, InputLine, read_lines},
    mcp::{self, McpRelay},
};

/// Lines that may wait, in each direction.
const ROOM: usize = 1_024;
/// The longest line of a host, in bytes. Results are smaller; a longer line is a broken host.
const LONGEST_LINE: u64 = 256 << 20;
/// How long the host may take for its last answers once the agent has left.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// How long the agent may take to read them.
const LAST_WRITES: Duration = Duration::from_millis(500);

/// What becomes of a line that the host sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostLine {
    Forward,
    /// The answer to something that the relay sent itself.
    Withhold,
    /// The host does not take the agent's session up.
    Refused,
}

/// What is said when a host ended and another one takes its place.
#[derive(Default)]
pub(crate) struct HostChange {
    pub(crate) to_agent: Vec<Bytes>,
    pub(crate) to_host: Vec<Bytes>,
}

/// A protocol of lines, as far as a relay must follow it.
pub(crate) trait RelayedProtocol: Send {
    /// Notes a line that the agent sends to the host.
    fn note_agent_line(&mut self, line: &Bytes);
    /// Takes back what was noted of a line that could not be sent.
    fn forget_agent_line(&mut self, line: &Bytes);
    /// Notes a line that the host sends to the agent.
    fn note_host_line(&mut self, line: &[u8]) -> HostLine;
    /// The host is gone: what the agent and the next host are told.
    fn change_host(&mut self) -> HostChange;
    /// The answer to a line that no host takes. `None`: it needs none.
    fn refuse(&mut self, line: &[u8], reason: &str) -> Option<Bytes>;
    /// The answers to all open requests.
    fn refuse_open(&mut self, reason: &str) -> Vec<Bytes>;
    /// The answer to a line that is longer than a host reads.
    fn refuse_long_line(&self, head: &[u8], limit: usize) -> Bytes;
    /// The session that goes on with the next host.
    fn session(&self) -> Option<&str>;
    /// Whether the agent said goodbye or was refused, so that the end of the connection is the end of all.
    fn is_over(&self) -> bool;
}

/// How a connection to a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// The host is gone. The agent is still there and waits for another one.
    HostLost,
    /// The agent has left, or its session is over.
    AgentLeft,
}

/// Which end of one connection was gone first.
enum ConnectionEnd {
    HostGone,
    AgentGone,
    /// The host is there and does not take the agent's session up.
    SessionRefused,
}

/// An agent at the other end of two pipes, which stays while hosts come and go.
pub struct StdioRelay {
    lines: mpsc::Receiver<InputLine>,
    limit: usize,
    to_agent: mpsc::Sender<Bytes>,
    written: oneshot::Receiver<()>,
    protocol: Mutex<Box<dyn RelayedProtocol>>,
    /// What the next host is told before anything else.
    preamble: Vec<Bytes>,
    /// A line that the last host did not take.
    unsent: Option<Bytes>,
}

impl StdioRelay {
    /// Begins to read and write. `limit` is the longest line of the agent that a host reads, in bytes.
    pub fn start(
        face: StdioFace,
        limit: usize,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> Self {
        let (send, lines) = mpsc::channel(ROOM);
        std::thread::spawn(move || {
            read_lines(BufReader::with_capacity(64 << 10, input), limit, &send);
        });
        let (to_agent, messages) = mpsc::channel(ROOM);
        let written = mcp::write_lines(messages, output);
        let protocol: Box<dyn RelayedProtocol> = match face {
            StdioFace::A2e => Box::<A2eRelay>::default(),
            StdioFace::Mcp => Box::<McpRelay>::default(),
        };
        Self {
            lines,
            limit,
            to_agent,
            written,
            protocol: Mutex::new(protocol),
            preamble: Vec::new(),
            unsent: None,
        }
    }

    /// The session that goes on with the next host, where the protocol has such.
    pub fn session(&self) -> Option<String> {
        self.protocol.lock().session().map(str::to_owned)
    }

    /// Whether the agent has closed its end, and everything it said was taken.
    pub fn has_left(&self) -> bool {
        self.lines.is_closed() && self.lines.is_empty()
    }

    /// Carries lines until one end is gone. Where that is the host's, the agent is told what became of its requests,
    /// as far as that cannot be asked of the next host.
    pub async fn carry(&mut self, connection: HostConnection) -> RelayEnd {
        match self.carry_lines(connection).await {
            ConnectionEnd::HostGone if !self.protocol.lock().is_over() => {}
            ConnectionEnd::HostGone | ConnectionEnd::AgentGone => return RelayEnd::AgentLeft,
            ConnectionEnd::SessionRefused => {
                let reason = "the host ended, and the next one does not take the session up";
                let answers = self.protocol.lock().refuse_open(reason);
                self.tell(answers).await;
                return RelayEnd::AgentLeft;
            }
        }
        let HostChange { to_agent, to_host } = self.protocol.lock().change_host();
        self.preamble = to_host;
        if let Some(line) = self.unsent.take() {
            self.protocol.lock().note_agent_line(&line);
            self.preamble.push(line);
        }
        self.tell(to_agent).await
    }

    async fn carry_lines(&mut self, connection: HostConnection) -> ConnectionEnd {
        let (reader, writer) = tokio::io::split(connection.into_stream());
        let preamble = std::mem::take(&mut self.preamble);
        let Self {
            lines,
            limit,
            to_agent,
            protocol,
            unsent,
            ..
        } = self;
        let mut answers = std::pin::pin!(forward_answers(reader, protocol, to_agent));
        let requests = async {
            *unsent =
                forward_requests(preamble, lines, *limit, writer, (&*protocol, &*to_agent)).await;
            if unsent.is_some() {
                // What the host said before it went is still to be read, and then its end is noticed.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // The end of a host is noticed before another line is sent to it.
            biased;
            end = &mut answers => end,
            () = requests => {
                // The agent has closed its end; the host knows, and says its last words.
                let _ = tokio::time::timeout(LAST_ANSWERS, answers).await;
                ConnectionEnd::AgentGone
            }
        }
    }

    /// Answers every request with the reason why there is no host, for a while.
    pub async fn refuse(&mut self, reason: &str, for_so_long: Duration) -> RelayEnd {
        self.preamble.clear();
        let answers = self.protocol.lock().refuse_open(reason);
        if self.tell(answers).await == RelayEnd::AgentLeft {
            return RelayEnd::AgentLeft;
        }
        let until = Instant::now() + for_so_long;
        while let Ok(line) = tokio::time::timeout_at(until, self.lines.recv()).await {
            let answer = match line {
                None => return RelayEnd::AgentLeft,
                Some(InputLine::Whole(line)) => self.protocol.lock().refuse(&line, reason),
                Some(InputLine::TooLong(head)) => {
                    Some(self.protocol.lock().refuse_long_line(&head, self.limit))
                }
            };
            let told = self.tell(answer.into_iter().collect()).await;
            if told == RelayEnd::AgentLeft || self.protocol.lock().is_over() {
                return RelayEnd::AgentLeft;
            }
        }
        // The session of an earlier host can still go on with a later one.
        let change = self.protocol.lock().change_host();
        self.preamble = change.to_host;
        RelayEnd::HostLost
    }

    async fn tell(&self, lines: Vec<Bytes>) -> RelayEnd {
        for line in lines {
            if self.to_agent.send(line).await.is_err() {
                return RelayEnd::AgentLeft;
            }
        }
        RelayEnd::HostLost
    }

    /// Waits until the agent has what was said last.
    pub async fn finish(self) {
        let Self {
            to_agent, written, ..
        } = self;
        drop(to_agent);
        let _ = tokio::time::timeout(LAST_WRITES, written).await;
    }
}

/// From the agent to the host, until the agent closes its end. Gives the line that the host did not take, if it is the
/// host that went.
async fn forward_requests(
    preamble: Vec<Bytes>,
    lines: &mut mpsc::Receiver<InputLine>,
    limit: usize,
    mut writer: impl AsyncWrite + Unpin,
    (protocol, to_agent): (&Mutex<Box<dyn RelayedProtocol>>, &mpsc::Sender<Bytes>),
) -> Option<Bytes> {
    for line in preamble {
        if writer.write_all(&line).await.is_err() {
            // All of it is said again to the next host.
            return std::future::pending().await;
        }
    }
    while let Some(line) = lines.recv().await {
        let line = match line {
            InputLine::Whole(line) => terminated(line),
            InputLine::TooLong(head) => {
                let answer = protocol.lock().refuse_long_line(&head, limit);
                let _ = to_agent.send(answer).await;
                continue;
            }
        };
        // Noted first: a host that dies in this moment may have read it.
        protocol.lock().note_agent_line(&line);
        if writer.write_all(&line).await.is_err() {
            protocol.lock().forget_agent_line(&line);
            return Some(line);
        }
    }
    let _ = writer.shutdown().await;
    None
}

/// From the host to the agent, until one of them is gone. A line that breaks off is not handed on.
async fn forward_answers(
    reader: impl AsyncRead + Unpin,
    protocol: &Mutex<Box<dyn RelayedProtocol>>,
    to_agent: &mpsc::Sender<Bytes>,
) -> ConnectionEnd {
    let mut reader = tokio::io::BufReader::with_capacity(64 << 10, reader);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .await;
        if read.is_err() || line.last() != Some(&b'\n') {
            return ConnectionEnd::HostGone;
        }
        let what = protocol.lock().note_host_line(&line);
        match what {
            HostLine::Forward if to_agent.send(line.into()).await.is_err() => {
                return ConnectionEnd::AgentGone;
            }
            HostLine::Forward | HostLine::Withhold => {}
            HostLine::Refused => return ConnectionEnd::SessionRefused,
        }
    }
}

/// The last line of an input may lack its end.
fn terminated(mut line: Vec<u8>) -> Bytes {
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    line.into()
}
