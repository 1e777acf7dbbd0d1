//! The running calls and the queue.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use tokio::sync::oneshot;
use toolpost_model::{InvocationId, Principal, SessionId, ShareRules};

use super::{
    QueueFull, SchedulerLimits, circle,
    locks::LockTable,
    need::{AdmissionNeeds, ConcurrencyLimit, ConcurrencyLimitSubject, QueueTicket},
    outlook::SlotUse,
    shares::PrincipalShares,
    turns::ConcurrencyLane,
};

pub(super) struct SchedulerTable {
    limits: SchedulerLimits,
    /// Running calls, also nested ones, by id.
    pub(super) holders: HashMap<InvocationId, Arc<AdmissionNeeds>>,
    /// The number of running calls at each limit of a tool or source.
    bounded: HashMap<ConcurrencyLimitSubject, usize>,
    sessions: HashMap<SessionId, SessionLoad>,
    pub(super) locks: LockTable,
    pub(super) waiting: BTreeMap<QueueTicket, QueuedCall>,
    pub(super) principals: PrincipalShares,
    next_ticket: u64,
}

#[derive(Default)]
struct SessionLoad {
    running: usize,
    /// One of the running calls must be alone.
    alone: bool,
    /// The calls in the queue, of every kind.
    queued: usize,
    /// The ones among them that need a slot of their own.
    waiting: BTreeSet<QueueTicket>,
    /// The ones among these that must be alone.
    waiting_alone: BTreeSet<QueueTicket>,
}

impl SessionLoad {
    /// Whether a call may run beside the running and the earlier calls of its session.
    fn lets_in(&self, alone: bool, ticket: QueueTicket) -> bool {
        let is_first =
            |waiting: &BTreeSet<QueueTicket>| waiting.first().is_none_or(|first| *first >= ticket);
        if alone {
            self.running == 0 && is_first(&self.waiting)
        } else {
            !self.alone && is_first(&self.waiting_alone)
        }
    }

    /// The calls to check after a call has left: all up to the first that must be alone.
    fn freed(&self) -> Vec<QueueTicket> {
        let alone = self.waiting_alone.first();
        let before = self
            .waiting
            .iter()
            .take_while(|ticket| alone.is_none_or(|alone| *ticket < alone));
        before.chain(alone).copied().collect()
    }

    fn is_idle(&self) -> bool {
        self.running == 0 && self.queued == 0
    }
}

pub(super) struct QueuedCall {
    pub(super) need: Arc<AdmissionNeeds>,
    admit: oneshot::Sender<()>,
    waits_for: WaitsFor,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    /// Calls with a conflicting use, running or earlier in the queue.
    Others,
    /// Only a slot.
    Slot,
}

impl SchedulerTable {
    pub(super) fn new(limits: SchedulerLimits, rules: ShareRules) -> Self {
        Self {
            limits,
            holders: HashMap::new(),
            bounded: HashMap::new(),
            sessions: HashMap::new(),
            locks: LockTable::default(),
            waiting: BTreeMap::new(),
            principals: PrincipalShares::new(limits, rules),
            next_ticket: 0,
        }
    }

    /// Whether no trace of any call is left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let calls = self.holders.is_empty() && self.waiting.is_empty() && self.sessions.is_empty();
        calls && self.bounded.is_empty() && self.locks.is_empty() && self.principals.is_empty()
    }

    pub(super) fn load(&self) -> (usize, usize) {
        (self.principals.running(), self.principals.queued())
    }

    /// The ticket that a call without a parent would get now.
    pub(super) fn next_ticket(&self) -> QueueTicket {
        QueueTicket::number(self.next_ticket, false)
    }

    pub(super) fn host_slots(&self) -> SlotUse {
        SlotUse {
            used: self.principals.running(),
            limit: self.limits.concurrency,
        }
    }

    pub(super) fn session_slots(&self, session: &SessionId) -> SlotUse {
        let used = self.sessions.get(session).map_or(0, |load| load.running);
        SlotUse {
            used,
            limit: self.limits.session_concurrency,
        }
    }

    pub(super) fn queue_slots(&self) -> SlotUse {
        SlotUse {
            used: self.principals.queued(),
            limit: self.limits.queue,
        }
    }

    pub(super) fn slots_of(&self, bound: &ConcurrencyLimit) -> SlotUse {
        SlotUse {
            used: self.bounded.get(&bound.on).copied().unwrap_or_default(),
            limit: bound.most,
        }
    }

    /// Whether its session admits a call beside the running and the earlier calls.
    pub(super) fn lets_in(&self, need: &AdmissionNeeds, ticket: QueueTicket) -> bool {
        self.sessions
            .get(&need.session)
            .is_none_or(|load| load.lets_in(need.alone, ticket))
    }

    /// Admits a newcomer at once if no other call is in its way and it is in no other call's way.
    pub(super) fn admit_at_once(&mut self, need: &Arc<AdmissionNeeds>) -> bool {
        if !self.has_room(&need.bounds) {
            return false;
        }
        let goes = if need.is_nested() {
            self.locks.free(&need.uses, None)
        } else {
            let load = self.sessions.get(&need.session);
            self.principals.check_slot(&need.principal).is_ok()
                && load.is_none_or(|load| load.running < self.limits.session_concurrency)
                && self.is_free(need, self.next_ticket())
                && !self.principals.is_kept_from(need)
        };
        if goes {
            self.take(need);
        }
        goes
    }

    pub(super) fn enqueue(
        &mut self,
        need: &Arc<AdmissionNeeds>,
        admit: oneshot::Sender<()>,
    ) -> Result<QueueTicket, QueueFull> {
        self.check_room(&need.principal, &need.session)?;
        if need.is_nested() && circle::would_close(self, need) {
            return Err(QueueFull::Circle);
        }
        Ok(self.line_up(need, admit))
    }

    /// Puts a call at the end of the queue, even if the queue is full.
    pub(super) fn line_up(
        &mut self,
        need: &Arc<AdmissionNeeds>,
        admit: oneshot::Sender<()>,
    ) -> QueueTicket {
        let ticket = QueueTicket::number(self.next_ticket, need.is_nested());
        self.next_ticket += 1;
        self.locks.wait(&need.uses, ticket);
        self.principals.join_queue(&need.principal);
        let load = self.sessions.entry(need.session.clone()).or_default();
        load.queued += 1;
        if !need.is_nested() {
            load.waiting.insert(ticket);
            if need.alone {
                load.waiting_alone.insert(ticket);
            }
        }
        let waiting = QueuedCall {
            need: Arc::clone(need),
            admit,
            waits_for: WaitsFor::Others,
        };
        self.waiting.insert(ticket, waiting);
        self.look_again([ticket]);
        ticket
    }

    /// A principal may fill its part of the queue, and one session half of the queue, so that neither shuts out the
    /// others.
    pub(super) fn check_room(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<(), QueueFull> {
        self.principals
            .check_place(principal)
            .map_err(QueueFull::Shared)?;
        let share = self.limits.queue.div_ceil(2);
        let own = self.sessions.get(session).map_or(0, |load| load.queued);
        if own >= share {
            Err(QueueFull::Session { share })
        } else {
            Ok(())
        }
    }

    pub(super) fn hold(
        &mut self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<(), QueueFull> {
        self.check_room(principal, session)?;
        self.principals.join_queue(principal);
        self.sessions.entry(session.clone()).or_default().queued += 1;
        Ok(())
    }

    pub(super) fn let_go(&mut self, principal: &Principal, session: &SessionId) {
        self.left_queue(principal, session);
        // This may have been the last call of the only other agent; the remaining agent may now borrow beyond its
        // share.
        if !self.waiting.is_empty() {
            self.give_turns();
        }
    }

    fn left_queue(&mut self, principal: &Principal, session: &SessionId) {
        self.principals.leave_queue(principal);
        if let Some(load) = self.sessions.get_mut(session) {
            load.queued -= 1;
            if load.is_idle() {
                self.sessions.remove(session);
            }
        }
    }

    /// Removes a call from the queue. `false`: it was not there.
    pub(super) fn leave(&mut self, ticket: QueueTicket) -> bool {
        let Some(waiting) = self.unqueue(ticket) else {
            return false;
        };
        self.freed(&waiting.need);
        true
    }

    pub(super) fn release(&mut self, need: &AdmissionNeeds) {
        self.locks.release(&need.uses);
        self.holders.remove(&need.call);
        for bound in &need.bounds {
            if let Some(count) = self.bounded.get_mut(&bound.on) {
                *count -= 1;
                if *count == 0 {
                    self.bounded.remove(&bound.on);
                }
            }
        }
        if !need.is_nested()
            && let Some(load) = self.sessions.get_mut(&need.session)
        {
            load.running -= 1;
            load.alone = false;
            self.principals.end(need, load.running);
            if load.is_idle() {
                self.sessions.remove(&need.session);
            }
        }
        self.freed(need);
    }

    fn take(&mut self, need: &Arc<AdmissionNeeds>) {
        self.locks.take(&need.uses);
        self.holders.insert(need.call, Arc::clone(need));
        for bound in &need.bounds {
            *self.bounded.entry(bound.on.clone()).or_default() += 1;
        }
        if need.is_nested() {
            return;
        }
        let load = self.sessions.entry(need.session.clone()).or_default();
        load.running += 1;
        load.alone = need.alone;
        self.principals.begin(need, load.running);
    }

    fn has_room(&self, lane: &ConcurrencyLane) -> bool {
        lane.iter().all(|bound| {
            self.bounded
                .get(&bound.on)
                .is_none_or(|&running| running < bound.most)
        })
    }

    /// Whether a call waits only for a slot: no running and no earlier queued call conflicts with it.
    fn is_free(&self, need: &AdmissionNeeds, ticket: QueueTicket) -> bool {
        self.lets_in(need, ticket) && self.locks.free(&need.uses, Some(ticket))
    }

    /// A call has left the queue or ended: finds the calls that may continue, and gives out slots.
    fn freed(&mut self, need: &AdmissionNeeds) {
        if self.waiting.is_empty() {
            return;
        }
        let by_locks = self.locks.freed(&need.uses);
        self.look_again(by_locks);
        if !need.is_nested()
            && let Some(load) = self.sessions.get(&need.session)
            && (need.alone || !load.waiting_alone.is_empty())
        {
            self.look_again(load.freed());
        }
        self.give_turns();
    }

    /// Checks whether these calls still wait for other calls.
    fn look_again(&mut self, tickets: impl IntoIterator<Item = QueueTicket>) {
        for ticket in tickets.into_iter().filter(|ticket| !ticket.is_nested()) {
            let Some(waiting) = self.waiting.get(&ticket) else {
                continue;
            };
            if waiting.waits_for == WaitsFor::Slot || !self.is_free(&waiting.need, ticket) {
                continue;
            }
            let need = Arc::clone(&waiting.need);
            self.set_waits_for(ticket, WaitsFor::Slot);
            let running = self
                .sessions
                .get(&need.session)
                .map_or(0, |load| load.running);
            self.principals.line_up(&need, running, ticket);
        }
    }

    fn set_waits_for(&mut self, ticket: QueueTicket, waits_for: WaitsFor) {
        if let Some(waiting) = self.waiting.get_mut(&ticket) {
            waiting.waits_for = waits_for;
        }
    }

    /// Admits every call that can run now.
    ///
    /// Nested calls come first and look only at the holders of locks (`free` without a ticket), not at the queue. An
    /// ordinary call earlier in the queue may be waiting for the parent of the nested call; if the nested call queued
    /// behind it, neither could ever run. The price is that a nested call may take a lock from an ordinary call that
    /// was ready, so each call is checked again right before its admission.
    fn give_turns(&mut self) {
        let nested = self.waiting.range(..QueueTicket::FIRST_ORDINARY);
        let nested: Vec<QueueTicket> = nested.map(|(ticket, _)| *ticket).collect();
        for ticket in nested {
            let Some(waiting) = self.waiting.get(&ticket) else {
                continue;
            };
            if self.has_room(&waiting.need.bounds) && self.locks.free(&waiting.need.uses, None) {
                self.admit(ticket);
            }
        }
        while let Some(ticket) = self.principals.next(|lane| self.has_room(lane)) {
            let Some(waiting) = self.waiting.get(&ticket) else {
                break;
            };
            if self.is_free(&waiting.need, ticket) {
                self.admit(ticket);
            } else {
                // A nested call took one of its locks in between. The end of the nested call checks this one again.
                let need = Arc::clone(&waiting.need);
                self.set_waits_for(ticket, WaitsFor::Others);
                self.principals.step_out(&need, ticket);
            }
        }
    }

    fn admit(&mut self, ticket: QueueTicket) {
        let Some(waiting) = self.unqueue(ticket) else {
            return;
        };
        self.take(&waiting.need);
        // An error means that the caller stopped waiting in this moment. Its guard then finds no queue place to leave
        // and releases the slot; a release here as well would give the slot back twice.
        let _ = waiting.admit.send(());
    }

    fn unqueue(&mut self, ticket: QueueTicket) -> Option<QueuedCall> {
        let waiting = self.waiting.remove(&ticket)?;
        let need = &waiting.need;
        self.locks.stop_waiting(&need.uses, ticket);
        if let Some(load) = self.sessions.get_mut(&need.session) {
            load.waiting.remove(&ticket);
            load.waiting_alone.remove(&ticket);
        }
        if waiting.waits_for == WaitsFor::Slot {
            self.principals.step_out(need, ticket);
        }
        self.left_queue(&need.principal, &need.session);
        Some(waiting)
    }
}
