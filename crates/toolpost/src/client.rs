//! A client of a running host over its Unix socket, in plain HTTP.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};
use toolpost_model::EventBody;

use crate::exit::HostLost;

/// An event on a host's endless stream.
pub(crate) struct HostStreamEvent {
    pub(crate) event: String,
    pub(crate) data: String,
}

/// A stream of a host's events.
pub(crate) struct HostEventStream {
    body: Incoming,
    buffer: BytesMut,
}

impl HostEventStream {
    /// The next event. Dropping this future loses nothing.
    pub(crate) async fn next(&mut self) -> anyhow::Result<HostStreamEvent> {
        loop {
            while let Some(message) = next_message(&mut self.buffer) {
                let text = std::str::from_utf8(&message)
                    .context("the running host sent text that is not UTF-8")?;
                let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
                if let (Some(event), Some(data)) = (field("event: "), field("data: ")) {
                    return Ok(HostStreamEvent {
                        event: event.to_owned(),
                        data: data.to_owned(),
                    });
                }
            }
            let frame = self.body.frame().await.context("the host has ended")?;
            if let Ok(data) = frame.context("the host has ended")?.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}

/// The next complete message of a stream, if it has arrived.
fn next_message(buffer: &mut BytesMut) -> Option<BytesMut> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    Some(buffer.split_to(end + 2))
}

/// The end of a call as the host sent it.
pub(crate) struct CallResultJson {
    pub(crate) result: Box<str>,
}

/// The host at the other end.
#[derive(Deserialize)]
pub(crate) struct HostFacts {
    pub(crate) workspace: Option<PathBuf>,
    /// Its network address, if it listens on one.
    #[serde(default)]
    pub(crate) address: Option<SocketAddr>,
    /// The result of the last configuration reload.
    #[serde(default)]
    pub(crate) configuration: ConfigurationFacts,
}

/// The state of a running host's configuration.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConfigurationFacts {
    pub(crate) problem: Option<String>,
    pub(crate) after_restart: Vec<String>,
}

/// How long a healthy host may take to identify itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// A connection to a running host.
pub(crate) struct HostClient {
    sender: http1::SendRequest<Full<Bytes>>,
    /// The session for requests, if it is not the command line's own.
    pub(crate) session: Option<String>,
}

impl HostClient {
    /// Connects and reads the host's facts. `None`: no host is running.
    pub(crate) async fn connect(socket: &Path) -> anyhow::Result<Option<(Self, HostFacts)>> {
        let Ok(stream) = UnixStream::connect(socket).await else {
            return Ok(None);
        };
        let mut client = Self::over(stream).await?;
        let asked =
            tokio::time::timeout(PATIENCE, client.json(Method::GET, "/host", String::new())).await;
        let (_, facts) = asked.context("a host holds the data directory but does not answer")??;
        let facts =
            serde_json::from_value(facts).context("the program at the socket is not a host")?;
        Ok(Some((client, facts)))
    }

    /// A client over an existing connection.
    pub(crate) async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            session: None,
        })
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        accept: &str,
        body: String,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("accept", accept)
            .header("content-type", "application/json");
        let request = match &self.session {
            Some(id) => request.header("toolpost-session", id),
            None => request,
        };
        let request = request.body(Full::new(Bytes::from(body)))?;
        self.sender
            .ready()
            .await
            .context("the running host does not answer")?;
        self.sender
            .send_request(request)
            .await
            .context("the running host does not answer")
    }

    /// Sends a request and parses its response as one JSON value.
    pub(crate) async fn json(
        &mut self,
        method: Method,
        path: &str,
        body: String,
    ) -> anyhow::Result<(StatusCode, Value)> {
        let response = self.send(method, path, "application/json", body).await?;
        let status = response.status();
        let bytes = response
            .into_body()
            .collect()
            .await
            .context("the running host disconnected during its response")?
            .to_bytes();
        let value = serde_json::from_slice(&bytes)
            .context("the running host sent a response that is not JSON")?;
        Ok((status, value))
    }

    /// Opens a stream that runs until one side closes it.
    pub(crate) async fn feed(mut self, path: &str) -> anyhow::Result<HostEventStream> {
        let response = self
            .send(Method::GET, path, "text/event-stream", String::new())
            .await?;
        if !response.status().is_success() {
            bail!(
                "the running host refused the event stream: {}",
                response.status()
            );
        }
        Ok(HostEventStream {
            body: response.into_body(),
            buffer: BytesMut::new(),
        })
    }

    /// Calls a tool and streams its events.
    pub(crate) async fn call(
        &mut self,
        path: &str,
        body: String,
        mut heard: impl FnMut(EventBody),
    ) -> anyhow::Result<CallResultJson> {
        let response = self
            .send(Method::POST, path, "text/event-stream", body)
            .await?;
        let is_stream = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind == "text/event-stream");
        let mut body = response.into_body();
        if !is_stream {
            let bytes = body.collect().await?.to_bytes();
            return Err(refused(&bytes));
        }
        let mut buffer = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| HostLost)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            buffer.extend_from_slice(&data);
            while let Some(message) = next_message(&mut buffer) {
                match read_frame(&message)? {
                    CallStreamFrame::Event(event) => heard(event),
                    CallStreamFrame::Result(result) => return Ok(CallResultJson { result }),
                    CallStreamFrame::Other => {}
                }
            }
        }
        Err(HostLost.into())
    }
}

/// The error in a host's refusal.
fn refused(bytes: &[u8]) -> anyhow::Error {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let error = &body["error"];
    let hint = match error["code"].as_str() {
        // The host's own hint addresses authors of HTTP requests.
        Some("unknown_session") => {
            Some("copy the session from the live page, such as `default:agent:agent`")
        }
        Some(_) | None => error["hint"].as_str(),
    };
    let hint = hint
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    match error["message"].as_str() {
        Some(message) => anyhow::anyhow!("{message}{hint}"),
        None => anyhow::anyhow!(
            "the running host refused the request: {}",
            String::from_utf8_lossy(bytes)
        ),
    }
}

enum CallStreamFrame {
    Event(EventBody),
    Result(Box<str>),
    Other,
}

fn read_frame(message: &[u8]) -> anyhow::Result<CallStreamFrame> {
    let message =
        std::str::from_utf8(message).context("the running host sent text that is not UTF-8")?;
    let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
    let Some(data) = field("data: ") else {
        return Ok(CallStreamFrame::Other);
    };
    if field("event: ") == Some("result") {
        return Ok(CallStreamFrame::Result(data.into()));
    }
    // An event that this version does not know is ignored.
    Ok(serde_json::from_str(data).map_or(CallStreamFrame::Other, CallStreamFrame::Event))
}
