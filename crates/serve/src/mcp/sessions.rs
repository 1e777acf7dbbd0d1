//! The sessions of the era with sessions: found by an id that only their client has, bound to their principal, limited
//! in number, and removed when idle.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, value::RawValue};
use sha2::{Digest, Sha256};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use toolpost_core::{Host, Session, SessionError};
use toolpost_model::{Principal, SessionId, SurfaceId, SurfaceRequest};
use uuid::Uuid;

use super::{
    McpServerFace,
    meta::{McpClientCapabilities, McpLogLevel},
    news::NewsReceivers,
    subscriptions,
    version::McpVersion,
    wire::McpRequestId,
};

/// The idle time after which a session may give its place to another one.
const YIELDS_AFTER: Duration = Duration::from_secs(60);
/// The smallest share of all sessions that one caller has.
const LEAST_SHARE: usize = 16;
/// The most running and waiting requests of one session.
const MOST_RUNNING: usize = 1_024;
/// The most unanswered questions of one session's client.
const MOST_QUESTIONS: usize = 256;
/// The most addresses that one session can subscribe to.
const MOST_SUBSCRIPTIONS: usize = 1_024;
/// The most deferred tools in one session's list.
const MOST_JOINED: usize = 1_024;

pub(super) struct McpSession {
    pub(super) session: Arc<Session>,
    pub(super) version: McpVersion,
    pub(super) can: McpClientCapabilities,
    state: Mutex<McpSessionState>,
    questions: AtomicU64,
    /// A counter of the changes of this session's own list.
    own_list: watch::Sender<u64>,
    /// The receivers of notifications, with the position of the session's streams.
    pub(super) ears: tokio::sync::Mutex<NewsReceivers>,
    /// Cancelled when the client closes the session or it expires.
    pub(super) over: CancellationToken,
    /// Keeps the host's session in memory.
    _stay: toolpost_core::SessionGuard,
}

struct McpSessionState {
    level: McpLogLevel,
    last_used: Instant,
    running: HashMap<McpRequestId, CancellationToken>,
    questions: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    subscriptions: HashSet<String>,
    /// The deferred tools that were discovered and are listed now.
    joined: BTreeSet<String>,
    /// The surface of the list that the client fetched last, and the value of `own_list` at that time.
    listed: Option<(SurfaceId, u64)>,
    /// The stream for notifications. A newer one replaces it.
    reader: Option<CancellationToken>,
}

impl McpSession {
    fn new(
        host: &Host,
        session: Arc<Session>,
        version: McpVersion,
        can: McpClientCapabilities,
    ) -> Arc<Self> {
        let own_list = watch::Sender::new(0);
        let ears = NewsReceivers::of(host, &session, Some(own_list.subscribe()));
        let state = McpSessionState {
            level: McpLogLevel::Info,
            last_used: Instant::now(),
            running: HashMap::new(),
            questions: HashMap::new(),
            subscriptions: HashSet::new(),
            joined: BTreeSet::new(),
            listed: None,
            reader: None,
        };
        Arc::new(Self {
            _stay: session.stay(),
            session,
            version,
            can,
            state: Mutex::new(state),
            questions: AtomicU64::new(0),
            own_list,
            ears: tokio::sync::Mutex::new(ears),
            over: CancellationToken::new(),
        })
    }

    pub(super) fn level(&self) -> McpLogLevel {
        self.state.lock().level
    }

    pub(super) fn set_level(&self, level: McpLogLevel) {
        self.state.lock().level = level;
    }

    /// Adds a running request, so that it can be canceled by its id. `None`: a request with that id is running, or too
    /// many are.
    pub(super) fn begin(self: &Arc<Self>, id: &McpRequestId) -> Option<RunningRequest> {
        let mut state = self.state.lock();
        state.last_used = Instant::now();
        if state.running.len() >= MOST_RUNNING || state.running.contains_key(id) {
            return None;
        }
        let cancel = self.over.child_token();
        state.running.insert(id.clone(), cancel.clone());
        Some(RunningRequest {
            stay: Arc::clone(self),
            id: id.clone(),
            cancel,
        })
    }

    pub(super) fn cancel(&self, id: &RawValue) {
        let mut state = self.state.lock();
        state.last_used = Instant::now();
        let found = state
            .running
            .iter()
            .find(|(known, _)| known.as_json() == id.get());
        if let Some((_, cancel)) = found {
            cancel.cancel();
        }
    }

    /// A new question's id, and the receiver of its answer. `None`: too many questions wait.
    pub(super) fn expect_answer(
        &self,
    ) -> Option<(String, oneshot::Receiver<Result<Value, String>>)> {
        // Unique beyond this session: a client that continues with another host may still answer a question of this
        // session.
        let name = self.session.id().as_str();
        let name = name.get(name.len().saturating_sub(8)..).unwrap_or_default();
        let id = format!(
            "toolpost-{name}-{}",
            self.questions.fetch_add(1, Ordering::Relaxed) + 1
        );
        let (tell, answer) = oneshot::channel();
        let mut state = self.state.lock();
        if state.questions.len() >= MOST_QUESTIONS {
            return None;
        }
        state.questions.insert(id.clone(), tell);
        Some((id, answer))
    }

    pub(super) fn forget_question(&self, id: &str) {
        self.state.lock().questions.remove(id);
    }

    /// Passes on the answer to a question. Answers without a question are ignored.
    pub(super) fn answered(&self, id: &McpRequestId, outcome: Result<&RawValue, &RawValue>) {
        let Ok(id) = serde_json::from_str::<String>(id.as_json()) else {
            return;
        };
        let waiting = {
            let mut state = self.state.lock();
            state.last_used = Instant::now();
            state.questions.remove(&id)
        };
        let Some(waiting) = waiting else { return };
        let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get());
        let answer = match outcome {
            Ok(result) => read(result).map_err(|_| "the answer cannot be read".to_owned()),
            Err(error) => {
                let said = read(error).unwrap_or_default();
                Err(said["message"]
                    .as_str()
                    .unwrap_or("no reason was given")
                    .to_owned())
            }
        };
        let _ = waiting.send(answer);
    }

    /// Adds a subscription and returns whether it is new. `None`: there are too many, or the session is over.
    pub(super) fn subscribe(&self, uri: &str) -> Option<bool> {
        let mut state = self.state.lock();
        if state.subscriptions.contains(uri) {
            return Some(false);
        }
        if state.subscriptions.len() >= MOST_SUBSCRIPTIONS || self.over.is_cancelled() {
            return None;
        }
        Some(state.subscriptions.insert(uri.to_owned()))
    }

    /// Removes a subscription. Returns whether it existed.
    pub(super) fn unsubscribe(&self, uri: &str) -> bool {
        self.state.lock().subscriptions.remove(uri)
    }

    fn take_subscriptions(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().subscriptions)
            .into_iter()
            .collect()
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.state.lock().subscriptions.contains(uri)
    }

    /// Adds discovered tools to this session's list.
    pub(super) fn join(&self, tools: impl Iterator<Item = String>) {
        let mut state = self.state.lock();
        let before = state.joined.len();
        for tool in tools.take(MOST_JOINED) {
            if state.joined.len() < MOST_JOINED {
                state.joined.insert(tool);
            }
        }
        let is_other = state.joined.len() != before;
        drop(state);
        if is_other {
            self.own_list.send_modify(|count| *count += 1);
        }
    }

    /// The discovered tools in the list. Also notes that the client has now fetched the list of this surface.
    pub(super) fn list(&self, surface: &SurfaceId) -> Vec<String> {
        let mut state = self.state.lock();
        state.listed = Some((surface.clone(), *self.own_list.borrow()));
        state.joined.iter().cloned().collect()
    }

    pub(super) fn listed(&self) -> Option<(SurfaceId, u64)> {
        self.state.lock().listed.clone()
    }

    /// Makes a stream the receiver of notifications, until another one replaces it.
    pub(super) fn attach_reader(&self) -> CancellationToken {
        let reader = self.over.child_token();
        let mut state = self.state.lock();
        state.last_used = Instant::now();
        if let Some(earlier) = state.reader.replace(reader.clone()) {
            earlier.cancel();
        }
        reader
    }

    /// Notes the end of one of its streams.
    pub(super) fn was_read(&self) {
        self.state.lock().last_used = Instant::now();
    }

    /// Ends the stream for notifications.
    pub(super) fn stop_telling(&self) {
        if let Some(reader) = self.state.lock().reader.take() {
            reader.cancel();
        }
    }

    /// The time without a request, a question or a stream.
    fn idle_time(&self) -> Duration {
        self.unused_for().unwrap_or_default()
    }

    /// The idle time; `None` while the session is in use.
    fn unused_for(&self) -> Option<Duration> {
        let state = self.state.lock();
        let is_read = state
            .reader
            .as_ref()
            .is_some_and(|reader| !reader.is_cancelled());
        (!is_read && state.running.is_empty()).then(|| state.last_used.elapsed())
    }
}

/// A running request, until this is dropped.
pub(super) struct RunningRequest {
    stay: Arc<McpSession>,
    id: McpRequestId,
    pub(super) cancel: CancellationToken,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut state = self.stay.state.lock();
        state.last_used = Instant::now();
        state.running.remove(&self.id);
    }
}

#[derive(Default)]
pub(super) struct McpHttpSessions(Mutex<McpSessionMap>);

type McpSessionMap = HashMap<String, Arc<McpSession>>;

/// The reason why there is no room for a session.
#[derive(Debug, thiserror::Error)]
pub(super) enum McpSessionCapacityError {
    #[error("all {0} sessions of this caller are in use; end one of them with `DELETE` first")]
    Own(usize),
    #[error("all {0} sessions are in use (setting `limits.sessions`)")]
    All(usize),
}

/// The most sessions of one caller.
fn share(limit: usize) -> usize {
    (limit / 4).max(LEAST_SHARE).min(limit)
}

/// The session that gives its place to a new one of `principal`, if the limit requires it. A caller that uses its whole
/// share gives up one of its own sessions, even a recently used one. The sessions of other callers are safe until they
/// were idle for a while.
fn yielding(
    table: &McpSessionMap,
    limit: usize,
    principal: &Principal,
) -> Result<Option<String>, McpSessionCapacityError> {
    let is_own = |stay: &McpSession| stay.session.principal() == principal;
    let share = share(limit);
    let has_its_share = table.values().filter(|stay| is_own(stay)).count() >= share;
    if !has_its_share && table.len() < limit {
        return Ok(None);
    }
    let unused = table
        .iter()
        .filter_map(|(id, stay)| Some((id, is_own(stay), stay.unused_for()?)));
    let may_go = |own: bool, idle: Duration| {
        if has_its_share {
            own
        } else {
            idle >= YIELDS_AFTER
        }
    };
    let oldest = unused
        .filter(|(_, own, idle)| may_go(*own, *idle))
        .max_by_key(|(_, own, idle)| (*own, *idle));
    match oldest {
        Some((id, _, _)) => Ok(Some(id.clone())),
        None if has_its_share => Err(McpSessionCapacityError::Own(share)),
        None => Err(McpSessionCapacityError::All(limit)),
    }
}

/// The id on record. It is a hash, because the wire id is a credential that must not be recorded.
pub(super) fn recorded(wire_id: &str) -> SessionId {
    let hash = Sha256::digest(wire_id.as_bytes());
    SessionId::new(format!("mcp-{}", const_hex::encode(&hash[..16])))
}

/// Opens a session, with an id of 122 random bits that only its client gets.
pub(super) async fn open(
    host: &Host,
    principal: &Principal,
    version: McpVersion,
    can: McpClientCapabilities,
) -> Result<(String, Arc<McpSession>), SessionError> {
    let wire_id = Uuid::new_v4().simple().to_string();
    let surface = SurfaceRequest::default();
    let session = host
        .open_session_as(recorded(&wire_id), principal.clone(), surface, None)
        .await?;
    Ok((wire_id, McpSession::new(host, session, version, can)))
}

impl McpHttpSessions {
    /// Removes a session to make room for a new one of `principal`, before the host opens that one.
    pub(super) fn make_room(
        &self,
        limit: usize,
        principal: &Principal,
    ) -> Result<Option<Arc<McpSession>>, McpSessionCapacityError> {
        let mut table = self.0.lock();
        let gone = yielding(&table, limit, principal)?;
        Ok(gone.and_then(|id| table.remove(&id)))
    }

    /// Adds a session. Other sessions may have been added since there was room, so this may remove one too.
    pub(super) fn keep(
        &self,
        limit: usize,
        wire_id: &str,
        stay: &Arc<McpSession>,
    ) -> Result<Option<Arc<McpSession>>, McpSessionCapacityError> {
        let mut table = self.0.lock();
        let gone = yielding(&table, limit, stay.session.principal())?;
        let gone = gone.and_then(|id| table.remove(&id));
        table.insert(wire_id.to_owned(), Arc::clone(stay));
        Ok(gone)
    }

    /// The session of an id, if it belongs to the principal.
    pub(super) fn find(&self, wire_id: &str, principal: &Principal) -> Option<Arc<McpSession>> {
        let found = self.0.lock().get(wire_id).cloned();
        found.filter(|stay| stay.session.principal() == principal && !stay.session.is_ended())
    }

    pub(super) fn remove(&self, wire_id: &str) -> Option<Arc<McpSession>> {
        self.0.lock().remove(wire_id)
    }

    /// Removes the sessions that were idle for too long, or that were closed in another way.
    pub(super) fn sweep(&self, idle: Duration) -> Vec<Arc<McpSession>> {
        let mut table = self.0.lock();
        let is_over = |stay: &McpSession| stay.session.is_ended() || stay.idle_time() >= idle;
        let gone: Vec<String> = table
            .iter()
            .filter(|(_, stay)| is_over(stay))
            .map(|(id, _)| id.clone())
            .collect();
        gone.iter().filter_map(|id| table.remove(id)).collect()
    }

    pub(super) fn close_all(&self) {
        // The table is emptied, because the face and its sessions refer to each other and would never be freed.
        std::mem::take(&mut *self.0.lock())
            .values()
            .for_each(|stay| stay.over.cancel());
    }
}

/// Closes a session: its calls are canceled, and its id becomes invalid.
pub(super) async fn end(face: &McpServerFace, stay: &McpSession) {
    stay.over.cancel();
    subscriptions::give_back(face, &stay.session, stay.take_subscriptions()).await;
    if let Err(error) = face.host.close_session(&stay.session).await {
        tracing::warn!(%error, "a session could not be closed on record");
    }
}
