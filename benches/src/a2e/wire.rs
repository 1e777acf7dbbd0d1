//! A minimal A2E client over HTTP: one keep-alive connection for messages, one for the stream. It parses only the id of
//! an answer, so its cost is small and the same for all contenders.

use anyhow::{Context, bail};
use memchr::memmem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::clients::{self, Client};

/// Opens a session, its stream, and shakes hands.
pub(super) async fn enter(address: &str) -> anyhow::Result<(Sender, Events)> {
    let mut sender = Sender::open(address).await?;
    let mut events = Events::open(address, &sender.session, None).await?;
    sender.send(HANDSHAKE).await?;
    events.next().await?.context("no answer to the handshake")?;
    Ok((sender, events))
}

pub(super) const HANDSHAKE: &str = r#"{"type":"handshake/req","id":"hello","version":"1.0","agent_id":"bench","agent_caps":["tools"]}"#;

/// The connection for a session's messages.
pub(super) struct Sender {
    client: Client,
    head: String,
    pub(super) session: String,
}

impl Sender {
    pub(super) async fn open(address: &str) -> anyhow::Result<Self> {
        let mut client = Client::connect(address).await?;
        client.send(&clients::post("/session", "")).await?;
        let answer: serde_json::Value = serde_json::from_slice(client.body())?;
        let session = answer["session_id"]
            .as_str()
            .context("a session without an id")?;
        Ok(Self::of(client, session))
    }

    /// Another connection of the same session.
    pub(super) async fn another(address: &str, session: &str) -> anyhow::Result<Self> {
        Ok(Self::of(Client::connect(address).await?, session))
    }

    fn of(client: Client, session: &str) -> Self {
        let head = format!(
            "POST /send HTTP/1.1\r\nhost: localhost\r\nx-session-id: {session}\r\ncontent-length: "
        );
        Self {
            client,
            head,
            session: session.to_owned(),
        }
    }

    /// Sends a message and waits until it is accepted.
    pub(super) async fn send(&mut self, message: &str) -> anyhow::Result<()> {
        let request = format!("{}{}\r\n\r\n{message}", self.head, message.len());
        self.client.send(&request).await?;
        Ok(())
    }
}

pub(super) struct Events {
    stream: TcpStream,
    /// Unparsed bytes.
    raw: Vec<u8>,
    chunk: Chunk,
    /// Without the transfer coding.
    text: Vec<u8>,
    /// The number of bytes of text that were returned.
    told: usize,
    /// The time of the last piece, on the machine's own clock.
    pub(super) arrived: u64,
    /// The most bytes of one read.
    pub(super) piece: usize,
}

/// The place of the raw bytes in the transfer coding.
#[derive(Clone, Copy)]
enum Chunk {
    Size,
    Data(usize),
    /// The line end after the data.
    End,
}

impl Events {
    pub(super) async fn open(
        address: &str,
        session: &str,
        after: Option<&str>,
    ) -> anyhow::Result<Self> {
        Self::with(TcpStream::connect(address).await?, session, after).await
    }

    /// A reader with so small a buffer that its slowness reaches the server.
    pub(super) async fn open_narrow(address: &str, session: &str) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4 << 10)?;
        Self::with(socket.connect(address.parse()?).await?, session, None).await
    }

    async fn with(
        mut stream: TcpStream,
        session: &str,
        after: Option<&str>,
    ) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        let after = after.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        let request = format!(
            "GET /stream HTTP/1.1\r\nhost: localhost\r\nx-session-id: {session}\r\n{after}\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let raw = Vec::with_capacity(16 << 10);
        let text = Vec::with_capacity(16 << 10);
        let mut events = Self {
            stream,
            raw,
            chunk: Chunk::Size,
            text,
            told: 0,
            arrived: 0,
            piece: 64 << 10,
        };
        let end = loop {
            match memmem::find(&events.raw, b"\r\n\r\n") {
                Some(end) => break end,
                None if !events.read().await? => bail!("the stream ended before it began"),
                None => {}
            }
        };
        if !events.raw.starts_with(b"HTTP/1.1 200") {
            bail!("no stream: {}", String::from_utf8_lossy(&events.raw));
        }
        events.raw.drain(..end + 4);
        Ok(events)
    }

    /// The next event's lines; `None` at the end of the stream. Comments are skipped.
    pub(super) async fn next(&mut self) -> anyhow::Result<Option<&[u8]>> {
        let (from, to) = loop {
            self.unwrap_chunks()?;
            if let Some(length) = memmem::find(&self.text[self.told..], b"\n\n") {
                let from = self.told;
                let to = self.told + length;
                self.told = to + 2;
                if self.text[from] != b':' {
                    break (from, to);
                }
                continue;
            }
            self.text.drain(..self.told);
            self.told = 0;
            if !self.read().await? {
                return Ok(None);
            }
        };
        Ok(Some(&self.text[from..to]))
    }

    async fn read(&mut self) -> anyhow::Result<bool> {
        let filled = self.raw.len();
        self.raw.resize(filled + self.piece, 0);
        let read = self.stream.read(&mut self.raw[filled..]).await?;
        self.arrived = now();
        self.raw.truncate(filled + read);
        Ok(read > 0)
    }

    fn unwrap_chunks(&mut self) -> anyhow::Result<()> {
        let mut rest = &self.raw[..];
        loop {
            match self.chunk {
                Chunk::Size => {
                    let Some(end) = memmem::find(rest, b"\r\n") else {
                        break;
                    };
                    let size = std::str::from_utf8(&rest[..end])?;
                    let size = usize::from_str_radix(size, 16).context("the size of a chunk")?;
                    rest = &rest[end + 2..];
                    self.chunk = Chunk::Data(size);
                }
                Chunk::Data(0) => self.chunk = Chunk::End,
                Chunk::Data(left) => {
                    let here = left.min(rest.len());
                    if here == 0 {
                        break;
                    }
                    self.text.extend_from_slice(&rest[..here]);
                    rest = &rest[here..];
                    self.chunk = Chunk::Data(left - here);
                }
                Chunk::End if rest.len() >= 2 => {
                    rest = &rest[2..];
                    self.chunk = Chunk::Size;
                }
                Chunk::End => break,
            }
        }
        let read = self.raw.len() - rest.len();
        self.raw.drain(..read);
        Ok(())
    }
}

/// The text behind a key, as far as its closing quote.
pub(super) fn value<'a>(event: &'a [u8], key: &str) -> Option<&'a str> {
    let from = memmem::find(event, key.as_bytes())? + key.len();
    let length = memchr::memchr(b'"', &event[from..])?;
    std::str::from_utf8(&event[from..from + length]).ok()
}

/// Fails if a message does not contain `good`.
pub(super) fn expect(message: &[u8], good: &str) -> anyhow::Result<()> {
    let is_good = memmem::find(message, good.as_bytes()).is_some();
    anyhow::ensure!(
        is_good,
        "not as expected: {}",
        String::from_utf8_lossy(message)
    );
    Ok(())
}

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
pub(super) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}
