//! The order of one principal's sessions, among calls that wait only for a slot.
//!
//! Calls with the same limits of their own stand in one lane. A lane with room lets the session with the fewest running
//! calls go first, then who waits longest. That alone would let a session with one long call wait for as long as others
//! keep coming, so a session that was passed over [`PATIENCE`] times goes before all others, and keeps its own last slot
//! for the call that was passed over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use toolpost_model::SessionId;

use super::need::{ConcurrencyLimit, QueueTicket};

/// How many slots may go to others while a session waits in a lane, or a principal in line.
pub(super) const PATIENCE: u64 = 64;

/// The limits of their own that calls share.
pub(super) type ConcurrencyLane = Vec<ConcurrencyLimit>;

pub(super) struct SlotTurns {
    /// Calls of one session that may run at the same time.
    session_most: usize,
    /// Slots given so far.
    given: u64,
    lanes: BTreeMap<ConcurrencyLane, LaneOrder>,
    sessions: HashMap<SessionId, SessionReadyCalls>,
}

/// The sessions of one lane that have a slot left, twice: by their claim and by how long they were passed over.
#[derive(Default)]
struct LaneOrder {
    by_load: BTreeSet<(usize, QueueTicket)>,
    by_wait: BTreeSet<(u64, QueueTicket)>,
}

/// The calls of one session that wait for nothing but a slot. There is one while there are such calls.
#[derive(Default)]
struct SessionReadyCalls {
    running: usize,
    lanes: BTreeMap<ConcurrencyLane, InLane>,
    /// What stands in the lanes for it.
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
    /// How many slots had been given when the session last got one here, or began to wait.
    since: u64,
}

impl SessionReadyCalls {
    /// The lane that the session keeps its last slot for.
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

    /// A call waits for nothing but a slot.
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

    /// It left, or has to wait for something else again.
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

    /// A slot was given, to this session, in this lane.
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

    /// A slot came back from this session.
    pub(super) fn returned(&mut self, session: &SessionId, running: usize) {
        let Some(ready) = self.sessions.get_mut(session) else {
            return;
        };
        ready.running = running;
        self.show(session);
    }

    /// Whether a newcomer would take the slot that its session keeps for a call that was passed over.
    pub(super) fn is_kept_from(&self, session: &SessionId, lane: &ConcurrencyLane) -> bool {
        let ready = self.sessions.get(session);
        let kept = ready.and_then(|ready| ready.kept_for(self.session_most, self.given));
        kept.is_some_and(|kept| kept != lane)
    }

    /// Who goes next, if one of the lanes with room has somebody.
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

    /// Puts the session where it belongs in every lane it waits in.
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
