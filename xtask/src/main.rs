//! Toolpost's chores as one program, `cargo xtask <command>`, so that a contributor's machine and CI run the same code
//! with Rust as the only requirement.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool: it lives on files, child processes and a terminal"
)]

mod bench;
mod cargo;
mod check;
mod ci;
mod generate;
mod peers;
mod soak;
mod test;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use check::rustdoc::{self, ListingMode};
use generate::GenerateMode;
use soak::SoakOptions;
use test::CheckPlan;

const HELP: &str = "\
usage: cargo xtask <command>

  tidy              check the house rules a machine can check
  gen [--check]     write the generated references under docs/reference, or only compare them
  api               write the listings of the public API under docs/reference/api; check compares them
  test [-- ARGS]    run every test; ARGS go to the test runner, a name picks tests (doc tests are then left out)
  peers             install the packages that end-to-end tests use into target/peers*
  check             formatting, clippy, rustdoc, dependencies, tidy: required before a commit
  test --check      every test with check beside it, as CI runs them: in less time than one after the other
  soak [--minutes N] [--seed S]
                    send mixed traffic to hosts that are killed, crowded and out of disk (2 minutes)
  bench [ARGS]      run the benchmarks in an optimised build
  help              this text
";

/// The result of a chore. A chore that could not run is an error instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChoreVerdict {
    Pass,
    Fail,
}

impl ChoreVerdict {
    fn pass_if(holds: bool) -> ChoreVerdict {
        if holds {
            ChoreVerdict::Pass
        } else {
            ChoreVerdict::Fail
        }
    }
}

#[derive(PartialEq, Eq, Debug)]
enum Chore {
    Tidy,
    Gen(GenerateMode),
    Api,
    Test(Vec<String>),
    Peers,
    Check,
    TestBesideCheck,
    Soak(SoakOptions),
    Bench(Vec<String>),
    Help,
}

fn main() -> ExitCode {
    if let Some(rustdoc) = std::env::var_os(rustdoc::STAND_IN) {
        let args: Vec<_> = std::env::args_os().skip(1).collect();
        return rustdoc::stand_in(&rustdoc, &args);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(chore) = parse(&args) else {
        eprintln!("error: cannot read `{}`\n\n{HELP}", args.join(" "));
        return ExitCode::from(2);
    };
    match run(&chore) {
        Ok(ChoreVerdict::Pass) => ExitCode::SUCCESS,
        Ok(ChoreVerdict::Fail) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[String]) -> Option<Chore> {
    let Some((command, rest)) = args.split_first() else {
        return Some(Chore::Help);
    };
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (command.as_str(), words.as_slice()) {
        ("tidy", []) => Some(Chore::Tidy),
        ("gen", []) => Some(Chore::Gen(GenerateMode::Write)),
        ("gen", ["--check"]) => Some(Chore::Gen(GenerateMode::Compare)),
        ("api", []) => Some(Chore::Api),
        ("test", []) => Some(Chore::Test(Vec::new())),
        ("test", ["--check"]) => Some(Chore::TestBesideCheck),
        ("test", ["--", ..]) => Some(Chore::Test(rest[1..].to_vec())),
        ("peers", []) => Some(Chore::Peers),
        ("check", []) => Some(Chore::Check),
        ("soak", options) => SoakOptions::parse(options).map(Chore::Soak),
        ("bench", _) => Some(Chore::Bench(rest.to_vec())),
        ("help" | "--help" | "-h", _) => Some(Chore::Help),
        _ => None,
    }
}

fn run(chore: &Chore) -> anyhow::Result<ChoreVerdict> {
    let root = repository_root();
    match chore {
        Chore::Tidy => tidy::run(root),
        Chore::Gen(mode) => generate::run(root, *mode),
        Chore::Api => rustdoc::run(root, ListingMode::Write),
        Chore::Test(args) => test::run(root, args, CheckPlan::Apart),
        Chore::Peers => peers::run(root),
        Chore::Check => check::run(root),
        Chore::TestBesideCheck => ci::run(root),
        Chore::Soak(options) => soak::run(root, *options),
        Chore::Bench(args) => bench::run(root, args),
        Chore::Help => {
            print!("{HELP}");
            Ok(ChoreVerdict::Pass)
        }
    }
}

/// A compile-time constant: a moved repository builds this program again anyway.
fn repository_root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for (line, expected) in [
            ("", Some(Chore::Help)),
            ("tidy", Some(Chore::Tidy)),
            ("tidy now", None),
            ("gen", Some(Chore::Gen(GenerateMode::Write))),
            ("gen --check", Some(Chore::Gen(GenerateMode::Compare))),
            ("gen --chekc", None),
            ("api", Some(Chore::Api)),
            ("test", Some(Chore::Test(Vec::new()))),
            (
                "test -- soak --retries 2",
                Some(Chore::Test(words("soak --retries 2"))),
            ),
            ("test soak", None),
            ("test --check", Some(Chore::TestBesideCheck)),
            ("test --check soak", None),
            ("soak", Some(Chore::Soak(SoakOptions::parse(&[]).unwrap()))),
            ("soak --minutes", None),
            ("soak --minutes 0", None),
            ("soak --seed x", None),
            (
                "bench http --quick",
                Some(Chore::Bench(words("http --quick"))),
            ),
            ("frobnicate", None),
        ] {
            assert_eq!(parse(&words(line)), expected, "`{line}`");
        }
    }
}
