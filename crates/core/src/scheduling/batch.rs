//! The calls that a model made in one turn: who waits for whom, in which order they answer, and what the failure of one
//! means for the others.
//!
//! The host does not know a batch beforehand: its calls arrive one by one, each with its place. What follows from that:
//!
//! - **Dependencies.** A call runs once all calls it depends on have succeeded. Where one of them ends in any other way,
//!   it ends `sibling_canceled`. One that has not arrived is waited for as long as the caller waits, and never longer
//!   than the host's default deadline; then the call ends `sibling_canceled`, code `dependency_missing`.
//! - **Order.** A call is done and recorded as soon as it can be. With `preserve_terminal_order` its *answer* is given
//!   out after those of all lower places that have arrived; with `serial` it also *begins* only after they have ended,
//!   and never beside another serial call of its batch. A lower place that has not arrived is waited for
//!   [`ARRIVAL`] from the call's own arrival on, and then taken for missing: callers that send in order lose
//!   nothing, and a gap costs a moment, not the batch. A caller that cancels the call, or whose patience is over, gets
//!   its answer at once, and so does everybody once the answers held back in the session are too large.
//! - **Failure.** What fails a batch is any end but success, though not that a call was given up with its siblings. With
//!   `cancel_siblings` all others that have not started end `sibling_canceled`, also those that arrive later; running
//!   ones are told to stop where their tool's interrupt behaviour is `cancel`.
//! - **Nonsense** ends with `invalid_arguments`: a place beyond [`MOST_CALLS`] (`batch_place`), one that is taken
//!   (`batch_place_taken`), a call that depends on itself, also by way of others or of the serial order (`batch_cycle`).
//!   The place counts as failed then, so that nobody waits for it. A place whose call was `rejected` may be taken again.
//! - **Bounds.** [`MOST_BATCHES`] batches of a session are known at a time; one is forgotten when all its calls have
//!   ended and nothing happened in it for [`KEPT`], or when its place is needed. A call that waits for its siblings
//!   counts in the host's queue. A restart forgets batches: what depended on an answer from before it has to be sent anew.

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

/// Batches of one session that are known at the same time.
const MOST_BATCHES: usize = 64;
/// How long a batch without running calls is known.
const KEPT: Duration = Duration::from_secs(60);
/// How long a lower place may arrive after a higher one.
pub(crate) const ARRIVAL: Duration = Duration::from_millis(100);
/// How many bytes of answers may be held back for their order in one session.
const HELD_BACK: usize = 32 << 20;
/// The longest id.
const ID_BYTES: usize = 256;

/// Why a call cannot have its place.
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

/// The batches of one session.
#[derive(Default)]
pub(crate) struct SessionBatches {
    known: Mutex<HashMap<String, Arc<Batch>>>,
    held_back: Arc<AtomicUsize>,
}

struct Batch {
    state: Mutex<BatchState>,
    /// Counts what happened, for those who wait for it.
    changes: watch::Sender<u64>,
    held_back: Arc<AtomicUsize>,
}

/// A call's place in its batch. Whatever becomes of the call, nobody waits for it when this is dropped.
pub(crate) struct BatchMember {
    batch: Arc<Batch>,
    index: u32,
    call: InvocationId,
}

/// What a call that wants to begin is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchTurn {
    /// It may.
    Begin,
    /// A call it depends on has ended without success, or one gave up the batch.
    GivenUp { because_of: u32 },
    /// It has to wait.
    Wait {
        /// Among others, for a call that has not arrived.
        missing: Option<u32>,
        /// Not beyond this moment, if nothing happens.
        until: Option<Instant>,
    },
}

impl SessionBatches {
    /// Takes a call's place.
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

/// How a call of a batch ended, as far as its siblings care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchCallEnd {
    Succeeded,
    Failed,
    /// The host did not take it, so it may come again.
    Rejected,
    /// It was given up with its siblings, which is nobody else's failure.
    GivenUp,
}

impl BatchMember {
    /// Resolves whenever something happened in the batch.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.batch.changes.subscribe()
    }

    /// Whether the call may begin. Who is told so has its turn and keeps it.
    pub(crate) fn turn(&self) -> BatchTurn {
        self.batch.state.lock().turn(self.index)
    }

    /// The call begins its work. From now on only what its tool's behaviour allows stops it for its siblings.
    pub(crate) fn begin(&self, interrupt: Interrupt) -> Result<(), CancelReason> {
        self.batch.state.lock().begin(self.index, interrupt)
    }

    /// The call has ended and is on record.
    pub(crate) fn end(&self, how: BatchCallEnd) {
        let stopped = self.batch.state.lock().end(self.index, self.call, how);
        for call in stopped {
            call.cancel(CancelReason::SiblingFailed { place: self.index }, None);
        }
        self.batch.changed();
    }

    /// Whether the answer may be given out, or until when it waits for lower places at most, if nothing happens.
    pub(crate) fn may_answer(&self) -> Result<(), Option<Instant>> {
        self.batch.state.lock().may_answer(self.index)
    }

    /// Counts the answer among those held back. `None`: there is no room, so that it is given out at once.
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

/// An answer that waits for those before it.
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
