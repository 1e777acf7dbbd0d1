//! Batches: the calls that a model made in one turn. A batch fixes which calls wait for which, the order of the
//! answers, and the effect of one failure on the others.
//!
//! The host learns of a batch call by call: its calls arrive one by one, each with its place. The rules:
//!
//! - **Dependencies.** A call runs once all calls it depends on have succeeded. If one of them ends in any other way,
//!   the call ends `sibling_canceled`. The wait for a dependency that has not arrived lasts as long as the caller
//!   waits, and never longer than the host's default deadline; then the call ends `sibling_canceled`, code
//!   `dependency_missing`.
//! - **Order.** A call runs and is recorded as soon as it can be. With `preserve_terminal_order` its *answer* is sent
//!   after the answers of all lower places that have arrived; with `serial` it also *begins* only after those calls
//!   have ended, and never beside another serial call of its batch. A lower place may still arrive within [`ARRIVAL`]
//!   of the call's own arrival, and counts as missing afterwards: callers that send in order lose nothing, and a gap
//!   delays the batch by a moment and does not block it. A caller that cancels the call, or runs out of patience, gets
//!   its answer at once, and so does every caller of the session while the held answers are too large.
//! - **Failure.** Any end but success fails a batch, except for a call that was canceled with its siblings. With
//!   `cancel_siblings` all others that have not started end `sibling_canceled`, also calls that arrive later; running
//!   ones are canceled if their tool's interrupt behaviour is `cancel`.
//! - **Invalid places.** A call ends with `invalid_arguments` for a place beyond [`MOST_CALLS`] (`batch_place`), for a
//!   place that is taken (`batch_place_taken`), and if it depends on itself, directly, through others or through the
//!   serial order (`batch_cycle`). The place then counts as failed, so no call waits for it. A place whose call was
//!   `rejected` may be taken again.
//! - **Bounds.** [`MOST_BATCHES`] batches of a session are kept at a time; a batch is dropped when all its calls have
//!   ended and nothing happened in it for [`KEPT`], or when its entry is needed. A call that waits for its siblings
//!   counts in the host's queue. A restart drops all batches: calls that depend on an earlier answer have to be sent
//!   again.

mod places;
mod state;
pub(crate) mod turn;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use toolpost_model::{BatchOrdering, BatchPlace, Interrupt, InvocationId};

pub(crate) use places::MOST_CALLS;
use state::{BatchCall, BatchState};

use crate::invocation::{CancelReason, LiveCall};

const MOST_BATCHES: usize = 64;
/// The lifetime of a batch without running calls.
const KEPT: Duration = Duration::from_secs(60);
/// How long a lower place may arrive after a higher one.
pub(crate) const ARRIVAL: Duration = Duration::from_millis(100);
/// The limit of held answers in one session, in bytes.
const HELD_BACK: usize = 32 << 20;
const ID_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BatchRefusal {
    #[error("the batch's id has {0} bytes; the limit is {ID_BYTES}")]
    Id(usize),
    #[error("place {0} is beyond the {MOST_CALLS} calls that a batch can have")]
    Place(u32),
    #[error("place {0} of the batch is taken by another call")]
    Taken(u32),
    #[error("place {0} of the batch would wait for itself")]
    Circle(u32),
    #[error("{MOST_BATCHES} batches of this session have calls that have not ended")]
    TooMany,
    #[error("call {0} of its batch failed")]
    GivenUp(u32),
}

#[derive(Default)]
pub(crate) struct SessionBatches {
    known: Mutex<HashMap<String, Arc<Batch>>>,
    held_back: Arc<AtomicUsize>,
}

struct Batch {
    state: Mutex<BatchState>,
    /// Counts changes, for calls that wait for one.
    changes: watch::Sender<u64>,
    held_back: Arc<AtomicUsize>,
}

/// A call's place in its batch. When this is dropped, no call waits for the place any more.
pub(crate) struct BatchMember {
    batch: Arc<Batch>,
    index: u32,
    call: InvocationId,
}

/// The answer to a call that wants to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchTurn {
    /// The call may begin.
    Begin,
    /// A dependency ended without success, or one call canceled the batch.
    GivenUp { because_of: u32 },
    /// The call has to wait.
    Wait {
        /// A dependency that has not arrived.
        missing: Option<u32>,
        /// The time at which to check again, if nothing changes.
        until: Option<Instant>,
    },
}

impl SessionBatches {
    pub(crate) fn join(
        &self,
        place: &BatchPlace,
        live: &Arc<LiveCall>,
    ) -> Result<BatchMember, BatchRefusal> {
        if place.id.len() > ID_BYTES {
            return Err(BatchRefusal::Id(place.id.len()));
        }
        let slot = BatchCall::new(place, live)?;
        let batch = self.find(&place.id)?;
        let mut state = batch.state.lock();
        let joined = state.join(place, &slot);
        if joined == Err(BatchRefusal::Taken(place.index)) {
            return Err(BatchRefusal::Taken(place.index));
        }
        state.insert(place.index, slot);
        drop(state);
        batch.changed();
        let member = BatchMember {
            batch,
            index: place.index,
            call: live.id,
        };
        let Err(refusal) = joined else {
            return Ok(member);
        };
        let given_up = matches!(refusal, BatchRefusal::GivenUp(_));
        member.end(if given_up {
            BatchCallEnd::GivenUp
        } else {
            BatchCallEnd::Failed
        });
        Err(refusal)
    }

    fn find(&self, id: &str) -> Result<Arc<Batch>, BatchRefusal> {
        let mut known = self.known.lock();
        if let Some(batch) = known.get(id) {
            return Ok(Arc::clone(batch));
        }
        known.retain(|_, batch| !batch.state.lock().is_over_for(KEPT));
        if known.len() >= MOST_BATCHES {
            let over = known
                .iter()
                .filter(|(_, batch)| batch.state.lock().is_over_for(Duration::ZERO));
            let oldest = over.min_by_key(|(_, batch)| batch.state.lock().last_change());
            let oldest = oldest
                .map(|(id, _)| id.clone())
                .ok_or(BatchRefusal::TooMany)?;
            known.remove(&oldest);
        }
        let batch = Arc::new(Batch {
            state: Mutex::new(BatchState::default()),
            changes: watch::Sender::new(0),
            held_back: Arc::clone(&self.held_back),
        });
        known.insert(id.to_owned(), Arc::clone(&batch));
        Ok(batch)
    }
}

impl Batch {
    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// How a call of a batch ended, as its siblings see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchCallEnd {
    Succeeded,
    Failed,
    /// The host did not accept it, so it may be sent again.
    Rejected,
    /// It was canceled with its siblings, which counts as no failure of its own.
    GivenUp,
}

impl BatchMember {
    /// Resolves at each change of the batch.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.batch.changes.subscribe()
    }

    /// Whether the call may begin. A call that gets `Begin` has the turn and keeps it.
    pub(crate) fn turn(&self) -> BatchTurn {
        self.batch.state.lock().turn(self.index)
    }

    /// The call begins its work. From now on a sibling cancels it only if its tool's interrupt behaviour allows that.
    pub(crate) fn begin(&self, interrupt: Interrupt) -> Result<(), CancelReason> {
        self.batch.state.lock().begin(self.index, interrupt)
    }

    /// The call has ended and is recorded.
    pub(crate) fn end(&self, how: BatchCallEnd) {
        let stopped = self.batch.state.lock().end(self.index, self.call, how);
        for call in stopped {
            call.cancel(CancelReason::SiblingFailed { place: self.index }, None);
        }
        self.batch.changed();
    }

    /// Whether the answer may be sent; if not, the time at which the wait for lower places ends.
    pub(crate) fn may_answer(&self) -> Result<(), Option<Instant>> {
        self.batch.state.lock().may_answer(self.index)
    }

    /// Counts the answer as held. `None`: there is no room, so it is sent at once.
    pub(crate) fn hold_back(&self, bytes: usize) -> Option<HeldBack> {
        let held = HeldBack {
            all: Arc::clone(&self.batch.held_back),
            bytes,
        };
        let before = held.all.fetch_add(bytes, Ordering::Relaxed);
        (before + bytes <= HELD_BACK).then_some(held)
    }
}

impl Drop for BatchMember {
    fn drop(&mut self) {
        self.batch.state.lock().answered(self.index, self.call);
        self.batch.changed();
    }
}

/// An answer that waits for the answers before it.
pub(crate) struct HeldBack {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Whether the order of a batch holds answers back.
pub(crate) fn is_ordered(place: &BatchPlace) -> bool {
    match place.ordering {
        BatchOrdering::PreserveTerminalOrder | BatchOrdering::Serial => true,
        BatchOrdering::AllowUnordered => false,
    }
}
