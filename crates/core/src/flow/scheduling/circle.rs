//! Whether a nested call would wait for ever.
//!
//! Ordinary calls hold nothing while they wait. A nested call waits while the calls above it hold something, so two of
//! them can wait for each other. The one that would close the circle is refused: it is a result like any other, and the
//! code that made the call can go on without it.

use std::collections::HashSet;

use toolpost_model::InvocationId;

use super::{
    locks,
    need::{Bound, Need, Ticket},
    table::Table,
};

/// Whether those who hold what `need` waits for cannot end before the call that made it has ended.
pub(super) fn would_close(table: &Table, need: &Need) -> bool {
    let Some(parent) = need.parent else { return false };
    let never_ends = |call: &InvocationId| waits_for(table, *call, parent);
    // Every holder of a lock must end first; of those within a limit, one is enough.
    blockers(table, need).iter().any(never_ends)
        || need.bounds.iter().any(|bound| {
            let holders = holders_of(table, bound);
            holders.len() >= bound.most && holders.iter().all(never_ends)
        })
}

/// The running calls that hold what conflicts with a need.
fn blockers(table: &Table, need: &Need) -> Vec<InvocationId> {
    let conflicts = |other: &&Need| locks::conflict(&other.uses, &need.uses);
    table.holders.values().map(AsRef::as_ref).filter(conflicts).map(|other| other.call).collect()
}

fn holders_of(table: &Table, bound: &Bound) -> Vec<InvocationId> {
    let within = |other: &&Need| other.bounds.iter().any(|one| one.on == bound.on);
    table.holders.values().map(AsRef::as_ref).filter(within).map(|other| other.call).collect()
}

/// Whether a running call cannot end before `goal`: by way of the calls it made, and of what those wait for.
fn waits_for(table: &Table, call: InvocationId, goal: InvocationId) -> bool {
    let mut seen = HashSet::from([call]);
    let mut open = vec![call];
    while let Some(call) = open.pop() {
        if call == goal {
            return true;
        }
        let made = table.holders.values().filter(|other| other.parent == Some(call)).map(|other| other.call);
        let nested = table.waiting.range(..Ticket::FIRST_ORDINARY).map(|(_, waiting)| waiting);
        let waiting = nested.filter(|waiting| waiting.need.parent == Some(call));
        let held_up = waiting.flat_map(|waiting| {
            let only = waiting.need.bounds.iter().map(|bound| holders_of(table, bound));
            let only = only.filter(|holders| holders.len() == 1).flatten();
            blockers(table, &waiting.need).into_iter().chain(only)
        });
        open.extend(made.chain(held_up).filter(|next| seen.insert(*next)));
    }
    false
}
