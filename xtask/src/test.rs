//! `cargo xtask test`: every test, with an end to hung ones. nextest ends each hung test by itself
//! (`.config/nextest.toml`); without nextest a watchdog ends the whole run.

pub(crate) mod watchdog;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;

use crate::Verdict;
use crate::cargo::{answers, cargo, verdict};
use crate::peers;
use watchdog::{Ending, run_within};

/// Of the whole run when nothing watches the single test; building is not counted.
const RUN_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Doc tests are compiled as they run, so this covers a slow machine's compiler.
const DOC_LIMIT: Duration = Duration::from_secs(15 * 60);

const EVERYTHING: [&str; 3] = ["--workspace", "--all-features", "--no-fail-fast"];

pub(crate) fn run(root: &Path, args: &[String]) -> anyhow::Result<Verdict> {
    ensure!(
        answers(Command::new("python3").arg("--version")),
        "`python3` is missing: the end-to-end tests run Python clients and tools\n\
         hint: apt-get install python3 (the Debian package `python3`)"
    );
    for program in ["chromium", "chromedriver"] {
        ensure!(
            answers(Command::new(program).arg("--version")),
            "`{program}` is missing: a test looks at the page of live calls in a real browser\n\
             hint: apt-get install chromium chromium-driver (the Debian packages of those names)"
        );
    }
    peers::run(root)?;
    if answers(&mut cargo(root, &["nextest", "--version"])) {
        with_nextest(root, args)
    } else {
        eprintln!("cargo-nextest is not installed: running `cargo test` with a limit for the whole run");
        with_cargo_test(root, args)
    }
}

/// Doc tests, which nextest cannot run, go first: the last line then is nextest's summary.
fn with_nextest(root: &Path, args: &[String]) -> anyhow::Result<Verdict> {
    let docs = if args.is_empty() { doc_tests(root)? } else { Verdict::Pass };
    let rest = verdict(cargo(root, &["nextest", "run"]).args(EVERYTHING).args(args))?;
    if docs == Verdict::Fail {
        eprintln!("error: doc tests failed, see above");
        return Ok(Verdict::Fail);
    }
    Ok(rest)
}

fn doc_tests(root: &Path) -> anyhow::Result<Verdict> {
    limited(cargo(root, &["test", "--doc"]).args(EVERYTHING), DOC_LIMIT, "doc tests")
}

fn with_cargo_test(root: &Path, args: &[String]) -> anyhow::Result<Verdict> {
    // Built first and unwatched, so that a cold build does not eat the tests' time.
    if verdict(cargo(root, &["test", "--no-run"]).args(EVERYTHING))? == Verdict::Fail {
        return Ok(Verdict::Fail);
    }
    limited(cargo(root, &["test"]).args(EVERYTHING).args(args), RUN_LIMIT, "the test run")
}

fn limited(command: &mut Command, limit: Duration, what: &str) -> anyhow::Result<Verdict> {
    match run_within(limit, command)? {
        Ending::Exited(status) if status.success() => Ok(Verdict::Pass),
        Ending::Exited(_) => Ok(Verdict::Fail),
        Ending::LimitHit => {
            let minutes = limit.as_secs() / 60;
            eprintln!(
                "error: {what} hit the limit of {minutes} minutes and was ended\n\
                 hint: a line `has been running for over 60 seconds` above names a test that hung"
            );
            Ok(Verdict::Fail)
        }
    }
}
