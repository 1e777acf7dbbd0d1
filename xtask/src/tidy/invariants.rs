//! Invariants 1, 2 and 7 of ARCHITECTURE.md, as far as the text shows them: one place executes tools, core opens
//! nothing, an SDK's types stay in their adapter, and the outside world enters a crate through one module.

use std::collections::BTreeMap;

use super::repo::RepoFile;
use super::rust_code::find_word;
use super::{Repo, TidyViolation};

/// The parts of the outside world, with the paths that use them.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("files", &["std::fs", "tokio::fs"]),
    ("the environment", &["std::env"]),
    ("the clock", &["SystemTime::now", "Timestamp::now"]),
    ("child processes", &["Command::new"]),
];

const OPENS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
];

/// SDKs of protocols, and the modules that may name them: `a/b` stands for `a/b.rs` and all of `a/b/`. MCP's module is
/// the peer for benchmarks.
const SDKS: &[(&str, &[&str])] = &[("rmcp", &["benches/src/mcp/plain_rmcp"])];

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let mut found = Vec::new();
    for file in repo.rust_files() {
        found.extend(check_execution(file));
        found.extend(check_core_opens_nothing(file));
        found.extend(check_sdks(file));
    }
    found.extend(check_outside_world(repo));
    found
}

/// Only `execution/run.rs` executes a tool, so that no face has a way around permission, limits or the journal.
fn check_execution(file: &RepoFile) -> Vec<TidyViolation> {
    let guarded = ["crates/core/src/", "crates/serve/src/"]
        .iter()
        .any(|folder| file.path.starts_with(folder));
    let is_the_place = file.path == "crates/core/src/execution/run.rs";
    if !guarded || is_the_place || file.is_test() {
        return Vec::new();
    }
    let code = file.code();
    let executes = |line: &str| line.contains(".execute(") || line.contains("Tool::execute(");
    let lines = code.shipped_lines().filter(|(_, line)| executes(line));
    lines
        .map(|(number, _)| {
            let hint = "go through `Host`, which runs the call through crates/core/src/call.rs";
            TidyViolation::new(
                &file.path,
                number,
                "a tool is executed outside `execution/run.rs`",
                hint,
            )
        })
        .collect()
}

fn check_core_opens_nothing(file: &RepoFile) -> Vec<TidyViolation> {
    if !file.path.starts_with("crates/core/src/") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in paths_spelled_out(file.code().lines()) {
        for word in OPENS.iter().filter(|word| find_word(&line, word).is_some()) {
            let hint = "declare a port in `core` and put the adapter into store, a source or serve";
            let message = format!("`{word}` in core, which does no input or output");
            found.push(TidyViolation::new(&file.path, number, message, hint));
        }
    }
    found
}

/// An SDK changes often and its types belong to the protocol, so they stay in their adapter.
fn check_sdks(file: &RepoFile) -> Vec<TidyViolation> {
    let module = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let is_within = |home: &&str| module == *home || module.starts_with(&format!("{home}/"));
    let mut found = Vec::new();
    for (sdk, homes) in SDKS
        .iter()
        .filter(|(_, homes)| !homes.iter().any(is_within))
    {
        let path = format!("{sdk}::");
        let code = file.code();
        let named = code.lines().filter(|(_, line)| {
            find_word(line, sdk).is_some_and(|at| line[at..].starts_with(&path))
        });
        found.extend(named.map(|(number, _)| {
            let hint = format!(
                "only {} may; other code uses the types of the model",
                homes.join(" and ")
            );
            TidyViolation::new(
                &file.path,
                number,
                format!("types of `{sdk}` are used here"),
                hint,
            )
        }));
    }
    found
}

fn check_outside_world(repo: &Repo) -> Vec<TidyViolation> {
    // The first place in each module, by crate and by part of the outside world.
    let mut doors: BTreeMap<(&str, &str), BTreeMap<String, TidyViolation>> = BTreeMap::new();
    for file in repo.rust_files().filter(|file| !file.is_test()) {
        let Some((member, module)) =
            module_of(&file.path).filter(|(member, _)| *member != "testkit")
        else {
            continue;
        };
        for (number, line) in paths_spelled_out(file.code().shipped_lines()) {
            for (what, words) in OUTSIDE {
                if let Some(word) = words.iter().find(|word| reaches_for(&line, word)) {
                    let message =
                        format!("`{word}`: more than one module of `{member}` uses {what}");
                    let place = TidyViolation::new(&file.path, number, message, "");
                    doors
                        .entry((member, what))
                        .or_default()
                        .entry(module.to_owned())
                        .or_insert(place);
                }
            }
        }
    }
    doors
        .into_values()
        .filter(|modules| modules.len() > 1)
        .flat_map(name_the_others)
        .collect()
}

/// Any of the modules may be the right one, so each violation names the others.
fn name_the_others(modules: BTreeMap<String, TidyViolation>) -> Vec<TidyViolation> {
    let all: Vec<String> = modules.keys().map(|module| format!("`{module}`")).collect();
    let hint = format!("keep one module for it; now there are {}", all.join(", "));
    modules
        .into_values()
        .map(|place| TidyViolation {
            hint: hint.clone(),
            ..place
        })
        .collect()
}

/// The crate's folder and its top-level module: `src/native.rs` and all of `src/native/` are `native`.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (member, path) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = path.split('/').next()?;
    Some((member, module.strip_suffix(".rs").unwrap_or(module)))
}

/// clap has a `Command` too, and it starts nothing.
fn reaches_for(line: &str, word: &str) -> bool {
    find_word(line, word).is_some_and(|at| !line[..at].ends_with("clap::"))
}

/// Lines as they are, with `use std::{env, fs::File};` also read as `std::env` and `std::fs`, which
/// rustfmt may have spread over several lines.
fn paths_spelled_out<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut spelled = Vec::new();
    let mut open_group = None;
    for (number, line) in lines {
        let opens = |root: &&str| line.contains(&format!("use {root}::{{"));
        open_group = open_group.or_else(|| ["std", "tokio"].into_iter().find(opens));
        let mut text = line.to_owned();
        if let Some(root) = open_group {
            for member in line.split(|c: char| !c.is_alphanumeric() && c != '_') {
                text.push_str(&format!(" {root}::{member}"));
            }
        }
        if line.ends_with(';') {
            open_group = None;
        }
        spelled.push((number, text));
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::places;

    #[test]
    fn only_call_executes_tools() {
        let chain = "fn f() {\n    tool\n        .execute(call)\n}\n";
        let in_tests =
            "#[cfg(test)]\nmod tests {\n    fn f() {\n        tool.execute(call);\n    }\n}\n";
        for (path, text, struck) in [
            ("crates/core/src/execution/run.rs", chain, None),
            (
                "crates/core/src/call.rs",
                chain,
                Some("crates/core/src/call.rs:3"),
            ),
            (
                "crates/core/src/host.rs",
                chain,
                Some("crates/core/src/host.rs:3"),
            ),
            (
                "crates/serve/src/call.rs",
                "Tool::execute(&tool, call)",
                Some("crates/serve/src/call.rs:1"),
            ),
            ("crates/serve/src/http.rs", in_tests, None),
            ("crates/core/tests/it/call.rs", chain, None),
            ("crates/core/src/port.rs", "fn execute(&self);", None),
            ("crates/store/src/journal.rs", "db.execute(sql)", None),
        ] {
            assert_eq!(
                places(&check(&Repo::of(&[(path, text)]))),
                Vec::from_iter(struck),
                "{path}"
            );
        }
    }

    #[test]
    fn core_opens_nothing() {
        let path = "crates/core/src/a.rs";
        for (text, struck) in [
            ("use std::net::IpAddr;", true),
            ("let x = std::process::id();", true),
            ("use std::{collections::HashMap, fs};", true),
            (
                "use tokio::{\n    net::TcpStream,\n    sync::mpsc,\n};",
                true,
            ),
            ("use tokio::sync::mpsc;", false),
            (
                "use std::{\n    sync::{Arc, Mutex},\n};\nuse crate::net;",
                false,
            ),
            ("// std::fs is not for us", false),
        ] {
            assert_eq!(
                !check(&Repo::of(&[(path, text)])).is_empty(),
                struck,
                "{text}"
            );
        }
    }

    #[test]
    fn an_sdk_stays_at_home() {
        for (path, struck) in [
            ("crates/mcp-source/src/client.rs", true),
            ("crates/mcp-source/tests/it/calls.rs", true),
            ("benches/src/mcp/plain_rmcp.rs", false),
            ("benches/src/mcp/plain_rmcp/echo.rs", false),
            ("benches/src/mcp/plain_rmcps.rs", true),
        ] {
            let found = check(&Repo::of(&[(path, "use rmcp::model::Tool;")]));
            assert_eq!(!found.is_empty(), struck, "{path}");
        }
    }

    #[test]
    fn one_module_reaches_outside() {
        for (first, second, struck) in [
            (
                "crates/store/src/blobs.rs",
                "crates/store/src/blobs/sweep.rs",
                false,
            ),
            (
                "crates/store/src/blobs/sweep.rs",
                "crates/store/src/blobs/write.rs",
                false,
            ),
            (
                "crates/store/src/blobs.rs",
                "crates/store/src/journal.rs",
                true,
            ),
            (
                "crates/store/src/blobs.rs",
                "crates/serve/src/auth.rs",
                false,
            ),
            (
                "crates/store/src/blobs.rs",
                "crates/store/tests/it/main.rs",
                false,
            ),
            ("crates/testkit/src/a.rs", "crates/testkit/src/b.rs", false),
            ("xtask/src/a.rs", "xtask/src/b.rs", false),
        ] {
            let found = places(&check(&Repo::of(&[
                (first, "use std::fs;"),
                (second, "use std::{fs, io};"),
            ])));
            let expected = if struck {
                vec![format!("{first}:1"), format!("{second}:1")]
            } else {
                vec![]
            };
            assert_eq!(found, expected, "{first} {second}");
        }
    }

    #[test]
    fn each_thing_outside_has_its_own_module() {
        for (first, second, struck) in [
            ("std::fs::read(path)", "std::env::var(name)", false),
            ("SystemTime::now()", "jiff::Timestamp::now()", true),
            (
                "Command::new(shell)",
                "tokio::process::Command::new(shell)",
                true,
            ),
            ("Command::new(shell)", "clap::Command::new(name)", false),
            ("std::fs::read(path)", "cap_std::fs::Dir", false),
        ] {
            let files = [
                ("crates/a/src/first.rs", first),
                ("crates/a/src/second.rs", second),
            ];
            assert_eq!(
                !check(&Repo::of(&files)).is_empty(),
                struck,
                "{first} {second}"
            );
        }
    }
}
