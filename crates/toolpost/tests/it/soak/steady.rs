//! The host that nothing disturbs. Between spells of traffic it rests, and what it occupies is read.

use std::{
    sync::RwLock,
    thread,
    time::{Duration, Instant},
};

use super::{
    Dice, Home, Http, Ledger, Served,
    traffic::{ACTORS, Actor, Target},
    verify,
    vitals::Vitals,
};

/// How long traffic lasts between two readings.
const SPELL: Duration = Duration::from_secs(15);
/// How long the host may take to come to rest. Far beyond what it needs.
const REST: Duration = Duration::from_secs(60);

/// Writes and harmless commands run, so that traffic has effects; deferral and hidden tools stay as they are.
const CONFIG: &str = "mode: edits
rules: ['allow shell(echo *)', 'allow shell(seq *)', 'allow shell(sleep *)', 'allow code.run_code']
";

/// What actors look at before each step.
enum Act {
    GoOn,
    Over,
}

pub(super) fn run(ledger: &Ledger, mut dice: Dice, end: Instant) {
    let home = Home::new();
    home.write_user(CONFIG);
    for number in 0..20 {
        home.write(
            &format!("file{number}.txt"),
            &format!("line {number}\n").repeat(50 * number),
        );
    }
    let served = Served::start(&home, &[]);
    let target = Target::new(&home, &served);
    let act = RwLock::new(Act::GoOn);
    let readings = thread::scope(|scope| {
        for (name, actor) in ACTORS {
            let target = &target;
            let act = &act;
            let dice = dice.fork();
            scope.spawn(move || play(ledger, name, *actor, target, act, dice));
        }
        let mut readings = Vec::new();
        while Instant::now() < end {
            thread::sleep(SPELL.min(end.saturating_duration_since(Instant::now())));
            // Actors hold this lock while they act, so now none of them does.
            let quiet = act.write().unwrap();
            readings.extend(at_rest(ledger, &served, &home, readings.first()));
            drop(quiet);
        }
        *act.write().unwrap() = Act::Over;
        readings
    });
    if let (Some(first), Some(last)) = (readings.first(), readings.last()) {
        ledger.note(format!(
            "steady host after {} spells: {last} (after the first: {first})",
            readings.len()
        ));
    }
    let (status, said) = served.stop();
    if status.code() != Some(0) || said.contains("panicked") {
        ledger.complain(format!("the steady host ended {status:?}:\n{said}"));
    }
    verify(ledger, "steady host", &home.run(&["journal", "verify"]));
}

fn play(
    ledger: &Ledger,
    name: &'static str,
    actor: Actor,
    target: &Target<'_>,
    act: &RwLock<Act>,
    mut dice: Dice,
) {
    loop {
        let turn = act.read().unwrap();
        if matches!(*turn, Act::Over) {
            return;
        }
        actor(target, &mut dice, ledger, name);
        drop(turn);
        // So that whoever wants it quiet gets the lock.
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the host rests, and until it occupies no more than before.
fn at_rest(
    ledger: &Ledger,
    served: &Served,
    home: &Home,
    first: Option<&Vitals>,
) -> Option<Vitals> {
    let given_up = Instant::now() + REST;
    loop {
        let health = Http::connect(served.address, &Served::token(home))
            .and_then(|mut http| http.get("/health"));
        let idle = health.is_ok_and(|answer| {
            let health = answer.json();
            health["running"] == 0 && health["queued"] == 0
        });
        let vitals = Vitals::of(served.pid());
        let growth = first
            .zip(vitals.as_ref())
            .and_then(|(first, now)| now.growth(first));
        let late = Instant::now() >= given_up;
        match (vitals, growth) {
            (Some(vitals), None) if idle => return Some(vitals),
            (Some(vitals), growth) if late => {
                let why = growth.unwrap_or_else(|| "calls still run or wait".to_owned());
                ledger.complain(format!(
                    "the steady host does not come to rest: {why}; {vitals}"
                ));
                return Some(vitals);
            }
            (None, _) => {
                ledger.complain("the steady host is gone".to_owned());
                return None;
            }
            (Some(_), _) => thread::sleep(Duration::from_millis(100)),
        }
    }
}
