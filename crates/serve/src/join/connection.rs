//! The joining process's end of the socket.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};
use toolpost_store::DataDir;

use super::request::{JoinTicket, PROTOCOL, ROUTE, SettingsRefusal};

/// The time in which a working host answers.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest refusal that is read.
const LONGEST_REFUSAL: usize = 64 << 10;

/// The connection of an agent to its host. It carries only the agent's protocol.
pub struct HostConnection(Box<dyn DuplexStream>);

trait DuplexStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> DuplexStream for T {}

impl HostConnection {
    pub(super) fn new(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self(Box::new(stream))
    }

    pub(super) fn into_stream(self) -> impl AsyncRead + AsyncWrite + Unpin + Send {
        self.0
    }
}

/// The reason why a process could not join the host of its folder.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The host is starting or shutting down. Another try may succeed.
    #[error("a process holds the data directory, and no host answers there")]
    NotReady,
    /// The settings differ from those of the host.
    #[error(
        "the host that runs in this folder has other settings ({}); use the same ones, or give this host its own \
         `--data-dir`",
        .0.join(", ")
    )]
    SettingsDiffer(Vec<String>),
    /// The host refused.
    #[error(
        "the host that runs in this folder cannot be joined: {0}; give this host its own `--data-dir`"
    )]
    Refused(String),
}

/// Joins the host that holds a data directory. `session` is the A2E session to continue, if there is one.
pub async fn join_host(
    data_dir: &Path,
    ticket: &JoinTicket,
    session: Option<&str>,
) -> Result<HostConnection, JoinError> {
    let ticket = JoinTicket {
        session: session.map(str::to_owned),
        ..ticket.clone()
    };
    match tokio::time::timeout(PATIENCE, ask_to_join(data_dir, &ticket)).await {
        Ok(answer) => answer,
        Err(_) => Err(JoinError::NotReady),
    }
}

async fn ask_to_join(data_dir: &Path, ticket: &JoinTicket) -> Result<HostConnection, JoinError> {
    let response = send(data_dir, ticket).await.ok_or(JoinError::NotReady)?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            let stream = hyper::upgrade::on(response)
                .await
                .map_err(|_| JoinError::NotReady)?;
            Ok(HostConnection::new(TokioIo::new(stream)))
        }
        StatusCode::SERVICE_UNAVAILABLE => Err(JoinError::NotReady),
        status => {
            let body = Limited::new(response.into_body(), LONGEST_REFUSAL)
                .collect()
                .await;
            let body = body.map_err(|_| JoinError::NotReady)?.to_bytes();
            if let Ok(SettingsRefusal { differing }) = serde_json::from_slice(&body) {
                return Err(JoinError::SettingsDiffer(differing));
            }
            let said: Value = serde_json::from_slice(&body).unwrap_or_default();
            let reason = said["error"]["message"].as_str().map(str::to_owned);
            Err(JoinError::Refused(
                reason.unwrap_or_else(|| status.to_string()),
            ))
        }
    }
}

/// The host's answer. `None`: no host answers at the socket.
async fn send(data_dir: &Path, ticket: &JoinTicket) -> Option<Response<Incoming>> {
    // Kept until the connection is made, because the path of the socket may lead through this value.
    let data_dir = DataDir::at(data_dir).ok()?;
    let stream = UnixStream::connect(data_dir.socket_path()).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection.with_upgrades());
    let request = Request::builder()
        .method(Method::POST)
        .uri(ROUTE)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, PROTOCOL)
        .body(Full::new(Bytes::from(serde_json::to_vec(ticket).ok()?)))
        .ok()?;
    sender.send_request(request).await.ok()
}
