//! The check whether a nested call would wait for ever.
//!
//! Ordinary calls hold nothing while they wait. A nested call waits while the calls above it hold locks, so two of them
//! can wait for each other. The call that would close the circle is refused; its error is a result like any other, and
//! the code that made the call can continue without it.
//!
//! A timeout would be the simpler remedy. But it could not distinguish a circle from a slow call, and would hold the
//! locks of both parents until it expires. The check is exact, and runs only when a nested call has to queue.

use std::collections::HashSet;

use toolpost_model::InvocationId;

use super::{
    locks,
    need::{AdmissionNeeds, ConcurrencyLimit, QueueTicket},
    table::SchedulerTable,
};

/// A nested call that waits, or would wait.
struct WaitingChild {
    parent: Option<InvocationId>,
    /// The calls that must all end before it can run.
    locked_by: Vec<InvocationId>,
    /// For each full limit, its holders: one of them must end.
    bounded_by: Vec<Vec<InvocationId>>,
}

impl WaitingChild {
    fn of(table: &SchedulerTable, need: &AdmissionNeeds) -> Self {
        let conflicts = |other: &AdmissionNeeds| locks::conflict(&other.uses, &need.uses);
        let within = |other: &AdmissionNeeds, bound: &ConcurrencyLimit| {
            other.bounds.iter().any(|one| one.on == bound.on)
        };
        let full = |bound: &ConcurrencyLimit| {
            let holders = holders(table, |other| within(other, bound));
            (holders.len() >= bound.most).then_some(holders)
        };
        Self {
            parent: need.parent,
            locked_by: holders(table, conflicts),
            bounded_by: need.bounds.iter().filter_map(full).collect(),
        }
    }

    fn can_run(&self, can_end: &HashSet<InvocationId>) -> bool {
        self.locked_by.iter().all(|call| can_end.contains(call))
            && self
                .bounded_by
                .iter()
                .all(|holders| holders.iter().any(|call| can_end.contains(call)))
    }
}

fn holders(table: &SchedulerTable, which: impl Fn(&AdmissionNeeds) -> bool) -> Vec<InvocationId> {
    table
        .holders
        .values()
        .filter(|need| which(need))
        .map(|need| need.call)
        .collect()
}

/// Whether the calling call could never end if the nested call waited.
///
/// The function computes the set of running calls that can end, from nothing upwards: a call can end when all its
/// running children can, and when all its waiting children wait only for calls that can end. The set grows until it is
/// stable. A search for one circle in a graph would not be enough, because a limit is free as soon as any of its
/// holders ends, while a lock needs the end of all of them.
pub(super) fn would_close(table: &SchedulerTable, need: &AdmissionNeeds) -> bool {
    let Some(parent) = need.parent else {
        return false;
    };
    let nested = table
        .waiting
        .range(..QueueTicket::FIRST_ORDINARY)
        .map(|(_, waiting)| &*waiting.need);
    let waiting: Vec<WaitingChild> = nested
        .chain([need])
        .map(|waiting| WaitingChild::of(table, waiting))
        .collect();
    let mut can_end: HashSet<InvocationId> = HashSet::new();
    loop {
        let ends = |call: InvocationId| {
            let mut runs = table
                .holders
                .values()
                .filter(|other| other.parent == Some(call));
            let mut waits = waiting.iter().filter(|child| child.parent == Some(call));
            runs.all(|child| can_end.contains(&child.call))
                && waits.all(|child| child.can_run(&can_end))
        };
        let more: Vec<InvocationId> = table
            .holders
            .keys()
            .copied()
            .filter(|call| !can_end.contains(call) && ends(*call))
            .collect();
        if more.is_empty() {
            return !can_end.contains(&parent);
        }
        can_end.extend(more);
    }
}
