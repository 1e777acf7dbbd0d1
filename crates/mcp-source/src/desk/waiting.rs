//! The open requests of one connection, and the call that a message without an origin can belong to.
//!
//! A stopped call may still cause messages: its server may not have read the cancellation, or may ignore it. Until the
//! server answers it, or [`LINGERS`] has passed, a message without an origin may belong to the stopped call, and is
//! not given to a call of another session.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use toolpost_model::{CallContext, Principal, SessionId};

use super::AwaitedMcpRequest;

/// The most stopped calls that are remembered. After more, no message without an origin is given to a call for a
/// while.
const ABANDONED: usize = 1_024;
/// How long a stopped call counts as a possible origin.
const LINGERS: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct AwaitedMcpRequestIndex {
    by_id: HashMap<u64, Arc<AwaitedMcpRequest>>,
    abandoned: VecDeque<StoppedMcpRequest>,
    /// More calls were stopped than are remembered; until this time, messages without an origin belong to no call.
    crowded: Option<Instant>,
}

/// A stopped call without an answer so far.
struct StoppedMcpRequest {
    id: u64,
    owner: Owner,
    since: Instant,
}

#[derive(PartialEq, Eq)]
struct Owner {
    session: SessionId,
    principal: Principal,
}

impl Owner {
    fn of(call: &CallContext) -> Self {
        Self {
            session: call.session_id().clone(),
            principal: call.principal().clone(),
        }
    }

    fn owns(&self, call: &CallContext) -> bool {
        self.session == *call.session_id() && self.principal == *call.principal()
    }
}

impl AwaitedMcpRequestIndex {
    pub(super) fn add(&mut self, id: u64, request: &Arc<AwaitedMcpRequest>) {
        self.by_id.insert(id, Arc::clone(request));
    }

    /// Removes the request that an answer belongs to.
    pub(super) fn settle(&mut self, id: u64) -> UpstreamAnswerMatch {
        if let Some(request) = self.by_id.remove(&id) {
            return UpstreamAnswerMatch::Awaited(request);
        }
        match self.abandoned.iter().position(|left| left.id == id) {
            Some(at) => {
                self.abandoned.remove(at);
                UpstreamAnswerMatch::Late
            }
            None => UpstreamAnswerMatch::Unknown,
        }
    }

    /// Moves a request to the stopped ones.
    pub(super) fn abandon(&mut self, id: u64, now: Instant) {
        let Some(request) = self.by_id.remove(&id) else {
            return;
        };
        let Some(call) = &request.call else { return };
        self.forget_old(now);
        match self.abandoned.len() < ABANDONED {
            true => self.abandoned.push_back(StoppedMcpRequest {
                id,
                owner: Owner::of(call),
                since: now,
            }),
            false => self.crowded = Some(now + LINGERS),
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while self
            .abandoned
            .front()
            .is_some_and(|left| now.duration_since(left.since) >= LINGERS)
        {
            self.abandoned.pop_front();
        }
        self.crowded = self.crowded.filter(|until| now < *until);
    }

    pub(super) fn of(&self, id: u64) -> Option<Arc<AwaitedMcpRequest>> {
        self.by_id.get(&id).cloned()
    }

    /// The only open call, if all possible origins belong to its session and principal.
    pub(super) fn only(&mut self, now: Instant) -> Option<Arc<AwaitedMcpRequest>> {
        self.only_of_one_session(now, |_| true)
    }

    /// The same among the calls that wait for no answer of their caller.
    pub(super) fn only_unasked(&mut self, now: Instant) -> Option<Arc<AwaitedMcpRequest>> {
        self.only_of_one_session(now, |slot| slot.open.load(Ordering::Acquire) == 0)
    }

    fn only_of_one_session(
        &mut self,
        now: Instant,
        fits: impl Fn(&AwaitedMcpRequest) -> bool,
    ) -> Option<Arc<AwaitedMcpRequest>> {
        self.forget_old(now);
        let owner = Owner::of(self.by_id.values().find_map(|slot| slot.call.as_ref())?);
        // Stopped calls count like open ones. If any of them belongs to another session or principal, the message may
        // carry that session's data, so no call gets it.
        let alone = self.crowded.is_none()
            && self
                .by_id
                .values()
                .filter_map(|slot| slot.call.as_ref())
                .all(|call| owner.owns(call))
            && self.abandoned.iter().all(|left| left.owner == owner);
        let mut calls = self
            .by_id
            .values()
            .filter(|slot| slot.call.is_some() && fits(slot));
        calls
            .next()
            .filter(|_| alone && calls.next().is_none())
            .cloned()
    }
}

/// The request that an answer belongs to.
pub(super) enum UpstreamAnswerMatch {
    /// This request waits for it.
    Awaited(Arc<AwaitedMcpRequest>),
    /// A stopped call waited for it.
    Late,
    /// No request has its id.
    Unknown,
}
