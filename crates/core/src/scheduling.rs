//! Layer 6: when a call runs, and beside what.
//!
//! One table under one short lock holds the running calls and the queue. A call is admitted when
//!
//! - no running and no earlier waiting call uses a resource that it needs in a way that conflicts: readers together,
//!   writers alone, nobody overtaken by a later rival, and what is not safe beside others alone in its session;
//! - its tool, its source, its session and its principal have room for one more.
//!
//! A free slot goes to the principal with the fewest running calls, and there to the session with the fewest, among
//! equals to the one that waits longest; one that was passed over too often goes first, so that nobody waits for ever.
//! A principal has a share of the slots and of the queue, and borrows more while it is alone. All that a call needs is taken at once, so
//! calls never wait for one another in a circle. Nested calls are the exception: they come while the call above them
//! holds something. They overtake everybody, and one that would close a circle is refused.

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

/// How many calls run and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerLimits {
    /// Calls that run at the same time, in all.
    pub concurrency: usize,
    /// Calls of one session that run at the same time.
    pub session_concurrency: usize,
    /// Calls that wait, in all.
    pub queue: usize,
}

/// Why a call cannot wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueFull {
    #[error("{}", .0.told("places in the queue", "limits.queue"))]
    Shared(ShareRefusal),
    #[error("{share} calls of this session are waiting already, which is its share")]
    Session { share: usize },
    /// Waiting would be for ever: the holder waits for this very call.
    #[error("the call that made it holds `{key}`, which it would need alone")]
    HeldAbove { key: String },
    /// Waiting would be for ever: those who hold what it needs wait, by way of others, for this very call.
    #[error("what it needs is held by calls that wait for the call that made it")]
    Circle,
}

pub(crate) struct Scheduler {
    table: Mutex<SchedulerTable>,
}

/// What a call was given, given back when dropped.
pub(crate) struct Permit {
    scheduler: Arc<Scheduler>,
    given: PermitContent,
}

enum PermitContent {
    /// A slot with its resources.
    Slot(Arc<AdmissionNeeds>),
    /// A place in the queue without a wish for a slot: for a call that waits for other calls, not for a turn.
    Place(Principal, SessionId),
}

/// A running call that let others go before it.
pub(crate) struct YieldedSlot(Arc<AdmissionNeeds>);

/// Leaves the queue when the caller stops waiting.
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

    /// Running and waiting calls, for health.
    pub(crate) fn load(&self) -> (usize, usize) {
        self.table.lock().load()
    }

    /// Waits for a slot and the resources. `waiting` is called when the call has to queue, with what it waits for.
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
        // The sender is dropped only with the scheduler, which this future keeps alive.
        place.admitted = admitted.await.is_ok();
        Ok(permit(need))
    }

    /// What a call would have to wait for if it came now.
    pub(crate) fn look(
        &self,
        wanted: AdmissionRequest<'_>,
    ) -> Result<SchedulerSnapshot, QueueFull> {
        let need = AdmissionNeeds::of(wanted)?;
        Ok(outlook::of(&self.table.lock(), &need))
    }

    /// Takes a place in the queue for a call that waits for other calls. It counts like any other there.
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

    /// Gives a running call's turn to others while the call waits for somebody outside; [`come_back`](Self::come_back)
    /// takes it again. `None`: it keeps its turn, because others could change what it was decided on, or because it has
    /// the turn of the call above it.
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

    /// Waits for a turn again. A call that runs already is never turned away: it waits however long the queue is.
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
            // One that stepped aside and never came back has nothing to give.
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
            // It was admitted in the same moment, and nobody will use the slot.
            table.release(&self.need);
        }
    }
}

#[cfg(test)]
mod tests;
