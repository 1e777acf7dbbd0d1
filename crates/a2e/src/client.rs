//! The agent's side: a connection to a host over one of three transports.
//!
//! All capabilities use [`Client`]; [`ToolApi`](crate::ToolApi) is built on it. A request has one entry in the
//! [router](router::Router) and gets one answer. Every queue is bounded, and every task of a client ends with the
//! client.

mod error;
mod events;
mod hello;
mod http;
mod notice;
mod router;
mod stdio;
mod token;
mod wire;

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};
use uuid::Uuid;

pub use error::{CallError, ConnectError, HostDeparture, ProtocolError};
pub use hello::ConnectOptions;
pub use http::HttpHost;
pub use notice::{HostNotice, HostNotices};
pub use stdio::{StderrSink, StdioCommand};
pub use token::AuthToken;

pub(crate) use events::DeliveredToolEvent;
pub(crate) use router::{AbandonedRequestAction, RequestAnswer};

use crate::{Body, HandshakeResponse, InProcessLink, Message, Pong, ToolCancelRequest};
use events::EventSender;
use http::HttpWire;
use router::{AnswerRouter, RequestSendProgress, RouterEntry};
use stdio::StdioWire;
use wire::{ClientWire, LinkWire};

/// The time in which a host must answer a ping.
const PING: Duration = Duration::from_secs(5);
/// The default time that running calls get when a client is closed.
const GRACE: Duration = Duration::from_secs(10);
/// The extra time after the grace period in which the host can answer the calls that it ended.
const AFTER_GRACE: Duration = Duration::from_secs(2);

/// The connection to a host.
pub enum HostTransport {
    /// HTTP, with the host's messages as server-sent events. Reconnects by itself.
    Http(HttpHost),
    /// A child process that reads messages from stdin and writes them to stdout.
    Stdio(StdioCommand),
    /// A host in the same process.
    Link(InProcessLink),
}

impl HostTransport {
    /// A host behind HTTP, at an address such as `http://127.0.0.1:8765`.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http(HttpHost::new(url))
    }
}

/// A connection to a host. Clones share the connection. When the last clone is dropped, the client sends `shutdown` in
/// the background; [`close`](Self::close) also waits for running calls.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientConnection>,
}

struct ClientConnection {
    wire: ClientWire,
    router: Arc<AnswerRouter>,
    /// Serializes closing: a second `close` waits for the first.
    closing: Mutex<()>,
}

impl ClientConnection {
    fn new(wire: ClientWire, router: Arc<AnswerRouter>) -> Arc<Self> {
        Arc::new(Self {
            wire,
            router,
            closing: Mutex::default(),
        })
    }
}

/// Counts of events on a connection that no call reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCounters {
    /// Messages and lines that could not be read.
    pub unreadable: u64,
    /// Answers and events without a waiting request, repeated answers included.
    pub unexpected: u64,
    /// Events that never reached their reader: dropped by the host, or by this client because the reader was slow.
    pub lost_events: u64,
    /// Reconnected streams.
    pub reconnects: u64,
}

impl Client {
    /// Connects and performs the handshake.
    pub async fn connect(
        transport: HostTransport,
        options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let router = Arc::new(AnswerRouter::new(options.in_flight));
        let wire = match transport {
            HostTransport::Http(host) => {
                let wire = HttpWire::connect(&host, options, router.clone()).await?;
                return Ok(Self {
                    inner: ClientConnection::new(ClientWire::Http(wire), router),
                });
            }
            HostTransport::Stdio(command) => ClientWire::Stdio(StdioWire::start(
                command,
                options.message_limit,
                router.clone(),
            )?),
            HostTransport::Link(link) => ClientWire::Link(LinkWire::start(link, router.clone())),
        };
        let client = Self {
            inner: ClientConnection::new(wire, router),
        };
        let answer = client
            .request(Body::HandshakeRequest(options.request()), options.timeout)
            .await;
        client.inner.router.set_welcome(hello::accepted(answer)?);
        Ok(client)
    }

    /// The host's answer to the handshake of the current session.
    pub fn welcome(&self) -> Arc<HandshakeResponse> {
        // `connect` returns a client only after the handshake, so the answer is present.
        self.inner.router.welcome().unwrap_or_default()
    }

    /// Whether the host announced this extension in the handshake, such as `tool/cancel`.
    pub fn announces(&self, extension: &str) -> bool {
        let welcome = self.welcome();
        let lists = welcome
            .accepted_caps
            .iter()
            .filter_map(|entry| entry.metadata.get("extensions"));
        lists
            .filter_map(|list| list.as_array())
            .flatten()
            .any(|word| word.as_str() == Some(extension))
    }

    /// Checks that the host answers.
    pub async fn ping(&self) -> Result<Pong, CallError> {
        match self.request(Body::ping(), PING).await? {
            Body::Pong(pong) => Ok(pong),
            other => Err(unlike("pong", &other)),
        }
    }

    /// Sends a message of any kind and waits for its answer. For capabilities without an API in this crate.
    pub async fn request(&self, body: Body, wait: Duration) -> Result<Body, CallError> {
        let mut ticket = self
            .send(body, wait, None, AbandonedRequestAction::Silent)
            .await?;
        ticket.answer().await.outcome
    }

    /// The host's notices from now on.
    pub fn notices(&self) -> HostNotices {
        self.inner.router.notices()
    }

    /// Counts of events that no call reported.
    pub fn counters(&self) -> ClientCounters {
        let counts = &self.inner.router.counts;
        ClientCounters {
            unreadable: counts.unreadable.load(Ordering::Relaxed),
            unexpected: counts.unexpected.load(Ordering::Relaxed),
            lost_events: counts.lost_events.load(Ordering::Relaxed),
            reconnects: counts.reconnects.load(Ordering::Relaxed),
        }
    }

    /// Whether requests can still be sent. This includes an HTTP host that is unreachable now, because it may come
    /// back.
    pub fn is_open(&self) -> bool {
        self.inner.router.over().is_none()
    }

    /// Closes the connection. Running calls get ten seconds to end.
    pub async fn close(&self) {
        self.close_within(GRACE).await;
    }

    /// Closes the connection. Running calls get `grace` to end; new ones are refused at once.
    ///
    /// Returns when all tasks of this client have ended. A child process that does not exit by itself is ended.
    pub async fn close_within(&self, grace: Duration) {
        let ClientConnection {
            wire,
            router,
            closing,
        } = &*self.inner;
        let _turn = closing.lock().await;
        if router.begin_closing() {
            let polite = async {
                wire.shut_down(grace).await;
                router.emptied().await;
            };
            let _ = timeout(grace + AFTER_GRACE, polite).await;
        }
        wire.finish().await;
        router.end(&CallError::Closed);
    }

    /// A counter that changes whenever a fetched list of tools may be out of date.
    pub(crate) fn lists(&self) -> u64 {
        self.inner.router.lists()
    }

    pub(crate) async fn send(
        &self,
        body: Body,
        wait: Duration,
        event_room: Option<usize>,
        parting: AbandonedRequestAction,
    ) -> Result<OutstandingRequest, CallError> {
        let deadline = Instant::now() + wait;
        let id = Uuid::new_v4();
        let message = Message {
            id: id.simple().to_string(),
            version: None,
            ts: None,
            body,
        };
        let (answer, receiver) = oneshot::channel();
        let (sender, events) = event_room.map(EventSender::new).unzip();
        let ClientConnection { wire, router, .. } = &*self.inner;
        let sent = async {
            let slot = router.slot().await?;
            wire.send(router, id, message, RouterEntry::new(answer, sender, slot))
                .await
        };
        match timeout_at(deadline, sent).await {
            Ok(sent) => sent?,
            Err(_) => {
                return Err(CallError::Timeout {
                    after: wait,
                    taken: false,
                });
            }
        }
        Ok(OutstandingRequest {
            client: self.clone(),
            id,
            answer: Some(receiver),
            events,
            deadline,
            wait,
            parting,
        })
    }

    /// Asks the host to stop a call. `false`: the call was not running.
    pub(crate) async fn cancel(&self, id: Uuid) -> Result<bool, CallError> {
        match self.request(cancel_of(id), PING).await? {
            Body::ToolCancelResponse(answer) => Ok(answer.ok),
            other => Err(unlike("tool/cancel/resp", &other)),
        }
    }

    fn abandon(&self, id: Uuid, parting: AbandonedRequestAction) -> Option<RequestSendProgress> {
        let parting = if self.announces("tool/cancel") {
            parting
        } else {
            AbandonedRequestAction::Silent
        };
        let progress = self.inner.router.abandon(id, parting);
        if let (Some(RequestSendProgress::Taken { .. }), AbandonedRequestAction::Cancel) =
            (progress, parting)
        {
            self.inner.wire.send_and_forget(Message::new(cancel_of(id)));
        }
        progress
    }
}

fn cancel_of(id: Uuid) -> Body {
    Body::ToolCancelRequest(ToolCancelRequest {
        call_id: id.simple().to_string(),
    })
}

/// The error for an answer of the wrong kind.
pub(crate) fn unlike(expected: &str, given: &Body) -> CallError {
    CallError::Malformed {
        reason: format!("it is a `{}` where a `{expected}` should be", given.kind()),
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        if self.router.begin_closing() {
            self.wire.leave();
            self.router.end(&CallError::Closed);
        } else {
            // The client is closed, or the host ended the connection. Tasks remain only if `close` was cancelled.
            self.wire.stop();
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("is_open", &self.is_open())
            .finish_non_exhaustive()
    }
}

/// A sent request: the receiver of its answer, and the action if the caller stops waiting.
pub(crate) struct OutstandingRequest {
    client: Client,
    pub(crate) id: Uuid,
    /// `None` once the answer was received.
    answer: Option<oneshot::Receiver<RequestAnswer>>,
    pub(crate) events: Option<mpsc::Receiver<DeliveredToolEvent>>,
    deadline: Instant,
    wait: Duration,
    parting: AbandonedRequestAction,
}

impl OutstandingRequest {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The next event. `None`: there are no more events, or the deadline has passed.
    pub(crate) async fn event(&mut self) -> Option<DeliveredToolEvent> {
        timeout_at(self.deadline, self.events.as_mut()?.recv())
            .await
            .ok()
            .flatten()
    }

    /// The answer, or an error if the deadline has passed. Can be taken once.
    pub(crate) async fn answer(&mut self) -> RequestAnswer {
        let lost = |error| RequestAnswer {
            outcome: Err(error),
            lost: 0,
        };
        let Some(receiver) = &mut self.answer else {
            return lost(CallError::Closed);
        };
        let answer = timeout_at(self.deadline, receiver).await;
        self.answer = None;
        match answer {
            Ok(answer) => answer.unwrap_or_else(|_| lost(CallError::Closed)),
            Err(_) => {
                let progress = self.client.abandon(self.id, self.parting);
                let taken = progress != Some(RequestSendProgress::OnItsWay);
                lost(CallError::Timeout {
                    after: self.wait,
                    taken,
                })
            }
        }
    }

    /// Stops waiting and lets the request continue.
    pub(crate) fn detach(mut self) {
        self.parting = AbandonedRequestAction::Silent;
    }
}

impl Drop for OutstandingRequest {
    fn drop(&mut self) {
        if self.answer.is_some() {
            self.client.abandon(self.id, self.parting);
        }
    }
}
