//! The official conformance suite as a process, and what it found.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

/// What cannot hold, and why. Whatever is listed must really fail, so that the list does not outlive its reasons.
pub(crate) type Known = &'static [(&'static str, &'static str)];

/// Where an environment of other ends is.
#[track_caller]
pub(crate) fn peers(environment: &str) -> PathBuf {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target")
        .join(environment);
    assert!(
        place.join("made-of.txt").exists(),
        "`target/{environment}` is missing\nhint: cargo xtask peers"
    );
    place
}

/// One scenario's checks.
struct Scenario {
    name: String,
    passed: u32,
    failed: u32,
    /// Counts for the revision. What does not is run and told all the same.
    required: bool,
}

/// What one run found.
pub(crate) struct Report {
    scenarios: Vec<Scenario>,
    /// A folder a scenario, with its checks.
    details: TempDir,
    said: String,
}

/// Runs everything that a revision of the protocol requires against a server.
pub(crate) fn run(url: &str, revision: &str) -> Report {
    let node = peers("peers-node");
    let details = tempfile::tempdir().unwrap();
    let output = Command::new(node.join("bin/node"))
        .arg(node.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", url, "--requirements", revision, "-o"])
        .arg(details.path())
        .current_dir(details.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let scenarios = scenarios(&said);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        scenarios.iter().any(|scenario| scenario.required),
        "the suite ran nothing:\n{said}\n{words}"
    );
    let report = Report {
        scenarios,
        details,
        said,
    };
    assert_eq!(
        output.status.success(),
        report.failing().next().is_none(),
        "{}\n{words}",
        report.said
    );
    report
}

/// Reads the summary: a line a scenario, then the names of those that do not count.
fn scenarios(said: &str) -> Vec<Scenario> {
    let summary = said
        .split_once("=== SUMMARY ===")
        .map_or("", |(_, rest)| rest);
    let (scored, unscored) = summary
        .split_once("Not scored for")
        .unwrap_or((summary, ""));
    let unscored: Vec<&str> = unscored
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    let scenario = |line: &str| {
        let (name, figures) = line
            .strip_prefix(['✓', '✗', '~', '⚠'])?
            .trim()
            .split_once(": ")?;
        let mut figures = figures
            .split_whitespace()
            .filter_map(|word| word.parse().ok());
        let passed = figures.next()?;
        let failed = figures.next()?;
        let required = !unscored.contains(&name);
        Some(Scenario {
            name: name.to_owned(),
            passed,
            failed,
            required,
        })
    };
    scored.lines().filter_map(scenario).collect()
}

impl Report {
    fn failing(&self) -> impl Iterator<Item = &Scenario> {
        self.scenarios
            .iter()
            .filter(|scenario| scenario.required && scenario.failed > 0)
    }

    /// Tells the figures, and fails where anything required fails that is not known to.
    #[track_caller]
    pub(crate) fn judge(&self, what: &str, known: Known) {
        let required = || self.scenarios.iter().filter(|scenario| scenario.required);
        let passed: u32 = required().map(|scenario| scenario.passed).sum();
        let failed: u32 = required().map(|scenario| scenario.failed).sum();
        let whole = required().filter(|scenario| scenario.failed == 0).count();
        eprintln!(
            "{what}: {whole} of {} required scenarios, {passed} of {} checks",
            required().count(),
            passed + failed
        );
        for scenario in self.scenarios.iter().filter(|scenario| !scenario.required) {
            let Scenario {
                name,
                passed,
                failed,
                ..
            } = scenario;
            eprintln!("  not scored: {name}: {passed} passed, {failed} failed");
        }
        for (name, why) in known {
            let Some(found) = required().find(|scenario| scenario.name == *name) else {
                panic!("{what}: `{name}` is known to fail, and was not run");
            };
            assert!(
                found.failed > 0,
                "{what}: `{name}` passes, and is listed as failing because {why}"
            );
            eprintln!("  known: {name}: {why}");
        }
        let unknown = |scenario: &&Scenario| known.iter().all(|(name, _)| *name != scenario.name);
        let told: String = self
            .failing()
            .filter(unknown)
            .map(|failing| self.explain(&failing.name))
            .collect();
        assert!(told.is_empty(), "{what}:\n{told}");
    }

    /// The checks of a scenario that failed, with what the suite saw.
    fn explain(&self, name: &str) -> String {
        let mut told = String::new();
        let folders = fs::read_dir(self.details.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let named = |folder: &PathBuf| {
            let folder = folder.file_name().unwrap().to_string_lossy();
            // A timestamp follows the name.
            folder
                .strip_prefix(&format!("server-{name}-"))
                .is_some_and(|rest| rest.starts_with("20"))
        };
        for check in folders
            .filter(named)
            .flat_map(|folder| failed_checks(&folder))
        {
            let mut details = check["details"].to_string();
            details.truncate(details.floor_char_boundary(1_500));
            writeln!(
                told,
                "{name}: {}: {}\n  {details}",
                check["id"], check["errorMessage"]
            )
            .unwrap();
        }
        if told.is_empty() {
            format!("{name}: failed without a check\n{}", self.said)
        } else {
            told
        }
    }
}

fn failed_checks(folder: &Path) -> Vec<Value> {
    let checks = fs::read_to_string(folder.join("checks.json")).unwrap_or_default();
    let checks: Vec<Value> = serde_json::from_str(&checks).unwrap_or_default();
    checks
        .into_iter()
        .filter(|check| check["status"] == "FAILURE")
        .collect()
}
