//! The processes of all sessions: those in the background, and those that ended and can still be read.
//!
//! A session finds only its own. When it closes, all its processes end, and all processes end with the host.

mod entry;

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use toolpost_model::{
    CallContext, DividedLimit, ErrorClass, Principal, SessionId, ShareTable, ToolFailure,
};
use toolpost_processes::shown;

pub(crate) use entry::{ProcessEntry, ProcessOrigin, ProcessState};

use super::{log::OutputLog, spool::SpoolDirectory};

/// The most running processes of one session.
const RUNNING_IN_SESSION: usize = 16;
/// The most ended processes of one session that can still be read.
const ENDED_IN_SESSION: usize = 32;
/// The most bytes on disk of the ended processes of one session.
const ENDED_BYTES: u64 = 256 << 20;
/// The most stored bytes of one background process.
const BACKGROUND_BYTES: u64 = 64 << 20;
/// The most bytes on disk of the ended processes of all sessions.
const ENDED_BYTES_IN_ALL: u64 = 2 << 30;
/// When a refused caller may try again. The end of a process cannot be predicted.
const RETRY_AFTER_MS: u64 = 5_000;

/// The processes by session.
pub(crate) struct BackgroundProcesses {
    spool: SpoolDirectory,
    /// How long one may run in the background.
    lifetime: Duration,
    /// The slots for background processes, divided among callers: a caller with many sessions must leave slots for
    /// others.
    places: Arc<Mutex<ShareTable>>,
    sessions: Mutex<HashMap<SessionId, Vec<Arc<ProcessEntry>>>>,
}

/// A slot for a background process. Dropping it gives the slot back.
pub(crate) struct ProcessPlace {
    places: Arc<Mutex<ShareTable>>,
    principal: Principal,
}

impl Drop for ProcessPlace {
    fn drop(&mut self) {
        self.places.lock().give_back(&self.principal);
    }
}

impl BackgroundProcesses {
    pub(crate) fn new(spool: SpoolDirectory, lifetime: Duration, background: DividedLimit) -> Self {
        let places = Arc::new(Mutex::new(ShareTable::new(background)));
        Self {
            spool,
            lifetime,
            places,
            sessions: Mutex::default(),
        }
    }

    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The log of a process that may run for days. It is smaller, because no call returns all of it.
    pub(crate) fn background_log(&self) -> Arc<OutputLog> {
        Arc::new(OutputLog::new(
            self.spool.clone(),
            BACKGROUND_BYTES.min(self.spool.most_of_one()),
        ))
    }

    /// The log of a process that a call waits for.
    pub(crate) fn new_log(&self) -> Arc<OutputLog> {
        Arc::new(OutputLog::new(self.spool.clone(), self.spool.most_of_one()))
    }

    /// Takes a slot for one more background process of the caller.
    pub(crate) fn reserve(&self, context: &CallContext) -> Result<ProcessPlace, ToolFailure> {
        let refused = |message: String| {
            ToolFailure::of(ErrorClass::RateLimited, message)
                .code("too_many_processes")
                .hint("end one with `process_kill`; `process_status` lists those of a session")
                .after_ms(RETRY_AFTER_MS)
                .untouched()
        };
        let of_session = self.of(context.session_id());
        let alive = of_session.iter().filter(|entry| entry.is_alive()).count();
        if alive >= RUNNING_IN_SESSION {
            let message = format!(
                "{alive} processes of this session run in the background already, the limit is {RUNNING_IN_SESSION}"
            );
            return Err(refused(message));
        }
        let principal = context.principal().clone();
        let mut places = self.places.lock();
        places
            .take(&principal)
            .map_err(|refusal| refused(refusal.told("background processes", "limits.processes")))?;
        Ok(ProcessPlace {
            places: Arc::clone(&self.places),
            principal,
        })
    }

    /// Adds a process, and removes ended ones beyond the limits.
    pub(crate) fn keep(&self, session: &SessionId, entry: Arc<ProcessEntry>) {
        let mut sessions = self.sessions.lock();
        let entries = sessions.entry(session.clone()).or_default();
        entries.push(entry);
        let mut ended = 0;
        let mut bytes = 0;
        // From the latest back: entries beyond a limit are removed.
        let mut stays: Vec<bool> = entries
            .iter()
            .rev()
            .map(|entry| {
                if entry.is_alive() {
                    return true;
                }
                ended += 1;
                bytes += entry.log.spooled();
                ended == 1 || (ended <= ENDED_IN_SESSION && bytes <= ENDED_BYTES)
            })
            .collect();
        entries.retain(|_| stays.pop().unwrap_or(true));
        make_room(&mut sessions, ENDED_BYTES_IN_ALL);
    }

    /// The session's process of that id.
    pub(crate) fn find(
        &self,
        context: &CallContext,
        id: &str,
    ) -> Result<Arc<ProcessEntry>, ToolFailure> {
        let sessions = self.sessions.lock();
        let entries = sessions
            .get(context.session_id())
            .map_or(&[][..], Vec::as_slice);
        entries
            .iter()
            .find(|entry| entry.id == id)
            .cloned()
            .ok_or_else(|| {
                ToolFailure::invalid(format!("this session has no process `{}`", shown(id)))
                    .code("not_found")
                    .hint("`process_status` without arguments lists the processes of this session")
            })
    }

    /// All processes of a session, oldest first.
    pub(crate) fn of(&self, session: &SessionId) -> Vec<Arc<ProcessEntry>> {
        self.sessions
            .lock()
            .get(session)
            .cloned()
            .unwrap_or_default()
    }

    /// Ends a process and removes it.
    pub(crate) fn forget(&self, session: &SessionId, id: &str) {
        if let Some(entries) = self.sessions.lock().get_mut(session) {
            entries
                .iter()
                .filter(|entry| entry.id == id)
                .for_each(|entry| entry.abandon());
            entries.retain(|entry| entry.id != id);
        }
    }

    /// Ends all processes of a session.
    pub(crate) fn close(&self, session: &SessionId) {
        let entries = self.sessions.lock().remove(session).unwrap_or_default();
        entries.iter().for_each(|entry| entry.abandon());
    }
}

/// Removes ended processes until all together hold no more than `most` bytes, because many sessions must not fill the
/// disk that the journal is on.
///
/// The oldest entry of the caller with the most bytes goes first. If simply the oldest went, one caller with much
/// output could push out the output of all others; this way a caller loses output only while it holds the most itself.
fn make_room(sessions: &mut HashMap<SessionId, Vec<Arc<ProcessEntry>>>, most: u64) {
    let ended = sessions
        .values()
        .flatten()
        .filter(|entry| !entry.is_alive());
    let mut ended: Vec<Arc<ProcessEntry>> = ended
        .filter(|entry| entry.log.spooled() > 0)
        .cloned()
        .collect();
    let mut held: u64 = ended.iter().map(|entry| entry.log.spooled()).sum();
    if held <= most {
        return;
    }
    let mut holders: HashMap<&Principal, u64> = HashMap::new();
    let entries = ended.clone();
    for entry in &entries {
        *holders.entry(&entry.principal).or_default() += entry.log.spooled();
    }
    ended.sort_by_key(|entry| entry.began());
    while held > most {
        let Some(largest) = holders
            .iter()
            .max_by_key(|(_, bytes)| **bytes)
            .map(|(who, _)| *who)
        else {
            return;
        };
        let Some(place) = ended.iter().position(|entry| entry.principal == *largest) else {
            return;
        };
        let oldest = ended.remove(place);
        let bytes = oldest.log.spooled();
        held -= bytes;
        holders.entry(largest).and_modify(|held| *held -= bytes);
        sessions
            .values_mut()
            .for_each(|entries| entries.retain(|entry| !Arc::ptr_eq(entry, &oldest)));
    }
}
