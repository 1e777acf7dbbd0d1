//! Carries the lines between an agent and its host, and keeps the agent connected when the host is replaced.
//!
//! The relay acts on no message. It remembers the handshake for the next host, and the open requests that the agent
//! waits for. The implementations of [`RelayedProtocol`] define how.

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

/// The most lines that wait in each direction.
const ROOM: usize = 1_024;
/// The longest line of a host, in bytes. Results are smaller, so a longer line means that the host is broken.
const LONGEST_LINE: u64 = 256 << 20;
/// The time that the host has for its last answers after the agent has left.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// The time that the agent has to read them.
const LAST_WRITES: Duration = Duration::from_millis(500);

/// The treatment of a line from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostLine {
    Forward,
    /// The line answers a message of the relay itself.
    Withhold,
    /// The host refuses to resume the agent's session.
    Refused,
}

/// The messages after one host has replaced another.
#[derive(Default)]
pub(crate) struct HostChange {
    pub(crate) to_agent: Vec<Bytes>,
    pub(crate) to_host: Vec<Bytes>,
}

/// The parts of a line protocol that a relay needs.
pub(crate) trait RelayedProtocol: Send {
    /// Notes a line from the agent to the host.
    fn note_agent_line(&mut self, line: &Bytes);
    /// Reverts the note of a line that could not be sent.
    fn forget_agent_line(&mut self, line: &Bytes);
    /// Notes a line from the host to the agent.
    fn note_host_line(&mut self, line: &[u8]) -> HostLine;
    /// Returns the messages for the agent and the next host after the host is gone.
    fn change_host(&mut self) -> HostChange;
    /// The answer to a line while there is no host. `None`: the line needs no answer.
    fn refuse(&mut self, line: &[u8], reason: &str) -> Option<Bytes>;
    fn refuse_open(&mut self, reason: &str) -> Vec<Bytes>;
    /// The answer to a line that exceeds the host's limit.
    fn refuse_long_line(&self, head: &[u8], limit: usize) -> Bytes;
    /// The session that continues with the next host.
    fn session(&self) -> Option<&str>;
    /// Whether the agent has left or was refused, so that the end of the connection is final.
    fn is_over(&self) -> bool;
}

/// The end of a connection to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEnd {
    /// The host is gone. The agent is connected and waits for another host.
    HostLost,
    /// The agent has left, or its session is over.
    AgentLeft,
}

/// The end of the connection that closed first.
enum ConnectionEnd {
    HostGone,
    AgentGone,
    /// The host is running and refuses to resume the agent's session.
    SessionRefused,
}

/// An agent at the other end of two pipes. It stays connected when hosts are replaced.
pub struct StdioRelay {
    lines: mpsc::Receiver<InputLine>,
    limit: usize,
    to_agent: mpsc::Sender<Bytes>,
    written: oneshot::Receiver<()>,
    protocol: Mutex<Box<dyn RelayedProtocol>>,
    /// The lines that the next host gets first.
    preamble: Vec<Bytes>,
    /// A line that the last host did not take.
    unsent: Option<Bytes>,
}

impl StdioRelay {
    /// Starts to read and write. `limit` is the longest line of the agent that a host reads, in bytes.
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

    /// The session that continues with the next host, if the protocol has sessions.
    pub fn session(&self) -> Option<String> {
        self.protocol.lock().session().map(str::to_owned)
    }

    /// Whether the agent has closed its end and all its lines were sent.
    pub fn has_left(&self) -> bool {
        self.lines.is_closed() && self.lines.is_empty()
    }

    /// Carries lines until one end is gone. If the host is gone, the agent gets errors for the requests that cannot be
    /// sent to the next host.
    pub async fn carry(&mut self, connection: HostConnection) -> RelayEnd {
        match self.carry_lines(connection).await {
            ConnectionEnd::HostGone if !self.protocol.lock().is_over() => {}
            ConnectionEnd::HostGone | ConnectionEnd::AgentGone => return RelayEnd::AgentLeft,
            ConnectionEnd::SessionRefused => {
                let reason = "the host stopped, and the next host cannot continue the session";
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
                // The host may have written answers before it ended. They are still read, and then the end of the host
                // is noticed.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // `biased`: the end of a host is noticed before another line is sent to it.
            biased;
            end = &mut answers => end,
            () = requests => {
                // The agent has closed its end. The host noticed that and sends its last answers.
                let _ = tokio::time::timeout(LAST_ANSWERS, answers).await;
                ConnectionEnd::AgentGone
            }
        }
    }

    /// For a while, answers every request with the reason why there is no host.
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
        // The session of an earlier host can still continue with a later one.
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

    /// Waits until the agent has read the last lines.
    pub async fn finish(self) {
        let Self {
            to_agent, written, ..
        } = self;
        drop(to_agent);
        let _ = tokio::time::timeout(LAST_WRITES, written).await;
    }
}

/// Carries lines from the agent to the host until the agent closes its end. If the host is gone, returns the line that
/// it did not take.
async fn forward_requests(
    preamble: Vec<Bytes>,
    lines: &mut mpsc::Receiver<InputLine>,
    limit: usize,
    mut writer: impl AsyncWrite + Unpin,
    (protocol, to_agent): (&Mutex<Box<dyn RelayedProtocol>>, &mpsc::Sender<Bytes>),
) -> Option<Bytes> {
    for line in preamble {
        if writer.write_all(&line).await.is_err() {
            // The whole preamble is sent again to the next host.
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
        // Noted before it is written, and reverted if the write fails. A host that dies right after the write may have
        // read the line. Noted afterwards, a request whose host died in between would get no answer and would not be
        // sent again.
        protocol.lock().note_agent_line(&line);
        if writer.write_all(&line).await.is_err() {
            protocol.lock().forget_agent_line(&line);
            return Some(line);
        }
    }
    let _ = writer.shutdown().await;
    None
}

/// Carries lines from the host to the agent until one of them is gone. An incomplete line is dropped.
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

/// Adds the line end, which the last line of an input may lack.
fn terminated(mut line: Vec<u8>) -> Bytes {
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    line.into()
}
