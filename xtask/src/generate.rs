//! `cargo xtask gen`: the references that would rot if written by hand. The binary prints each of them
//! with its hidden `reference` command, from the same tables it runs on.
//!
//! (`gen` itself is a reserved word since edition 2024, hence this file's name.)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::ChoreVerdict;
use crate::cargo::{self, cargo, stdout_of};

/// The name of each reference for `toolpost reference`, and its file.
const REFERENCES: &[(&str, &str)] = &[
    ("configuration", "docs/reference/configuration.md"),
    ("config-schema", "docs/reference/toolpost.schema.json"),
    ("errors", "docs/reference/errors.md"),
    ("cli", "docs/reference/cli.md"),
    ("openapi", "docs/reference/openapi.json"),
    ("evidence-schema", "docs/reference/evidence.schema.json"),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GenerateMode {
    Write,
    Compare,
}

pub(crate) fn run(root: &Path, mode: GenerateMode) -> anyhow::Result<ChoreVerdict> {
    let stale = stale(root)?;
    match mode {
        GenerateMode::Write => {
            for page in &stale {
                page.write(root)?;
                println!("wrote {}", page.path);
            }
            println!(
                "gen: {} of {} references changed",
                stale.len(),
                REFERENCES.len()
            );
            Ok(ChoreVerdict::Pass)
        }
        GenerateMode::Compare => {
            for page in &stale {
                println!(
                    "{}:{}: differs from the code\n  hint: run cargo xtask gen",
                    page.path, page.line
                );
            }
            println!(
                "gen: {} of {} references are stale",
                stale.len(),
                REFERENCES.len()
            );
            Ok(ChoreVerdict::pass_if(stale.is_empty()))
        }
    }
}

/// A reference that is missing or differs from the code.
pub(crate) struct StalePage {
    pub(crate) path: &'static str,
    /// The first line that differs.
    pub(crate) line: usize,
    fresh: Vec<u8>,
}

impl StalePage {
    fn write(&self, root: &Path) -> anyhow::Result<()> {
        let path = root.join(self.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create `{}`", folder.display()))?;
        }
        fs::write(&path, &self.fresh).with_context(|| format!("cannot write `{}`", path.display()))
    }
}

pub(crate) fn stale(root: &Path) -> anyhow::Result<Vec<StalePage>> {
    let binary = build_binary(root)?;
    let mut pages = Vec::new();
    for (name, path) in REFERENCES {
        let fresh = stdout_of(
            Command::new(&binary)
                .current_dir(root)
                .args(["reference", name]),
        )?;
        // An unreadable file counts as missing. Writing it then reports the reason.
        let written = fs::read(root.join(path)).unwrap_or_default();
        if fresh != written {
            pages.push(StalePage {
                path,
                line: first_difference(&written, &fresh),
                fresh,
            });
        }
    }
    Ok(pages)
}

fn first_difference(written: &[u8], fresh: &[u8]) -> usize {
    let same = written.iter().zip(fresh).take_while(|(a, b)| a == b);
    1 + same.filter(|(byte, _)| **byte == b'\n').count()
}

/// Builds once and asks cargo for the path of the binary: a target folder can be anywhere.
fn build_binary(root: &Path) -> anyhow::Result<PathBuf> {
    // The features of the whole workspace, and with the examples also those of the tests' dependencies: the tests need
    // the same binary, and with fewer features half of the dependencies would be compiled twice.
    let build = [
        "build",
        "--quiet",
        "--workspace",
        "--all-features",
        "--bin",
        "toolpost",
        "--examples",
        "--message-format=json-render-diagnostics",
    ];
    let messages = stdout_of(&mut cargo(root, &build))?;
    String::from_utf8_lossy(&messages)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|message| {
            cargo::text(&message["target"], "name") == "toolpost"
                && message["executable"].is_string()
        })
        .map(|message| PathBuf::from(cargo::text(&message, "executable")))
        .context("`cargo build --bin toolpost` reported no executable `toolpost`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_differs_first() {
        for (written, fresh, line) in [
            ("", "a\n", 1),
            ("a\nb\n", "a\nc\n", 2),
            ("a\n", "a\nb\n", 2),
            ("ax", "ay", 1),
        ] {
            assert_eq!(
                first_difference(written.as_bytes(), fresh.as_bytes()),
                line,
                "{written:?} {fresh:?}"
            );
        }
    }
}
