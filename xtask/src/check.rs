//! `cargo xtask check`: all checks before a commit except the tests, the quickest first.

mod advisories;
mod deny_file;
mod license;
pub(crate) mod rustdoc;
mod supply;

use std::path::Path;
use std::time::Instant;

use crate::cargo::{cargo, verdict};
use crate::{ChoreVerdict, tidy};

type CheckStep = fn(&Path) -> anyhow::Result<ChoreVerdict>;

const STEPS: &[(&str, CheckStep)] = &[
    ("format", format),
    ("dependencies", supply::check),
    ("advisories", advisories::check),
    ("clippy", clippy),
    ("lean build", lean_build),
    ("rustdoc and public API", rustdoc::check),
    ("tidy", tidy::run),
];

/// Stops at the first step that fails: later steps would mostly repeat the failure.
pub(crate) fn run(root: &Path) -> anyhow::Result<ChoreVerdict> {
    for (name, step) in STEPS {
        eprintln!("== {name}");
        let start = Instant::now();
        let verdict = step(root)?;
        let seconds = start.elapsed().as_secs_f32();
        match verdict {
            ChoreVerdict::Pass => eprintln!("== {name} passed in {seconds:.1} s\n"),
            ChoreVerdict::Fail => {
                eprintln!("== {name} failed after {seconds:.1} s");
                return Ok(ChoreVerdict::Fail);
            }
        }
    }
    Ok(ChoreVerdict::Pass)
}

pub(crate) fn format(root: &Path) -> anyhow::Result<ChoreVerdict> {
    verdict(&mut cargo(root, &["fmt", "--all", "--", "--check"]))
}

fn clippy(root: &Path) -> anyhow::Result<ChoreVerdict> {
    let args = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ];
    verdict(&mut cargo(root, &args))
}

/// The build of a first `cargo run`. Code that only optional features use shows up here as unused.
fn lean_build(root: &Path) -> anyhow::Result<ChoreVerdict> {
    verdict(&mut cargo(
        root,
        &["clippy", "--package", "toolpost", "--", "-D", "warnings"],
    ))
}
