//! The table of waiting requests. A request has an entry from before it is sent until it gets its one answer or is
//! abandoned. Every message from the host passes through the router, on every transport.

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

/// The number of notices kept for a slow reader.
const NOTICES: usize = 64;

pub(super) struct AnswerRouter {
    table: Mutex<PendingReplies>,
    /// One permit for each concurrent request.
    slots: Arc<Semaphore>,
    /// Wakes tasks that wait for an empty table.
    emptied: Notify,
    notices: broadcast::Sender<HostNotice>,
    /// The host's answer to the latest handshake.
    welcome: Mutex<Option<Arc<HandshakeResponse>>>,
    pub(super) counts: RouterCounts,
    /// Changes whenever a fetched list of tools may be out of date.
    lists: AtomicU64,
}

#[derive(Default)]
struct PendingReplies {
    entries: HashMap<Uuid, RouterEntry>,
    /// The reason why requests are refused now.
    over: Option<CallError>,
}

/// Counts of messages that no call reported.
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

    /// Waits for a permit for one more request.
    pub(super) async fn slot(&self) -> Result<OwnedSemaphorePermit, CallError> {
        // The semaphore is never closed, so `acquire` always succeeds.
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

    /// Adds the entry of a handshake. It takes no permit: the calls that hold all permits may be waiting for it.
    pub(super) fn expect_handshake(
        &self,
        id: Uuid,
    ) -> Result<oneshot::Receiver<RequestAnswer>, CallError> {
        let (answer, receiver) = oneshot::channel();
        self.insert(id, RouterEntry::for_handshake(answer))?;
        Ok(receiver)
    }

    /// Marks a request as taken by the host in this session, and returns the state of its entry.
    pub(super) fn taken(&self, id: Uuid, session: u64) -> RouterEntryState {
        let mut table = self.table.lock();
        let Some(entry) = table.entries.get_mut(&id) else {
            return RouterEntryState::Over;
        };
        entry.progress = RequestSendProgress::Taken { session };
        entry.standing()
    }

    /// Marks a request as being sent, unless it was abandoned, and returns the state of its entry.
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

    /// Marks a request as unsent again.
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

    /// The requests that the host took in this session and did not answer.
    pub(super) fn taken_in(&self, session: u64) -> Vec<(Uuid, bytes::Bytes)> {
        let table = self.table.lock();
        let taken = table
            .entries
            .iter()
            .filter(|(_, entry)| entry.progress == RequestSendProgress::Taken { session });
        taken.map(|(id, entry)| (*id, entry.text.clone())).collect()
    }

    /// Abandons a request. Returns its progress, or `None` if it had its answer.
    ///
    /// A request on its way keeps its entry: only the sending task can tell whether the host may have it, and so
    /// whether the host must be asked to stop it. That task removes the entry.
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

    /// Answers a request. The first answer counts; later ones are unexpected.
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

    /// Fails the requests that the host took in a session that it forgot.
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

    /// Refuses new requests from now on; running ones continue. `false`: closing had begun before.
    pub(super) fn begin_closing(&self) -> bool {
        let mut table = self.table.lock();
        let first = table.over.is_none();
        table.over.get_or_insert(CallError::Closed);
        first
    }

    pub(super) fn over(&self) -> Option<CallError> {
        self.table.lock().over.clone()
    }

    /// Answers every request with this reason, unless the connection had an earlier reason to end.
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

    /// Waits until no request is left.
    pub(super) async fn emptied(&self) {
        loop {
            // Created before the look at the table: `notify_waiters` stores no permit and wakes only futures that
            // exist. In the other order, an entry removed in between would leave this task waiting for ever.
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
            // Changes of the list during a break may have been missed.
            HostNotice::ToolListChanged | HostNotice::Reconnected | HostNotice::NewSession => {
                self.lists.fetch_add(1, Ordering::Release);
            }
            HostNotice::HostError(_) | HostNotice::Push(_) | HostNotice::Missed(_) => {}
        }
        // Sending fails only without readers, which is fine.
        let _ = self.notices.send(notice);
    }

    pub(super) fn lists(&self) -> u64 {
        self.lists.load(Ordering::Acquire)
    }
}

/// Incoming messages.
impl AnswerRouter {
    /// Takes in a message as text.
    pub(super) fn receive(&self, text: &[u8]) {
        match codec::decode(text, ReaderSide::Agent) {
            Ok(message) => self.route(message),
            Err(error) => self.receive_damaged(text, error.message),
        }
    }

    /// Handles a message that cannot be read, or only its beginning. If it was an answer, its request fails at once
    /// instead of waiting until its deadline.
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
