mod interleavings;

use std::sync::Arc;

use futures_util::FutureExt as _;
use toolpost_model::{Access, EffectClass, Effects, InvocationId, ResourceKey, SessionId};

use super::{Permit, QueueFull, Scheduler, SchedulerLimits, Wanted};

fn session(name: &str) -> SessionId {
    SessionId::new(name)
}

fn write(path: &str) -> Effects {
    Effects::of(EffectClass::Write).using(ResourceKey::path(path), Access::Write)
}

fn read(path: &str) -> Effects {
    Effects::of(EffectClass::Read).using(ResourceKey::path(path), Access::Read)
}

fn scheduler(concurrency: usize, session_concurrency: usize, queue: usize) -> Arc<Scheduler> {
    Scheduler::new(SchedulerLimits { concurrency, session_concurrency, queue })
}

fn wanted<'a>(session: &'a SessionId, effects: &'a Effects) -> Wanted<'a> {
    let alone = !effects.concurrency_safe;
    Wanted { call: InvocationId::new(), session, effects, alone, parent: None, bounds: Vec::new() }
}

/// Waits for as long as it takes.
async fn admitted(scheduler: Arc<Scheduler>, who: &str, effects: Effects) -> Result<Permit, QueueFull> {
    scheduler.admit(wanted(&session(who), &effects), || ()).await
}

/// Admits at once, or says that it would have to wait.
fn try_admit(scheduler: &Arc<Scheduler>, who: &str, effects: &Effects) -> Option<Result<Permit, QueueFull>> {
    scheduler.admit(wanted(&session(who), effects), || ()).now_or_never()
}

fn runs(scheduler: &Arc<Scheduler>, who: &str, effects: &Effects) -> Permit {
    try_admit(scheduler, who, effects).expect("must not wait").unwrap()
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
    assert_eq!(refused.err(), Some(QueueFull::Host { limit: 1 }));
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

/// Callers that leave at the very moment they are admitted must give back exactly what they were given.
#[test]
fn leaving_while_being_admitted_gives_back_once() {
    let scheduler = scheduler(2, 2, 64);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let scheduler = Arc::clone(&scheduler);
            std::thread::spawn(move || {
                for round in 0..20_000 {
                    let effects = if round % 2 == 0 { write("/w/x") } else { read("/w") };
                    drop(try_admit(&scheduler, if thread % 2 == 0 { "a" } else { "b" }, &effects));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
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
