//! Layer 6: when a call runs, and beside what.
//!
//! One table under one short lock holds the running calls and the queue. A call is admitted when the host and
//! its session have a slot and no running or earlier waiting call holds a resource it needs: readers together,
//! writers alone, nobody overtaken by a later rival.

mod locks;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;
use toolpost_model::{Access, Effects, ResourceKey, ResourceUse, SessionId};

use locks::LockTable;

use super::invocation::Parent;

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

/// How far into the queue a free slot looks for a call that can use it: the search happens under the lock.
const LOOK_AHEAD: usize = 1_024;

/// The queue is full.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueueFull {
    #[error("{limit} calls are waiting already")]
    Host { limit: usize },
    #[error("{share} calls of this session are waiting already, which is its share")]
    Session { share: usize },
    /// Waiting would be for ever: the holder waits for this very call.
    #[error("the call that made it holds `{key}`, which it would need alone")]
    HeldAbove { key: String },
}

pub(crate) struct Scheduler {
    limits: SchedulerLimits,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    running: usize,
    sessions: HashMap<SessionId, SessionLoad>,
    locks: LockTable,
    queue: VecDeque<Waiting>,
    next_ticket: u64,
}

/// The running calls of one session.
#[derive(Default)]
struct SessionLoad {
    running: usize,
    /// One of them must be alone.
    alone: bool,
}

struct Waiting {
    ticket: u64,
    need: Arc<Need>,
    admit: oneshot::Sender<()>,
}

/// What a call needs to run.
struct Need {
    session: SessionId,
    /// Made by a call that runs: it has that call's slot and place in the session, and needs only resources.
    nested: bool,
    /// It is not safe beside other calls of its session.
    alone: bool,
    uses: Vec<ResourceUse>,
}

impl Need {
    /// What a call needs beside what the calls above it hold.
    fn new(session: &SessionId, effects: &Effects, parent: Option<&Parent>) -> Result<Self, QueueFull> {
        let (session, nested) = (session.clone(), parent.is_some());
        let held = parent.map(|parent| parent.held.as_slice()).unwrap_or_default();
        let missing = |wanted: &&ResourceUse| !held.iter().any(|one| locks::covers(one, wanted));
        let mut uses: Vec<ResourceUse> = effects.uses.iter().filter(missing).cloned().collect();
        if let Some(parent) = parent {
            // In its parent's place in the session a call cannot be alone there; among its siblings it can.
            let access = if effects.concurrency_safe { Access::Read } else { Access::Write };
            uses.push(ResourceUse { key: ResourceKey::new("siblings", &parent.id.to_string()), access });
        }
        if let Some(one) = held.iter().find(|one| uses.iter().any(|wanted| locks::collide(one, wanted))) {
            return Err(QueueFull::HeldAbove { key: one.key.as_str().to_owned() });
        }
        Ok(Self { session, nested, alone: !effects.concurrency_safe && !nested, uses })
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        ((self.alone || other.alone) && self.session == other.session)
            || locks::conflict(&self.uses, &other.uses)
    }
}

/// A slot with its resources, given back when dropped.
pub(crate) struct Permit {
    scheduler: Arc<Scheduler>,
    need: Arc<Need>,
}

/// Leaves the queue when the caller stops waiting.
struct Place<'a> {
    scheduler: &'a Arc<Scheduler>,
    ticket: u64,
    admitted: bool,
    need: Arc<Need>,
}

impl Scheduler {
    pub(crate) fn new(limits: SchedulerLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Running and waiting calls, for health.
    pub(crate) fn load(&self) -> (usize, usize) {
        let table = self.table();
        (table.running, table.queue.len())
    }

    /// Waits for a slot and the resources. `waiting` is called when the call has to queue. A call made by another
    /// comes with its `parent`.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        session: &SessionId,
        effects: &Effects,
        parent: Option<&Parent>,
        waiting: impl FnOnce(),
    ) -> Result<Permit, QueueFull> {
        let need = Arc::new(Need::new(session, effects, parent)?);
        let (ticket, admitted) = {
            let mut table = self.table();
            // Whoever waits goes first, unless the newcomer is in nobody's way: `ready` sees to both.
            // A nested call overtakes everybody: those who wait may be waiting for the call that made it.
            if table.ready(&need, &self.limits) && (need.nested || !table.would_overtake(&need)) {
                table.take(&need);
                return Ok(Permit { scheduler: Arc::clone(self), need });
            }
            table.check_room(session, self.limits.queue)?;
            let (admit, admitted) = oneshot::channel();
            let ticket = table.next_ticket;
            table.next_ticket += 1;
            let waiting = Waiting { ticket, need: Arc::clone(&need), admit };
            if need.nested {
                table.queue.push_front(waiting);
            } else {
                table.queue.push_back(waiting);
            }
            (ticket, admitted)
        };
        waiting();
        let mut place = Place { scheduler: self, ticket, admitted: false, need: Arc::clone(&need) };
        // The sender is dropped only with the scheduler, which this future keeps alive.
        place.admitted = admitted.await.is_ok();
        Ok(Permit { scheduler: Arc::clone(self), need })
    }

    fn give_back(&self, need: &Need) {
        let mut table = self.table();
        table.release(need);
        table.admit_waiting(&self.limits);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.scheduler.give_back(&self.need);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.admitted {
            return;
        }
        let mut table = self.scheduler.table();
        let before = table.queue.len();
        let ticket = self.ticket;
        table.queue.retain(|waiting| waiting.ticket != ticket);
        // Not in the queue any more: it was admitted in the same moment and nobody will use the slot.
        if table.queue.len() == before {
            table.release(&self.need);
        }
        table.admit_waiting(&self.scheduler.limits);
    }
}

impl Table {
    fn ready(&self, need: &Need, limits: &SchedulerLimits) -> bool {
        if need.nested {
            return self.locks.free(&need.uses);
        }
        let beside_others =
            |load: &SessionLoad| !load.alone && !need.alone && load.running < limits.session_concurrency;
        self.running < limits.concurrency
            && self.sessions.get(&need.session).is_none_or(beside_others)
            && self.locks.free(&need.uses)
    }

    /// One session may fill half of the queue, so that it cannot keep the others out.
    fn check_room(&self, session: &SessionId, limit: usize) -> Result<(), QueueFull> {
        if self.queue.len() >= limit {
            return Err(QueueFull::Host { limit });
        }
        let share = limit.div_ceil(2);
        let own = self.queue.iter().filter(|waiting| waiting.need.session == *session).count();
        if own >= share { Err(QueueFull::Session { share }) } else { Ok(()) }
    }

    /// Whether an earlier call waits for something this one would take away.
    fn would_overtake(&self, need: &Need) -> bool {
        self.queue.iter().any(|waiting| waiting.need.conflicts_with(need))
    }

    fn take(&mut self, need: &Need) {
        self.locks.take(&need.uses);
        if need.nested {
            return;
        }
        self.running += 1;
        let load = self.sessions.entry(need.session.clone()).or_default();
        load.running += 1;
        load.alone = need.alone;
    }

    fn release(&mut self, need: &Need) {
        self.locks.release(&need.uses);
        if need.nested {
            return;
        }
        self.running -= 1;
        if let Some(load) = self.sessions.get_mut(&need.session) {
            load.running -= 1;
            load.alone = false;
            if load.running == 0 {
                self.sessions.remove(&need.session);
            }
        }
    }

    fn admit_waiting(&mut self, limits: &SchedulerLimits) {
        let mut place = 0;
        // What earlier calls in the queue need: a later one may pass them only where it is in nobody's way.
        let mut passed: Vec<Arc<Need>> = Vec::new();
        while place < self.queue.len().min(LOOK_AHEAD) {
            let need = Arc::clone(&self.queue[place].need);
            // Nested calls stand in front and need no slot.
            if self.running >= limits.concurrency && !need.nested {
                break;
            }
            let overtakes = !need.nested && passed.iter().any(|earlier| earlier.conflicts_with(&need));
            if !self.ready(&need, limits) || overtakes {
                passed.push(need);
                place += 1;
                continue;
            }
            let Some(waiting) = self.queue.remove(place) else { break };
            self.take(&need);
            // A caller that left in this very moment gives the slot back itself: only it knows that it left.
            let _ = waiting.admit.send(());
        }
    }
}

#[cfg(test)]
mod tests;
