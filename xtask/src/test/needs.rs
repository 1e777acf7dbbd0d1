//! The programs that tests start beside the host. Missing ones are installed if that is possible; otherwise the tests
//! that need them are left out and listed at the end of the run.

use std::env;
use std::process::{Command, Stdio};

use crate::ChoreVerdict;
use crate::cargo::{answers, verdict};

/// A program and the tests that start it.
pub(crate) struct TestProgram {
    pub(crate) name: &'static str,
    /// The Debian packages with the program.
    packages: &'static [&'static str],
    /// Succeeds if the program is installed and complete.
    probe: &'static [&'static str],
    /// The tests: a package, and the prefix of the tests' names in it. An empty prefix means all of the package.
    pub(crate) tests: &'static [(&'static str, &'static str)],
}

/// The need that the packages of `xtask/peers` share.
pub(crate) const PYTHON: &str = "python3";

/// The tests that need an interpreter, the environments of `xtask/peers` included.
const PYTHON_TESTS: &[(&str, &str)] = &[
    ("toolpost", "a2a::"),
    ("toolpost", "a2e"),
    ("toolpost", "abuse::"),
    ("toolpost", "ai_sdk::"),
    ("toolpost", "amplifier::"),
    ("toolpost", "authorities::"),
    ("toolpost", "behind::"),
    ("toolpost", "clients::"),
    ("toolpost", "complete_record::"),
    ("toolpost", "fuzzer::"),
    ("toolpost", "grpc::"),
    ("toolpost", "hooks::"),
    ("toolpost", "joining::"),
    ("toolpost", "mcp_servers::"),
    ("toolpost", "modules::"),
    ("toolpost", "new::"),
    ("toolpost", "own_tools::"),
    ("toolpost", "plugin_files::"),
    ("toolpost", "run_code::"),
    ("toolpost", "scenarios::"),
    ("toolpost", "soak::"),
    ("toolpost", "suite::"),
    ("toolpost", "terminal::"),
    ("toolpost", "transcripts::"),
    ("toolpost", "validate::"),
    ("toolpost", "journal::"),
    ("toolpost", "names::"),
    ("toolpost", "shell::"),
    ("toolpost-a2e", "stdio::"),
    ("toolpost-examples", ""),
    ("toolpost-mcp-source", ""),
    ("toolpost-modules", ""),
    ("toolpost-native", ""),
    ("toolpost-sandbox", ""),
    ("toolpost-wasm", "python::"),
];

pub(crate) const NEEDS: [TestProgram; 4] = [
    TestProgram {
        name: PYTHON,
        packages: &["python3", "python3-venv"],
        probe: &["python3", "-c", "import ensurepip, venv"],
        tests: PYTHON_TESTS,
    },
    TestProgram {
        name: "git",
        packages: &["git"],
        probe: &["git", "--version"],
        tests: &[
            ("toolpost", "approvals::"),
            ("toolpost", "modules::"),
            ("toolpost", "shell::"),
            ("toolpost", "transcripts::"),
            ("toolpost-native", "planting::"),
            ("xtask", "check::advisories::"),
        ],
    },
    TestProgram {
        name: "curl",
        packages: &["curl", "jq", "openssl"],
        // `--json` came with curl 7.82.
        probe: &[
            "sh",
            "-c",
            "curl --help all | grep -q -e --json && jq --version && openssl version",
        ],
        tests: &[("toolpost", "transcripts::")],
    },
    TestProgram {
        name: "chromium",
        packages: &["chromium", "chromium-driver"],
        probe: &["sh", "-c", "chromium --version && chromedriver --version"],
        tests: &[("toolpost", "page::")],
    },
];

impl TestProgram {
    fn is_met(&self) -> bool {
        let [program, arguments @ ..] = self.probe else {
            return true;
        };
        answers(Command::new(program).args(arguments))
    }

    pub(crate) fn hint(&self) -> String {
        format!(
            "apt-get install {} (Debian packages)",
            self.packages.join(" ")
        )
    }
}

/// Installs the programs that are missing. Returns those that are still missing then.
pub(crate) fn provide() -> anyhow::Result<Vec<&'static TestProgram>> {
    let missing = || {
        NEEDS
            .iter()
            .filter(|need| !need.is_met())
            .collect::<Vec<_>>()
    };
    let before = missing();
    if before.is_empty() || !can_install() {
        return Ok(before);
    }
    let packages: Vec<&str> = before
        .iter()
        .flat_map(|need| need.packages.iter().copied())
        .collect();
    eprintln!("installing the Debian packages {}", packages.join(", "));
    let quiet = |arguments: &[&str]| {
        verdict(
            Command::new("apt-get")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .stdin(Stdio::null())
                .stdout(Stdio::null()),
        )
    };
    if quiet(&["update"])? == ChoreVerdict::Pass {
        // The check for the program shows a failure.
        quiet(
            &[
                &["install", "--yes", "--no-install-recommends"],
                packages.as_slice(),
            ]
            .concat(),
        )?;
    }
    Ok(missing())
}

/// Whether this is Debian or a derivative, and the user may install packages.
fn can_install() -> bool {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout == b"0\n");
    is_root && answers(Command::new("apt-get").arg("--version"))
}

/// In CI, a run that leaves tests out fails.
pub(crate) fn must_be_whole() -> bool {
    env::var_os("CI").is_some()
}

/// The packages that are left out as a whole, for cargo and nextest.
fn excluded(missing: &[&TestProgram]) -> Vec<String> {
    let whole = missing
        .iter()
        .flat_map(|need| need.tests)
        .filter(|(_, beginning)| beginning.is_empty());
    let mut packages: Vec<&str> = whole.map(|(package, _)| *package).collect();
    packages.dedup();
    packages
        .into_iter()
        .flat_map(|package| ["--exclude".to_owned(), package.to_owned()])
        .collect()
}

/// The tests that are left out of other packages.
fn named(missing: &[&TestProgram]) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    missing
        .iter()
        .flat_map(|need| need.tests)
        .filter(|(_, beginning)| !beginning.is_empty())
}

/// The arguments that exclude the tests of these needs from a run of nextest.
pub(crate) fn nextest_arguments(missing: &[&TestProgram]) -> Vec<String> {
    let test = |(package, beginning): &(&str, &str)| {
        format!("(package({package}) & test(/^{beginning}/))")
    };
    let tests: Vec<String> = named(missing).map(test).collect();
    let mut arguments = excluded(missing);
    if !tests.is_empty() {
        arguments.extend(["-E".to_owned(), format!("not ({})", tests.join(" | "))]);
    }
    arguments
}

/// The same for `cargo test`, which filters by the names of tests without their packages: a few more are left out.
pub(crate) fn cargo_test_arguments(missing: &[&TestProgram]) -> Vec<String> {
    let mut arguments = excluded(missing);
    let skips =
        named(missing).flat_map(|(_, beginning)| ["--skip".to_owned(), (*beginning).to_owned()]);
    let skips: Vec<String> = skips.collect();
    if !skips.is_empty() {
        arguments.push("--".to_owned());
        arguments.extend(skips);
    }
    arguments
}

/// Prints the tests that did not run, with the reason.
pub(crate) fn report(missing: &[&TestProgram]) {
    for need in missing {
        eprintln!(
            "\n`{}` is missing, so these tests were left out:",
            need.name
        );
        for (package, beginning) in need.tests {
            eprintln!(
                "  {package} {}",
                if beginning.is_empty() {
                    "(all)"
                } else {
                    beginning
                }
            );
        }
        eprintln!("hint: {}", need.hint());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_left_out_by_package_and_name() {
        let need = |tests| TestProgram {
            name: "x",
            packages: &[],
            probe: &[],
            tests,
        };
        let one = need(&[("a", "x::"), ("b", "")]);
        let other = need(&[("c", "y::")]);
        let filter = "not ((package(a) & test(/^x::/)) | (package(c) & test(/^y::/)))";
        assert_eq!(
            nextest_arguments(&[&one, &other]),
            ["--exclude", "b", "-E", filter]
        );
        let skips = ["--exclude", "b", "--", "--skip", "x::", "--skip", "y::"];
        assert_eq!(cargo_test_arguments(&[&one, &other]), skips);
        assert!(nextest_arguments(&[]).is_empty() && cargo_test_arguments(&[]).is_empty());
    }
}
