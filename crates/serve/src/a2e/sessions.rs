//! The HTTP sessions of agents: found by an id that only the agent has, limited in number, and removed when idle.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use toolpost_core::SessionError;
use toolpost_model::{Principal, SessionId};
use uuid::Uuid;

use super::{
    A2eServerFace,
    conversation::{A2eConversation, ConversationTransport, LAST_WORDS},
};
use crate::auth::RequestAuthenticator;

/// The most sessions without a handshake. Every client can open one, so a new one replaces the oldest.
const MAX_STRANGERS: usize = 256;
/// The time that a client has for its handshake.
const STRANGER_PATIENCE: Duration = Duration::from_secs(60);
/// The interval of the search for idle sessions.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// The idle time after which a session may give its place to another one.
const PARKED_AFTER: Duration = Duration::from_secs(60);
/// The most sessions that gave up their place and may return.
const MAX_PARKED: usize = 4_096;

#[derive(Default)]
pub(super) struct A2eHttpSessions {
    open: Mutex<HashMap<String, Arc<A2eConversation>>>,
    parked: Mutex<HashSet<SessionId>>,
}

impl A2eHttpSessions {
    fn known(&self, wire_id: &str) -> Option<Arc<A2eConversation>> {
        let found = self.open.lock().get(wire_id).cloned();
        // A session that was requested must not be parked in the next moment.
        found.inspect(|session| session.touch())
    }

    /// Removes finished sessions, and ends sessions that were idle for too long.
    pub(super) fn sweep(&self, session_idle: Duration) {
        self.open.lock().retain(|_, session| {
            let idle = session.idle_time();
            if session.is_stranger() {
                // A connected stream does not extend this time: without a handshake it has no purpose.
                let stays = session.age() < STRANGER_PATIENCE;
                if !stays {
                    session.end();
                }
                return stays;
            }
            if session.is_over() {
                return idle < LAST_WORDS;
            }
            if session.session().is_some_and(|session| session.is_ended()) {
                session.end();
            } else if idle >= session_idle {
                // The session stays in the table until its end is recorded. Removed earlier, it could be resumed from
                // the record in between.
                session.hang_up();
            }
            true
        });
    }

    /// Removes the session that was idle for the longest time, preferably one of the same principal. `false`: all are
    /// in use.
    pub(super) fn park_one(&self, principal: &Principal) -> bool {
        let mut open = self.open.lock();
        let unused = open.iter().filter_map(|(id, known)| {
            let session = known.session()?;
            let idle = known.idle_time();
            let may_go = idle >= PARKED_AFTER && known.outbox.is_empty();
            may_go.then(|| {
                (
                    (session.principal() == principal, idle),
                    id.clone(),
                    session.id().clone(),
                )
            })
        });
        let Some((_, wire_id, session_id)) = unused.max_by_key(|(rank, ..)| *rank) else {
            return false;
        };
        open.remove(&wire_id);
        let mut parked = self.parked.lock();
        if parked.len() >= MAX_PARKED {
            parked.clear();
        }
        parked.insert(session_id);
        true
    }

    fn is_parked(&self, id: &SessionId) -> bool {
        self.parked.lock().contains(id)
    }

    pub(super) fn tell_of_changed_list(&self) {
        self.open
            .lock()
            .values()
            .for_each(|session| session.tell_of_changed_list());
    }

    pub(super) fn close_all(&self) {
        // The table is emptied, because the face and its sessions refer to each other and would never be freed.
        std::mem::take(&mut *self.open.lock())
            .values()
            .for_each(|session| session.outbox.close());
    }
}

/// The id on record. It is a hash, because the wire id is a credential that must not be recorded.
fn recorded(wire_id: &str) -> SessionId {
    let hash = Sha256::digest(wire_id.as_bytes());
    SessionId::new(format!("a2e-{}", const_hex::encode(&hash[..16])))
}

/// Opens a session without a handshake.
pub(super) fn open(face: &Arc<A2eServerFace>, door: &Arc<RequestAuthenticator>) -> String {
    // 122 random bits: later requests are authenticated by this id.
    let wire_id = Uuid::new_v4().simple().to_string();
    let session_id = recorded(&wire_id);
    let conversation = A2eConversation::new(
        face,
        ConversationTransport::Http,
        door,
        wire_id.clone(),
        session_id,
    );
    let mut open = face.sessions.open.lock();
    let strangers = open.iter().filter(|(_, session)| session.is_stranger());
    if strangers.clone().count() >= MAX_STRANGERS {
        let oldest = strangers
            .max_by_key(|(_, session)| session.age())
            .map(|(id, _)| id.clone());
        if let Some(oldest) = oldest.and_then(|id| open.remove(&id)) {
            oldest.end();
        }
    }
    open.insert(wire_id.clone(), conversation);
    wire_id
}

pub(super) enum NoSession {
    Unknown,
    /// The session may exist, but there is no room for it, or the journal cannot be read.
    NotNow,
}

/// Finds the session of an id, in memory, or on record from before a restart or a long pause.
pub(super) async fn find(
    face: &Arc<A2eServerFace>,
    door: &Arc<RequestAuthenticator>,
    wire_id: &str,
) -> Result<Arc<A2eConversation>, NoSession> {
    if let Some(found) = face.sessions.known(wire_id) {
        return if found.is_over() && found.outbox.is_over() {
            Err(NoSession::Unknown)
        } else {
            Ok(found)
        };
    }
    let session_id = recorded(wire_id);
    let limits = face.host.limits();
    // A session that this run has not used was last used before the run began, at the latest when the previous host
    // ended.
    let unused = face.since.elapsed() + face.away;
    if unused > limits.session_idle && !face.sessions.is_parked(&session_id) {
        return Err(NoSession::Unknown);
    }
    // The operator may have revoked the token since then.
    let resumed = face
        .host
        .resume_session(&session_id, |owner, credential| {
            door.still_admits(owner, credential)
        })
        .await;
    let session = match resumed {
        Ok(session) => session,
        Err(SessionError::Full(_) | SessionError::Journal(_)) => return Err(NoSession::NotNow),
        Err(
            SessionError::Unknown(_) | SessionError::Default | SessionError::SurfaceTooLarge(_),
        ) => {
            return Err(NoSession::Unknown);
        }
    };
    // Resuming waits for the journal, so two requests may resume the session at the same time. The entry is made under
    // the lock and the second request gets the conversation of the first. Two conversations would deliver the missed
    // answers twice and share one session with two outboxes.
    Ok(match face.sessions.open.lock().entry(wire_id.to_owned()) {
        Entry::Occupied(known) => Arc::clone(known.get()),
        Entry::Vacant(place) => {
            face.sessions.parked.lock().remove(&session_id);
            let resumed = A2eConversation::new(
                face,
                ConversationTransport::Http,
                door,
                wire_id.to_owned(),
                session_id,
            );
            Arc::clone(place.insert(resumed.resumed(session)))
        }
    })
}

/// Removes a session that is over and fully read.
pub(super) fn forget(face: &A2eServerFace, conversation: &Arc<A2eConversation>) {
    face.sessions
        .open
        .lock()
        .retain(|_, session| !Arc::ptr_eq(session, conversation));
}
