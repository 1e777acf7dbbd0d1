//! Tells the streams of a session, and those of all sessions, that there is something to read.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::broadcast;
use toolpost_a2a::{ToolEvent, producer::Begun};
use toolpost_core::{Witness, WitnessedCall, WitnessedEnd, WitnessedStart};
use toolpost_model::{ErrorClass, InvocationId, SessionId};

use super::vocabulary;

/// Streams at the same time, of one session or of all of them, and in all.
const OF_SESSION: usize = 128;
const IN_ALL: usize = 1_024;
/// How much news waits for a reader that is busy. What does not fit is found in the journal.
const WAITING: usize = 64;

/// What a stream hears.
#[derive(Clone)]
pub(super) enum News {
    /// A call began.
    Begun(Arc<(InvocationId, ToolEvent)>),
    /// A call ended, and its end could not be written: the journal will not tell it.
    Lost(Arc<(InvocationId, ToolEvent)>),
    /// There is more in the journal.
    Recorded,
    /// The session was closed, or left memory; the journal tells which.
    LetGo,
}

/// No more streams are taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Crowded {
    #[error("{OF_SESSION} streams of the same calls are open already")]
    Session,
    #[error("{IN_ALL} streams are open already")]
    Host,
}

/// Hears of every call, and tells those who watch its session.
#[derive(Default)]
pub(crate) struct Hub {
    /// Without a session: all of them.
    sessions: Mutex<HashMap<Option<SessionId>, Watched>>,
    /// How many streams there are, so that calls nobody watches cost no lock.
    streams: AtomicUsize,
}

struct Watched {
    news: broadcast::Sender<News>,
    streams: usize,
}

impl Hub {
    fn sessions(&self) -> MutexGuard<'_, HashMap<Option<SessionId>, Watched>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch a session, or all of them.
    pub(super) fn watch(self: &Arc<Self>, session: Option<&SessionId>) -> Result<Watching, Crowded> {
        let mut sessions = self.sessions();
        // Changed only under the lock.
        let in_all = self.streams.load(Ordering::SeqCst);
        if in_all >= IN_ALL {
            return Err(Crowded::Host);
        }
        let watched = sessions
            .entry(session.cloned())
            .or_insert_with(|| Watched { news: broadcast::channel(WAITING).0, streams: 0 });
        if watched.streams >= OF_SESSION {
            return Err(Crowded::Session);
        }
        watched.streams += 1;
        self.streams.store(in_all + 1, Ordering::SeqCst);
        Ok(Watching { news: watched.news.subscribe(), hub: Arc::clone(self), session: session.cloned() })
    }

    /// Tells whoever watches a session, alone or among all. The news is made only where somebody does.
    fn tell(&self, session: &SessionId, news: impl FnOnce() -> News) {
        if self.streams.load(Ordering::SeqCst) == 0 {
            return;
        }
        let tellers = {
            let sessions = self.sessions();
            let teller = |who: &Option<SessionId>| sessions.get(who).map(|watched| watched.news.clone());
            [teller(&Some(session.clone())), teller(&None)]
        };
        if tellers.iter().any(Option::is_some) {
            let news = news();
            for teller in tellers.iter().flatten() {
                // The last reader may have just gone.
                let _ = teller.send(news.clone());
            }
        }
    }
}

impl Witness for Hub {
    fn begun(&self, call: &WitnessedCall, start: &WitnessedStart<'_>) {
        self.tell(&call.session_id, || {
            let begun = Begun {
                tool_call_id: &call.invocation_id.to_string(),
                tool_name: &call.tool,
                input: Some(start.arguments),
                at: start.at,
            };
            News::Begun(Arc::new((call.invocation_id, begun.event())))
        });
    }

    fn ended(&self, call: &WitnessedCall, end: &WitnessedEnd<'_>) {
        self.tell(&call.session_id, || match end.result.error_class() {
            Some(ErrorClass::JournalUnavailable) => {
                let event = vocabulary::ended(call.invocation_id, &call.tool, None, end.result);
                News::Lost(Arc::new((call.invocation_id, event)))
            }
            _ => News::Recorded,
        });
    }

    fn session_closed(&self, session: &SessionId) {
        self.tell(session, || News::LetGo);
    }
}

/// One stream's ear. Dropping it gives its place back.
pub(super) struct Watching {
    pub(super) news: broadcast::Receiver<News>,
    hub: Arc<Hub>,
    session: Option<SessionId>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut sessions = self.hub.sessions();
        self.hub.streams.fetch_sub(1, Ordering::SeqCst);
        if let Some(watched) = sessions.get_mut(&self.session) {
            watched.streams -= 1;
            if watched.streams == 0 {
                sessions.remove(&self.session);
            }
        }
    }
}
