//! Thousands of calls while the host is killed again and again: what was answered stays answered, byte for byte,
//! and nothing that must not run twice does.
//!
//! `TOOLPOST_SOAK_CALLS` and `TOOLPOST_SOAK_SEED` change the size and the dice.

mod audit;
mod caller;
mod files;
mod power;

use std::{sync::mpsc, thread, time::Instant};

use super::{
    dice::{Dice, setting},
    home::Home,
    http::Http,
    served::Served,
};
use audit::Audit;
use caller::{Caller, Said};
use files::Files;
use power::Power;

const CALLS: usize = 10_000;
const SEED: u64 = 0x70_6f_73_74;
const CALLERS: usize = 8;
const KILLS: usize = 14;

/// After how many answers the host is killed, in order.
fn moments(dice: &mut Dice, calls: usize) -> Vec<usize> {
    let mut moments: Vec<usize> = (0..KILLS)
        .map(|_| 1 + dice.roll(calls as u64) as usize)
        .collect();
    moments.sort_unstable();
    moments
}

/// Lets all callers work, and kills the host whenever enough of them were answered.
fn work(home: &Home, power: &Power<'_>, dice: &mut Dice, calls: usize) -> Vec<Said> {
    let moments = moments(dice, calls);
    let seeds: Vec<u64> = (0..CALLERS).map(|_| dice.roll(u64::MAX)).collect();
    let mut said = Vec::with_capacity(calls);
    thread::scope(|scope| {
        let (tell, answered) = mpsc::channel();
        for (name, seed) in seeds.into_iter().enumerate() {
            let mine = calls / CALLERS + usize::from(name < calls % CALLERS);
            let mut caller = Caller::new(name, home, power, Dice(seed));
            let tell = tell.clone();
            scope.spawn(move || {
                (0..mine).for_each(|_| tell.send(caller.call()).expect("the test listens"));
            });
        }
        drop(tell);
        let mut next = moments.into_iter().peekable();
        for one in answered {
            said.push(one);
            while next.next_if(|moment| *moment <= said.len()).is_some() {
                // Now and then the next host dies at once too, with what it wanted to recover.
                power.cut(if dice.roll(4) == 0 { 2 } else { 1 });
            }
        }
    });
    said
}

/// Sends every request once more, on the host as it is now.
fn repeat_all(power: &Power<'_>, said: &[Said]) {
    thread::scope(|scope| {
        for part in said.chunks(said.len().div_ceil(CALLERS)) {
            scope.spawn(move || {
                let mut http = power.connect().expect("the host runs");
                for Said {
                    request, answer, ..
                } in part
                {
                    let again = http
                        .post_with_key(&request.path, &request.key, &request.body)
                        .expect("an answer");
                    assert_eq!(again, *answer, "the repeat of `{}` differs", request.key);
                }
            });
        }
    });
}

#[test]
fn no_answer_is_lost_and_no_write_runs_twice_when_the_host_crashes() {
    let calls = setting("TOOLPOST_SOAK_CALLS", CALLS as u64) as usize;
    let seed = setting("TOOLPOST_SOAK_SEED", SEED);
    let mut dice = Dice(seed);
    let home = Home::new();
    Caller::prepare(&home, CALLERS);
    let power = Power::on(&home);
    let began = Instant::now();
    let said = work(&home, &power, &mut dice, calls);
    let took = began.elapsed();
    assert_eq!(said.len(), calls);

    power.stop();
    let audit = Audit::read(&home);
    audit.check(&said);
    assert!(
        audit.unknown(&said) <= power.kills() * CALLERS,
        "only calls under way at a kill end unknown"
    );

    let files = Files::of(&home);
    power.start();
    repeat_all(&power, &said);
    power.stop();
    assert_eq!(Files::of(&home), files, "no file was written again");
    let after = Audit::read(&home);
    assert_eq!(
        after.records(),
        audit.records() + 1,
        "repeats leave no record, the start leaves one"
    );
    let report = home.run(&["journal", "verify", "--json"]).expect(0).json();
    assert_eq!(report["clean"], true);
    assert_eq!(report["open_invocations"], serde_json::json!([]));
    eprintln!(
        "{calls} calls by {CALLERS} callers, seed {seed}: {:.1} s, {} kills",
        took.as_secs_f64(),
        power.kills()
    );
    eprintln!(
        "{}\n{} files left behind by killed writes",
        audit.figures(&said),
        files.strays()
    );
}
