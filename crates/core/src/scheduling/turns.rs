//! The order of one principal's sessions, among calls that wait only for a slot.
//!
//! Calls with the same limits of their own form one lane. A lane with room serves the session with the fewest running
//! calls first, then the longest wait. With that rule alone a session with one long call would wait for as long as
//! others keep coming, so a session that was passed over [`PATIENCE`] times goes before all others, and reserves its
//! own last slot for the call that was passed over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use toolpost_model::SessionId;

use super::need::{ConcurrencyLimit, QueueTicket};

/// The number of slots that may go to others while a session waits in a lane, or a principal waits for its turn.
pub(super) const PATIENCE: u64 = 64;

/// Limits of tool and source that several calls share.
pub(super) type ConcurrencyLane = Vec<ConcurrencyLimit>;

pub(super) struct SlotTurns {
    /// The limit of running calls of one session.
    session_most: usize,
    /// The number of slots given so far.
    given: u64,
    lanes: BTreeMap<ConcurrencyLane, LaneOrder>,
    sessions: HashMap<SessionId, SessionReadyCalls>,
}

/// The sessions of one lane that have a slot left, in two orders: by running calls, and by the time since they were
/// served.
#[derive(Default)]
struct LaneOrder {
    by_load: BTreeSet<(usize, QueueTicket)>,
    by_wait: BTreeSet<(u64, QueueTicket)>,
}

/// The calls of one session that wait only for a slot. The entry exists while there are any.
#[derive(Default)]
struct SessionReadyCalls {
    running: usize,
    lanes: BTreeMap<ConcurrencyLane, InLane>,
    /// The session's present entries in the lanes.
    shown: Vec<LaneEntry>,
}

struct LaneEntry {
    lane: ConcurrencyLane,
    load: usize,
    ticket: QueueTicket,
    since: u64,
}

struct InLane {
    tickets: BTreeSet<QueueTicket>,
    /// The number of slots given when the session last got one here, or began to wait.
    since: u64,
}

impl SessionReadyCalls {
    /// The lane that the session reserves its last slot for.
    ///
    /// Precedence in the lane is not enough. A call of a busy tool waits until the tool has room, and in a full session
    /// the slot that comes free at that moment is taken by a call of another lane, again and again: the session and the
    /// tool never have room at the same time. So after [`PATIENCE`] slots the session gives its last slot to no other
    /// lane, even if the slot stays unused for a while.
    fn kept_for(&self, session_most: usize, given: u64) -> Option<&ConcurrencyLane> {
        if self.running + 1 < session_most {
            return None;
        }
        let (lane, waiting) = self.lanes.iter().min_by_key(|(_, waiting)| waiting.since)?;
        (given - waiting.since >= PATIENCE).then_some(lane)
    }
}

impl SlotTurns {
    pub(super) fn new(session_most: usize) -> Self {
        Self {
            session_most,
            given: 0,
            lanes: BTreeMap::new(),
            sessions: HashMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// A call now waits only for a slot.
    pub(super) fn add(
        &mut self,
        session: &SessionId,
        running: usize,
        lane: &ConcurrencyLane,
        ticket: QueueTicket,
    ) {
        let since = self.given;
        let ready = self.sessions.entry(session.clone()).or_default();
        ready.running = running;
        let waiting = ready.lanes.entry(lane.clone());
        waiting
            .or_insert_with(|| InLane {
                tickets: BTreeSet::new(),
                since,
            })
            .tickets
            .insert(ticket);
        self.show(session);
    }

    /// A call left the queue, or waits for another call again.
    pub(super) fn remove(
        &mut self,
        session: &SessionId,
        lane: &ConcurrencyLane,
        ticket: QueueTicket,
    ) {
        let Some(ready) = self.sessions.get_mut(session) else {
            return;
        };
        if let Some(waiting) = ready.lanes.get_mut(lane) {
            waiting.tickets.remove(&ticket);
            if waiting.tickets.is_empty() {
                ready.lanes.remove(lane);
            }
        }
        self.show(session);
    }

    /// This session got a slot in this lane.
    pub(super) fn given(&mut self, session: &SessionId, running: usize, lane: &ConcurrencyLane) {
        self.given += 1;
        let since = self.given;
        let Some(ready) = self.sessions.get_mut(session) else {
            return;
        };
        ready.running = running;
        if let Some(waiting) = ready.lanes.get_mut(lane) {
            waiting.since = since;
        }
        self.show(session);
    }

    /// A call of this session gave its slot back.
    pub(super) fn returned(&mut self, session: &SessionId, running: usize) {
        let Some(ready) = self.sessions.get_mut(session) else {
            return;
        };
        ready.running = running;
        self.show(session);
    }

    /// Whether a newcomer would take the slot that its session reserves for a call that was passed over.
    pub(super) fn is_kept_from(&self, session: &SessionId, lane: &ConcurrencyLane) -> bool {
        let ready = self.sessions.get(session);
        let kept = ready.and_then(|ready| ready.kept_for(self.session_most, self.given));
        kept.is_some_and(|kept| kept != lane)
    }

    /// The next call of the lanes with room.
    pub(super) fn next(&self, has_room: impl Fn(&ConcurrencyLane) -> bool) -> Option<QueueTicket> {
        let open = || {
            self.lanes
                .iter()
                .filter(|(lane, _)| has_room(lane))
                .map(|(_, order)| order)
        };
        let passed_over = open().filter_map(|order| order.by_wait.first()).min();
        if let Some((since, ticket)) = passed_over
            && self.given - since >= PATIENCE
        {
            return Some(*ticket);
        }
        open()
            .filter_map(|order| order.by_load.first())
            .min()
            .map(|(_, ticket)| *ticket)
    }

    /// Updates the session's entries in all its lanes.
    fn show(&mut self, session: &SessionId) {
        let Some(ready) = self.sessions.get_mut(session) else {
            return;
        };
        for LaneEntry {
            lane,
            load,
            ticket,
            since,
        } in ready.shown.drain(..)
        {
            let Some(order) = self.lanes.get_mut(&lane) else {
                continue;
            };
            order.by_load.remove(&(load, ticket));
            order.by_wait.remove(&(since, ticket));
            if order.by_wait.is_empty() {
                self.lanes.remove(&lane);
            }
        }
        let load = ready.running;
        if ready.lanes.is_empty() {
            self.sessions.remove(session);
            return;
        }
        if load >= self.session_most {
            return;
        }
        let kept = ready.kept_for(self.session_most, self.given).cloned();
        for (lane, waiting) in &ready.lanes {
            let Some(&ticket) = waiting.tickets.first() else {
                continue;
            };
            if kept.as_ref().is_some_and(|kept| kept != lane) {
                continue;
            }
            let order = self.lanes.entry(lane.clone()).or_default();
            order.by_load.insert((load, ticket));
            order.by_wait.insert((waiting.since, ticket));
            ready.shown.push(LaneEntry {
                lane: lane.clone(),
                load,
                ticket,
                since: waiting.since,
            });
        }
    }
}
