//! One connection to a stream: over TCP, TLS or the socket of a running host.

use std::{error::Error, sync::Arc, time::Duration};

use anyhow::Context;
use reqwest::{
    Client, ClientBuilder, Response, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE},
    redirect,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::stream::StreamAddress;
use crate::terminal::spelled_out;

/// The time limit for a connection,
const CONNECT: Duration = Duration::from_secs(5);
/// and for the response headers of a stream, which hosts send at once.
const HEADERS: Duration = Duration::from_secs(30);
/// The most of a refusal that is read.
const REFUSAL: usize = 64 << 10;

/// The format of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamShape {
    /// Server-sent events.
    Events,
    /// One JSON text per line.
    Lines,
    /// One JSON text.
    Whole,
}

pub(super) enum StreamOpenFailure {
    /// No valid response; a later attempt may succeed.
    Unreachable(anyhow::Error),
    /// The host is overloaded or shutting down.
    Busy(anyhow::Error),
    /// A refusal that a later attempt would meet again.
    Refused {
        status: StatusCode,
        error: anyhow::Error,
    },
}

impl StreamOpenFailure {
    pub(super) fn into_error(self) -> anyhow::Error {
        match self {
            Self::Unreachable(error) | Self::Busy(error) | Self::Refused { error, .. } => error,
        }
    }
}

/// Connects to a host, repeatedly if needed.
pub(super) struct StreamConnector {
    http: Client,
}

impl StreamConnector {
    pub(super) fn new(address: &StreamAddress) -> anyhow::Result<Self> {
        let encrypted = address.url.scheme() == "https";
        let mut builder = ClientBuilder::new()
            .tls_backend_preconfigured(tls(encrypted)?)
            .tcp_nodelay(true)
            .tcp_keepalive(CONNECT * 6)
            .connect_timeout(CONNECT)
            // A redirect must not lead the token elsewhere.
            .redirect(redirect::Policy::none())
            .referer(false);
        if let Some(socket) = &address.socket {
            builder = builder.unix_socket(socket.path.as_path());
        }
        Ok(Self {
            http: builder
                .build()
                .context("the HTTP client cannot be set up")?,
        })
    }

    /// Opens the stream after the last event that was received.
    pub(super) async fn open(
        &self,
        address: &StreamAddress,
        last_id: Option<&str>,
    ) -> Result<(Response, StreamShape), StreamOpenFailure> {
        let mut request = self
            .http
            .get(address.url.clone())
            .header(
                ACCEPT,
                "text/event-stream, application/x-ndjson, application/json;q=0.5",
            )
            .header(ACCEPT_ENCODING, "identity")
            .header(CACHE_CONTROL, "no-cache");
        if let Some(token) = &address.token {
            request = request.bearer_auth(token);
        }
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let name = address.quoted();
        let response = match timeout(HEADERS, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                return Err(StreamOpenFailure::Unreachable(unreachable(&name, error)));
            }
            Err(_) => {
                return Err(StreamOpenFailure::Unreachable(anyhow::anyhow!(
                    "{name} does not answer"
                )));
            }
        };
        let status = response.status();
        if status.is_success() {
            return match shape(&response) {
                Ok(shape) => Ok((response, shape)),
                Err(kind) => {
                    let error =
                        anyhow::anyhow!("{name} is not a stream of tool events: it is {kind}");
                    Err(StreamOpenFailure::Refused { status, error })
                }
            };
        }
        let error = refusal(&name, address, response).await;
        Err(match status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                StreamOpenFailure::Busy(error)
            }
            _ if status.is_server_error() => StreamOpenFailure::Busy(error),
            _ => StreamOpenFailure::Refused { status, error },
        })
    }
}

/// rustls with ring, chosen here instead of through a global default of the process.
fn tls(encrypted: bool) -> anyhow::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    Ok(if encrypted {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        // Without TLS the system's certificates need not be read.
        builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    })
}

/// The shape by the content type; an unsuitable content type is returned as the error.
fn shape(response: &Response) -> Result<StreamShape, String> {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "text/event-stream" => Ok(StreamShape::Events),
        "application/json" | "application/a2a+json" => Ok(StreamShape::Whole),
        "" | "text/plain" => Ok(StreamShape::Lines),
        page if page.ends_with("html") || page.ends_with("xml") => Err("a page".to_owned()),
        other
            if ["text/", "image/", "audio/", "video/", "font/"]
                .iter()
                .any(|kind| other.starts_with(kind)) =>
        {
            Err(format!("`{}`", spelled_out(other)))
        }
        _ => Ok(StreamShape::Lines),
    }
}

/// The innermost cause is the most precise: `connection refused` instead of "the request was not sent".
pub(super) fn reason(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn unreachable(name: &str, error: reqwest::Error) -> anyhow::Error {
    let error = error.without_url();
    let hint = "hint: `toolpost serve` prints its address";
    if error.is_connect() {
        anyhow::anyhow!("cannot connect to {name}: {}\n{hint}", reason(&error))
    } else {
        anyhow::anyhow!("{name} does not answer: {}", reason(&error))
    }
}

/// The error in a host's refusal, with a hint.
async fn refusal(name: &str, address: &StreamAddress, mut response: Response) -> anyhow::Error {
    let status = response.status();
    let mut text = Vec::new();
    while text.len() < REFUSAL
        && let Ok(Ok(Some(piece))) = timeout(CONNECT, response.chunk()).await
    {
        text.extend_from_slice(&piece);
    }
    let body: Value = serde_json::from_slice(&text).unwrap_or_default();
    let error = &body["error"];
    let said = error["message"].as_str().map(str::to_owned);
    let said = said.unwrap_or_else(|| format!("the server answered {status}"));
    let hint = match status {
        StatusCode::UNAUTHORIZED if address.token.is_none() => {
            Some("give the token with `--token-file FILE` or TOOLPOST_TOKEN")
        }
        StatusCode::UNAUTHORIZED => Some("use the host's token; `toolpost serve` prints its file"),
        StatusCode::FORBIDDEN => error["hint"].as_str(),
        StatusCode::NOT_FOUND if error["code"] == "no_such_route" => Some(
            "give only the address of the host, such as `http://127.0.0.1:8765`, or the path of a stream",
        ),
        // Another server's 404 has nothing to do with sessions.
        StatusCode::NOT_FOUND | StatusCode::GONE if error["code"].is_string() => {
            Some("find the `session_id` of a call with `toolpost journal tail --json`")
        }
        _ => error["hint"].as_str(),
    };
    let hint = hint
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    anyhow::anyhow!("{name} cannot be watched: {said}{hint}")
}
