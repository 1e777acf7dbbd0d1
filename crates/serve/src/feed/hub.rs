//! Notifies the streams of a session, and those of all sessions, of new records.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use toolpost_a2a::{ToolEvent, producer::ToolCallStart};
use toolpost_core::{ModuleEvent, Witness, WitnessedCall, WitnessedEnd, WitnessedStart};
use toolpost_model::{
    ApprovalStatus, ErrorClass, Event, EventBody, InvocationId, Principal, PrincipalRole, SessionId,
};

use super::vocabulary;
use crate::streams::{OpenStreams, StreamPlace, StreamsFull};

/// The most streams of one session that its own agent can have open. Streams of operators do not count.
const OF_SESSION: usize = 128;
/// The most news that waits for a slow reader. Lost news is found in the journal.
const WAITING: usize = 64;
/// The most open calls with a kept beginning. New streams get the beginning of further calls with their next record.
const BEGINNINGS: usize = 10_000;

#[derive(Clone)]
pub(super) enum FeedNews {
    Begun(Arc<(InvocationId, ToolEvent)>),
    /// A call ended and its end could not be recorded, so the journal will not contain it.
    Lost(Arc<(InvocationId, ToolEvent)>),
    /// A question was approved: the call that asked it, and the question.
    Answered(InvocationId, InvocationId),
    /// The journal has new records.
    Recorded,
    /// The session was closed or removed from memory; the journal tells which.
    LetGo,
}

/// An event of a module, and its call.
pub(super) type CallModuleEvent = Arc<(InvocationId, ModuleEvent)>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedCapacityError {
    #[error("{OF_SESSION} streams of the same calls are open already")]
    Session,
    #[error(transparent)]
    Shared(#[from] StreamsFull),
}

/// A witness of all calls that notifies the streams of their sessions.
pub(crate) struct FeedHub {
    places: OpenStreams,
    state: Mutex<FeedHubState>,
    /// The number of streams. Without streams no news is built.
    streams: AtomicUsize,
}

#[derive(Default)]
struct FeedHubState {
    /// By session; `None` stands for all sessions.
    watched: HashMap<Option<SessionId>, FeedChannels>,
    /// All open calls, oldest first. An id costs little compared with the call itself.
    open: BTreeMap<InvocationId, UnfinishedCall>,
    /// The number of open calls with a kept beginning.
    beginnings: usize,
}

#[derive(Clone)]
pub(super) struct UnfinishedCall {
    session: SessionId,
    /// The event of its beginning, if it is kept.
    pub(super) begun: Option<Arc<(InvocationId, ToolEvent)>>,
    /// The question that the call waits for.
    pub(super) question: Option<InvocationId>,
}

struct FeedChannels {
    news: broadcast::Sender<FeedNews>,
    /// Separate from the news, so that a module with many events does not displace news.
    module_events: broadcast::Sender<CallModuleEvent>,
    streams: usize,
    /// The number of streams that agents read.
    of_agents: usize,
}

impl FeedHub {
    pub(crate) fn new(places: OpenStreams) -> Self {
        Self {
            places,
            state: Mutex::default(),
            streams: AtomicUsize::new(0),
        }
    }

    /// Subscribes to a session, or to all of them, and returns the calls that are open at that moment. The subscription
    /// reports the beginning of all later ones.
    pub(super) fn watch(
        self: &Arc<Self>,
        session: Option<&SessionId>,
        reader: &Principal,
    ) -> Result<(FeedSubscription, Vec<(InvocationId, UnfinishedCall)>), FeedCapacityError> {
        let place = self.places.take(reader)?;
        let of_agent = usize::from(reader.role == PrincipalRole::Agent);
        // The subscription and the copy of the open calls are made under one lock. `begun` adds a call under the same
        // lock before it sends the news, so every call is in the copy, in the news, or in both, but never in neither.
        let mut state = self.state.lock();
        let watched = state
            .watched
            .entry(session.cloned())
            .or_insert_with(|| FeedChannels {
                news: broadcast::channel(WAITING).0,
                module_events: broadcast::channel(WAITING).0,
                streams: 0,
                of_agents: 0,
            });
        if of_agent > 0 && watched.of_agents >= OF_SESSION {
            return Err(FeedCapacityError::Session);
        }
        watched.streams += 1;
        watched.of_agents += of_agent;
        // Changed only under the lock.
        self.streams.fetch_add(1, Ordering::SeqCst);
        let news = watched.news.subscribe();
        let module_events = watched.module_events.subscribe();
        let is_watched =
            |open: &UnfinishedCall| session.is_none_or(|session| open.session == *session);
        let open = state.open.iter().filter(|(_, open)| is_watched(open));
        let open = open.map(|(id, open)| (*id, open.clone())).collect();
        let hub = Arc::clone(self);
        let session = session.cloned();
        Ok((
            FeedSubscription {
                news,
                module_events,
                hub,
                session,
                of_agent,
                _place: place,
            },
            open,
        ))
    }

    fn note(&self, id: InvocationId, change: impl FnOnce(&mut UnfinishedCall)) {
        if let Some(open) = self.state.lock().open.get_mut(&id) {
            change(open);
        }
    }

    /// Notifies the streams of a session and those of all sessions. The news is built only if there are such streams.
    fn tell(&self, session: &SessionId, news: impl FnOnce() -> FeedNews) {
        self.send(session, |watched| watched.news.clone(), || Some(news()));
    }

    fn send<T: Clone>(
        &self,
        session: &SessionId,
        channel: impl Fn(&FeedChannels) -> broadcast::Sender<T>,
        message: impl FnOnce() -> Option<T>,
    ) {
        if self.streams.load(Ordering::SeqCst) == 0 {
            return;
        }
        let senders = {
            let state = self.state.lock();
            let sender = |session: &Option<SessionId>| state.watched.get(session).map(&channel);
            [sender(&Some(session.clone())), sender(&None)]
        };
        if senders.iter().any(Option::is_some)
            && let Some(message) = message()
        {
            for sender in senders.iter().flatten() {
                // Sending fails if the last reader has just disconnected.
                let _ = sender.send(message.clone());
            }
        }
    }
}

impl Witness for FeedHub {
    fn begun(&self, call: &WitnessedCall, start: &WitnessedStart<'_>) {
        let begun = ToolCallStart {
            tool_call_id: &call.invocation_id.to_string(),
            tool_name: &call.tool,
            input: Some(start.arguments),
            at: start.at,
        };
        let begun = Arc::new((call.invocation_id, begun.event()));
        {
            let mut state = self.state.lock();
            let kept = (state.beginnings < BEGINNINGS).then(|| Arc::clone(&begun));
            state.beginnings += usize::from(kept.is_some());
            let open = UnfinishedCall {
                session: call.session_id.clone(),
                begun: kept,
                question: None,
            };
            state.open.insert(call.invocation_id, open);
        }
        self.tell(&call.session_id, || FeedNews::Begun(begun));
    }

    fn hear(&self, call: &WitnessedCall, event: &Event) {
        match &event.body {
            // The question is recorded before this event is sent.
            &EventBody::Approval(ApprovalStatus::Pending { ask_id, .. }) => {
                self.note(call.invocation_id, |open| open.question = Some(ask_id));
                self.tell(&call.session_id, || FeedNews::Recorded);
            }
            &EventBody::Approval(ApprovalStatus::Granted { ask_id }) => {
                self.note(call.invocation_id, |open| open.question = None);
                self.tell(&call.session_id, || {
                    FeedNews::Answered(call.invocation_id, ask_id)
                });
            }
            EventBody::Custom { .. } => {
                // The event is bounded before it is queued, because many of them may wait for a slow reader.
                let emitted = || {
                    ModuleEvent::of(event).map(|emitted| Arc::new((call.invocation_id, emitted)))
                };
                self.send(
                    &call.session_id,
                    |watched| watched.module_events.clone(),
                    emitted,
                );
            }
            EventBody::Stage { .. }
            | EventBody::Progress(_)
            | EventBody::Status { .. }
            | EventBody::Log { .. }
            | EventBody::Artifact { .. }
            | EventBody::Kept(_)
            | EventBody::Output(_)
            | EventBody::Message { .. } => {}
        }
    }

    fn ended(&self, call: &WitnessedCall, end: &WitnessedEnd<'_>) {
        {
            let mut state = self.state.lock();
            let ended = state.open.remove(&call.invocation_id);
            state.beginnings -= usize::from(ended.is_some_and(|open| open.begun.is_some()));
        }
        self.tell(&call.session_id, || match end.result.error_class() {
            Some(ErrorClass::JournalUnavailable) => {
                let event = vocabulary::ended(call.invocation_id, &call.tool, None, end.result);
                FeedNews::Lost(Arc::new((call.invocation_id, event)))
            }
            _ => FeedNews::Recorded,
        });
    }

    fn session_closed(&self, session: &SessionId) {
        self.tell(session, || FeedNews::LetGo);
    }
}

/// The subscription of one stream. Dropping it returns its place.
pub(super) struct FeedSubscription {
    pub(super) news: broadcast::Receiver<FeedNews>,
    pub(super) module_events: broadcast::Receiver<CallModuleEvent>,
    hub: Arc<FeedHub>,
    session: Option<SessionId>,
    of_agent: usize,
    _place: StreamPlace,
}

impl FeedSubscription {
    /// The calls among `calls` that have ended, so that their end is on record.
    pub(super) fn ended_of<'a>(
        &self,
        calls: impl Iterator<Item = &'a InvocationId>,
    ) -> Vec<InvocationId> {
        let state = self.hub.state.lock();
        calls
            .filter(|id| !state.open.contains_key(id))
            .copied()
            .collect()
    }
}

impl Drop for FeedSubscription {
    fn drop(&mut self) {
        let mut state = self.hub.state.lock();
        self.hub.streams.fetch_sub(1, Ordering::SeqCst);
        if let Some(watched) = state.watched.get_mut(&self.session) {
            watched.streams -= 1;
            watched.of_agents -= self.of_agent;
            if watched.streams == 0 {
                state.watched.remove(&self.session);
            }
        }
    }
}
