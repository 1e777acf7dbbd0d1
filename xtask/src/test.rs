//! `cargo xtask test`: every test, with an end to hung ones. nextest ends each hung test by itself
//! (`.config/nextest.toml`); without nextest a watchdog ends the whole run.

mod minutes;
mod needs;
pub(crate) mod watchdog;

use std::env;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::ChoreVerdict;
use crate::cargo::{answers, cargo, verdict};
use crate::ci::CheckProcess;
use crate::peers;
use anyhow::Context;
use minutes::{LibtestCount, RunReport};
use needs::TestProgram;
use watchdog::{WatchdogOutcome, run_within};

/// The limit of the whole run if there is no watchdog for single tests. Building is not counted.
const RUN_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Doc tests are compiled as they run, so this covers a slow machine's compiler.
const DOC_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Tests that run at the same time, per core. Most of them wait for processes, timers and other programs: with one
/// test per core, two thirds of the machine's time go unused.
const TESTS_PER_CORE: usize = 3;

const EVERYTHING: [&str; 3] = ["--workspace", "--all-features", "--no-fail-fast"];

/// Whether `check` runs while the tests do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckPlan {
    Apart,
    BesideTests,
}

impl CheckPlan {
    /// Called when the tests are built and about to run: cargo compiles for one of two at a time. The first steps of
    /// `check` compile nothing, and meanwhile the test runner has found everything built.
    fn start(self, root: &Path) -> anyhow::Result<Option<CheckProcess>> {
        match self {
            Self::Apart => Ok(None),
            Self::BesideTests => CheckProcess::start(root).map(Some),
        }
    }
}

pub(crate) fn run(root: &Path, args: &[String], plan: CheckPlan) -> anyhow::Result<ChoreVerdict> {
    let missing = needs::provide()?;
    let has_nextest = answers(&mut cargo(root, &["nextest", "--version"]));
    build(
        root,
        has_nextest,
        missing.iter().all(|need| need.name != needs::PYTHON),
    )?;
    let tests = if has_nextest {
        with_nextest(root, args, &missing, plan)?
    } else {
        eprintln!(
            "cargo-nextest is not installed: running `cargo test` with a limit for the whole run"
        );
        with_cargo_test(root, args, &missing, plan)?
    };
    if !missing.is_empty() && needs::must_be_whole() {
        eprintln!("error: tests were left out, and `CI` is set, which requires all tests");
        return Ok(ChoreVerdict::Fail);
    }
    Ok(tests)
}

/// Builds the tests, and meanwhile installs the packages of their peers: the first waits for the compiler, the second
/// for the network.
fn build(root: &Path, has_nextest: bool, has_python: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    thread::scope(|scope| {
        let peers = scope.spawn(|| {
            if has_python {
                peers::run(root)
            } else {
                Ok(ChoreVerdict::Pass)
            }
        });
        // If the build fails, the run that needs it reports the failure.
        let _ = match has_nextest {
            true => verdict(cargo(root, &["nextest", "run", "--no-run"]).args(&EVERYTHING[..2])),
            false => verdict(cargo(root, &["test", "--no-run"]).args(&EVERYTHING[..2])),
        };
        peers
            .join()
            .unwrap_or_else(|_| anyhow::bail!("the installation of packages broke"))
    })?;
    eprintln!(
        "== tests built in {:.1} min",
        start.elapsed().as_secs_f32() / 60.0
    );
    Ok(())
}

/// Doc tests, which nextest cannot run, go first. The last line counts all other tests.
fn with_nextest(
    root: &Path,
    args: &[String],
    missing: &[&TestProgram],
    plan: CheckPlan,
) -> anyhow::Result<ChoreVerdict> {
    let docs = if args.is_empty() {
        doc_tests(root)?
    } else {
        ChoreVerdict::Pass
    };
    let mut command = cargo(root, &["nextest", "run"]);
    command
        .args(EVERYTHING)
        .args(["--test-threads", &tests_at_a_time()]);
    // The caller's own selection of tests is not narrowed.
    if args.is_empty() {
        command.args(needs::nextest_arguments(missing));
    }
    RunReport::clear(root);
    let check = plan.start(root)?;
    let start = Instant::now();
    let rest = verdict(command.args(args))?;
    let minutes = start.elapsed().as_secs_f32() / 60.0;
    let check = CheckProcess::verdict(check)?;
    let report = RunReport::read(root);
    if args.is_empty() {
        report.iter().for_each(RunReport::print);
        needs::report(missing);
    }
    if docs == ChoreVerdict::Fail {
        eprintln!("error: doc tests failed, see above");
    }
    if check == ChoreVerdict::Fail {
        eprintln!("error: `check` failed, see above");
    }
    if let Some(RunReport { passed, failed, .. }) = report {
        eprintln!("\n== tests run in {minutes:.1} min\n{passed} passed, {failed} failed");
    }
    Ok(ChoreVerdict::pass_if(
        ![docs, rest, check].contains(&ChoreVerdict::Fail),
    ))
}

fn tests_at_a_time() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (cores * TESTS_PER_CORE).to_string()
}

fn doc_tests(root: &Path) -> anyhow::Result<ChoreVerdict> {
    limited(
        cargo(root, &["test", "--doc"]).args(EVERYTHING),
        DOC_LIMIT,
        "doc tests",
    )
}

fn with_cargo_test(
    root: &Path,
    args: &[String],
    missing: &[&TestProgram],
    plan: CheckPlan,
) -> anyhow::Result<ChoreVerdict> {
    let mut command = cargo(root, &["test"]);
    command.args(EVERYTHING).args(args);
    if env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", tests_at_a_time());
    }
    if args.is_empty() {
        command.args(needs::cargo_test_arguments(missing));
        needs::report(missing);
    }
    let check = plan.start(root)?;
    let (output, lines) = io::pipe().context("cannot read the output of the tests")?;
    command.stdout(lines);
    let count = thread::spawn(move || LibtestCount::of(output));
    let tests = limited(&mut command, RUN_LIMIT, "the test run")?;
    // Its end of the pipe.
    drop(command);
    let check = CheckProcess::verdict(check)?;
    if check == ChoreVerdict::Fail {
        eprintln!("error: `check` failed, see above");
    }
    let count = count.join().unwrap_or_default();
    eprintln!("\n{} passed, {} failed", count.passed, count.failed);
    Ok(ChoreVerdict::pass_if(
        ![tests, check].contains(&ChoreVerdict::Fail),
    ))
}

fn limited(command: &mut Command, limit: Duration, what: &str) -> anyhow::Result<ChoreVerdict> {
    match run_within(limit, command)? {
        WatchdogOutcome::Exited(status) if status.success() => Ok(ChoreVerdict::Pass),
        WatchdogOutcome::Exited(_) => Ok(ChoreVerdict::Fail),
        WatchdogOutcome::LimitHit => {
            let minutes = limit.as_secs() / 60;
            eprintln!(
                "error: {what} exceeded the limit of {minutes} minutes and was stopped\n\
                 hint: a line `has been running for over 60 seconds` above names a test that hung"
            );
            Ok(ChoreVerdict::Fail)
        }
    }
}
