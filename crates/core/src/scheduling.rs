//! Layer 6: the scheduler, which decides when a call runs and beside which other calls.
//!
//! One table under one short lock holds the running calls and the queue. A call is admitted when
//!
//! - no running and no earlier waiting call has a conflicting use of one of its resources: readers share a resource, a
//!   writer has it alone, a later call does not overtake an earlier rival, and a call that is not safe beside others is
//!   alone in its session;
//! - its tool, its source, its session and its principal have room for one more.
//!
//! A free slot goes to the principal with the fewest running calls, and there to the session with the fewest; among
//! equals, to the longest wait. A principal or session that was passed over too often goes first, so no call waits for
//! ever. A principal has a share of the slots and of the queue, and borrows more while it is alone.
//!
//! A call takes all its locks and its slot at once, so ordinary calls never wait for one another in a circle. Nested
//! calls are the exception: they queue while the call above them holds locks. They overtake all ordinary calls, and one
//! that would close a circle is refused.

pub(crate) mod admit;
pub(crate) mod batch;
mod circle;
mod locks;
mod need;
mod outlook;
mod shares;
mod table;
mod turns;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolpost_model::{InvocationId, Principal, SessionId, ShareRefusal, ShareRules};

use need::{AdmissionNeeds, QueueTicket};
pub(crate) use need::{AdmissionRequest, ConcurrencyLimit, ConcurrencyLimitSubject};
pub use outlook::{OwnLimit, SchedulerSnapshot, SlotUse, WaitReason};
use table::SchedulerTable;

/// The limits of running and waiting calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerLimits {
    /// Calls that run at the same time, in all.
    pub concurrency: usize,
    /// Calls of one session that run at the same time.
    pub session_concurrency: usize,
    /// Calls that wait, in all.
    pub queue: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueFull {
    #[error("{}", .0.told("places in the queue", "limits.queue"))]
    Shared(ShareRefusal),
    #[error("{share} calls of this session are already waiting, which is its share")]
    Session { share: usize },
    /// The wait would never end: a call above this one holds the resource and waits for this call.
    #[error("a parent call holds `{key}`, which this call needs exclusively")]
    HeldAbove { key: String },
    /// The wait would never end: the holders of its resources wait, directly or through others, for this call.
    #[error("its resources are held by calls that wait for its parent call")]
    Circle,
}

pub(crate) struct Scheduler {
    table: Mutex<SchedulerTable>,
}

/// The slot and locks of an admitted call, given back on drop.
pub(crate) struct Permit {
    scheduler: Arc<Scheduler>,
    given: PermitContent,
}

enum PermitContent {
    /// A slot with its locks.
    Slot(Arc<AdmissionNeeds>),
    /// A place in the queue without a request for a slot: for a call that waits for other calls.
    Place(Principal, SessionId),
}

/// A running call that gave up its slot for a time.
pub(crate) struct YieldedSlot(Arc<AdmissionNeeds>);

/// Removes the call from the queue if its caller stops waiting.
struct QueuePlaceGuard<'a> {
    scheduler: &'a Arc<Scheduler>,
    ticket: QueueTicket,
    admitted: bool,
    need: Arc<AdmissionNeeds>,
}

impl Scheduler {
    pub(crate) fn new(limits: SchedulerLimits, rules: ShareRules) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::new(SchedulerTable::new(limits, rules)),
        })
    }

    /// The numbers of running and waiting calls, for health.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.table.lock().load()
    }

    /// Waits for a slot and for the locks. `waiting` is called with the reasons if the call has to queue.
    ///
    /// Cancellation-safe: a caller may drop this future at any point. Between the queueing and the end of the wait,
    /// [`QueuePlaceGuard`] removes the call from the queue, or releases a slot that was given in the same moment.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        wanted: AdmissionRequest<'_>,
        waiting: impl FnOnce(Vec<WaitReason>),
    ) -> Result<Permit, QueueFull> {
        let need = Arc::new(AdmissionNeeds::of(wanted)?);
        let permit = |need| Permit {
            scheduler: Arc::clone(self),
            given: PermitContent::Slot(need),
        };
        let (ticket, admitted, reasons) = {
            let mut table = self.table.lock();
            if table.admit_at_once(&need) {
                return Ok(permit(need));
            }
            let reasons = outlook::reasons(&table, &need);
            let (admit, admitted) = oneshot::channel();
            (table.enqueue(&need, admit)?, admitted, reasons)
        };
        waiting(reasons);
        let mut place = QueuePlaceGuard {
            scheduler: self,
            ticket,
            admitted: false,
            need: Arc::clone(&need),
        };
        // Cannot fail: the sender is dropped only with the scheduler, and this future keeps the scheduler alive.
        place.admitted = admitted.await.is_ok();
        Ok(permit(need))
    }

    /// The waits of a call if it came now.
    pub(crate) fn look(
        &self,
        wanted: AdmissionRequest<'_>,
    ) -> Result<SchedulerSnapshot, QueueFull> {
        let need = AdmissionNeeds::of(wanted)?;
        Ok(outlook::of(&self.table.lock(), &need))
    }

    /// Takes a place in the queue for a call that waits for other calls. It counts like any other place.
    pub(crate) fn hold(
        self: &Arc<Self>,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Permit, QueueFull> {
        self.table.lock().hold(principal, session)?;
        let given = PermitContent::Place(principal.clone(), session.clone());
        Ok(Permit {
            scheduler: Arc::clone(self),
            given,
        })
    }

    /// Gives a running call's slot to others while the call waits for an answer from outside;
    /// [`come_back`](Self::come_back) takes a slot again. `None`: the call keeps its slot. A call that holds locks
    /// keeps them, because others could change the resources that its decision was about; a nested call has no slot of
    /// its own.
    pub(crate) fn step_aside(&self, call: InvocationId) -> Option<YieldedSlot> {
        let mut table = self.table.lock();
        let need = table
            .holders
            .get(&call)
            .filter(|need| !need.is_nested() && need.uses.is_empty())
            .cloned()?;
        table.release(&need);
        Some(YieldedSlot(need))
    }

    /// Waits for a slot again. A running call is never refused: it waits however long the queue is.
    pub(crate) async fn come_back(self: &Arc<Self>, YieldedSlot(need): YieldedSlot) {
        let (ticket, admitted) = {
            let mut table = self.table.lock();
            if table.admit_at_once(&need) {
                return;
            }
            let (admit, admitted) = oneshot::channel();
            (table.line_up(&need, admit), admitted)
        };
        let mut place = QueuePlaceGuard {
            scheduler: self,
            ticket,
            admitted: false,
            need,
        };
        place.admitted = admitted.await.is_ok();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut table = self.scheduler.table.lock();
        match &self.given {
            // A call that gave up its slot and did not come back holds nothing.
            PermitContent::Slot(need) if !table.holders.contains_key(&need.call) => {}
            PermitContent::Slot(need) => table.release(need),
            PermitContent::Place(principal, session) => table.let_go(principal, session),
        }
    }
}

impl Drop for QueuePlaceGuard<'_> {
    fn drop(&mut self) {
        if self.admitted {
            return;
        }
        let mut table = self.scheduler.table.lock();
        if !table.leave(self.ticket) {
            // The ticket is no longer in the queue, so the table admitted the call between the last poll and this drop.
            // Nothing will ever run in the slot, and no `Permit` exists that could release it: without this line the
            // slot and its locks would be lost until the host ends. The table cannot do it in `admit`, because its send
            // also succeeds when the receiver is dropped later without a poll.
            table.release(&self.need);
        }
    }
}

#[cfg(test)]
mod tests;
