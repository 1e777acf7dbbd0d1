mod interleavings;
mod shares;

use std::{
    pin::Pin,
    sync::{Arc, LazyLock},
};

use futures_util::FutureExt as _;
use toolpost_model::{
    EffectClass, Effects, InvocationId, Principal, ResourceAccess, ResourceKey, SessionId,
    ShareRefusal, ShareRules,
};

use super::{
    AdmissionRequest, ConcurrencyLimit, ConcurrencyLimitSubject, Permit, QueueFull, Scheduler,
    SchedulerLimits,
};
use crate::invocation::ParentCall;

fn session(name: &str) -> SessionId {
    SessionId::new(name)
}

fn write(path: &str) -> Effects {
    Effects::of(EffectClass::Write).using(ResourceKey::path(path), ResourceAccess::Write)
}

fn read(path: &str) -> Effects {
    Effects::of(EffectClass::Read).using(ResourceKey::path(path), ResourceAccess::Read)
}

fn scheduler(concurrency: usize, session_concurrency: usize, queue: usize) -> Arc<Scheduler> {
    Scheduler::new(
        SchedulerLimits {
            concurrency,
            session_concurrency,
            queue,
        },
        UNDIVIDED,
    )
}

/// No shares: the first caller gets everything. The tests in `shares` cover the division.
const UNDIVIDED: ShareRules = ShareRules {
    share: 100,
    operator_reserve: 0,
};

/// The owner of these sessions.
fn caller() -> Principal {
    Principal::agent("caller")
}

fn wanted<'a>(session: &'a SessionId, effects: &'a Effects) -> AdmissionRequest<'a> {
    static CALLER: LazyLock<Principal> = LazyLock::new(caller);
    wanted_by(&CALLER, session, effects)
}

fn wanted_by<'a>(
    principal: &'a Principal,
    session: &'a SessionId,
    effects: &'a Effects,
) -> AdmissionRequest<'a> {
    let call = InvocationId::new();
    let alone = !effects.concurrency_safe;
    AdmissionRequest {
        call,
        principal,
        session,
        effects,
        alone,
        parent: None,
        bounds: Vec::new(),
    }
}

/// Waits for as long as it takes.
async fn admitted(
    scheduler: Arc<Scheduler>,
    who: &str,
    effects: Effects,
) -> Result<Permit, QueueFull> {
    scheduler
        .admit(wanted(&session(who), &effects), |_| ())
        .await
}

/// Admits at once, or fails if the call would have to wait.
fn try_admit(
    scheduler: &Arc<Scheduler>,
    who: &str,
    effects: &Effects,
) -> Option<Result<Permit, QueueFull>> {
    scheduler
        .admit(wanted(&session(who), effects), |_| ())
        .now_or_never()
}

fn runs(scheduler: &Arc<Scheduler>, who: &str, effects: &Effects) -> Permit {
    try_admit(scheduler, who, effects)
        .expect("must not wait")
        .unwrap()
}

fn waits(scheduler: &Arc<Scheduler>, who: &str, effects: &Effects) {
    assert!(try_admit(scheduler, who, effects).is_none(), "must wait");
}

#[test]
fn readers_share_and_writers_are_alone_along_the_hierarchy() {
    let scheduler = scheduler(10, 10, 10);
    let one = runs(&scheduler, "a", &read("/w/src"));
    let two = runs(&scheduler, "b", &read("/w/src/a.rs"));
    waits(&scheduler, "c", &write("/w/src/a.rs"));
    waits(&scheduler, "c", &write("/w"));
    let other = runs(&scheduler, "c", &write("/w/docs"));
    waits(&scheduler, "d", &read("/w/docs/x.md"));
    drop((one, two, other));
    runs(&scheduler, "c", &write("/w"));
}

#[test]
fn unknown_effects_run_alone_within_their_session_only() {
    let scheduler = scheduler(10, 10, 10);
    let alone = runs(&scheduler, "a", &Effects::unknown());
    waits(&scheduler, "a", &read("/x"));
    let elsewhere = runs(&scheduler, "b", &read("/x"));
    waits(&scheduler, "b", &Effects::unknown());
    drop((alone, elsewhere));
    runs(&scheduler, "b", &Effects::unknown());
}

#[test]
fn limits_hold_for_the_host_the_session_and_the_queue() {
    let scheduler = scheduler(2, 1, 1);
    let first = runs(&scheduler, "a", &read("/1"));
    waits(&scheduler, "a", &read("/2"));
    let _second = runs(&scheduler, "b", &read("/3"));
    waits(&scheduler, "c", &read("/4"));
    let queued = scheduler.clone();
    let mut waiting = Box::pin(admitted(queued, "c", read("/4")));
    assert!(waiting.as_mut().now_or_never().is_none());
    let refused = try_admit(&scheduler, "d", &read("/5")).unwrap();
    assert_eq!(
        refused.err(),
        Some(QueueFull::Shared(ShareRefusal::Total { limit: 1 }))
    );
    drop(first);
    assert!(waiting.as_mut().now_or_never().is_some());
}

#[test]
fn a_waiting_writer_is_not_overtaken_and_one_who_leaves_frees_the_way() {
    let scheduler = scheduler(10, 10, 10);
    let reader = runs(&scheduler, "a", &read("/w/x"));
    let queued = scheduler.clone();
    let mut writer = Box::pin(admitted(queued, "b", write("/w/x")));
    assert!(writer.as_mut().now_or_never().is_none());
    waits(&scheduler, "c", &read("/w/x"));
    drop(writer);
    let late = runs(&scheduler, "c", &read("/w/x"));
    drop((reader, late));
    assert_eq!(scheduler.load(), (0, 0));
}

/// Callers that leave in the moment of their admission must give back exactly the slot that they got.
#[test]
fn leaving_while_being_admitted_gives_back_once() {
    let scheduler = scheduler(2, 2, 64);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let scheduler = Arc::clone(&scheduler);
            std::thread::spawn(move || {
                for round in 0..20_000 {
                    let effects = if round % 2 == 0 {
                        write("/w/x")
                    } else {
                        read("/w")
                    };
                    drop(try_admit(
                        &scheduler,
                        if thread % 2 == 0 { "a" } else { "b" },
                        &effects,
                    ));
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(scheduler.load(), (0, 0));
    runs(&scheduler, "c", &write("/w"));
}

#[test]
fn one_session_cannot_keep_the_others_out_of_the_queue() {
    let scheduler = scheduler(1, 1, 4);
    let _running = runs(&scheduler, "a", &read("/1"));
    let mut waiting: Vec<_> = (0..2)
        .map(|_| {
            let queued = scheduler.clone();
            Box::pin(admitted(queued, "a", read("/1")))
        })
        .collect();
    for one in &mut waiting {
        assert!(one.as_mut().now_or_never().is_none());
    }
    let refused = try_admit(&scheduler, "a", &read("/1")).unwrap();
    assert_eq!(refused.err(), Some(QueueFull::Session { share: 2 }));
    waits(&scheduler, "b", &read("/2"));
}

type Admission = Pin<Box<dyn Future<Output = Result<Permit, QueueFull>>>>;

/// Calls in the queue, each polled on request.
struct Queue {
    scheduler: Arc<Scheduler>,
    waiting: Vec<(String, Admission)>,
}

impl Queue {
    fn add(&mut self, who: &str, effects: &Effects, bounds: Vec<ConcurrencyLimit>) {
        let (scheduler, session, effects) =
            (Arc::clone(&self.scheduler), session(who), effects.clone());
        let mut one: Pin<Box<dyn Future<Output = _>>> = Box::pin(async move {
            scheduler
                .admit(
                    AdmissionRequest {
                        bounds,
                        ..wanted(&session, &effects)
                    },
                    |_| (),
                )
                .await
        });
        assert!(one.as_mut().now_or_never().is_none(), "{who} must wait");
        self.waiting.push((who.to_owned(), one));
    }

    /// The calls admitted since the last look, with their permits.
    fn admitted(&mut self) -> Vec<(String, Permit)> {
        let mut admitted = Vec::new();
        self.waiting
            .retain_mut(|(who, one)| match one.as_mut().now_or_never() {
                Some(permit) => {
                    admitted.push((who.clone(), permit.unwrap()));
                    false
                }
                None => true,
            });
        admitted
    }
}

#[test]
fn a_free_slot_goes_to_the_session_with_the_fewest_running_calls_and_then_to_who_waits_longest() {
    let scheduler = scheduler(4, 4, 64);
    let mut running = ["a", "a", "a", "b"]
        .map(|who| runs(&scheduler, who, &read("/x")))
        .into_iter();
    let mut queue = Queue {
        scheduler: Arc::clone(&scheduler),
        waiting: Vec::new(),
    };
    // One session floods the queue before the others come.
    for who in ["a", "a", "a", "a", "b", "d", "c"] {
        queue.add(who, &read("/x"), Vec::new());
    }
    let mut kept = Vec::new();
    for expected in ["d", "c", "a", "b"] {
        // Two calls of the flooding session end, then its last one, then that of `b`.
        drop(running.next());
        let admitted = queue.admitted();
        assert_eq!(
            admitted
                .iter()
                .map(|(who, _)| who.as_str())
                .collect::<Vec<_>>(),
            [expected]
        );
        kept.extend(admitted);
    }
}

/// A session with one long call never has the fewest running calls while others keep coming.
#[test]
fn a_session_that_is_passed_over_goes_first_in_the_end() {
    let scheduler = scheduler(2, 2, 512);
    let _long = runs(&scheduler, "long", &read("/x"));
    let mut running = vec![("first".to_owned(), runs(&scheduler, "first", &read("/x")))];
    let mut queue = Queue {
        scheduler: Arc::clone(&scheduler),
        waiting: Vec::new(),
    };
    queue.add("long", &read("/x"), Vec::new());
    let mut passed = 0;
    loop {
        queue.add(&format!("fresh {passed}"), &read("/x"), Vec::new());
        running.clear();
        running = queue.admitted();
        assert_eq!(running.len(), 1);
        if running[0].0 == "long" {
            break;
        }
        passed += 1;
        assert!(
            passed <= super::turns::PATIENCE,
            "passed over {passed} times"
        );
    }
    assert!(passed > 1, "others were served before");
}

/// The session is never short of slots for its other calls, and the tool is never free for long.
#[test]
fn a_call_of_a_limited_tool_gets_its_turn_in_a_busy_session() {
    let scheduler = scheduler(8, 2, 512);
    let one = || {
        vec![ConcurrencyLimit {
            on: ConcurrencyLimitSubject::Tool("t.one".parse().unwrap()),
            most: 1,
        }]
    };
    let limited = |who: &str| {
        let session = session(who);
        let effects = read("/x");
        let wanted = AdmissionRequest {
            bounds: one(),
            ..wanted(&session, &effects)
        };
        scheduler
            .admit(wanted, |_| ())
            .now_or_never()
            .unwrap()
            .unwrap()
    };
    let mut tool = vec![("other".to_owned(), limited("other"))];
    let mut busy = vec![
        runs(&scheduler, "busy", &read("/x")),
        runs(&scheduler, "busy", &read("/x")),
    ];
    let mut queue = Queue {
        scheduler: Arc::clone(&scheduler),
        waiting: Vec::new(),
    };
    queue.add("busy", &read("/x"), one());
    for round in 0.. {
        assert!(round < 4 * super::turns::PATIENCE, "it never came");
        queue.add(&format!("fresh {round}"), &read("/x"), one());
        queue.add("busy", &read("/x"), Vec::new());
        // A slot of the session becomes free while the tool is busy, and the other way round.
        busy.remove(0);
        for (who, permit) in queue.admitted() {
            assert_eq!(who, "busy");
            busy.push(permit);
        }
        tool.clear();
        tool = queue.admitted();
        assert_eq!(tool.len(), 1);
        if tool[0].0 == "busy" {
            break;
        }
        if busy.len() < 2 {
            busy.extend(try_admit(&scheduler, "busy", &read("/y")).and_then(Result::ok));
        }
    }
}

#[test]
fn two_nested_calls_that_would_wait_for_each_other_do_not() {
    let scheduler = scheduler(4, 4, 16);
    let one = InvocationId::new();
    let two = InvocationId::new();
    let left = write("/left");
    let right = write("/right");
    let admit = |call, effects: &Effects, parent: Option<&ParentCall>| {
        let session = session("a");
        scheduler
            .admit(
                AdmissionRequest {
                    call,
                    parent,
                    ..wanted(&session, effects)
                },
                |_| (),
            )
            .now_or_never()
    };
    let _one = admit(one, &left, None).unwrap().unwrap();
    let _two = admit(two, &right, None).unwrap().unwrap();
    let parent = |id, effects: &Effects| ParentCall {
        is_approved: false,
        id,
        line: vec![id],
        source: None,
        deadline: std::time::Instant::now(),
        held: effects.uses.clone(),
    };
    let of_one = parent(one, &left);
    let of_two = parent(two, &right);
    let session = session("a");
    let nested = AdmissionRequest {
        parent: Some(&of_one),
        ..wanted(&session, &right)
    };
    let mut first = Box::pin(scheduler.admit(nested, |_| ()));
    assert!(
        first.as_mut().now_or_never().is_none(),
        "it waits for the other call to end"
    );
    let second = admit(InvocationId::new(), &left, Some(&of_two)).unwrap();
    assert_eq!(
        second.err(),
        Some(QueueFull::Circle),
        "and the other would wait for it"
    );
    drop(_two);
    assert!(first.as_mut().now_or_never().is_some());
}

/// The cost of one release must not grow with the square of the queue.
#[test]
fn a_thousand_waiting_calls_are_admitted_in_order_one_by_one() {
    let scheduler = scheduler(8, 8, 4_096);
    let holder = runs(&scheduler, "a", &write("/w"));
    let mut queue = Queue {
        scheduler: Arc::clone(&scheduler),
        waiting: Vec::new(),
    };
    for number in 0..1_024 {
        queue.add(&format!("s{}", number % 32), &write("/w/file"), Vec::new());
    }
    let mut order = Vec::new();
    drop(holder);
    loop {
        let mut admitted = queue.admitted();
        let Some((who, permit)) = admitted.pop() else {
            break;
        };
        assert!(admitted.is_empty(), "writers of one file run alone");
        order.push(who);
        drop(permit);
    }
    let expected: Vec<String> = (0..1_024)
        .map(|number| format!("s{}", number % 32))
        .collect();
    assert_eq!(order, expected);
    assert!(scheduler.table.lock().is_empty());
}

fn reasons(scheduler: &Arc<Scheduler>, who: &str, effects: &Effects) -> Vec<String> {
    let outlook = scheduler.look(wanted(&session(who), effects)).unwrap();
    outlook.waits_for.iter().map(ToString::to_string).collect()
}

#[test]
fn a_look_tells_what_stands_in_the_way_and_changes_nothing() {
    let scheduler = scheduler(3, 2, 4);
    assert!(reasons(&scheduler, "a", &write("/w/x")).is_empty());
    let first = runs(&scheduler, "a", &write("/w/x"));
    assert_eq!(
        reasons(&scheduler, "a", &read("/w")),
        ["`path:/w` to read, which a call holds"]
    );
    let outlook = scheduler.look(wanted(&session("b"), &write("/w"))).unwrap();
    let [
        super::WaitReason::Resource {
            held_by, others, ..
        },
    ] = outlook.waits_for.as_slice()
    else {
        panic!("{:?}", outlook.waits_for)
    };
    assert!(
        held_by.is_empty() && *others == 1,
        "another session's calls are counted, not named"
    );
    let alone = Effects::unknown();
    assert_eq!(
        reasons(&scheduler, "a", &alone),
        ["the 1 other calls of its session to end"]
    );
    let second = runs(&scheduler, "a", &read("/1"));
    assert_eq!(
        reasons(&scheduler, "a", &read("/2")),
        ["a slot of its session: 2 of 2 in use (`limits.session_concurrency`)"]
    );
    let third = runs(&scheduler, "b", &alone);
    assert_eq!(
        reasons(&scheduler, "b", &read("/2")),
        [
            "a slot of the host: 3 of 3 in use (`limits.concurrency`)",
            "a call of its session that runs alone"
        ]
    );
    assert_eq!(scheduler.load(), (3, 0), "a look takes no place");
    drop((first, second, third));
    assert!(reasons(&scheduler, "b", &read("/2")).is_empty());
    assert!(scheduler.table.lock().is_empty());
}

#[test]
fn whoever_has_to_queue_is_told_for_what() {
    let scheduler = scheduler(4, 4, 4);
    let held = runs(&scheduler, "a", &write("/w"));
    let told = std::sync::Mutex::new(Vec::new());
    let who = session("a");
    let effects = read("/w/x");
    let waiting = scheduler.admit(wanted(&who, &effects), |reasons| {
        told.lock().unwrap().extend(reasons);
    });
    let mut waiting = Box::pin(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    let told: Vec<String> = told
        .lock()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, ["`path:/w/x` to read, which a call holds"]);
    drop(held);
    assert!(waiting.as_mut().now_or_never().is_some());
}
