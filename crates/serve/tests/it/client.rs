//! A client of a page: requests as bytes, answers as they came. No HTTP library, so that a test can send what
//! none would and sees what none would hide.

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream, UnixStream},
};

/// Far beyond anything that works: turns a hang into a failure with a line number.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must come.
#[track_caller]
pub(crate) fn within<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(done) => done,
            Err(_) => panic!("nothing came at {place}"),
        }
    }
}

/// A request before it is sent.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str, target: impl Into<String>) -> Self {
        let headers = vec![("Host".to_owned(), b"localhost".to_vec())];
        Self {
            method,
            target: target.into(),
            headers,
            body: Vec::new(),
        }
    }

    pub(crate) fn get(target: impl Into<String>) -> Self {
        Self::new("GET", target)
    }

    /// A POST with a body of JSON.
    pub(crate) fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::new("POST", target)
        }
        .header("Content-Type", "application/json")
    }

    /// A call of a tool.
    pub(crate) fn call(tool: &str, arguments: &Value) -> Self {
        Self::post(format!("/tools/{tool}/call"), arguments.to_string())
    }

    /// Sets a header, in the place of one of that name.
    pub(crate) fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let mut request = self.without(name);
        request
            .headers
            .push((name.to_owned(), value.as_ref().to_vec()));
        request
    }

    /// Another line of a header that is there already.
    pub(crate) fn header_line(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers
            .push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Adds a header unless there is one of that name.
    pub(crate) fn or_header(self, name: &str, value: &str) -> Self {
        let given = self
            .headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name));
        if given {
            self
        } else {
            self.header(name, value)
        }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key)
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    pub(crate) fn session(self, id: &str) -> Self {
        self.header("Toolpost-Session", id)
    }

    pub(crate) fn streamed(self) -> Self {
        self.header("Accept", "text/event-stream")
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Status and headers of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer is text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(
            self.head.header("content-type"),
            Some("application/json"),
            "{self:?}"
        );
        serde_json::from_slice(&self.body).expect("the answer is JSON")
    }

    /// The code of a problem, or of the error in a result.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// One frame of a stream of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) event: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: String,
}

/// Something bytes go over.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// One connection.
pub(crate) struct Connection {
    wire: BufReader<Box<dyn Wire>>,
}

impl Connection {
    pub(crate) fn over(wire: impl Wire + 'static) -> Self {
        Self {
            wire: BufReader::new(Box::new(wire)),
        }
    }

    pub(crate) async fn tcp(address: SocketAddr) -> Self {
        Self::over(
            within(TcpStream::connect(address))
                .await
                .expect("a server listens"),
        )
    }

    /// Over TCP from another address of this machine.
    pub(crate) async fn tcp_from(source: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        Self::over(
            within(socket.connect(address))
                .await
                .expect("a server listens"),
        )
    }

    pub(crate) async fn unix(path: &Path) -> Self {
        Self::over(
            within(UnixStream::connect(path))
                .await
                .expect("a server listens"),
        )
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within(self.wire.write_all(bytes))
            .await
            .expect("the server reads");
    }

    pub(crate) async fn send(&mut self, request: &Request) {
        self.write(&request.bytes()).await;
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        within(self.wire.read_line(&mut line))
            .await
            .expect("the answer is text");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    pub(crate) async fn head(&mut self) -> Head {
        let first = self.line().await;
        let status = first
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status =
            status.unwrap_or_else(|| panic!("`{first}` is not the first line of an answer"));
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.push((name.to_owned(), value.to_owned()));
        }
        Head { status, headers }
    }

    /// A piece of a body sent in chunks; empty at its end.
    async fn chunk(&mut self) -> Vec<u8> {
        let size = self.line().await;
        let size =
            usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("`{size}` is no size"));
        let mut piece = vec![0; size + 2];
        within(self.wire.read_exact(&mut piece))
            .await
            .expect("the chunk is whole");
        piece.truncate(size);
        piece
    }

    pub(crate) async fn receive(&mut self) -> Response {
        let head = self.head().await;
        let mut body = Vec::new();
        if head.header("transfer-encoding") == Some("chunked") {
            loop {
                let piece = self.chunk().await;
                if piece.is_empty() {
                    break;
                }
                body.extend_from_slice(&piece);
            }
        } else if let Some(length) = head.header("content-length") {
            body = vec![0; length.parse().expect("a length")];
            within(self.wire.read_exact(&mut body))
                .await
                .expect("the body is whole");
        }
        Response { head, body }
    }

    /// The next piece of a stream as it came; `None` at its end.
    pub(crate) async fn piece(&mut self) -> Option<String> {
        let piece = self.chunk().await;
        (!piece.is_empty()).then(|| String::from_utf8(piece).expect("events are text"))
    }

    /// The frames of a stream up to its end. Each frame is one chunk, as the server flushes it.
    pub(crate) async fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame().await {
            frames.push(frame);
        }
        frames
    }

    /// The next frame that is not a sign of life; `None` at the end of the stream.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            let piece = self.chunk().await;
            if piece.is_empty() {
                return None;
            }
            let text = String::from_utf8(piece).expect("events are text");
            let field = |name: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(name))
                    .map(str::to_owned)
            };
            assert!(text.ends_with("\n\n"), "{text:?}");
            let (Some(event), Some(data)) = (field("event: "), field("data: ")) else {
                continue;
            };
            return Some(Frame {
                event,
                id: field("id: ").map(|id| id.parse().expect("a number")),
                data,
            });
        }
    }

    /// The data of the next frame without a name; `None` at the end of the stream.
    pub(crate) async fn data(&mut self) -> Option<Value> {
        loop {
            let piece = self.chunk().await;
            if piece.is_empty() {
                return None;
            }
            let text = String::from_utf8(piece).expect("events are text");
            assert!(text.ends_with("\n\n"), "{text:?}");
            if let Some(data) = text.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("the data is JSON"));
            }
        }
    }

    /// Whether the server closed the connection without another word.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = within(self.wire.read_to_end(&mut rest)).await;
        rest.is_empty()
    }
}
