//! The agent's end: a connection to a host, over any of three transports.
//!
//! [`Client`] is what all capabilities share; [`ToolApi`](crate::ToolApi) stands on it. A request has one entry in
//! the [router](router::Router) and one answer. Every queue has a bound, and every task of a client ends with it.

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

/// How long a host has to answer a ping.
const PING: Duration = Duration::from_secs(5);
/// How long running calls get when a client is closed, unless told otherwise.
const GRACE: Duration = Duration::from_secs(10);
/// A host that was told to end its calls by then has so much longer to say how they ended.
const AFTER_GRACE: Duration = Duration::from_secs(2);

/// The way to a host.
pub enum HostTransport {
    /// HTTP, with the host's messages as server-sent events. Comes back by itself after breaks.
    Http(HttpHost),
    /// A child process that speaks on stdin and stdout.
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

/// A connection to a host. Clones share it; the last one that goes takes leave of the host in the background, and
/// [`close`](Self::close) does so properly.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientConnection>,
}

struct ClientConnection {
    wire: ClientWire,
    router: Arc<AnswerRouter>,
    /// Held by whoever closes; a second one waits for the first.
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

/// What happened on a connection that no call was told about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientCounters {
    /// Messages and lines that could not be read.
    pub unreadable: u64,
    /// Answers and events that nobody waited for, repeated answers among them.
    pub unexpected: u64,
    /// Events that never reached their reader: dropped by the host, or here for a slow reader.
    pub lost_events: u64,
    /// Streams that broke and came back.
    pub reconnects: u64,
}

impl Client {
    /// Connects and does the handshake.
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

    /// The host's answer to the handshake; to the last one, where the session had to be made anew.
    pub fn welcome(&self) -> Arc<HandshakeResponse> {
        // A client that was handed out has been welcomed.
        self.inner.router.welcome().unwrap_or_default()
    }

    /// Whether the host said in the handshake that it knows this extension, such as `tool/cancel`.
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

    /// Asks whether the host is there.
    pub async fn ping(&self) -> Result<Pong, CallError> {
        match self.request(Body::ping(), PING).await? {
            Body::Pong(pong) => Ok(pong),
            other => Err(unlike("pong", &other)),
        }
    }

    /// Sends a message of any kind and waits for its answer. For capabilities that have no API of their own here.
    pub async fn request(&self, body: Body, wait: Duration) -> Result<Body, CallError> {
        let mut ticket = self
            .send(body, wait, None, AbandonedRequestAction::Silent)
            .await?;
        ticket.answer().await.outcome
    }

    /// What the host says without having been asked, from now on.
    pub fn notices(&self) -> HostNotices {
        self.inner.router.notices()
    }

    /// What happened that no call was told about.
    pub fn counters(&self) -> ClientCounters {
        let counts = &self.inner.router.counts;
        ClientCounters {
            unreadable: counts.unreadable.load(Ordering::Relaxed),
            unexpected: counts.unexpected.load(Ordering::Relaxed),
            lost_events: counts.lost_events.load(Ordering::Relaxed),
            reconnects: counts.reconnects.load(Ordering::Relaxed),
        }
    }

    /// Whether requests can still be sent. A host behind HTTP that cannot be reached may come back, so that counts.
    pub fn is_open(&self) -> bool {
        self.inner.router.over().is_none()
    }

    /// Takes leave of the host. Running calls get ten seconds to end.
    pub async fn close(&self) {
        self.close_within(GRACE).await;
    }

    /// Takes leave of the host. Running calls get so long to end; new ones are refused at once.
    ///
    /// Returns when everything that ran for this client has ended. A child process is waited for, and ended if it
    /// does not end by itself.
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

    /// Counts up whenever a list of tools fetched before may be out of date.
    pub(crate) fn lists(&self) -> u64 {
        self.inner.router.lists()
    }

    /// Puts a request on its way.
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

    /// Asks the host to stop a call. `false`: there was nothing to stop.
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

/// An answer of another kind than was asked for.
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
            // Closed, or ended by the host: what is left to end is a close that was itself given up.
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

/// A request on its way: where its answer will be, and what becomes of it when nobody waits any more.
pub(crate) struct OutstandingRequest {
    client: Client,
    pub(crate) id: Uuid,
    /// Gone once there is an answer.
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

    /// The next event. `None`: no more of them, or it is too late.
    pub(crate) async fn event(&mut self) -> Option<DeliveredToolEvent> {
        timeout_at(self.deadline, self.events.as_mut()?.recv())
            .await
            .ok()
            .flatten()
    }

    /// The answer, or an error when it is too late. Once.
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

    /// Lets the request go on without anybody waiting for it.
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
