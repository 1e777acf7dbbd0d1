//! The calls of each principal: its part of the slots and of the queue, and its turn among the principals.
//!
//! A free slot goes to the principal with the fewest running calls, among equals to the one that was served longest
//! ago; [`SlotTurns`] then picks one of its calls. Many sessions gain a principal nothing. A principal that uses its
//! share is left out while others are active, and one that was passed over too often goes first.

use std::collections::{BTreeSet, HashMap};

use toolpost_model::{DividedLimit, LimitUse, Principal, PrincipalRole, ShareRefusal, ShareRules};

use super::{
    SchedulerLimits,
    need::{AdmissionNeeds, QueueTicket},
    turns::{ConcurrencyLane, PATIENCE, SlotTurns},
};

pub(super) struct PrincipalShares {
    slots: DividedLimit,
    queue: DividedLimit,
    /// The limit of running calls of one session.
    session_most: usize,
    loads: HashMap<Principal, PrincipalLoad>,
    /// The active agents among them.
    active_agents: usize,
    running: RoleCounts,
    queued: RoleCounts,
    /// The number of slots given so far.
    given: u64,
    arrivals: u64,
    /// The principals with calls that wait only for a slot, in two orders: by running calls, and by the time since they
    /// were served.
    by_load: BTreeSet<(u64, ServedAt, Principal)>,
    by_wait: BTreeSet<(ServedAt, Principal)>,
}

/// The calls of one principal. The entry exists while there are any.
#[derive(Default)]
struct PrincipalLoad {
    running: u64,
    queued: u64,
    /// Its calls that wait only for a slot. Made with the first of them, so a host with free slots never needs it.
    turns: Option<Box<SlotTurns>>,
    served: ServedAt,
    /// Its present place in the two orders.
    shown: Option<(u64, ServedAt)>,
}

/// When a principal was last served, or began to wait: the number of slots given by then, and for equals the order of
/// arrival.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ServedAt {
    given: u64,
    arrival: u64,
}

#[derive(Clone, Copy, Default)]
struct RoleCounts {
    agents: u64,
    operators: u64,
}

impl RoleCounts {
    fn of(&mut self, role: PrincipalRole) -> &mut u64 {
        match role {
            PrincipalRole::Agent => &mut self.agents,
            PrincipalRole::Operator => &mut self.operators,
        }
    }

    fn all(self) -> u64 {
        self.agents + self.operators
    }
}

impl PrincipalShares {
    pub(super) fn new(limits: SchedulerLimits, rules: ShareRules) -> Self {
        Self {
            slots: rules.divide(limits.concurrency as u64),
            queue: rules.divide(limits.queue as u64),
            session_most: limits.session_concurrency,
            loads: HashMap::new(),
            active_agents: 0,
            running: RoleCounts::default(),
            queued: RoleCounts::default(),
            given: 0,
            arrivals: 0,
            by_load: BTreeSet::new(),
            by_wait: BTreeSet::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let counts = self.running.all() + self.queued.all() == 0 && self.active_agents == 0;
        counts && self.loads.is_empty() && self.by_load.is_empty() && self.by_wait.is_empty()
    }

    pub(super) fn running(&self) -> usize {
        usize::try_from(self.running.all()).unwrap_or(usize::MAX)
    }

    pub(super) fn queued(&self) -> usize {
        usize::try_from(self.queued.all()).unwrap_or(usize::MAX)
    }

    /// Checks whether a principal may have one more slot.
    pub(super) fn check_slot(&self, principal: &Principal) -> Result<(), ShareRefusal> {
        self.check(principal, &self.slots, self.running, |load| load.running)
    }

    /// Checks whether a principal may have one more place in the queue.
    pub(super) fn check_place(&self, principal: &Principal) -> Result<(), ShareRefusal> {
        self.check(principal, &self.queue, self.queued, |load| load.queued)
    }

    fn check(
        &self,
        principal: &Principal,
        limit: &DividedLimit,
        used: RoleCounts,
        own: impl Fn(&PrincipalLoad) -> u64,
    ) -> Result<(), ShareRefusal> {
        let load = self.loads.get(principal);
        let is_counted = load.is_some() && principal.role == PrincipalRole::Agent;
        let in_use = LimitUse {
            own: load.map_or(0, own),
            agents: used.agents,
            all: used.all(),
            others_active: self.active_agents > usize::from(is_counted),
        };
        limit.admit(principal.role, &in_use, 1)
    }

    fn load(&mut self, principal: &Principal) -> &mut PrincipalLoad {
        self.loads.entry(principal.clone()).or_insert_with(|| {
            self.active_agents += usize::from(principal.role == PrincipalRole::Agent);
            PrincipalLoad::default()
        })
    }

    fn forget_idle(&mut self, principal: &Principal) {
        let is_idle = self
            .loads
            .get(principal)
            .is_some_and(|load| load.running == 0 && load.queued == 0);
        if is_idle {
            self.loads.remove(principal);
            self.active_agents -= usize::from(principal.role == PrincipalRole::Agent);
        }
    }

    pub(super) fn join_queue(&mut self, principal: &Principal) {
        *self.queued.of(principal.role) += 1;
        self.load(principal).queued += 1;
    }

    /// One of its calls left the queue.
    pub(super) fn leave_queue(&mut self, principal: &Principal) {
        *self.queued.of(principal.role) -= 1;
        if let Some(load) = self.loads.get_mut(principal) {
            load.queued -= 1;
        }
        self.forget_idle(principal);
    }

    /// A call got a slot; `in_session` calls of its session run now.
    pub(super) fn begin(&mut self, need: &AdmissionNeeds, in_session: usize) {
        *self.running.of(need.principal.role) += 1;
        self.given += 1;
        let served = ServedAt {
            given: self.given,
            arrival: 0,
        };
        let load = self.load(&need.principal);
        load.running += 1;
        load.served = served;
        if let Some(turns) = &mut load.turns {
            turns.given(&need.session, in_session, &need.bounds);
            self.show(&need.principal);
        }
    }

    /// A call gave its slot back; `in_session` calls of its session still run.
    pub(super) fn end(&mut self, need: &AdmissionNeeds, in_session: usize) {
        *self.running.of(need.principal.role) -= 1;
        if let Some(load) = self.loads.get_mut(&need.principal) {
            load.running -= 1;
            if let Some(turns) = &mut load.turns {
                turns.returned(&need.session, in_session);
                self.show(&need.principal);
            }
        }
        self.forget_idle(&need.principal);
    }

    /// A call now waits only for a slot.
    pub(super) fn line_up(
        &mut self,
        need: &AdmissionNeeds,
        in_session: usize,
        ticket: QueueTicket,
    ) {
        self.arrivals += 1;
        let session_most = self.session_most;
        let served = ServedAt {
            given: self.given,
            arrival: self.arrivals,
        };
        let load = self.load(&need.principal);
        if load.turns.is_none() {
            load.served = served;
        }
        let turns = load
            .turns
            .get_or_insert_with(|| Box::new(SlotTurns::new(session_most)));
        turns.add(&need.session, in_session, &need.bounds, ticket);
        self.show(&need.principal);
    }

    /// A call left the queue, or waits for another call again.
    pub(super) fn step_out(&mut self, need: &AdmissionNeeds, ticket: QueueTicket) {
        let Some(load) = self.loads.get_mut(&need.principal) else {
            return;
        };
        if let Some(turns) = &mut load.turns {
            turns.remove(&need.session, &need.bounds, ticket);
            if turns.is_empty() {
                load.turns = None;
            }
        }
        self.show(&need.principal);
    }

    /// Whether the newcomer would take the slot that its session reserves for a call that was passed over.
    pub(super) fn is_kept_from(&self, need: &AdmissionNeeds) -> bool {
        let turns = self
            .loads
            .get(&need.principal)
            .and_then(|load| load.turns.as_ref());
        turns.is_some_and(|turns| turns.is_kept_from(&need.session, &need.bounds))
    }

    /// The next call to admit, if one may have a slot and its limits have room.
    pub(super) fn next(&self, has_room: impl Fn(&ConcurrencyLane) -> bool) -> Option<QueueTicket> {
        if self.running.all() >= self.slots.total() {
            return None;
        }
        let ticket_of = |principal: &Principal| {
            let turns = self.loads.get(principal)?.turns.as_ref()?;
            self.check_slot(principal).ok()?;
            turns.next(&has_room)
        };
        let is_passed_over = |served: &ServedAt| self.given - served.given >= PATIENCE;
        let passed_over = self
            .by_wait
            .iter()
            .take_while(|(served, _)| is_passed_over(served));
        let first = passed_over
            .map(|(_, principal)| principal)
            .find_map(ticket_of);
        first.or_else(|| {
            self.by_load
                .iter()
                .find_map(|(_, _, principal)| ticket_of(principal))
        })
    }

    /// Updates a principal's place in the two orders.
    fn show(&mut self, principal: &Principal) {
        let Some(load) = self.loads.get_mut(principal) else {
            return;
        };
        let now = load.turns.is_some().then_some((load.running, load.served));
        let before = std::mem::replace(&mut load.shown, now);
        if before == now {
            return;
        }
        if let Some((running, served)) = before {
            self.by_load.remove(&(running, served, principal.clone()));
            self.by_wait.remove(&(served, principal.clone()));
        }
        if let Some((running, served)) = now {
            self.by_load.insert((running, served, principal.clone()));
            self.by_wait.insert((served, principal.clone()));
        }
    }
}
