//! `cargo xtask tidy`: the house rules that a machine can check, one check per file. A rule in ARCHITECTURE.md or
//! CONTRIBUTING.md should have a check here if the text of the files is enough for it.

mod changelog;
mod dependencies;
mod examples;
mod generated;
mod invariants;
mod length;
mod links;
mod names;
mod options;
mod phrases;
mod repo;
mod rust_code;
mod types;
mod words;

use std::fmt;
use std::path::Path;

use crate::ChoreVerdict;
use repo::Repo;

/// Every check. The check that builds the binary comes last.
const CHECKS: &[fn(&Repo) -> Vec<TidyViolation>] = &[
    dependencies::check,
    length::check,
    names::check,
    types::check,
    phrases::check,
    invariants::check,
    links::check,
    examples::check,
    options::check,
    words::check,
    changelog::check,
    generated::check,
];

pub(crate) fn run(root: &Path) -> anyhow::Result<ChoreVerdict> {
    let repo = Repo::load(root)?;
    let mut violations: Vec<TidyViolation> = CHECKS.iter().flat_map(|check| check(&repo)).collect();
    violations.sort();
    for violation in &violations {
        println!("{violation}");
    }
    println!("{}", words::rates(&repo));
    println!(
        "tidy: {} violations in {} files",
        violations.len(),
        repo.files.len()
    );
    Ok(ChoreVerdict::pass_if(violations.is_empty()))
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct TidyViolation {
    path: String,
    line: usize,
    message: String,
    hint: String,
}

impl TidyViolation {
    fn new(
        path: &str,
        line: usize,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> TidyViolation {
        TidyViolation {
            path: path.to_owned(),
            line,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for TidyViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TidyViolation {
            path,
            line,
            message,
            hint,
        } = self;
        write!(f, "{path}:{line}: {message}\n  hint: {hint}")
    }
}

/// `path:line` of each violation, for tests of the place alone.
#[cfg(test)]
fn places(violations: &[TidyViolation]) -> Vec<String> {
    violations
        .iter()
        .map(|found| format!("{}:{}", found.path, found.line))
        .collect()
}
