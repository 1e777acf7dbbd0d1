//! A connection to an MCP server. This module and its folder alone know the SDK; what they give and take is plain JSON
//! and the words below.

mod handler;
mod heard;
mod http;
mod pipes;

use std::{error::Error, sync::Arc, time::Duration};

use parking_lot::Mutex;
use reqwest::StatusCode;
use rmcp::{
    Peer, RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
        CustomRequest, MetaObject, ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
        SubscriptionFilter,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RunningService,
        ServiceError, Subscription, serve_client_with_lifecycle,
    },
    transport::{
        Transport,
        streamable_http_client::{HttpStatusError, StreamableHttpError},
    },
};
use serde_json::{Map, Value, json};
use tokio::net::unix::pipe::{Receiver, Sender};
use toolpost_model::CallContext;

use super::{
    McpProtocolEra, McpTransport,
    clean::shortened,
    desk::{AwaitedMcpRequest, EXPIRED, McpMessageRouter, McpRequestSendState, UpstreamNotice},
};
use handler::UpstreamRequestHandler;
use heard::{OutgoingRequestMark, RoutedTransport, SdkRequestIds, told};
use pipes::Pipes;

/// The longest that is repeated of what a server says about a failure.
const LONGEST: usize = 4 * 1024;
/// How long the story of an end is awaited.
const REASON: Duration = Duration::from_secs(3);

/// A connection that answers.
pub(super) struct McpConnection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, UpstreamRequestHandler>>>,
    desk: Arc<McpMessageRouter>,
    over_pipes: bool,
    /// What the server said of itself.
    pub(super) facts: UpstreamDescription,
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct UpstreamDescription {
    /// It speaks the revision without sessions.
    pub(super) stateless: bool,
    /// What it offers.
    pub(super) capabilities: Value,
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum McpConnectError {
    /// It cannot come about without the operator.
    #[error("{0}")]
    Setup(String),
    /// The server refuses to know the host.
    #[error("the server refuses the host: {0}")]
    Unauthorized(String),
    /// It answered something that ends the handshake.
    #[error("the handshake failed: {0}")]
    Handshake(String),
    /// It did not answer in time.
    #[error("it did not answer within {} ms", .0.as_millis())]
    Silent(Duration),
}

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum McpRequestError {
    /// The server's own word.
    #[error("{message}")]
    Remote {
        /// JSON-RPC's code.
        code: i32,
        /// What it said.
        message: String,
        /// And beside it.
        data: Option<Value>,
    },
    /// It never reached the server, or the server did not take it.
    #[error("{0}")]
    Unsent(String),
    /// The server would not take it for now.
    #[error("HTTP {status}")]
    Busy {
        status: u16,
        /// When it is worth another try.
        after: Option<Duration>,
    },
    /// The server does not know the host.
    #[error("{0}")]
    Unauthorized(String),
    /// The connection broke while the answer was awaited.
    #[error("{0}")]
    Lost(String),
    /// The answer is none.
    #[error("{0}")]
    Unreadable(String),
}

/// What is connected to.
pub(super) enum McpConnectTarget<'a> {
    /// The pipes of a program.
    Pipes(Receiver, Sender),
    /// An endpoint.
    Http(&'a McpTransport),
}

impl McpConnection {
    /// Connects and shakes hands.
    pub(super) async fn open(
        way: McpConnectTarget<'_>,
        era: McpProtocolEra,
        longest: usize,
        desk: Arc<McpMessageRouter>,
    ) -> Result<Self, McpConnectError> {
        let typed = SdkRequestIds::default();
        match way {
            McpConnectTarget::Pipes(reading, writing) => {
                let inner = Pipes::new(
                    (reading, writing),
                    longest,
                    Arc::clone(&desk),
                    typed.clone(),
                );
                Self::shake(
                    RoutedTransport {
                        inner,
                        desk: Arc::clone(&desk),
                        typed,
                    },
                    era,
                    desk,
                    true,
                )
                .await
            }
            McpConnectTarget::Http(McpTransport::Http { url, headers }) => {
                let inner = http::transport(url, headers, longest, Arc::clone(&desk))?;
                Self::shake(
                    RoutedTransport {
                        inner,
                        desk: Arc::clone(&desk),
                        typed,
                    },
                    era,
                    desk,
                    false,
                )
                .await
            }
            McpConnectTarget::Http(McpTransport::Stdio(_)) => Err(McpConnectError::Setup(
                "a program is not reached over HTTP".to_owned(),
            )),
        }
    }

    async fn shake<T: Transport<RoleClient> + 'static>(
        transport: T,
        era: McpProtocolEra,
        desk: Arc<McpMessageRouter>,
        over_pipes: bool,
    ) -> Result<Self, McpConnectError> {
        let stateless = vec![ProtocolVersion::V_2026_07_28];
        let mode = match era {
            McpProtocolEra::Auto => ClientLifecycleMode::Auto {
                preferred_versions: stateless,
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            McpProtocolEra::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: stateless,
            },
            McpProtocolEra::Sessions => ClientLifecycleMode::Initialize,
        };
        let handler = UpstreamRequestHandler {
            desk: Arc::clone(&desk),
        };
        let running = serve_client_with_lifecycle(handler, transport, mode)
            .await
            .map_err(|error| not_connected(&error))?;
        let peer = running.peer().clone();
        let facts = peer.peer_info().map(|info| UpstreamDescription {
            stateless: !info.protocol_version.has_initialize(),
            capabilities: serde_json::to_value(&info.capabilities).unwrap_or_default(),
        });
        let facts = facts.unwrap_or_default();
        Ok(Self {
            peer,
            running: Mutex::new(Some(running)),
            desk,
            over_pipes,
            facts,
        })
    }

    /// Sends a request and waits for its answer. Dropped, the server is told that nobody waits any more.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        meta: Map<String, Value>,
        call: Option<&CallContext>,
    ) -> Result<Value, McpRequestError> {
        let slot = Arc::new(AwaitedMcpRequest::new(call.cloned()));
        let mut request = CustomRequest::new(method, Some(Value::Object(params)));
        request
            .extensions
            .insert(RequestMetaObject(MetaObject(meta)));
        request
            .extensions
            .insert(OutgoingRequestMark(Arc::clone(&slot)));
        let request = ClientRequest::CustomRequest(request);
        let sending = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = match sending.await {
            Ok(handle) => handle,
            Err(_) => {
                // The way out is gone. Why, is known a moment later; that it is over, is known now.
                let _ = tokio::time::timeout(REASON, self.desk.end_reached()).await;
                self.desk.end("the connection is closed");
                return Err(McpRequestError::Unsent(self.why()));
            }
        };
        let id = handle.id.clone();
        let mut waiting = McpRequestGuard {
            connection: self,
            id: Some(id.clone()),
            slot: &slot,
        };
        let answered = tokio::select! {
            biased;
            answered = handle.await_response() => answered,
            _ = self.desk.end_reached() => Err(ServiceError::TransportClosed),
        };
        waiting.id = None;
        match answered {
            Ok(ServerResult::CustomResult(result)) => Ok(result.0),
            Ok(result) => serde_json::to_value(result)
                .map_err(|error| McpRequestError::Unreadable(error.to_string())),
            Err(error) => {
                if matches!(error, ServiceError::TransportClosed) {
                    let _ = tokio::time::timeout(REASON, self.desk.end_reached()).await;
                }
                let failure = self.failed(error, &slot);
                match &failure {
                    McpRequestError::Lost(_) | McpRequestError::Unreadable(_) => {
                        self.desk.abandon(&id.to_string(), &slot);
                    }
                    McpRequestError::Remote { .. }
                    | McpRequestError::Unsent(_)
                    | McpRequestError::Busy { .. }
                    | McpRequestError::Unauthorized(_) => drop(self.desk.settle(&id.to_string())),
                }
                Err(failure)
            }
        }
    }

    /// Asks for what the server says unasked, where that must be asked for. Returns when that is acknowledged.
    pub(super) async fn listen(
        &self,
        filter: &Value,
    ) -> Result<UpstreamSubscription, McpRequestError> {
        let filter: SubscriptionFilter = serde_json::from_value(filter.clone())
            .map_err(|error| McpRequestError::Unreadable(error.to_string()))?;
        let opened = self.peer.listen(filter).await;
        opened
            .map(UpstreamSubscription)
            .map_err(|error| self.failed(error, &AwaitedMcpRequest::new(None)))
    }

    /// Ends it, politely where there is time.
    pub(super) async fn close(&self, within: Duration) {
        self.desk.close();
        let running = self.running.lock().take();
        if let Some(mut running) = running {
            let _ = running.close_with_timeout(within).await;
        }
    }

    fn why(&self) -> String {
        self.desk.ended().map_or_else(
            || "the connection is closed".to_owned(),
            |why| why.to_string(),
        )
    }

    fn failed(&self, error: ServiceError, slot: &AwaitedMcpRequest) -> McpRequestError {
        match error {
            ServiceError::McpError(error) => McpRequestError::Remote {
                code: error.code.0,
                message: shortened(&error.message, LONGEST),
                data: error.data,
            },
            ServiceError::TransportSend(error) => self.not_sent(&*error.error),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                match slot.sent() {
                    McpRequestSendState::Not => McpRequestError::Unsent(self.why()),
                    // A server can have read all of it and ended before the write was seen to be done.
                    McpRequestSendState::Perhaps | McpRequestSendState::Yes => {
                        McpRequestError::Lost(self.why())
                    }
                }
            }
            other => McpRequestError::Unreadable(shortened(&other.to_string(), LONGEST)),
        }
    }

    fn not_sent(&self, error: &(dyn Error + Send + Sync + 'static)) -> McpRequestError {
        if self.over_pipes {
            // A line without its end is no message: a server cannot have acted on it.
            return McpRequestError::Unsent(chain(error));
        }
        let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
            return McpRequestError::Lost(chain(error));
        };
        match error {
            StreamableHttpError::Client(inner) if inner.is_connect() || inner.is_builder() => {
                McpRequestError::Unsent(chain(error))
            }
            StreamableHttpError::Client(inner) => match inner.status() {
                Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                    McpRequestError::Unauthorized(chain(error))
                }
                Some(_) | None => McpRequestError::Lost(chain(error)),
            },
            StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
                McpRequestError::Unauthorized(chain(error))
            }
            StreamableHttpError::SessionExpired => {
                self.desk.expire();
                McpRequestError::Unsent(EXPIRED.to_owned())
            }
            StreamableHttpError::HttpStatus(status) => refused(status),
            StreamableHttpError::UnexpectedServerResponse(said) => {
                let said = shortened(said, LONGEST);
                McpRequestError::Unreadable(said)
            }
            other => McpRequestError::Lost(chain(other)),
        }
    }
}

/// What a server says unasked. Dropped, the server is told that nobody listens any more.
pub(super) struct UpstreamSubscription(Subscription);

impl UpstreamSubscription {
    /// The next thing it says. `None`: there is no more.
    pub(super) async fn next(&mut self) -> Option<UpstreamNotice> {
        loop {
            let notification = self.0.next().await.ok().flatten()?;
            if let Some(told) = told(&notification) {
                return Some(told);
            }
        }
    }
}

/// A request that somebody waits for.
struct McpRequestGuard<'a> {
    connection: &'a McpConnection,
    id: Option<RequestId>,
    slot: &'a AwaitedMcpRequest,
}

impl Drop for McpRequestGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        self.connection.desk.abandon(&id.to_string(), self.slot);
        let peer = self.connection.peer.clone();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut params: CancelledNotificationParam = match serde_json::from_value(json!({})) {
            Ok(params) => params,
            Err(_) => return,
        };
        params.request_id = Some(id);
        params.reason = Some("the call was stopped".to_owned());
        runtime.spawn(async move {
            let notification = CancelledNotification::new(params);
            let _ = peer
                .send_notification(ClientNotification::CancelledNotification(notification))
                .await;
        });
    }
}

fn refused(status: &HttpStatusError) -> McpRequestError {
    let after = status
        .retry_after
        .as_deref()
        .and_then(|text| text.trim().parse().ok());
    match status.status {
        429 | 503 => McpRequestError::Busy {
            status: status.status,
            after: after.map(Duration::from_secs),
        },
        401 | 403 => McpRequestError::Unauthorized(format!("HTTP {}", status.status)),
        // The request was there, and nobody knows what was done before this was said.
        300..=499 => McpRequestError::Unreadable(format!("it is HTTP {}", status.status)),
        other => McpRequestError::Lost(format!("HTTP {other}")),
    }
}

fn not_connected(error: &ClientInitializeError) -> McpConnectError {
    if error.is_authorization_required() {
        return McpConnectError::Unauthorized("it wants a token (HTTP 401)".to_owned());
    }
    let told = match error {
        ClientInitializeError::JsonRpcError(error) => format!("it answered: {}", error.message),
        ClientInitializeError::TransportError { error, .. } => chain(&*error.error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback.to_string(),
        other => other.to_string(),
    };
    match told.contains("HTTP 401") || told.contains("HTTP 403") {
        true => McpConnectError::Unauthorized(shortened(&told, LONGEST)),
        false => McpConnectError::Handshake(shortened(&told, LONGEST)),
    }
}

/// An error with its causes.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    shortened(&text, LONGEST)
}
