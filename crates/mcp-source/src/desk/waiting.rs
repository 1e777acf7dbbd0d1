//! Which requests are under way on one connection, and whose words those are that do not say so.
//!
//! A call that was stopped may still speak: its server need not have heard of the stop, or care. Until its answer comes, or
//! nothing was heard of it for long enough, what says nothing of its origin may be its own, and goes to no stranger.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use toolpost_model::{CallContext, Principal, SessionId};

use super::AwaitedMcpRequest;

/// How many stopped calls are remembered; with more, nobody knows whose words are heard.
const ABANDONED: usize = 1_024;
/// How long a stopped call is reckoned with.
const LINGERS: Duration = Duration::from_secs(60);

/// The requests of one connection.
#[derive(Default)]
pub(super) struct AwaitedMcpRequestIndex {
    by_id: HashMap<u64, Arc<AwaitedMcpRequest>>,
    abandoned: VecDeque<StoppedMcpRequest>,
    /// There were more stopped calls than are remembered, until then.
    crowded: Option<Instant>,
}

/// A call that was stopped, and not answered yet.
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
    /// A request goes out.
    pub(super) fn add(&mut self, id: u64, request: &Arc<AwaitedMcpRequest>) {
        self.by_id.insert(id, Arc::clone(request));
    }

    /// An answer came.
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

    /// Nobody waits for this answer any more.
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

    /// The request of this id.
    pub(super) fn of(&self, id: u64) -> Option<Arc<AwaitedMcpRequest>> {
        self.by_id.get(&id).cloned()
    }

    /// The only call under way, if all that may speak now belongs to the same session.
    pub(super) fn only(&mut self, now: Instant) -> Option<Arc<AwaitedMcpRequest>> {
        self.only_of_one_session(now, |_| true)
    }

    /// The only call under way that waits for no answer of its caller, if all that may speak now belongs to the same
    /// session.
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

/// What an answer was.
pub(super) enum UpstreamAnswerMatch {
    /// This request waits for it.
    Awaited(Arc<AwaitedMcpRequest>),
    /// A stopped call waited for it.
    Late,
    /// No request has its id.
    Unknown,
}
