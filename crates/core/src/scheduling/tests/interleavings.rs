//! Thousands of random interleavings of calls that come, continue, end and give up. Each step is checked against the
//! plain rules: conflicting calls do not overlap, no call passes an earlier rival, no call waits that could run, every
//! call gets a turn.

use std::{collections::HashMap, sync::Arc, time::Instant};

use futures_util::FutureExt as _;
use toolpost_model::{
    EffectClass, Effects, InvocationId, ResourceAccess, ResourceKey, ResourceUse, SessionId,
};

use super::{
    super::{
        AdmissionRequest, ConcurrencyLimit, ConcurrencyLimitSubject, Permit, QueueFull, Scheduler,
        SchedulerLimits,
        locks::{conflict, covers},
    },
    Admission, UNDIVIDED, caller,
};
use crate::{invocation::ParentCall, port::SourceIndex};

/// A small generator with a seed, so that a failure can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

enum State {
    Waiting(Admission),
    Running(#[expect(dead_code, reason = "held until the call ends")] Permit),
}

struct OneCall {
    id: InvocationId,
    arrived: usize,
    session: usize,
    alone: bool,
    uses: Vec<ResourceUse>,
    /// The locks of the call and of the calls above it.
    held: Vec<ResourceUse>,
    bounds: Vec<ConcurrencyLimit>,
    line: Vec<InvocationId>,
    state: State,
    /// The number of later calls that went before it.
    overtaken: usize,
}

impl OneCall {
    fn runs(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    fn is_nested(&self) -> bool {
        !self.line.is_empty()
    }

    /// One call is above the other: they share locks.
    fn is_kin_of(&self, other: &Self) -> bool {
        self.line.contains(&other.id) || other.line.contains(&self.id)
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        if self.is_kin_of(other) {
            return false;
        }
        let beside = match (self.is_nested(), other.is_nested()) {
            (false, false) => self.session == other.session,
            // Alone among the calls of one parent.
            _ => self.line.last() == other.line.last(),
        };
        (beside && (self.alone || other.alone)) || conflict(&self.uses, &other.uses)
    }
}

struct World {
    seed: u64,
    random: Random,
    limits: SchedulerLimits,
    scheduler: Arc<Scheduler>,
    calls: Vec<OneCall>,
    arrivals: usize,
    refused: usize,
    most_overtaken: usize,
}

const PATHS: [&str; 8] = ["/", "/a", "/a/x", "/a/x/1", "/a/y", "/b", "/b/z", "/c"];

impl World {
    fn new(seed: u64, limits: Option<SchedulerLimits>) -> Self {
        let mut random = Random(seed);
        let limits = limits.unwrap_or_else(|| SchedulerLimits {
            concurrency: 1 + random.below(5),
            session_concurrency: 1 + random.below(3),
            queue: 4 + random.below(16),
        });
        let scheduler = Scheduler::new(limits, UNDIVIDED);
        Self {
            seed,
            random,
            limits,
            scheduler,
            calls: Vec::new(),
            arrivals: 0,
            refused: 0,
            most_overtaken: 0,
        }
    }

    fn effects(&mut self) -> Effects {
        let class = self.random.pick(&[
            EffectClass::Read,
            EffectClass::Read,
            EffectClass::Write,
            EffectClass::Unknown,
        ]);
        let mut effects = Effects::of(class);
        effects.concurrency_safe = class != EffectClass::Unknown || self.random.below(2) == 0;
        for _ in 0..self.random.below(3) {
            let access = if class == EffectClass::Read {
                ResourceAccess::Read
            } else {
                ResourceAccess::Write
            };
            let access = if self.random.below(5) == 0 {
                ResourceAccess::Read
            } else {
                access
            };
            effects = effects.using(ResourceKey::path(self.random.pick(&PATHS)), access);
        }
        effects
    }

    fn bounds(&mut self) -> Vec<ConcurrencyLimit> {
        let source = |most| ConcurrencyLimit {
            on: ConcurrencyLimitSubject::Source(SourceIndex(0)),
            most,
        };
        let tool = |name: &str, most| ConcurrencyLimit {
            on: ConcurrencyLimitSubject::Tool(name.parse().unwrap()),
            most,
        };
        match self.random.below(6) {
            0 => vec![tool("t.one", 1), source(2)],
            1 => vec![tool("t.two", 2)],
            2 => vec![source(2)],
            _ => Vec::new(),
        }
    }

    fn arrives(&mut self, parent: Option<usize>) {
        let effects = self.effects();
        let bounds = self.bounds();
        let id = InvocationId::new();
        let session =
            parent.map_or_else(|| self.random.below(4), |place| self.calls[place].session);
        let above = parent.map(|place| &self.calls[place]);
        let line: Vec<InvocationId> = above
            .map(|above| above.line.iter().copied().chain([above.id]).collect())
            .unwrap_or_default();
        let held = above.map(|above| above.held.clone()).unwrap_or_default();
        let parent = above.map(|above| ParentCall {
            is_approved: false,
            id: above.id,
            line: line.clone(),
            source: None,
            deadline: Instant::now(),
            held: held.clone(),
        });
        let alone = !effects.concurrency_safe;
        let missing = |one: &&ResourceUse| !held.iter().any(|held| covers(held, one));
        let uses = effects.uses.iter().filter(missing).cloned().collect();
        let (scheduler, limits, wishes) =
            (Arc::clone(&self.scheduler), bounds.clone(), effects.clone());
        let admission: Admission = Box::pin(async move {
            let session = SessionId::new(session.to_string());
            let parent = parent.as_ref();
            let wanted = AdmissionRequest {
                call: id,
                principal: &caller(),
                session: &session,
                effects: &wishes,
                alone,
                parent,
                bounds: limits,
            };
            scheduler.admit(wanted, |_| ()).await
        });
        let state = State::Waiting(admission);
        let arrived = self.arrivals;
        self.arrivals += 1;
        let held = held.into_iter().chain(effects.uses).collect();
        self.calls.push(OneCall {
            id,
            arrived,
            session,
            alone,
            uses,
            held,
            bounds,
            line,
            state,
            overtaken: 0,
        });
        self.settle();
    }

    /// Lets all admitted calls continue, then checks the plain rules.
    fn settle(&mut self) {
        let mut admitted = Vec::new();
        let mut place = 0;
        while place < self.calls.len() {
            let call = &mut self.calls[place];
            let State::Waiting(admission) = &mut call.state else {
                place += 1;
                continue;
            };
            match admission.as_mut().now_or_never() {
                Some(Ok(permit)) => {
                    call.state = State::Running(permit);
                    admitted.push(call.id);
                }
                Some(Err(refusal)) => {
                    let nested_only =
                        matches!(refusal, QueueFull::HeldAbove { .. } | QueueFull::Circle);
                    assert!(
                        !nested_only || call.is_nested(),
                        "seed {}: {refusal}",
                        self.seed
                    );
                    self.refused += 1;
                    self.calls.remove(place);
                    continue;
                }
                None => {}
            }
            place += 1;
        }
        for id in &admitted {
            self.check_order(*id);
        }
        self.check_overlaps();
        self.check_limits();
        self.check_nobody_waits_for_nothing();
    }

    fn check_order(&mut self, id: InvocationId) {
        let call = self.calls.iter().find(|call| call.id == id).unwrap();
        self.most_overtaken = self.most_overtaken.max(call.overtaken);
        let arrived = call.arrived;
        if call.is_nested() {
            return;
        }
        for other in self
            .calls
            .iter()
            .filter(|other| !other.runs() && other.arrived < arrived)
        {
            assert!(
                !other.conflicts_with(call),
                "seed {}: an earlier rival was passed",
                self.seed
            );
            let same_line =
                other.session == call.session && other.bounds == call.bounds && !other.is_nested();
            assert!(
                !(same_line && self.is_free(other)),
                "seed {}: not in the session's order",
                self.seed
            );
        }
        for other in &mut self.calls {
            if !other.runs() && other.arrived < arrived {
                other.overtaken += 1;
            }
        }
    }

    fn check_overlaps(&self) {
        let running: Vec<&OneCall> = self.calls.iter().filter(|call| call.runs()).collect();
        for (place, one) in running.iter().enumerate() {
            for other in &running[..place] {
                assert!(
                    !one.conflicts_with(other),
                    "seed {}: two rivals run",
                    self.seed
                );
            }
        }
    }

    fn running_in(&self, session: usize) -> usize {
        let of_session =
            |call: &&OneCall| call.runs() && !call.is_nested() && call.session == session;
        self.calls.iter().filter(of_session).count()
    }

    fn running_within(&self, bound: &ConcurrencyLimit) -> usize {
        let within =
            |call: &&OneCall| call.runs() && call.bounds.iter().any(|one| one.on == bound.on);
        self.calls.iter().filter(within).count()
    }

    fn running(&self) -> usize {
        self.calls
            .iter()
            .filter(|call| call.runs() && !call.is_nested())
            .count()
    }

    fn check_limits(&self) {
        assert!(self.running() <= self.limits.concurrency);
        for session in 0..4 {
            assert!(
                self.running_in(session) <= self.limits.session_concurrency,
                "seed {}",
                self.seed
            );
        }
        for bound in self.calls.iter().flat_map(|call| &call.bounds) {
            assert!(
                self.running_within(bound) <= bound.most,
                "seed {}",
                self.seed
            );
        }
        let waiting = self.calls.len() - self.calls.iter().filter(|call| call.runs()).count();
        assert_eq!(
            self.scheduler.load(),
            (self.running(), waiting),
            "seed {}",
            self.seed
        );
    }

    /// Whether no running call, and no waiting call with precedence, is in a call's way.
    fn is_free(&self, call: &OneCall) -> bool {
        let mut others = self.calls.iter().filter(|other| other.id != call.id);
        if call.is_nested() {
            return !others.any(|other| other.runs() && other.conflicts_with(call));
        }
        let is_before =
            |other: &&OneCall| other.runs() || other.is_nested() || other.arrived < call.arrived;
        !others
            .filter(is_before)
            .any(|other| other.conflicts_with(call))
    }

    fn check_nobody_waits_for_nothing(&self) {
        for call in self
            .calls
            .iter()
            .filter(|call| !call.runs() && self.is_free(call))
        {
            let bounded = call
                .bounds
                .iter()
                .all(|bound| self.running_within(bound) < bound.most);
            let in_session = self.running_in(call.session);
            let slots = self.running() < self.limits.concurrency
                && in_session < self.limits.session_concurrency;
            // A session may reserve its last slot for a call of another kind that was passed over too often.
            let other_kind = |other: &OneCall| {
                !other.runs() && other.session == call.session && other.bounds != call.bounds
            };
            let kept = in_session + 1 == self.limits.session_concurrency
                && self.calls.iter().any(other_kind);
            let could_go = bounded && (call.is_nested() || (slots && !kept));
            assert!(
                !could_go,
                "seed {}: call {} waits for nothing",
                self.seed, call.arrived
            );
        }
    }

    /// The places of calls that run and wait for no call of their own.
    fn can_end(&self) -> Vec<usize> {
        let has_children =
            |call: &OneCall| self.calls.iter().any(|other| other.line.contains(&call.id));
        (0..self.calls.len())
            .filter(|&place| self.calls[place].runs() && !has_children(&self.calls[place]))
            .collect()
    }

    fn ends(&mut self) {
        let places = self.can_end();
        if !places.is_empty() {
            let place = self.random.pick(&places);
            drop(self.calls.remove(place));
            self.settle();
        }
    }

    fn gives_up(&mut self) {
        let places: Vec<usize> = (0..self.calls.len())
            .filter(|&place| !self.calls[place].runs())
            .collect();
        if !places.is_empty() {
            let place = self.random.pick(&places);
            drop(self.calls.remove(place));
            self.settle();
        }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0..=3 => self.arrives(None),
            4 => {
                let parents: Vec<usize> = (0..self.calls.len())
                    .filter(|&place| self.calls[place].runs() && self.calls[place].line.len() < 3)
                    .collect();
                let parent = (!parents.is_empty()).then(|| self.random.pick(&parents));
                self.arrives(parent);
            }
            5..=8 => self.ends(),
            _ => self.gives_up(),
        }
    }

    /// Without newcomers and without callers that give up, every call gets its turn.
    fn drain(mut self) -> (usize, usize) {
        while !self.calls.is_empty() {
            assert!(
                !self.can_end().is_empty(),
                "seed {}: all wait for one another",
                self.seed
            );
            self.ends();
        }
        assert_eq!(self.scheduler.load(), (0, 0));
        assert!(
            self.scheduler.table.lock().is_empty(),
            "seed {}: something stays behind",
            self.seed
        );
        (self.arrivals, self.refused)
    }
}

#[test]
fn thousands_of_interleavings_keep_the_rules() {
    let mut arrivals = 0;
    let mut refused = 0;
    for seed in 0..2_000 {
        let mut world = World::new(seed, None);
        for _ in 0..60 {
            world.step();
        }
        let (came, turned_away) = world.drain();
        arrivals += came;
        refused += turned_away;
    }
    // A run without these would test little.
    assert!(
        arrivals > 40_000 && refused * 4 < arrivals,
        "{arrivals} came, {refused} were refused"
    );
}

#[test]
fn under_load_that_never_ends_nobody_is_overtaken_without_bound() {
    let limits = SchedulerLimits {
        concurrency: 4,
        session_concurrency: 2,
        queue: 64,
    };
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for seed in 0..12 {
        let mut world = World::new(seed, Some(limits));
        for _ in 0..800 {
            world.arrives(None);
            if world.calls.len() > 40 {
                world.ends();
            }
        }
        counts.insert(seed, world.most_overtaken);
        world.drain();
    }
    // Twice the patience of a session that is passed over.
    assert!(counts.values().all(|&most| most < 128), "{counts:?}");
}
