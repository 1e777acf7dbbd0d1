//! A connection to an MCP server, over the pipes of a program or over HTTP, in either revision. Requests and results
//! are plain JSON.

mod handshake;
mod http;
mod message;
mod pipes;
mod route;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::{
    net::unix::pipe::{Receiver, Sender},
    sync::Notify,
    task::JoinHandle,
};
use toolpost_model::CallContext;

use super::{
    McpProtocolEra, McpTransport,
    desk::{AwaitedMcpRequest, McpMessageRouter, UpstreamAnswer},
};
use http::McpEndpoint;
use message::{HostMessage, object};
use pipes::ProgramInput;

/// The longest text of a server's failure that is repeated, in bytes.
const LONGEST: usize = 4 * 1024;
/// How long a failed write waits for the reason of the connection's end.
const REASON: Duration = Duration::from_secs(3);
/// The reason of a connection that ended without another one.
const CLOSED: &str = "the connection is closed";

/// A connection after its handshake.
pub(super) struct McpConnection {
    wire: Arc<UpstreamWire>,
    /// The task that reads until the end, and then closes the connection in an orderly way.
    farewell: Mutex<Option<JoinHandle<()>>>,
    pub(super) facts: UpstreamDescription,
}

/// The part of a connection that its reading tasks share.
struct UpstreamWire {
    desk: Arc<McpMessageRouter>,
    transport: UpstreamTransport,
    next_id: AtomicU64,
    /// The `_meta` of each request, set by the handshake. Empty in the revision with sessions.
    context: OnceLock<Map<String, Value>>,
}

enum UpstreamTransport {
    Pipes(ProgramInput),
    Http(Box<McpEndpoint>),
}

/// The result of a handshake.
#[derive(Clone, Debug, Default)]
pub(super) struct UpstreamDescription {
    /// It speaks the revision without sessions.
    pub(super) stateless: bool,
    pub(super) capabilities: Value,
}

/// Why there is no connection.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum McpConnectError {
    /// The operator's configuration prevents it.
    #[error("{0}")]
    Setup(String),
    /// The server rejects the host's credentials.
    #[error("the server refuses the host: {0}")]
    Unauthorized(String),
    /// An answer ended the handshake.
    #[error("the handshake failed: {0}")]
    Handshake(String),
    /// No answer came in time.
    #[error("it did not answer within {} ms", .0.as_millis())]
    Silent(Duration),
}

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum McpRequestError {
    /// The server answered with an error.
    #[error("{message}")]
    Remote {
        code: i32,
        message: String,
        data: Option<Value>,
    },
    /// It never reached the server, or the server did not take it.
    #[error("{0}")]
    Unsent(String),
    /// The server takes no requests for now.
    #[error("HTTP {status}")]
    Busy {
        status: u16,
        /// The pause before another attempt.
        after: Option<Duration>,
    },
    /// The server rejects the host's credentials.
    #[error("{0}")]
    Unauthorized(String),
    /// The connection broke while the answer was awaited.
    #[error("{0}")]
    Lost(String),
    /// The answer cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

pub(super) enum McpConnectTarget<'a> {
    Pipes(Receiver, Sender),
    Http(&'a McpTransport),
}

impl McpConnection {
    /// Connects and performs the handshake.
    pub(super) async fn open(
        way: McpConnectTarget<'_>,
        era: McpProtocolEra,
        longest: usize,
        desk: Arc<McpMessageRouter>,
    ) -> Result<Self, McpConnectError> {
        let (transport, reading) = match way {
            McpConnectTarget::Pipes(reading, writing) => {
                let input = ProgramInput::new(writing);
                (UpstreamTransport::Pipes(input), Some(reading))
            }
            McpConnectTarget::Http(McpTransport::Http { url, headers }) => {
                let endpoint = McpEndpoint::new(url, headers, longest)?;
                (UpstreamTransport::Http(Box::new(endpoint)), None)
            }
            McpConnectTarget::Http(McpTransport::Stdio(_)) => {
                let why = "a program is not reached over HTTP".to_owned();
                return Err(McpConnectError::Setup(why));
            }
        };
        let wire = Arc::new(UpstreamWire {
            desk,
            transport,
            next_id: AtomicU64::new(0),
            context: OnceLock::new(),
        });
        let farewell = tokio::spawn(keep(Arc::clone(&wire), reading, longest));
        let facts = handshake::shake(&wire, era).await?;
        let listening = Arc::clone(&wire);
        tokio::spawn(async move {
            if let UpstreamTransport::Http(endpoint) = &listening.transport {
                tokio::select! {
                    () = endpoint.listen(&listening) => {}
                    _ = listening.desk.end_reached() => {}
                }
            }
        });
        Ok(Self {
            wire,
            farewell: Mutex::new(Some(farewell)),
            facts,
        })
    }

    /// Sends a request and waits for its answer. If the future is dropped, the server gets a cancellation.
    pub(super) async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        meta: Map<String, Value>,
        call: Option<&CallContext>,
    ) -> Result<Value, McpRequestError> {
        self.wire
            .request(method, params, meta, call.cloned(), None)
            .await
    }

    /// Subscribes to notices of a server without sessions. Returns when the server acknowledges.
    pub(super) async fn listen(
        &self,
        filter: &Value,
    ) -> Result<UpstreamSubscription, McpRequestError> {
        let opened = Arc::new(Notify::new());
        let (wire, opening) = (Arc::clone(&self.wire), Some(Arc::clone(&opened)));
        let params = object([("notifications", filter.clone())]);
        let mut subscription = UpstreamSubscription(tokio::spawn(async move {
            let method = "subscriptions/listen";
            wire.request(method, params, Map::new(), None, opening)
                .await
        }));
        tokio::select! {
            biased;
            () = opened.notified() => Ok(subscription),
            ended = &mut subscription.0 => match ended {
                Ok(Err(error)) => Err(error),
                Ok(Ok(_)) | Err(_) => {
                    Err(McpRequestError::Unreadable("it opens no stream".to_owned()))
                }
            },
        }
    }

    /// Closes the connection, and waits this long for an orderly end.
    pub(super) async fn close(&self, within: Duration) {
        self.wire.desk.close();
        let farewell = self.farewell.lock().take();
        if let Some(farewell) = farewell {
            let _ = tokio::time::timeout(within, farewell).await;
        }
    }
}

impl Drop for McpConnection {
    fn drop(&mut self) {
        self.wire.desk.hang_up();
    }
}

/// Reads the output of a program; at the end closes its input, or ends the session of an endpoint.
async fn keep(wire: Arc<UpstreamWire>, reading: Option<Receiver>, longest: usize) {
    let read = async {
        match reading {
            Some(reading) => pipes::read(reading, longest, Arc::clone(&wire)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = read => {}
        () = wire.desk.fell_silent() => {}
    }
    wire.desk.hang_up();
    match &wire.transport {
        UpstreamTransport::Pipes(input) => input.close().await,
        UpstreamTransport::Http(endpoint) => endpoint.leave().await,
    }
}

impl UpstreamWire {
    fn last_id(&self) -> Option<u64> {
        self.next_id.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Sets the revision of later messages.
    fn agree(&self, revision: Option<&str>) {
        if let UpstreamTransport::Http(endpoint) = &self.transport {
            endpoint.agree(revision);
        }
    }

    /// Sends a message without an answer.
    async fn send(&self, message: HostMessage) -> Result<(), McpRequestError> {
        match &self.transport {
            UpstreamTransport::Pipes(input) => input
                .write(message.text(), || {})
                .await
                .map_err(|error| McpRequestError::Unsent(error.to_string())),
            UpstreamTransport::Http(endpoint) => endpoint.notify(self, &message).await,
        }
    }

    /// Sends a request and waits for its answer. `opening`: the request is a subscription, and this is notified when
    /// the server acknowledges it.
    async fn request(
        self: &Arc<Self>,
        method: &str,
        params: Map<String, Value>,
        mut meta: Map<String, Value>,
        call: Option<CallContext>,
        opening: Option<Arc<Notify>>,
    ) -> Result<Value, McpRequestError> {
        if let Some(why) = self.desk.ended() {
            return Err(McpRequestError::Unsent(why.to_string()));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if let Some(context) = self.context.get() {
            meta.extend(context.clone());
            meta.insert("progressToken".to_owned(), id.into());
        }
        let mut all = object([("_meta", meta.into())]);
        all.retain(|_, meta| meta.as_object().is_some_and(|meta| !meta.is_empty()));
        all.extend(params);
        let (request, mut answer) = AwaitedMcpRequest::new(call, opening);
        self.desk.await_answer(id, &request);
        let mut guard = McpRequestGuard {
            wire: self,
            id,
            request: Some(&request),
        };
        let sending = self.carry(id, HostMessage::request(id, method, all), &request);
        let ended = self.desk.end_reached();
        tokio::pin!(sending, ended);
        let mut is_sent = false;
        // The order matters (`biased`): a server may answer and close the connection at once. An answer that arrived
        // counts before the end of the connection, which would report the call as lost.
        let failure = loop {
            tokio::select! {
                biased;
                Ok(answer) = &mut answer => {
                    guard.request = None;
                    return answer;
                }
                sent = &mut sending, if !is_sent => match sent {
                    Ok(()) => is_sent = true,
                    Err(failure) => break failure,
                },
                why = &mut ended => break match request.sent.load(Ordering::Acquire) {
                    true => McpRequestError::Lost(why.to_string()),
                    false => McpRequestError::Unsent(why.to_string()),
                },
            }
        };
        guard.request = None;
        // After `Lost` and `Unreadable` the server may still work on the request and send messages for it, so the
        // request counts as a possible origin for a while. After the other failures it does not.
        match &failure {
            McpRequestError::Lost(_) | McpRequestError::Unreadable(_) => self.desk.abandon(id),
            McpRequestError::Remote { .. }
            | McpRequestError::Unsent(_)
            | McpRequestError::Busy { .. }
            | McpRequestError::Unauthorized(_) => self.desk.forget(id),
        }
        Err(failure)
    }

    /// Sends a request, and over HTTP reads its answer too.
    async fn carry(
        self: &Arc<Self>,
        id: u64,
        message: HostMessage,
        request: &AwaitedMcpRequest,
    ) -> Result<(), McpRequestError> {
        let begin = || request.sent.store(true, Ordering::Release);
        match &self.transport {
            UpstreamTransport::Pipes(input) => {
                let written = input.write(message.text(), begin).await;
                let Err(error) = written else { return Ok(()) };
                // A line without its line end is not a message, so the server cannot have acted on it. The reason of
                // the end arrives a moment later, from the task that keeps the process.
                request.sent.store(false, Ordering::Release);
                let _ = tokio::time::timeout(REASON, self.desk.end_reached()).await;
                let why = self.desk.ended();
                Err(McpRequestError::Unsent(
                    why.map_or_else(|| error.to_string(), |why| why.to_string()),
                ))
            }
            UpstreamTransport::Http(endpoint) => endpoint.exchange(self, id, &message, begin).await,
        }
    }
}

/// A subscription stream. If it is dropped, the server gets a cancellation.
pub(super) struct UpstreamSubscription(JoinHandle<UpstreamAnswer>);

impl UpstreamSubscription {
    pub(super) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Resolves when the stream ended.
    pub(super) async fn end_reached(&mut self) {
        let _ = (&mut self.0).await;
    }
}

impl Drop for UpstreamSubscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Cancels a request if it is dropped while its answer is awaited.
struct McpRequestGuard<'a> {
    wire: &'a Arc<UpstreamWire>,
    id: u64,
    request: Option<&'a Arc<AwaitedMcpRequest>>,
}

impl Drop for McpRequestGuard<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request else { return };
        if !request.sent.load(Ordering::Acquire) {
            return self.wire.desk.forget(self.id);
        }
        self.wire.desk.abandon(self.id);
        let is_http = matches!(self.wire.transport, UpstreamTransport::Http(_));
        match self.wire.context.get() {
            // No revision has a cancellation for a handshake.
            None => return,
            // Without sessions, the end of the HTTP stream is the cancellation.
            Some(context) if is_http && !context.is_empty() => return,
            Some(_) => {}
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let reason = match &request.subscription {
            Some(_) => "subscription handle dropped",
            None => "the call was stopped",
        };
        let wire = Arc::clone(self.wire);
        let message = HostMessage::cancellation(self.id, reason);
        runtime.spawn(async move { wire.send(message).await });
    }
}
