//! The state of one batch: its calls and their phases.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use toolpost_model::{BatchOrdering, BatchPlace, Interrupt, InvocationId, OnFailure};

use super::{ARRIVAL, BatchCallEnd, BatchRefusal, BatchTurn, MOST_CALLS, places::BatchIndexSet};
use crate::invocation::{CancelReason, LiveCall};

#[derive(Default)]
pub(super) struct BatchState {
    calls: BTreeMap<u32, BatchCall>,
    /// The call that canceled the batch by its failure.
    given_up_by: Option<u32>,
    last_change: Option<Instant>,
}

pub(super) struct BatchCall {
    call: InvocationId,
    depends_on: BatchIndexSet,
    /// The place beyond the limit that this call depends on. The error is returned only after the check that the call's
    /// own place is free.
    asks_beyond: Option<u32>,
    ordering: BatchOrdering,
    on_failure: OnFailure,
    arrived: Instant,
    phase: BatchCallPhase,
}

enum BatchCallPhase {
    /// It has not begun.
    Waiting(Arc<LiveCall>),
    /// It may begin, and no other serial call may.
    Turn(Arc<LiveCall>),
    Running(Arc<LiveCall>, Interrupt),
    Ended(BatchCallEnd, BatchAnswerDelivery),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchAnswerDelivery {
    Pending,
    Given,
}

impl BatchCall {
    pub(super) fn new(place: &BatchPlace, live: &Arc<LiveCall>) -> Result<Self, BatchRefusal> {
        if place.index >= MOST_CALLS {
            return Err(BatchRefusal::Place(place.index));
        }
        let mut depends_on = BatchIndexSet::default();
        let mut asks_beyond = None;
        for &other in &place.depends_on {
            if !depends_on.insert(other) {
                asks_beyond = Some(other);
            }
        }
        Ok(Self {
            call: live.id,
            depends_on,
            asks_beyond,
            ordering: place.ordering,
            on_failure: place.on_failure,
            arrived: Instant::now(),
            phase: BatchCallPhase::Waiting(Arc::clone(live)),
        })
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase, BatchCallPhase::Ended(..))
    }

    fn has_succeeded(&self) -> bool {
        matches!(
            self.phase,
            BatchCallPhase::Ended(BatchCallEnd::Succeeded, _)
        )
    }
}

impl BatchState {
    /// Checks whether a call can have its place.
    pub(super) fn join(&self, place: &BatchPlace, slot: &BatchCall) -> Result<(), BatchRefusal> {
        let taken_by = self.calls.get(&place.index);
        if taken_by.is_some_and(|slot| {
            !matches!(slot.phase, BatchCallPhase::Ended(BatchCallEnd::Rejected, _))
        }) {
            return Err(BatchRefusal::Taken(place.index));
        }
        if let Some(beyond) = slot.asks_beyond {
            return Err(BatchRefusal::Place(beyond));
        }
        if self.closes_circle(place.index, slot) {
            return Err(BatchRefusal::Circle(place.index));
        }
        self.given_up_by
            .map_or(Ok(()), |by| Err(BatchRefusal::GivenUp(by)))
    }

    pub(super) fn insert(&mut self, index: u32, slot: BatchCall) {
        self.calls.insert(index, slot);
        self.last_change = Some(Instant::now());
    }

    /// Whether the newcomer would wait for itself, through dependencies or through serial calls, which wait for all
    /// lower places. An ended call waits for nothing.
    fn closes_circle(&self, index: u32, newcomer: &BatchCall) -> bool {
        let waits_for = |place: u32, slot: &BatchCall, found: &mut BatchIndexSet| {
            slot.depends_on.iter().for_each(|other| {
                found.insert(other);
            });
            if slot.ordering == BatchOrdering::Serial {
                let lower = self.calls.range(..place).map(|(lower, _)| *lower);
                lower
                    .chain((index < place).then_some(index))
                    .for_each(|lower| {
                        found.insert(lower);
                    });
            }
        };
        let mut seen = BatchIndexSet::default();
        waits_for(index, newcomer, &mut seen);
        let mut open: Vec<u32> = seen.iter().collect();
        while let Some(place) = open.pop() {
            if place == index {
                return true;
            }
            let Some(slot) = self.calls.get(&place).filter(|slot| !slot.has_ended()) else {
                continue;
            };
            let mut next = BatchIndexSet::default();
            waits_for(place, slot, &mut next);
            for other in next.iter().filter(|other| !seen.contains(*other)) {
                open.push(other);
            }
            next.iter().for_each(|other| {
                seen.insert(other);
            });
        }
        false
    }

    /// A call's slot, unless another call has taken the place since.
    fn slot(&mut self, index: u32, call: InvocationId) -> Option<&mut BatchCall> {
        self.calls.get_mut(&index).filter(|slot| slot.call == call)
    }

    pub(super) fn turn(&mut self, index: u32) -> BatchTurn {
        let Some(slot) = self.calls.get(&index) else {
            return BatchTurn::Begin;
        };
        if !matches!(slot.phase, BatchCallPhase::Waiting(_)) {
            return BatchTurn::Begin;
        }
        if let Some(by) = self.given_up_by {
            return BatchTurn::GivenUp { because_of: by };
        }
        let mut waits = false;
        let mut missing = None;
        let mut until = None;
        for place in slot.depends_on.iter() {
            match self.calls.get(&place) {
                Some(other) if other.has_succeeded() => {}
                Some(other) if other.has_ended() => {
                    return BatchTurn::GivenUp { because_of: place };
                }
                Some(_) => waits = true,
                None => {
                    waits = true;
                    missing = Some(place);
                }
            }
        }
        if slot.ordering == BatchOrdering::Serial {
            let is_serial = |other: &BatchCall| other.ordering == BatchOrdering::Serial;
            let has_turn = |other: &BatchCall| {
                matches!(
                    other.phase,
                    BatchCallPhase::Turn(_) | BatchCallPhase::Running(..)
                )
            };
            waits |= self
                .calls
                .values()
                .any(|other| is_serial(other) && has_turn(other));
            waits |= self
                .calls
                .range(..index)
                .any(|(_, lower)| !lower.has_ended());
            until = self.arrival_of_lower(index, slot);
        }
        if waits || until.is_some() {
            return BatchTurn::Wait { missing, until };
        }
        if let Some(slot) = self.calls.get_mut(&index)
            && let BatchCallPhase::Waiting(live) = &slot.phase
        {
            slot.phase = BatchCallPhase::Turn(Arc::clone(live));
        }
        BatchTurn::Begin
    }

    /// The time until which a missing lower place may still arrive; `None` if none is missing.
    fn arrival_of_lower(&self, index: u32, slot: &BatchCall) -> Option<Instant> {
        let end = slot.arrived + ARRIVAL;
        let is_gap = self.calls.range(..index).count() < index as usize;
        (is_gap && Instant::now() < end).then_some(end)
    }

    pub(super) fn begin(&mut self, index: u32, interrupt: Interrupt) -> Result<(), CancelReason> {
        if let Some(place) = self.given_up_by {
            return Err(CancelReason::SiblingFailed { place });
        }
        if let Some(slot) = self.calls.get_mut(&index)
            && let BatchCallPhase::Waiting(live) | BatchCallPhase::Turn(live) = &slot.phase
        {
            slot.phase = BatchCallPhase::Running(Arc::clone(live), interrupt);
        }
        Ok(())
    }

    /// Notes the end of a call, and cancels the calls that its failure stops.
    pub(super) fn end(
        &mut self,
        index: u32,
        call: InvocationId,
        how: BatchCallEnd,
    ) -> Vec<Arc<LiveCall>> {
        self.last_change = Some(Instant::now());
        let Some(slot) = self.slot(index, call).filter(|slot| !slot.has_ended()) else {
            return Vec::new();
        };
        slot.phase = BatchCallPhase::Ended(how, BatchAnswerDelivery::Pending);
        let on_failure = slot.on_failure;
        let is_stopped: Box<dyn Fn(u32) -> bool> = match (how, on_failure) {
            (BatchCallEnd::Succeeded | BatchCallEnd::GivenUp, _) | (_, OnFailure::Ignore) => {
                return Vec::new();
            }
            (BatchCallEnd::Failed | BatchCallEnd::Rejected, OnFailure::CancelSiblings) => {
                self.given_up_by = self.given_up_by.or(Some(index));
                Box::new(|_| true)
            }
            (BatchCallEnd::Failed | BatchCallEnd::Rejected, OnFailure::CancelDependent) => {
                let dependents = self.dependents_of(index);
                Box::new(move |place| dependents.contains(place))
            }
        };
        let stopped = self.calls.iter().filter(|(place, _)| is_stopped(**place));
        stopped
            .filter_map(|(_, slot)| match &slot.phase {
                BatchCallPhase::Waiting(live)
                | BatchCallPhase::Turn(live)
                | BatchCallPhase::Running(live, Interrupt::Cancel) => Some(Arc::clone(live)),
                BatchCallPhase::Running(_, Interrupt::Block) | BatchCallPhase::Ended(..) => None,
            })
            .collect()
    }

    /// The calls that depend on a call, directly or through others.
    fn dependents_of(&self, index: u32) -> BatchIndexSet {
        let mut found = BatchIndexSet::default();
        let mut open = vec![index];
        while let Some(place) = open.pop() {
            for (&other, slot) in &self.calls {
                if slot.depends_on.contains(place) && !found.contains(other) {
                    found.insert(other);
                    open.push(other);
                }
            }
        }
        found
    }

    pub(super) fn may_answer(&self, index: u32) -> Result<(), Option<Instant>> {
        let Some(slot) = self.calls.get(&index) else {
            return Ok(());
        };
        let answered = |slot: &BatchCall| {
            matches!(
                slot.phase,
                BatchCallPhase::Ended(_, BatchAnswerDelivery::Given)
            )
        };
        let until = self.arrival_of_lower(index, slot);
        if until.is_none() && self.calls.range(..index).all(|(_, lower)| answered(lower)) {
            return Ok(());
        }
        Err(until)
    }

    /// The answer was sent, or no caller will ever wait for it.
    pub(super) fn answered(&mut self, index: u32, call: InvocationId) {
        self.last_change = Some(Instant::now());
        if let Some(slot) = self.slot(index, call) {
            let how = match slot.phase {
                BatchCallPhase::Ended(how, _) => how,
                BatchCallPhase::Waiting(_)
                | BatchCallPhase::Turn(_)
                | BatchCallPhase::Running(..) => BatchCallEnd::Failed,
            };
            slot.phase = BatchCallPhase::Ended(how, BatchAnswerDelivery::Given);
        }
    }

    pub(super) fn last_change(&self) -> Option<Instant> {
        self.last_change
    }

    pub(super) fn is_over_for(&self, time: Duration) -> bool {
        let answered = |slot: &BatchCall| {
            matches!(
                slot.phase,
                BatchCallPhase::Ended(_, BatchAnswerDelivery::Given)
            )
        };
        // An empty batch is about to get its first call.
        self.last_change.is_some_and(|last| last.elapsed() >= time)
            && self.calls.values().all(answered)
    }
}
