//! Known faults of the crates in Cargo.lock. cargo-deny judges by the `[advisories]` of deny.toml, with a database that
//! lies on the network. A machine that does not reach it can still work: the step reports that nothing was checked, and passes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use super::deny_file::DenyFile;
use crate::ChoreVerdict;
use crate::cargo::{answers, cargo, verdict};
use crate::test::watchdog::{WatchdogOutcome, run_within};

/// How long a database may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn check(root: &Path) -> anyhow::Result<ChoreVerdict> {
    let deny_toml =
        fs::read_to_string(root.join("deny.toml")).context("cannot read `deny.toml`")?;
    let databases = DenyFile::parse(&deny_toml)
        .context("cannot read `deny.toml`")?
        .databases;
    if !answers(&mut cargo(root, &["deny", "--version"])) {
        return Ok(not_judged(
            "cargo-deny is not installed",
            "cargo install cargo-deny",
        ));
    }
    if let Some(why) = unreachable(&databases, PATIENCE) {
        return Ok(not_judged(
            &why,
            "run it again with network access to the database",
        ));
    }
    verdict(&mut cargo(root, &["deny", "check", "advisories"]))
}

/// Reports that the crates were not checked, and passes: a check that fails without a network would soon be skipped.
fn not_judged(why: &str, hint: &str) -> ChoreVerdict {
    println!("advisories: NOT CHECKED: {why}\nhint: {hint}");
    ChoreVerdict::Pass
}

/// The first database that does not answer in time, with the reason.
fn unreachable(databases: &[String], limit: Duration) -> Option<String> {
    databases.iter().find_map(|database| {
        let why = try_within(limit, &mut look_at(database)).err()?;
        Some(format!(
            "the database `{database}` cannot be reached: {why}"
        ))
    })
}

/// Asks for one name of the database's repository, as cargo-deny would before it fetches.
fn look_at(database: &str) -> Command {
    let mut command = Command::new("git");
    command
        .args(["ls-remote", "--exit-code", database, "HEAD"])
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// Runs a program that must succeed within `limit`.
fn try_within(limit: Duration, command: &mut Command) -> Result<(), String> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match run_within(limit, quiet) {
        Ok(WatchdogOutcome::Exited(status)) if status.success() => Ok(()),
        Ok(WatchdogOutcome::Exited(status)) => Err(format!(
            "`{}` ended with {status}",
            command.get_program().display()
        )),
        Ok(WatchdogOutcome::LimitHit) => Err(format!("no answer within {limit:?}")),
        Err(error) => Err(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_database_that_does_not_answer_costs_a_bounded_time() {
        let start = Instant::now();
        let slow = try_within(Duration::from_millis(50), Command::new("sleep").arg("600"));
        assert_eq!(slow, Err("no answer within 50ms".to_owned()));
        // Far beyond a slow machine, and far below the program's own time.
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_silent_and_a_refusing_database_are_named() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let databases = vec![format!("http://{address}/db")];
        let why = unreachable(&databases, Duration::from_millis(300)).unwrap();
        assert_eq!(
            why,
            format!("the database `http://{address}/db` cannot be reached: no answer within 300ms")
        );
        drop(silent);
        let why = unreachable(&databases, Duration::from_secs(60)).unwrap();
        assert!(why.contains("`git` ended with"), "{why}");
    }

    #[test]
    fn an_answer_is_told_from_a_refusal() {
        let attempt = |command: &mut Command| try_within(Duration::from_secs(60), command);
        assert_eq!(attempt(&mut Command::new("true")), Ok(()));
        assert!(attempt(&mut Command::new("false")).is_err());
        assert!(
            attempt(&mut look_at("/nowhere/at/all"))
                .unwrap_err()
                .contains("`git` ended with")
        );
        let missing = attempt(&mut Command::new("no-such-program-anywhere"));
        assert!(missing.unwrap_err().contains("cannot start"));
    }
}
