//! Tells the streams of a session, and those of all sessions, that there is something to read.

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

/// Streams of one session at the same time that its own agent has open. Operators who watch it are not kept out.
const OF_SESSION: usize = 128;
/// How much news waits for a reader that is busy. What does not fit is found in the journal.
const WAITING: usize = 64;
/// Of so many open calls it is kept how they began. The others are told to newcomers with their next record.
const BEGINNINGS: usize = 10_000;

/// What a stream hears.
#[derive(Clone)]
pub(super) enum FeedNews {
    /// A call began.
    Begun(Arc<(InvocationId, ToolEvent)>),
    /// A call ended, and its end could not be written: the journal will not tell it.
    Lost(Arc<(InvocationId, ToolEvent)>),
    /// A person said yes to a question that this call asked: the call, and the question.
    Answered(InvocationId, InvocationId),
    /// There is more in the journal.
    Recorded,
    /// The session was closed, or left memory; the journal tells which.
    LetGo,
}

/// An event that a module emitted, and its call.
pub(super) type CallModuleEvent = Arc<(InvocationId, ModuleEvent)>;

/// No more streams are taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedCapacityError {
    #[error("{OF_SESSION} streams of the same calls are open already")]
    Session,
    #[error(transparent)]
    Shared(#[from] StreamsFull),
}

/// Hears of every call, and tells those who watch its session.
pub(crate) struct FeedHub {
    places: OpenStreams,
    state: Mutex<FeedHubState>,
    /// How many streams there are, so that no news is made where nobody listens.
    streams: AtomicUsize,
}

#[derive(Default)]
struct FeedHubState {
    /// Without a session: all of them.
    watched: HashMap<Option<SessionId>, FeedChannels>,
    /// Every call that began and has not ended, oldest first. An id costs next to nothing beside the call itself.
    open: BTreeMap<InvocationId, UnfinishedCall>,
    /// Of how many of them it is kept how they began.
    beginnings: usize,
}

/// A call that has not ended.
#[derive(Clone)]
pub(super) struct UnfinishedCall {
    session: SessionId,
    /// How it began.
    pub(super) begun: Option<Arc<(InvocationId, ToolEvent)>>,
    /// The question that it waits for.
    pub(super) question: Option<InvocationId>,
}

struct FeedChannels {
    news: broadcast::Sender<FeedNews>,
    /// Apart from the news, so that a module that emits many events drives no news out.
    module_events: broadcast::Sender<CallModuleEvent>,
    streams: usize,
    /// Those of them that agents read.
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

    /// Begins to watch a session, or all of them, and tells which of its calls are open in that moment: of every other
    /// one the beginning will be heard.
    pub(super) fn watch(
        self: &Arc<Self>,
        session: Option<&SessionId>,
        reader: &Principal,
    ) -> Result<(FeedSubscription, Vec<(InvocationId, UnfinishedCall)>), FeedCapacityError> {
        let place = self.places.take(reader)?;
        let of_agent = usize::from(reader.role == PrincipalRole::Agent);
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

    /// Changes what is known of an open call.
    fn note(&self, id: InvocationId, change: impl FnOnce(&mut UnfinishedCall)) {
        if let Some(open) = self.state.lock().open.get_mut(&id) {
            change(open);
        }
    }

    /// Tells whoever watches a session, alone or among all. The news is made only where somebody does.
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
                // The last reader may have just gone.
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
            // On record by now.
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
                // Bounded before it waits: many of them may wait for a slow reader.
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

/// One stream's ear. Dropping it gives its place back.
pub(super) struct FeedSubscription {
    pub(super) news: broadcast::Receiver<FeedNews>,
    pub(super) module_events: broadcast::Receiver<CallModuleEvent>,
    hub: Arc<FeedHub>,
    session: Option<SessionId>,
    of_agent: usize,
    _place: StreamPlace,
}

impl FeedSubscription {
    /// Those of some calls that have ended, and whose end is on record therefore.
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
