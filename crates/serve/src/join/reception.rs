//! The host's end: it admits joining processes and serves their agents.

use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf},
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolpost_config::TokenConfig;
use toolpost_model::{Principal, PrincipalRole};

use super::{
    connection::HostConnection,
    request::{JoinTicket, PROTOCOL, ROUTE, SettingsRefusal, StdioFace},
    settings::{StartSettings, digest},
};
use crate::{
    a2e,
    auth::RequestAuthenticator,
    http::{HttpProblem, ServerStatus, SocketPeer, read_body},
    mcp,
};

const MOST_JOINED: usize = 256;
/// The longest ticket, in bytes. A ticket holds about thirty digests.
const LONGEST_TICKET: usize = 64 << 10;
/// The buffer between a host and its own relay, in bytes.
const PIPE: usize = 64 << 10;

/// Admits joining processes and serves their agents.
pub(crate) struct JoinReception {
    pub(crate) a2e: Arc<a2e::A2eServerFace>,
    pub(crate) mcp: Arc<mcp::McpServerFace>,
    pub(crate) about: Arc<ServerStatus>,
    pub(crate) settings: StartSettings,
    pub(crate) tokens: Vec<TokenConfig>,
    /// The token that agents over stdio must show, if one is set.
    pub(crate) token: Option<String>,
    /// The shutdown of the host: conversations stop reading, and running calls can still be answered.
    leaving: CancellationToken,
    conversations: TaskTracker,
    places: Arc<Semaphore>,
}

impl JoinReception {
    pub(crate) fn new(
        a2e: Arc<a2e::A2eServerFace>,
        mcp: Arc<mcp::McpServerFace>,
        about: Arc<ServerStatus>,
        settings: StartSettings,
        tokens: Vec<TokenConfig>,
        token: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            a2e,
            mcp,
            about,
            settings,
            tokens,
            token,
            leaving: CancellationToken::new(),
            conversations: TaskTracker::new(),
            places: Arc::new(Semaphore::new(MOST_JOINED)),
        })
    }

    pub(crate) fn joined(&self) -> usize {
        self.conversations.len()
    }

    /// Admits no further agents, and stops reading from the joined ones.
    pub(crate) fn leave(&self) {
        self.leaving.cancel();
        self.conversations.close();
    }

    /// Waits until all conversations have written their last messages.
    pub(crate) async fn left(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.conversations.wait()).await;
    }

    /// A connection for the agent of this process.
    pub(crate) fn connect(
        self: &Arc<Self>,
        face: StdioFace,
        role: PrincipalRole,
        session: Option<String>,
    ) -> HostConnection {
        let (near, far) = tokio::io::duplex(PIPE);
        let agent = JoinedAgent {
            face,
            role,
            session,
            token: self.token.clone(),
        };
        let reception = Arc::clone(self);
        self.conversations
            .spawn(async move { reception.converse(agent, far).await });
        HostConnection::new(near)
    }

    fn admit(&self, ticket: &JoinTicket) -> Result<OwnedSemaphorePermit, JoinRefusal> {
        if self.leaving.is_cancelled() {
            return Err(JoinRefusal::Leaving);
        }
        // A joined agent works with the rules, tools and limits of this host; the configuration of its own process has
        // no effect. With different settings, the operator of that process would get other permissions than configured,
        // so every difference is refused and named.
        let own = self.settings.digests(&self.about.loaded.config());
        let mut differing = own.differing(&ticket.settings);
        if ticket.version != env!("CARGO_PKG_VERSION") {
            differing.insert(0, "version".to_owned());
        }
        let needed = self.token.as_ref().map(digest);
        // A token of a host on the network is meant for callers on the network. A joining agent needs it only if its
        // own settings require a token.
        let is_optional = ticket.token.is_none() && self.about.address.is_some();
        if ticket.token != needed && !is_optional && !differing.iter().any(|name| name == "tokens")
        {
            differing.push("tokens".to_owned());
        }
        if !differing.is_empty() {
            return Err(JoinRefusal::Differing(differing));
        }
        Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| JoinRefusal::Full)
    }

    /// Serves a joined agent until the agent or the host leaves.
    async fn converse(
        &self,
        agent: JoinedAgent,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) {
        let (reader, writer) = tokio::io::split(stream);
        let over = CancellationToken::new();
        let runtime = Handle::current();
        let input = JoinedInput {
            reader,
            leaving: self.leaving.clone(),
            over: over.clone(),
            runtime: runtime.clone(),
        };
        let output = JoinedOutput {
            writer,
            over: over.clone(),
            runtime,
        };
        match agent.face {
            StdioFace::Mcp => {
                let principal = match agent.role {
                    PrincipalRole::Agent => Principal::agent("stdio"),
                    PrincipalRole::Operator => Principal::operator("stdio"),
                };
                mcp::converse(&self.mcp, principal, input, output).await;
            }
            StdioFace::A2e => {
                let door = Arc::new(RequestAuthenticator::of_stdio(
                    &self.tokens,
                    agent.token.as_deref(),
                ));
                let a2e = &self.a2e;
                let leaving = &self.leaving;
                a2e::converse_joined(a2e, &door, agent.session, leaving, input, output).await;
            }
        }
        // Ends the threads of both directions, and with them the connection.
        over.cancel();
    }
}

/// A joined agent, as the host fixed it before the agent's first byte.
struct JoinedAgent {
    face: StdioFace,
    role: PrincipalRole,
    session: Option<String>,
    token: Option<String>,
}

enum JoinRefusal {
    Leaving,
    Full,
    Differing(Vec<String>),
}

impl IntoResponse for JoinRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::Leaving => HttpProblem::unavailable("shutting_down", "the host is shutting down")
                .into_response(),
            Self::Full => {
                let message =
                    format!("{MOST_JOINED} agents have joined this host, which is the limit");
                HttpProblem::conflict("too_many_joined", message).into_response()
            }
            Self::Differing(differing) => (
                StatusCode::PRECONDITION_FAILED,
                Json(SettingsRefusal { differing }),
            )
                .into_response(),
        }
    }
}

/// The route on the unix socket.
pub(crate) fn routes(reception: Arc<JoinReception>) -> Router {
    Router::new().route(ROUTE, post(join)).with_state(reception)
}

async fn join(State(reception): State<Arc<JoinReception>>, mut request: Request) -> Response {
    // Only connections of the unix socket have a peer.
    let Some(peer) = request.extensions().get::<SocketPeer>().copied() else {
        return HttpProblem::not_found("no_such_route", "this path does not exist").into_response();
    };
    if !peer.is_own_user() {
        return HttpProblem::forbidden(
            "other_user",
            "only processes of the host's own user may join",
        )
        .into_response();
    }
    let Some(upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        return HttpProblem::bad_request(
            "no_upgrade",
            format!("the request must upgrade to `{PROTOCOL}`"),
        )
        .into_response();
    };
    let body = match read_body(request.into_body(), LONGEST_TICKET).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let ticket = serde_json::from_slice::<JoinTicket>(&body)
        .ok()
        .filter(JoinTicket::has_plain_session);
    let Some(ticket) = ticket else {
        return HttpProblem::bad_request("bad_ticket", "the body is not a ticket of this version")
            .into_response();
    };
    let place = match reception.admit(&ticket) {
        Ok(place) => place,
        Err(refused) => return refused.into_response(),
    };
    let token = ticket.token.as_ref().and(reception.token.clone());
    let agent = JoinedAgent {
        face: ticket.face,
        role: ticket.role,
        session: ticket.session,
        token,
    };
    let conversations = reception.conversations.clone();
    conversations.spawn(async move {
        match upgrade.await {
            Ok(stream) => reception.converse(agent, TokioIo::new(stream)).await,
            Err(error) => tracing::debug!(%error, "a process that joined disconnected"),
        }
        drop(place);
    });
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(PROTOCOL)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

/// The agent's input, for a reading thread. It ends when the host leaves.
struct JoinedInput<S> {
    reader: ReadHalf<S>,
    leaving: CancellationToken,
    over: CancellationToken,
    runtime: Handle,
}

impl<S: AsyncRead> Read for JoinedInput<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                // An error and not the end of the input: with a regular end, the beginning of an incomplete line would
                // be handled as a whole line. The relay sends the whole line to the next host.
                () = self.leaving.cancelled() => Err(io::ErrorKind::ConnectionAborted.into()),
                () = self.over.cancelled() => Err(io::ErrorKind::ConnectionAborted.into()),
                read = self.reader.read(buffer) => read,
            }
        })
    }
}

/// The agent's output, for a writing thread.
struct JoinedOutput<S> {
    writer: WriteHalf<S>,
    over: CancellationToken,
    runtime: Handle,
}

impl<S: AsyncWrite> Write for JoinedOutput<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                written = self.writer.write(bytes) => written,
                () = self.over.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                flushed = self.writer.flush() => flushed,
                () = self.over.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            }
        })
    }
}
