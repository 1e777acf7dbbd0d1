//! Who waits for what. Every request has an entry here from before it is sent until it has its one answer or
//! nobody wants it any more; every message from the host passes here, whatever wire it came by.

mod damaged;
mod entry;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, oneshot};
use uuid::Uuid;

use super::{
    error::CallError,
    events::EventQueueOutcome,
    notice::{HostNotice, HostNotices},
};
use crate::{
    Body, HandshakeResponse, InvokeEvent, Message,
    codec::{self, ReaderSide},
};

pub(crate) use entry::{AbandonedRequestAction, RequestAnswer};
pub(super) use entry::{RequestSendProgress, RouterEntry, RouterEntryState};

/// Notices kept for a reader that is behind.
const NOTICES: usize = 64;

pub(super) struct AnswerRouter {
    table: Mutex<PendingReplies>,
    /// One for every request in flight.
    slots: Arc<Semaphore>,
    /// Somebody may wait for the table to become empty.
    emptied: Notify,
    notices: broadcast::Sender<HostNotice>,
    /// What the host said in the last handshake.
    welcome: Mutex<Option<Arc<HandshakeResponse>>>,
    pub(super) counts: RouterCounts,
    /// Counts up whenever a list of tools that was fetched before may be out of date.
    lists: AtomicU64,
}

#[derive(Default)]
struct PendingReplies {
    entries: HashMap<Uuid, RouterEntry>,
    /// Why nothing can be sent any more.
    over: Option<CallError>,
}

/// What happened that nobody was told about.
#[derive(Default)]
pub(super) struct RouterCounts {
    pub(super) unreadable: AtomicU64,
    pub(super) unexpected: AtomicU64,
    pub(super) lost_events: AtomicU64,
    pub(super) reconnects: AtomicU64,
}

pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl AnswerRouter {
    pub(super) fn new(in_flight: usize) -> Self {
        Self {
            table: Mutex::default(),
            slots: Arc::new(Semaphore::new(in_flight.clamp(1, Semaphore::MAX_PERMITS))),
            emptied: Notify::new(),
            notices: broadcast::channel(NOTICES).0,
            welcome: Mutex::default(),
            counts: RouterCounts::default(),
            lists: AtomicU64::new(0),
        }
    }

    /// A place for one more request. Whoever has too many of them under way waits here.
    pub(super) async fn slot(&self) -> Result<OwnedSemaphorePermit, CallError> {
        // The semaphore is never closed.
        self.slots
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| CallError::Closed)
    }

    pub(super) fn insert(&self, id: Uuid, entry: RouterEntry) -> Result<(), CallError> {
        let mut table = self.table.lock();
        if let Some(error) = &table.over {
            return Err(error.clone());
        }
        table.entries.insert(id, entry);
        Ok(())
    }

    /// An entry for a handshake, which takes no slot: calls that hold them all may be waiting for it.
    pub(super) fn expect_handshake(
        &self,
        id: Uuid,
    ) -> Result<oneshot::Receiver<RequestAnswer>, CallError> {
        let (answer, receiver) = oneshot::channel();
        self.insert(id, RouterEntry::for_handshake(answer))?;
        Ok(receiver)
    }

    /// The host has it, in this session of the client's. Tells how things stand now.
    pub(super) fn taken(&self, id: Uuid, session: u64) -> RouterEntryState {
        let mut table = self.table.lock();
        let Some(entry) = table.entries.get_mut(&id) else {
            return RouterEntryState::Over;
        };
        entry.progress = RequestSendProgress::Taken { session };
        entry.standing()
    }

    /// It is being sent now, if somebody still waits for it.
    pub(super) fn sending(&self, id: Uuid) -> RouterEntryState {
        let mut table = self.table.lock();
        let Some(entry) = table.entries.get_mut(&id) else {
            return RouterEntryState::Over;
        };
        if entry.progress == RequestSendProgress::OnItsWay && entry.abandoned.is_none() {
            entry.progress = RequestSendProgress::MayHaveArrived;
        }
        entry.standing()
    }

    /// It was not sent after all.
    pub(super) fn not_arrived(&self, id: Uuid) {
        if let Some(entry) = self.table.lock().entries.get_mut(&id)
            && entry.progress == RequestSendProgress::MayHaveArrived
        {
            entry.progress = RequestSendProgress::OnItsWay;
        }
    }

    pub(super) fn standing(&self, id: Uuid) -> RouterEntryState {
        self.table
            .lock()
            .entries
            .get(&id)
            .map_or(RouterEntryState::Over, RouterEntry::standing)
    }

    /// The requests that the host took in this session and has not answered.
    pub(super) fn taken_in(&self, session: u64) -> Vec<(Uuid, bytes::Bytes)> {
        let table = self.table.lock();
        let taken = table
            .entries
            .iter()
            .filter(|(_, entry)| entry.progress == RequestSendProgress::Taken { session });
        taken.map(|(id, entry)| (*id, entry.text.clone())).collect()
    }

    /// Nobody waits for this any more. Tells how far it had come, where it was not over already.
    ///
    /// A request on its way stays in the table for whoever is sending it, who then sees to the rest.
    pub(super) fn abandon(
        &self,
        id: Uuid,
        parting: AbandonedRequestAction,
    ) -> Option<RequestSendProgress> {
        let mut table = self.table.lock();
        let entry = table.entries.get_mut(&id)?;
        let progress = entry.progress;
        match progress {
            RequestSendProgress::OnItsWay | RequestSendProgress::MayHaveArrived => {
                entry.abandoned = Some(parting);
            }
            RequestSendProgress::Taken { .. } => self.remove(table, id),
        }
        Some(progress)
    }

    /// Removes an entry without an answer.
    pub(super) fn forget(&self, id: Uuid) {
        self.remove(self.table.lock(), id);
    }

    fn remove(&self, mut table: MutexGuard<'_, PendingReplies>, id: Uuid) {
        let entry = table.entries.remove(&id);
        let empty = table.entries.is_empty();
        drop(table);
        drop(entry);
        if empty {
            self.emptied.notify_waiters();
        }
    }

    /// Gives a request its answer; the first one counts.
    pub(super) fn answer(&self, id: Uuid, outcome: Result<Body, CallError>) {
        let mut table = self.table.lock();
        let entry = table.entries.remove(&id);
        let empty = table.entries.is_empty();
        drop(table);
        match entry {
            Some(entry) => entry.settle(outcome),
            None => add(&self.counts.unexpected, 1),
        }
        if empty {
            self.emptied.notify_waiters();
        }
    }

    /// Ends what the host had taken in a session that it no longer knows.
    pub(super) fn session_lost(&self, session: u64) {
        let of_session = |_: &Uuid, entry: &mut RouterEntry| {
            entry.progress == RequestSendProgress::Taken { session }
        };
        let lost: Vec<RouterEntry> = self
            .table
            .lock()
            .entries
            .extract_if(of_session)
            .map(|(_, entry)| entry)
            .collect();
        lost.into_iter()
            .for_each(|entry| entry.settle(Err(CallError::SessionLost)));
        self.emptied.notify_waiters();
    }

    /// Nothing new from now on. What is under way goes on. `false`: it was so already.
    pub(super) fn begin_closing(&self) -> bool {
        let mut table = self.table.lock();
        let first = table.over.is_none();
        table.over.get_or_insert(CallError::Closed);
        first
    }

    pub(super) fn over(&self) -> Option<CallError> {
        self.table.lock().over.clone()
    }

    /// Ends everything, for this reason unless there was one before.
    pub(super) fn end(&self, reason: &CallError) {
        let mut table = self.table.lock();
        table.over.get_or_insert_with(|| reason.clone());
        let entries = std::mem::take(&mut table.entries);
        drop(table);
        entries
            .into_values()
            .for_each(|entry| entry.settle(Err(reason.clone())));
        self.emptied.notify_waiters();
    }

    /// Waits until nothing is under way.
    pub(super) async fn emptied(&self) {
        loop {
            let notified = self.emptied.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.table.lock().entries.is_empty() {
                return;
            }
            notified.await;
        }
    }

    pub(super) fn set_welcome(&self, welcome: HandshakeResponse) {
        *self.welcome.lock() = Some(Arc::new(welcome));
    }

    pub(super) fn welcome(&self) -> Option<Arc<HandshakeResponse>> {
        self.welcome.lock().clone()
    }

    pub(super) fn notices(&self) -> HostNotices {
        HostNotices(self.notices.subscribe())
    }

    pub(super) fn tell(&self, notice: HostNotice) {
        match notice {
            // After a break nobody knows what was missed.
            HostNotice::ToolListChanged | HostNotice::Reconnected | HostNotice::NewSession => {
                self.lists.fetch_add(1, Ordering::Release);
            }
            HostNotice::HostError(_) | HostNotice::Push(_) | HostNotice::Missed(_) => {}
        }
        // An error says that nobody listens, which is fine.
        let _ = self.notices.send(notice);
    }

    pub(super) fn lists(&self) -> u64 {
        self.lists.load(Ordering::Acquire)
    }
}

/// What comes from the host.
impl AnswerRouter {
    /// A message as text.
    pub(super) fn receive(&self, text: &[u8]) {
        match codec::decode(text, ReaderSide::Agent) {
            Ok(message) => self.route(message),
            Err(error) => self.receive_damaged(text, error.message),
        }
    }

    /// Something that cannot be read, or only its beginning. If it was the answer to a request, that request
    /// would wait in vain, so it is told.
    pub(super) fn receive_damaged(&self, head: &[u8], reason: String) {
        add(&self.counts.unreadable, 1);
        if let Some(id) = damaged::answered_request(head)
            && self.standing(id) != RouterEntryState::Over
        {
            self.answer(id, Err(CallError::Malformed { reason }));
        }
    }

    pub(super) fn route(&self, message: Message) {
        let id = match message.body.req_id() {
            None | Some("") => return self.push(message),
            Some(id) => Uuid::try_parse(id),
        };
        let Ok(id) = id else {
            return add(&self.counts.unexpected, 1);
        };
        match message.body {
            Body::ToolEvent(event) | Body::InvokeEvent(event) => self.event(id, event),
            Body::Other(other) if other.kind.ends_with("/event") => add(&self.counts.unexpected, 1),
            Body::Error(error) => self.answer(id, Err(CallError::Protocol(error.into()))),
            body => self.answer(id, Ok(body)),
        }
    }

    fn event(&self, id: Uuid, event: InvokeEvent) {
        let mut table = self.table.lock();
        let Some(events) = table
            .entries
            .get_mut(&id)
            .and_then(|entry| entry.events.as_mut())
        else {
            drop(table);
            return add(&self.counts.unexpected, 1);
        };
        if let EventQueueOutcome::Losing(count) = events.pass(event) {
            add(&self.counts.lost_events, count);
        }
    }

    fn push(&self, message: Message) {
        match message.body {
            Body::ToolListChanged(_) => self.tell(HostNotice::ToolListChanged),
            Body::Error(error) => self.tell(HostNotice::HostError(Arc::new(error))),
            _ => self.tell(HostNotice::Push(Arc::new(message))),
        }
    }
}
