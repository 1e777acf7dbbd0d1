//! The division of slots and queue among callers: a greedy caller never keeps an ordinary one or an operator waiting.

use std::{pin::Pin, sync::Arc};

use futures_util::FutureExt as _;
use toolpost_model::{Effects, Principal, SessionId, ShareRefusal, ShareRules};

use super::{Admission, Permit, QueueFull, Scheduler, SchedulerLimits, read, wanted_by};

/// 64 slots: 6 are reserved for operators, a share is 16, and 8 stay free for callers below their share.
fn scheduler() -> Arc<Scheduler> {
    let limits = SchedulerLimits {
        concurrency: 64,
        session_concurrency: 64,
        queue: 1_024,
    };
    Scheduler::new(limits, ShareRules::default())
}

/// A caller with as many sessions as it likes.
struct Agent {
    scheduler: Arc<Scheduler>,
    principal: Principal,
    effects: Effects,
    running: Vec<Permit>,
    waiting: Vec<Admission>,
    calls: usize,
}

impl Agent {
    fn new(scheduler: &Arc<Scheduler>, principal: Principal) -> Self {
        let scheduler = Arc::clone(scheduler);
        let effects = read("/x");
        Self {
            scheduler,
            principal,
            effects,
            running: Vec::new(),
            waiting: Vec::new(),
            calls: 0,
        }
    }

    /// Sends one more call, in a session of its own.
    fn send(&mut self) -> Result<(), QueueFull> {
        self.calls += 1;
        let session = SessionId::new(format!("{} {}", self.principal.name, self.calls));
        let scheduler = Arc::clone(&self.scheduler);
        let principal = self.principal.clone();
        let effects = self.effects.clone();
        let mut admission: Admission = Box::pin(async move {
            scheduler
                .admit(wanted_by(&principal, &session, &effects), |_| ())
                .await
        });
        match admission.as_mut().now_or_never() {
            Some(permit) => self.running.push(permit?),
            None => self.waiting.push(admission),
        }
        Ok(())
    }

    fn send_many(&mut self, count: usize) {
        (0..count).for_each(|_| self.send().unwrap());
    }

    fn end(&mut self, count: usize) {
        self.running.drain(..count);
    }

    /// The numbers of running and of waiting calls.
    fn load(&mut self) -> (usize, usize) {
        let running = &mut self.running;
        let is_in = |one: &mut Pin<Box<_>>| match Admission::as_mut(one).now_or_never() {
            Some(permit) => {
                running.push(permit.unwrap());
                false
            }
            None => true,
        };
        self.waiting.retain_mut(is_in);
        (self.running.len(), self.waiting.len())
    }
}

#[test]
fn a_greedy_agent_never_keeps_another_one_or_an_operator_waiting() {
    let scheduler = scheduler();
    let [mut greedy, mut ordinary] =
        ["greedy", "ordinary"].map(|name| Agent::new(&scheduler, Principal::agent(name)));
    let mut operator = Agent::new(&scheduler, Principal::operator("operator"));
    greedy.send_many(500);
    assert_eq!(
        greedy.load(),
        (50, 450),
        "all but the reserve and the headroom"
    );
    ordinary.send_many(8);
    assert_eq!(ordinary.load(), (8, 0), "the headroom is for it");
    operator.send_many(6);
    assert_eq!(operator.load(), (6, 0), "the reserve is for operators");
    // A freed slot goes to the caller below its share, however long the other waits.
    ordinary.send_many(10);
    assert_eq!(ordinary.load(), (8, 10));
    greedy.end(8);
    assert_eq!((greedy.load(), ordinary.load()), ((42, 450), (16, 2)));
    greedy.end(20);
    assert_eq!(
        (greedy.load(), ordinary.load()),
        ((22, 450), (16, 2)),
        "shares hold while both are active"
    );
    greedy.end(7);
    assert_eq!(greedy.load(), (16, 449), "below its share it goes on");
    // Alone again, it borrows again.
    ordinary.waiting.clear();
    ordinary.end(16);
    assert_eq!(greedy.load(), (50, 415));
}

#[test]
fn a_call_that_only_holds_a_place_counts_as_activity_until_it_lets_go() {
    let scheduler = scheduler();
    let mut greedy = Agent::new(&scheduler, Principal::agent("greedy"));
    let other = Principal::agent("other");
    let place = scheduler.hold(&other, &SessionId::new("other")).unwrap();
    greedy.send_many(40);
    assert_eq!(greedy.load(), (16, 24));
    drop(place);
    assert_eq!(greedy.load(), (40, 0));
}

#[test]
fn a_greedy_agent_never_fills_the_queue() {
    let limits = SchedulerLimits {
        concurrency: 1,
        session_concurrency: 1,
        queue: 64,
    };
    let scheduler = Scheduler::new(limits, ShareRules::default());
    let mut greedy = Agent::new(&scheduler, Principal::agent("greedy"));
    greedy.send_many(1 + 50);
    assert_eq!(
        greedy.send(),
        Err(QueueFull::Shared(ShareRefusal::Headroom {
            own: 50,
            limit: 50
        }))
    );
    let mut ordinary = Agent::new(&scheduler, Principal::agent("ordinary"));
    ordinary.send_many(8);
    assert_eq!(
        greedy.send(),
        Err(QueueFull::Shared(ShareRefusal::Share {
            own: 50,
            limit: 16
        }))
    );
    assert_eq!(
        ordinary.send(),
        Err(QueueFull::Shared(ShareRefusal::Agents { limit: 58 }))
    );
    let mut operator = Agent::new(&scheduler, Principal::operator("operator"));
    operator.send_many(6);
    assert_eq!(
        operator.send(),
        Err(QueueFull::Shared(ShareRefusal::Total { limit: 64 }))
    );
    // The only slot goes round among callers, however many calls they have in the queue.
    greedy.end(1);
    assert_eq!(
        (greedy.load().0, ordinary.load().0, operator.load().0),
        (1, 0, 0)
    );
    greedy.end(1);
    assert_eq!(
        (greedy.load().0, ordinary.load().0, operator.load().0),
        (0, 1, 0)
    );
    ordinary.end(1);
    assert_eq!(
        (greedy.load().0, ordinary.load().0, operator.load().0),
        (0, 0, 1)
    );
    drop((greedy, ordinary, operator));
    assert!(scheduler.table.lock().is_empty());
}

#[test]
fn a_look_names_the_share_that_a_call_waits_for() {
    let scheduler = scheduler();
    let mut greedy = Agent::new(&scheduler, Principal::agent("greedy"));
    greedy.send_many(50);
    let look = |principal: &Principal| {
        let session = SessionId::new("s");
        let effects = read("/x");
        let outlook = scheduler
            .look(wanted_by(principal, &session, &effects))
            .unwrap();
        outlook
            .waits_for
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let told = "a slot of its caller: 50 of 50 in use (`limits.share` of `limits.concurrency`)";
    assert_eq!(look(&greedy.principal), [told]);
    assert!(look(&Principal::agent("ordinary")).is_empty());
}
