//! The client for all contenders: requests as text, answers as JSON or as a stream with one event.

use anyhow::{Context, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[derive(Clone, Copy)]
pub(super) enum Era {
    /// 2025-11-25: `initialize`, and a session from then on.
    Sessions,
    /// 2026-07-28: every request carries the client's identity.
    Stateless,
}

impl Era {
    pub(super) const BOTH: [Self; 2] = [Self::Sessions, Self::Stateless];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sessions => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }

    /// A request for a method. `named` is the value of the header for the name.
    pub(super) fn request(self, id: u64, method: &str, params: &str) -> String {
        let params = match self {
            Self::Sessions => format!("{{{params}}}"),
            Self::Stateless => {
                let comma = if params.is_empty() { "" } else { "," };
                format!("{{{params}{comma}{META}}}")
            }
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    }

    pub(super) fn echo(self, id: u64) -> String {
        let arguments = crate::over_http::BODY;
        self.request(
            id,
            "tools/call",
            &format!(r#""name":"echo","arguments":{arguments}"#),
        )
    }
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;
pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// A text that the echo's answer contains: a refusal would be quick, and is no call.
pub(super) const ECHOED: &str = r#""text":"sixteen clients say hello"#;

/// One keep-alive connection, with its session where the revision has them.
pub(super) struct Caller {
    stream: TcpStream,
    buffer: Vec<u8>,
    era: Era,
    session: Option<String>,
    sent: u64,
}

impl Caller {
    pub(super) async fn connect(address: &str, era: Era) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut caller = Self {
            stream,
            buffer: vec![0; 64 << 10],
            era,
            session: None,
            sent: 0,
        };
        if matches!(era, Era::Sessions) {
            let (head, _) = caller.post("initialize", None, INITIALIZE).await?;
            let session = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("mcp-session-id")
                    .then(|| value.to_owned())
            });
            caller.session = session;
            caller
                .post("notifications/initialized", None, INITIALIZED)
                .await?;
        }
        Ok(caller)
    }

    /// Calls the echo and reads its answer.
    pub(super) async fn echo(&mut self) -> anyhow::Result<()> {
        self.sent += 1;
        let body = self.era.echo(self.sent);
        let (_, body) = self.post("tools/call", Some("echo"), &body).await?;
        ensure!(body.contains(ECHOED), "not an echo: {body}");
        Ok(())
    }

    /// Lists all tools, page by page, and returns their number and their bytes.
    pub(super) async fn list(&mut self) -> anyhow::Result<(usize, usize)> {
        let mut tools = 0;
        let mut bytes = 0;
        let mut cursor = String::new();
        loop {
            self.sent += 1;
            let body = self.era.request(self.sent, "tools/list", &cursor);
            let (_, body) = self.post("tools/list", None, &body).await?;
            let json = body.trim_start_matches(|letter| letter != '{').trim();
            let answer: serde_json::Value = serde_json::from_str(json).context("a list")?;
            let listed = answer["result"]["tools"].as_array().context("tools")?;
            tools += listed.len();
            bytes += body.len();
            match answer["result"]["nextCursor"].as_str() {
                Some(next) => cursor = format!(r#""cursor":"{next}""#),
                None => return Ok((tools, bytes)),
            }
        }
    }

    async fn post(
        &mut self,
        method: &str,
        name: Option<&str>,
        body: &str,
    ) -> anyhow::Result<(String, String)> {
        let of_era = match (self.era, &self.session) {
            (Era::Sessions, Some(session)) => {
                format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n")
            }
            (Era::Sessions, None) => String::new(),
            (Era::Stateless, _) => {
                let name = name
                    .map(|name| format!("mcp-name: {name}\r\n"))
                    .unwrap_or_default();
                format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}")
            }
        };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{of_era}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await
    }

    /// The head and the body of an answer, in either transfer coding.
    async fn answer(&mut self) -> anyhow::Result<(String, String)> {
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            let read = self.stream.read(&mut self.buffer[filled..]).await?;
            ensure!(read > 0, "the server closed the connection");
            filled += read;
            let seen = &self.buffer[..filled];
            let Some(end) = seen[..filled.min(4_096)]
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            else {
                continue;
            };
            let head = std::str::from_utf8(&seen[..end]).context("the answer's head")?;
            if !head.starts_with("HTTP/1.1 20") {
                bail!("not well: {}", String::from_utf8_lossy(seen));
            }
            let head_of = |wanted: &str| {
                head.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case(wanted).then(|| value.to_owned())
                })
            };
            let body = &seen[end + 4..];
            let whole = match (head_of("content-length"), head_of("transfer-encoding")) {
                (Some(length), _) => (body.len() >= length.parse()?).then(|| body.to_vec()),
                (None, Some(_)) => body.ends_with(b"0\r\n\r\n").then(|| joined(body)),
                // Nothing follows a 202.
                (None, None) => Some(Vec::new()),
            };
            if let Some(whole) = whole {
                let body = String::from_utf8(whole).context("the answer's body")?;
                return Ok((head.to_owned(), event(&body).to_owned()));
            }
        }
    }
}

/// A body in chunks, without their lengths.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(chunks.len());
    while let Some(end) = chunks.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&chunks[..end])
            .ok()
            .and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(length) = length.filter(|&length| length > 0 && chunks.len() >= end + 4 + length)
        else {
            break;
        };
        whole.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 4 + length..];
    }
    whole
}

/// The data of a stream's last event, or the whole text if it is no stream.
fn event(body: &str) -> &str {
    match body.rsplit_once("data: ") {
        // Other fields of the event may follow it.
        Some((_, data)) => data.lines().next().unwrap_or_default(),
        None => body,
    }
}
