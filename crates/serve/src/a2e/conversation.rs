//! The session of one agent: its authentication, its messages and its outbox.

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

/// The time that the agent has to read the answer to a refused handshake.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(30);
/// The time that canceled calls have to answer when a session ends.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// The most requests that handlers other than the host's own tools work on at the same time.
const MAX_HANDLING: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageReceipt {
    /// The message was taken; its answer is or will be in the outbox.
    Taken,
    /// The outbox is full of unread messages, so no answer is possible.
    Flooded,
}

pub(super) struct A2eConversation {
    pub(super) face: Arc<A2eServerFace>,
    pub(super) transport: ConversationTransport,
    pub(super) outbox: Outbox,
    /// The id that the agent uses. Over HTTP it is the only credential of a request, so it is never recorded.
    wire_id: String,
    /// The id on record.
    session_id: SessionId,
    door: Arc<RequestAuthenticator>,
    since: Instant,
    /// Ends the grace period of a leaving agent's calls early.
    hurry: CancellationToken,
    over: CancellationToken,
    /// Permits for requests to handlers other than the host's own tools.
    pub(super) handling: Arc<Semaphore>,
    turned_away: AtomicBool,
    state: Mutex<ConversationState>,
}

struct ConversationState {
    standing: ConversationPhase,
    last_used: Instant,
}

enum ConversationPhase {
    /// The agent is not authenticated yet.
    Stranger,
    /// The agent is admitted.
    Known(NegotiatedSession),
    /// The agent sent `shutdown`: running calls may finish, and new messages are refused.
    Leaving(Arc<Session>),
    /// The agent was refused or has left. Only the pending messages of the outbox are still sent.
    Over,
}

/// The reason why a message was not taken.
pub(super) enum NotTaken {
    Refused(Box<ErrorMessage>),
    /// The outbox is full of unread messages, so no answer is possible.
    Flooded,
}

impl From<ErrorMessage> for NotTaken {
    fn from(error: ErrorMessage) -> Self {
        Self::Refused(Box::new(error))
    }
}

struct NegotiatedSession {
    session: Arc<Session>,
    /// The negotiated capabilities; `None` after a restart, because they are not recorded.
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

    /// Resumes a session of an earlier run of the host. Its agent may have missed the last answers.
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
        // The tools may have changed.
        let _ = self.outbox.push(Message::new(Body::tool_list_changed()));
        self
    }

    /// The agent, if it may send requests.
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

    /// The session, including that of a leaving agent.
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

    /// Whether a session id in a message names this session.
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

    /// Updates the time of the last use. A conversation that is over keeps its time.
    pub(super) fn touch(&self) {
        let mut state = self.state.lock();
        if !matches!(state.standing, ConversationPhase::Over) {
            state.last_used = Instant::now();
        }
    }

    pub(super) fn is_stranger(&self) -> bool {
        matches!(self.state.lock().standing, ConversationPhase::Stranger)
    }

    /// The time since its beginning.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether the agent has left or was never admitted.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state.lock().standing, ConversationPhase::Over)
    }

    /// A text of the agent without secrets and without the session's wire id, which is a credential.
    pub(super) fn recordable(&self, text: &str) -> String {
        self.face
            .host
            .redacted(text)
            .replace(&self.wire_id, self.session_id.as_str())
    }

    /// The time without a reader, a request or a running call.
    pub(super) fn idle_time(&self) -> Duration {
        if self.outbox.is_in_use() {
            Duration::ZERO
        } else {
            self.state.lock().last_used.elapsed()
        }
    }

    /// Handles a message or the error of an unreadable one. Over HTTP, a call is on record when this returns.
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

    /// Sends an error to the sender of a message.
    pub(super) fn refuse(&self, id: String, error: ErrorMessage) -> MessageReceipt {
        let req_id = if error.req_id.is_empty() {
            id
        } else {
            error.req_id.clone()
        };
        self.say(Body::Error(error.to(req_id)))
    }

    /// Passes a message to the capabilities, if the sender is admitted.
    async fn hand_on(self: &Arc<Self>, message: Message) -> Result<(), NotTaken> {
        let Some(peer) = self.peer() else {
            return match self.is_stranger() {
                true => Err(ErrorMessage::new(
                    ErrorCode::Unauthorized,
                    "a handshake is required first",
                )
                .into()),
                // The request is running and its answer will follow. An error now would count as that answer.
                false
                    if self.outbox.is_under_way(&message.id)
                        || self.outbox.is_under_way(&others_key(&message.id)) =>
                {
                    Ok(())
                }
                false => {
                    let reason = "this session is over and accepts no more messages";
                    Err(ErrorMessage::new(ErrorCode::RuntimeError, reason).into())
                }
            };
        };
        if peer.session.is_ended() {
            // The session was closed in another way, for example by an operator.
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
            // The text may repeat parts of an unreadable message, which may hold secrets.
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
        // An admitted agent stays admitted: only this handshake failed.
        if !ok && self.is_stranger() {
            self.end();
        }
        said
    }

    /// Whether a handshake had a wrong token since the last call of this function.
    pub(super) fn was_turned_away(&self) -> bool {
        self.turned_away.swap(false, Ordering::Relaxed)
    }

    /// Admits the agent, or returns the reason of the refusal.
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
            // A second handshake of the same agent changes nothing.
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
                tracing::warn!(%error, "a session for an agent could not be opened");
                return Err(RefusalReason::ServerError);
            }
        };
        let stay = session.stay();
        let mut state = self.state.lock();
        // Opening a session waits for the journal, and the lock cannot be held meanwhile. Another handshake on the same
        // connection may have been admitted in between, so the phase is checked a second time. Without this check the
        // later handshake would replace the principal of the earlier one, whose calls are running.
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
            // Another handshake came first.
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
            // Idle sessions give up their place. They are resumed from the record when they are used again.
            Err(SessionError::Full(_)) if self.face.sessions.park_one(&principal) => open().await,
            opened => opened,
        }
    }

    /// Ends the conversation on the agent's request. New calls are refused, running calls finish or are stopped, every
    /// call is answered, then the stream ends.
    fn leave(self: &Arc<Self>, request: Shutdown) {
        let mut state = self.state.lock();
        let session = match &state.standing {
            ConversationPhase::Known(known) => Arc::clone(&known.session),
            ConversationPhase::Stranger => {
                drop(state);
                return self.end();
            }
            // The agent is leaving already, or was never admitted.
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
                tracing::error!(
                    "some calls of a closed session did not stop after their cancellation"
                );
            }
            leaving.end();
        });
    }

    /// Ends the conversation of an agent that is gone: its calls are stopped at once.
    pub(super) fn hang_up(self: &Arc<Self>) {
        self.hurry.cancel();
        self.leave(Shutdown {
            timeout: Duration::ZERO,
        });
    }

    /// Sends a notice of a changed list, if the agent asked for such notices.
    pub(super) fn tell_of_changed_list(&self) {
        if self.wants(LIST_CHANGED) {
            let _ = self.outbox.push(Message::new(Body::tool_list_changed()));
        }
    }

    /// Sends notices of changed lists until the session ends. For sessions outside of the session table.
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

    /// Refuses further messages, sends the pending ones, and then ends the stream.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.standing = ConversationPhase::Over;
        state.last_used = Instant::now();
        drop(state);
        self.outbox.close();
        self.over.cancel();
    }
}
