//! `cargo xtask soak`: mixed traffic at real hosts for the given time, with kills, full disks and malformed input. The
//! test suite runs 45 seconds of the same.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::ChoreVerdict;
use crate::cargo::{cargo, verdict};

/// The duration, and the seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SoakOptions {
    minutes: u64,
    /// By default a new seed.
    seed: Option<u64>,
}

impl SoakOptions {
    /// `None`: an option is unknown, or its value is no number.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut options = Self {
            minutes: 2,
            seed: None,
        };
        for pair in words.chunks(2) {
            match pair {
                ["--minutes", minutes] => {
                    options.minutes = minutes.parse().ok().filter(|minutes| *minutes > 0)?;
                }
                ["--seed", seed] => options.seed = Some(seed.parse().ok()?),
                _ => return None,
            }
        }
        Some(options)
    }
}

pub(crate) fn run(root: &Path, options: SoakOptions) -> anyhow::Result<ChoreVerdict> {
    let clock = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs())
    };
    let seed = options.seed.unwrap_or_else(clock);
    eprintln!(
        "soak: {} min, seed {seed}; repeat it with: cargo xtask soak --minutes {} --seed {seed}",
        options.minutes, options.minutes
    );
    // The features of the whole workspace, so that the build of the tests is reused.
    let test = [
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "it",
        "--",
    ];
    let which = [
        "soak::mixed_traffic_leaves_the_host_as_it_was",
        "--exact",
        "--nocapture",
    ];
    let mut command = cargo(root, &test);
    command.args(which);
    command.env("TOOLPOST_SOAK_SECONDS", (options.minutes * 60).to_string());
    command.env("TOOLPOST_SOAK_SEED", seed.to_string());
    verdict(&mut command)
}
