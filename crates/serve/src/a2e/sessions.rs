//! The sessions agents have over HTTP: found by an id that only their agent knows, limited, and forgotten in time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sha2::{Digest, Sha256};
use toolpost_model::SessionId;
use uuid::Uuid;

use super::{
    Face,
    conversation::{Conversation, LAST_WORDS, Transport},
};
use crate::auth::Door;

/// Sessions without a handshake. Anybody can open one, so the oldest gives way.
const MAX_STRANGERS: usize = 256;
/// How long a stranger may take for its handshake.
const STRANGER_PATIENCE: Duration = Duration::from_secs(60);
/// How often sessions are looked through.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Arc<Conversation>>>,
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Conversation>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, wire_id: &str) -> Option<Arc<Conversation>> {
        self.open().get(wire_id).cloned()
    }

    /// Forgets what nobody will ask for again, and ends sessions that nobody used for too long.
    pub(super) fn sweep(&self, session_idle: Duration) {
        self.open().retain(|_, session| {
            let idle = session.idle_time();
            if session.is_stranger() {
                idle < STRANGER_PATIENCE
            } else if session.is_over() {
                idle < LAST_WORDS
            } else {
                if idle >= session_idle {
                    session.hang_up();
                }
                idle < session_idle
            }
        });
    }

    /// Lets go of sessions that nobody reads. `false`: there are none.
    pub(super) fn park_idle(&self) -> bool {
        let mut open = self.open();
        let before = open.len();
        open.retain(|_, session| session.is_stranger() || session.idle_time().is_zero());
        open.len() < before
    }

    pub(super) fn tell_of_changed_list(&self) {
        self.open().values().for_each(|session| session.tell_of_changed_list());
    }

    pub(super) fn close_all(&self) {
        self.open().values().for_each(|session| session.outbox.close());
    }
}

/// The name in records of a session whose id must not be in any.
fn recorded(wire_id: &str) -> SessionId {
    let hash = Sha256::digest(wire_id.as_bytes());
    let hex = hash.iter().take(16).fold("a2e-".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    SessionId::new(hex)
}

/// Opens a session for whoever comes.
pub(super) fn open(face: &Arc<Face>, door: &Arc<Door>) -> String {
    // 122 random bits: the id is what later requests are let in by.
    let wire_id = Uuid::new_v4().simple().to_string();
    let session_id = recorded(&wire_id);
    let conversation = Conversation::new(face, Transport::Http, door, wire_id.clone(), session_id);
    let mut open = face.sessions.open();
    let strangers = open.iter().filter(|(_, session)| session.is_stranger());
    if strangers.clone().count() >= MAX_STRANGERS {
        let oldest = strangers.max_by_key(|(_, session)| session.idle_time()).map(|(id, _)| id.clone());
        oldest.and_then(|id| open.remove(&id));
    }
    open.insert(wire_id.clone(), conversation);
    wire_id
}

/// The session an id belongs to: here, or on record from before a restart or a long pause.
pub(super) async fn find(face: &Arc<Face>, door: &Arc<Door>, wire_id: &str) -> Option<Arc<Conversation>> {
    if let Some(found) = face.sessions.known(wire_id) {
        let is_told_all = found.is_over() && found.outbox.is_closed() && found.idle_time() > LAST_WORDS;
        return (!is_told_all).then_some(found);
    }
    // Whoever did not come back in this time has not come back since the host began.
    if face.since.elapsed() > face.host.limits().session_idle {
        return None;
    }
    let session_id = recorded(wire_id);
    let session = face.host.resume_session(&session_id).await.ok()?;
    let resumed =
        Conversation::new(face, Transport::Http, door, wire_id.to_owned(), session_id).resumed(session);
    // Somebody else may have brought it back in the same moment.
    Some(Arc::clone(face.sessions.open().entry(wire_id.to_owned()).or_insert(resumed)))
}

/// A session is over and its reader has everything: it is not there any more.
pub(super) fn forget(face: &Face, conversation: &Arc<Conversation>) {
    face.sessions.open().retain(|_, session| !Arc::ptr_eq(session, conversation));
}
