//! One agent's session: who it is, what it may say, and what it is still to hear.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use toolpost_a2e::{
    Body, CapabilityName, ErrorCode, ErrorMessage, HandshakeRequest, HandshakeResponse, Message,
    Pong, RefusalReason, Shutdown,
};
use toolpost_core::{Session, SessionError, SessionGuard};
use toolpost_model::{Principal, SessionId};

pub(super) use super::transport::ConversationTransport;
use super::{
    A2eServerFace,
    capability::{A2ePeer, dispatch, nobody_takes, others_key},
    outbox::Outbox,
    plugin_messages,
    tools::LIST_CHANGED,
};
use crate::auth::{AdmittedCaller, RequestAuthenticator};

/// How long the reply to a refused handshake waits to be read.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(30);
/// How long canceled calls may take to be answered when a session ends.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Requests that may be handled at the same time by capabilities other than the host's own tools.
const MAX_HANDLING: usize = 64;

/// What became of something that was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageReceipt {
    /// It was taken; whatever is to be said about it is in the outbox.
    Taken,
    /// The outbox is full of things the peer has not read, so it cannot even be told.
    Flooded,
}

pub(super) struct A2eConversation {
    pub(super) face: Arc<A2eServerFace>,
    pub(super) transport: ConversationTransport,
    pub(super) outbox: Outbox,
    /// The id the agent knows. Over HTTP it is all that a request has to show, so it is never recorded.
    wire_id: String,
    /// The id in the host's records.
    session_id: SessionId,
    door: Arc<RequestAuthenticator>,
    since: Instant,
    /// Cut short what an agent that leaves has allowed its calls.
    hurry: CancellationToken,
    over: CancellationToken,
    /// Requests that capabilities other than the host's own tools are handling.
    pub(super) handling: Arc<Semaphore>,
    turned_away: AtomicBool,
    state: Mutex<ConversationState>,
}

struct ConversationState {
    standing: ConversationPhase,
    last_used: Instant,
}

/// Where the agent stands with the host.
enum ConversationPhase {
    /// Nobody knows who it is.
    Stranger,
    /// It came in.
    Known(NegotiatedSession),
    /// It said goodbye: what runs may finish, nothing more is taken.
    Leaving(Arc<Session>),
    /// It was refused, or has left: only what waits in the outbox is still given out.
    Over,
}

/// Why a message was not taken.
pub(super) enum NotTaken {
    Refused(Box<ErrorMessage>),
    /// The sender cannot even be told: its outbox is full.
    Flooded,
}

impl From<ErrorMessage> for NotTaken {
    fn from(error: ErrorMessage) -> Self {
        Self::Refused(Box::new(error))
    }
}

struct NegotiatedSession {
    session: Arc<Session>,
    /// What was negotiated; `None` after a restart, when nobody remembers.
    capabilities: Option<Vec<CapabilityName>>,
    extensions: Vec<String>,
    _stay: SessionGuard,
}

impl A2eConversation {
    pub(super) fn new(
        face: &Arc<A2eServerFace>,
        transport: ConversationTransport,
        door: &Arc<RequestAuthenticator>,
        wire_id: String,
        session_id: SessionId,
    ) -> Arc<Self> {
        let since = Instant::now();
        let outbox = Outbox::new(transport.readers(), face.next_numbers());
        let state = Mutex::new(ConversationState {
            standing: ConversationPhase::Stranger,
            last_used: since,
        });
        let face = Arc::clone(face);
        let door = Arc::clone(door);
        let hurry = CancellationToken::new();
        let over = CancellationToken::new();
        let handling = Arc::new(Semaphore::new(MAX_HANDLING));
        Arc::new(Self {
            face,
            transport,
            outbox,
            wire_id,
            session_id,
            door,
            since,
            hurry,
            over,
            handling,
            turned_away: AtomicBool::new(false),
            state,
        })
    }

    /// A session of an earlier life of the host. Its agent may not have heard the last answers.
    pub(super) fn resumed(self: Arc<Self>, session: Arc<Session>) -> Arc<Self> {
        let unheard = self.face.host.unheard(session.id());
        self.outbox
            .remember(unheard.iter().map(|id| id.as_str().to_owned()));
        let stay = session.stay();
        let known = NegotiatedSession {
            session,
            capabilities: None,
            extensions: vec![LIST_CHANGED.to_owned()],
            _stay: stay,
        };
        self.state.lock().standing = ConversationPhase::Known(known);
        self.face.know(&self.session_id, &self);
        // The tools may be others than before.
        let _ = self.outbox.push(Message::new(Body::tool_list_changed()));
        self
    }

    /// Who talks, while it may.
    pub(super) fn peer(self: &Arc<Self>) -> Option<A2ePeer> {
        match &self.state.lock().standing {
            ConversationPhase::Known(known) => Some(A2ePeer {
                conversation: Arc::clone(self),
                session: Arc::clone(&known.session),
            }),
            ConversationPhase::Stranger
            | ConversationPhase::Leaving(_)
            | ConversationPhase::Over => None,
        }
    }

    /// The session, also of an agent that is leaving.
    pub(super) fn session(&self) -> Option<Arc<Session>> {
        match &self.state.lock().standing {
            ConversationPhase::Known(NegotiatedSession { session, .. })
            | ConversationPhase::Leaving(session) => Some(Arc::clone(session)),
            ConversationPhase::Stranger | ConversationPhase::Over => None,
        }
    }

    pub(super) fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Whether a session id in a message means this session.
    pub(super) fn is_called(&self, id: &str) -> bool {
        id.is_empty() || id == self.wire_id || id == self.session_id.as_str()
    }

    pub(super) fn wants(&self, extension: &str) -> bool {
        match &self.state.lock().standing {
            ConversationPhase::Known(known) => {
                known.extensions.iter().any(|asked| asked == extension)
            }
            ConversationPhase::Stranger
            | ConversationPhase::Leaving(_)
            | ConversationPhase::Over => false,
        }
    }

    /// Notes that somebody uses it. One that is over stays as old as it is.
    pub(super) fn touch(&self) {
        let mut state = self.state.lock();
        if !matches!(state.standing, ConversationPhase::Over) {
            state.last_used = Instant::now();
        }
    }

    pub(super) fn is_stranger(&self) -> bool {
        matches!(self.state.lock().standing, ConversationPhase::Stranger)
    }

    /// How long ago it began.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether it has left, or was never let in.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state.lock().standing, ConversationPhase::Over)
    }

    /// A text of the agent's own as it may be written down: without secrets, and without the id that is as good as
    /// one.
    pub(super) fn recordable(&self, text: &str) -> String {
        self.face
            .host
            .redacted(text)
            .replace(&self.wire_id, self.session_id.as_str())
    }

    /// How long nobody read, asked or waited for anything.
    pub(super) fn idle_time(&self) -> Duration {
        if self.outbox.is_in_use() {
            Duration::ZERO
        } else {
            self.state.lock().last_used.elapsed()
        }
    }

    /// Takes a message, or what could not be read as one. Over HTTP a call is on record when this returns.
    pub(super) async fn receive(
        self: &Arc<Self>,
        read: Result<Message, Box<ErrorMessage>>,
    ) -> MessageReceipt {
        let message = match read {
            Ok(message) => message,
            Err(error) => return self.say(Body::Error(*error)),
        };
        let id = message.id.clone();
        let taken = match message.body {
            Body::HandshakeRequest(request) => {
                let version = message.version.unwrap_or_default();
                return self.handshake(id, &version, request).await;
            }
            Body::Ping(_) => {
                let uptime_seconds = self.since.elapsed().as_secs_f64();
                return self.say(Body::Pong(Pong {
                    req_id: id,
                    uptime_seconds,
                }));
            }
            Body::Shutdown(request) => {
                self.leave(request);
                return MessageReceipt::Taken;
            }
            _ => self.hand_on(message).await,
        };
        match taken {
            Ok(()) => MessageReceipt::Taken,
            Err(NotTaken::Flooded) => MessageReceipt::Flooded,
            Err(NotTaken::Refused(error)) => self.refuse(id, *error),
        }
    }

    /// Tells the sender of a message what is wrong with it.
    pub(super) fn refuse(&self, id: String, error: ErrorMessage) -> MessageReceipt {
        let req_id = if error.req_id.is_empty() {
            id
        } else {
            error.req_id.clone()
        };
        self.say(Body::Error(error.to(req_id)))
    }

    /// To the capabilities, where the sender may talk to them.
    async fn hand_on(self: &Arc<Self>, message: Message) -> Result<(), NotTaken> {
        let Some(peer) = self.peer() else {
            return match self.is_stranger() {
                true => Err(
                    ErrorMessage::new(ErrorCode::Unauthorized, "a handshake comes first").into(),
                ),
                // The answer is on its way, and an error in its place would be taken for it.
                false
                    if self.outbox.is_under_way(&message.id)
                        || self.outbox.is_under_way(&others_key(&message.id)) =>
                {
                    Ok(())
                }
                false => {
                    let reason = "this session is over and takes no more";
                    Err(ErrorMessage::new(ErrorCode::RuntimeError, reason).into())
                }
            };
        };
        if peer.session.is_ended() {
            // Closed by another way, such as an operator's.
            self.refuse(
                message.id,
                ErrorMessage::new(ErrorCode::RuntimeError, "this session was closed"),
            );
            self.end();
            return Ok(());
        }
        self.touch();
        let kind = message.body.kind();
        let first = self
            .face
            .registry
            .takers(kind)
            .first()
            .map(|capability| capability.name());
        let of_plugins = self.face.registry.of_plugins(kind).cloned();
        let is_own = first.is_some();
        let Some(name) = first.or(of_plugins) else {
            return Err(nobody_takes(kind).into());
        };
        if self.face.settings.require_negotiated && !self.has_negotiated(&name) {
            let reason = format!(
                "the capability `{}` was not negotiated in the handshake",
                name.as_str()
            );
            return Err(ErrorMessage::new(ErrorCode::CapabilityMissing, reason).into());
        }
        if is_own {
            dispatch(&peer, message).await
        } else {
            plugin_messages::take(&peer, message).await
        }
    }

    fn has_negotiated(&self, name: &CapabilityName) -> bool {
        match &self.state.lock().standing {
            ConversationPhase::Known(known) => known
                .capabilities
                .as_ref()
                .is_none_or(|accepted| accepted.contains(name)),
            ConversationPhase::Stranger
            | ConversationPhase::Leaving(_)
            | ConversationPhase::Over => false,
        }
    }

    fn say(&self, mut body: Body) -> MessageReceipt {
        if let Body::Error(error) = &mut body {
            // It may repeat what could not be read.
            error.message = self.face.host.redacted(&error.message).into_owned();
        }
        let message = Message::new(body);
        let said = match self.is_stranger() {
            true => self.outbox.push_to_stranger(message),
            false => self.outbox.push(message),
        };
        match said {
            Ok(()) => MessageReceipt::Taken,
            Err(_) => MessageReceipt::Flooded,
        }
    }

    async fn handshake(
        self: &Arc<Self>,
        id: String,
        version: &str,
        request: HandshakeRequest,
    ) -> MessageReceipt {
        let entered = match version.split('.').next() {
            Some("" | "1") | None => self.enter(&request).await,
            Some(_) => Err(RefusalReason::VersionMismatch),
        };
        let (ok, reason) = match entered {
            Ok(()) => (true, ""),
            Err(reason) => (false, reason.as_str()),
        };
        let accepted_caps = if ok {
            self.face.registry.negotiate(&request.agent_caps)
        } else {
            Vec::new()
        };
        if let (true, ConversationPhase::Known(known)) = (ok, &mut self.state.lock().standing) {
            known.capabilities = Some(
                accepted_caps
                    .iter()
                    .map(|entry| entry.capability.clone())
                    .collect(),
            );
            known.extensions = request.extensions;
        }
        let said = self.say(Body::HandshakeResponse(HandshakeResponse {
            req_id: id,
            session_id: self.wire_id.clone(),
            accepted_caps,
            max_parallel: i64::try_from(self.face.settings.max_parallel).unwrap_or(i64::MAX),
            ok,
            reason: reason.to_owned(),
            host_session_id: ok.then(|| self.session_id.to_string()),
            host_id: self.face.settings.host_id.clone(),
        }));
        // An agent that was let in before stays in: only this handshake was wrong.
        if !ok && self.is_stranger() {
            self.end();
        }
        said
    }

    /// Whether a handshake brought a wrong token since this was last asked.
    pub(super) fn was_turned_away(&self) -> bool {
        self.turned_away.swap(false, Ordering::Relaxed)
    }

    /// Lets the agent in, or says why not.
    async fn enter(self: &Arc<Self>, request: &HandshakeRequest) -> Result<(), RefusalReason> {
        let Some(admitted) = self.door.admits(&request.auth_token) else {
            self.turned_away.store(true, Ordering::Relaxed);
            return Err(match request.auth_token.is_empty() {
                true => RefusalReason::TokenMissing,
                false => RefusalReason::AuthFailed,
            });
        };
        match &self.state.lock().standing {
            ConversationPhase::Stranger => {}
            // Again by the same agent: nothing changes.
            ConversationPhase::Known(known) if *known.session.principal() == admitted.principal => {
                return Ok(());
            }
            ConversationPhase::Known(_) => return Err(RefusalReason::AuthFailed),
            ConversationPhase::Leaving(_) | ConversationPhase::Over => {
                return Err(RefusalReason::ServerError);
            }
        }
        let session = match self.open(admitted, request).await {
            Ok(session) => session,
            Err(SessionError::SurfaceTooLarge(_)) => return Err(RefusalReason::SurfaceTooLarge),
            Err(error) => {
                tracing::warn!(%error, "an agent could not be let in");
                return Err(RefusalReason::ServerError);
            }
        };
        let stay = session.stay();
        let mut state = self.state.lock();
        match &state.standing {
            ConversationPhase::Stranger => {
                let known = NegotiatedSession {
                    session,
                    capabilities: None,
                    extensions: Vec::new(),
                    _stay: stay,
                };
                state.standing = ConversationPhase::Known(known);
                self.face.know(&self.session_id, self);
                Ok(())
            }
            // Another handshake was quicker.
            ConversationPhase::Known(known) if known.session.principal() == session.principal() => {
                Ok(())
            }
            ConversationPhase::Known(_)
            | ConversationPhase::Leaving(_)
            | ConversationPhase::Over => Err(RefusalReason::AuthFailed),
        }
    }

    async fn open(
        &self,
        admitted: AdmittedCaller,
        request: &HandshakeRequest,
    ) -> Result<Arc<Session>, SessionError> {
        let (
            host,
            AdmittedCaller {
                principal,
                credential,
            },
        ) = (&self.face.host, admitted);
        if self.transport == ConversationTransport::Rejoined {
            let is_own = |owner: &Principal, mark: Option<&str>| {
                *owner == principal && mark == credential.as_deref()
            };
            return host.resume_session(&self.session_id, is_own).await;
        }
        let surface = request.surface.clone().unwrap_or_default();
        let open = || {
            let id = self.session_id.clone();
            host.open_session_as(id, principal.clone(), surface.clone(), credential.clone())
        };
        match open().await {
            // Sessions that nobody reads give way; they come back from the record when they are used again.
            Err(SessionError::Full(_)) if self.face.sessions.park_one(&principal) => open().await,
            opened => opened,
        }
    }

    /// The agent leaves: no more calls, the running ones finish or are stopped, all are answered, then the
    /// stream ends.
    fn leave(self: &Arc<Self>, request: Shutdown) {
        let mut state = self.state.lock();
        let session = match &state.standing {
            ConversationPhase::Known(known) => Arc::clone(&known.session),
            ConversationPhase::Stranger => {
                drop(state);
                return self.end();
            }
            // It is leaving, or was never let in.
            ConversationPhase::Leaving(_) | ConversationPhase::Over => return,
        };
        state.standing = ConversationPhase::Leaving(Arc::clone(&session));
        drop(state);
        let leaving = Arc::clone(self);
        tokio::spawn(async move {
            let in_time = tokio::select! {
                () = leaving.outbox.settled() => true,
                () = tokio::time::sleep(request.timeout) => false,
                () = leaving.hurry.cancelled() => false,
            };
            if let Err(error) = leaving.face.host.close_session(&session).await {
                tracing::warn!(%error, "a session could not be closed on record");
            }
            if !in_time
                && tokio::time::timeout(LAST_ANSWERS, leaving.outbox.settled())
                    .await
                    .is_err()
            {
                tracing::error!("some calls of a closed session did not stop when told to");
            }
            leaving.end();
        });
    }

    /// The other end is gone for good: what runs for it stops.
    pub(super) fn hang_up(self: &Arc<Self>) {
        self.hurry.cancel();
        self.leave(Shutdown {
            timeout: Duration::ZERO,
        });
    }

    /// For agents that asked to be told.
    pub(super) fn tell_of_changed_list(&self) {
        if self.wants(LIST_CHANGED) {
            let _ = self.outbox.push(Message::new(Body::tool_list_changed()));
        }
    }

    /// Tells of changed lists as long as the session lasts. For sessions that no table keeps.
    pub(super) fn watch_list(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        let mut changes = self.face.host.changes();
        let over = self.over.clone();
        tokio::spawn(async move {
            while let Some(Ok(())) = over.run_until_cancelled(changes.changed()).await {
                let Some(session) = session.upgrade() else {
                    return;
                };
                session.tell_of_changed_list();
            }
        });
    }

    /// Nothing more is taken; what waits is given out, and then the stream ends.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.standing = ConversationPhase::Over;
        state.last_used = Instant::now();
        drop(state);
        self.outbox.close();
        self.over.cancel();
    }
}
