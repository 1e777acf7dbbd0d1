//! Mixed traffic over every face at two hosts: one that nothing disturbs, whose memory, descriptors, threads and
//! processes must stay flat, and one that is killed and whose disk fills up. Both records must verify in the end.
//!
//! The suite runs 45 seconds of it. `cargo xtask soak --minutes N --seed S` runs more; the seed of a run is printed, and
//! the same seed sends the same requests (in an order that the threads decide).

mod faults;
mod ledger;
mod malformed;
mod steady;
mod traffic;
mod vitals;

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    dice::{Dice, setting},
    home::{Home, Ran},
    http::Http,
    served::Served,
};
use ledger::Ledger;

const SEED: u64 = 0x736f_616b;

#[test]
fn mixed_traffic_leaves_the_host_as_it_was() {
    let seconds = setting("TOOLPOST_SOAK_SECONDS", 45);
    let seed = setting("TOOLPOST_SOAK_SEED", SEED);
    println!("soak: {seconds} s, seed {seed}");
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut dice = Dice(seed);
    let steady_dice = dice.fork();
    let fault_dice = dice.fork();
    let ledger = Ledger::default();
    thread::scope(|scope| {
        scope.spawn(|| steady::run(&ledger, steady_dice, end));
        scope.spawn(|| faults::run(&ledger, fault_dice, end));
    });
    println!("{}", ledger.report());
    let complaints = ledger.complaints();
    assert!(
        complaints.is_empty(),
        "seed {seed}:\n{}",
        complaints.join("\n")
    );
}

/// Checks the record of a host that does not run.
fn verify(ledger: &Ledger, which: &str, ran: &Ran) {
    if ran.code != 0 {
        ledger.complain(format!(
            "{which}: `journal verify` ended {}:\n{}{}",
            ran.code, ran.stdout, ran.stderr
        ));
    }
}
