//! Names of types, and folders with one small child. A grep, a stack trace and a search in the documentation find
//! types by the name alone, so an ambiguous name, or a participle taken from a sentence, cannot be found.

use std::collections::BTreeMap;

use super::repo::RepoFile;
use super::{Repo, TidyViolation};

/// Names that every reader expects once per module: the arguments of a tool, an error of an operation.
const EXPECTED_NAMES: &[&str] = &["Arguments", "Builder", "Config", "Error"];

/// Names that public protocols gave to types of their crates. Authors search for exactly these.
const PROTOCOL_NAMES: &[&str] = &["Message", "Tool", "ToolCall", "ToolError", "ToolResult"];
const PROTOCOL_CRATES: &[&str] = &["crates/a2a/", "crates/a2e/", "crates/amplifier/"];

/// Participles without a regular ending that read like a type name but describe no thing.
const IRREGULAR_PARTICIPLES: &[&str] = &[
    "Begun", "Bound", "Come", "Cut", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held",
    "Kept", "Known", "Laid", "Left", "Lost", "Made", "Meant", "Met", "Put", "Read", "Said", "Seen",
    "Sent", "Shown", "Standing", "Taken", "Told", "Waiting", "Written",
];
/// Nouns that end like a participle.
const NOUNS: &[&str] = &["Bed", "Feed", "Need", "Seed", "Shed", "Speed"];

/// A folder with one child of fewer lines than this is a file that was cut.
const LONE_CHILD_LINES: usize = 80;

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let mut definitions: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in repo.rust_files().filter(|file| is_shipped(file)) {
        let code = file.code();
        for (line, text) in code.shipped_lines() {
            if let Some(name) = defined_type(text) {
                definitions
                    .entry(name.to_owned())
                    .or_default()
                    .push((&file.path, line));
            }
        }
    }
    let mut found: Vec<_> = definitions
        .iter()
        .flat_map(|(name, places)| check_name(name, places))
        .collect();
    found.extend(lone_children(repo));
    found
}

/// The crates that ship. Benches, examples and chores are read file by file, not searched.
fn is_shipped(file: &RepoFile) -> bool {
    file.path.starts_with("crates/")
        && file.path.contains("/src/")
        && !file.is_test()
        && !file.path.ends_with("_tests.rs")
}

/// The name of the type that a line at the left margin defines.
fn defined_type(line: &str) -> Option<&str> {
    let item = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest.trim_start();
        let scope = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        scope.map_or(rest, |(_, rest)| rest.trim_start())
    });
    let (keyword, rest) = item.split_once(' ')?;
    if !matches!(keyword, "struct" | "enum" | "trait" | "type") {
        return None;
    }
    let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&rest[..len.unwrap_or(rest.len())])
}

fn check_name(name: &str, places: &[(&str, usize)]) -> Vec<TidyViolation> {
    if is_participle(name) {
        let hint = "a type is a noun phrase that names the thing, with nouns of docs/glossary.md";
        return places
            .iter()
            .map(|(path, line)| {
                let message = format!("the type name `{name}` is a participle");
                TidyViolation::new(path, *line, message, hint)
            })
            .collect();
    }
    let own: Vec<_> = places
        .iter()
        .filter(|(path, _)| {
            let is_protocol = PROTOCOL_CRATES.iter().any(|name| path.starts_with(name));
            !(is_protocol && PROTOCOL_NAMES.contains(&name))
        })
        .collect();
    let [(first, first_line), others @ ..] = own.as_slice() else {
        return Vec::new();
    };
    if EXPECTED_NAMES.contains(&name) {
        return Vec::new();
    }
    others
        .iter()
        .map(|(path, line)| {
            let message = format!("a second type `{name}`: one is in {first}:{first_line}");
            let hint = "a type name is unique in the workspace; the module path is not part of it";
            TidyViolation::new(path, *line, message, hint)
        })
        .collect()
}

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let ends_like_one = is_one_word && name.ends_with("ed") && !NOUNS.contains(&name);
    ends_like_one || IRREGULAR_PARTICIPLES.contains(&name)
}

fn lone_children(repo: &Repo) -> Vec<TidyViolation> {
    let mut children: BTreeMap<&str, Vec<&RepoFile>> = BTreeMap::new();
    for file in repo.rust_files() {
        if let Some((folder, _)) = file.path.rsplit_once('/') {
            // A folder counts all that is below it.
            for (at, _) in folder.match_indices('/').chain([(folder.len(), "")]) {
                children.entry(&folder[..at]).or_default().push(file);
            }
        }
    }
    children
        .iter()
        .filter(|(folder, _)| repo.file(&format!("{folder}.rs")).is_some())
        .filter_map(|(folder, files)| match files.as_slice() {
            [child] if child.text.lines().count() < LONE_CHILD_LINES => {
                let message = format!("the only child of `{folder}`, and short");
                let hint = "move it into the file beside the folder";
                Some(TidyViolation::new(&child.path, 1, message, hint))
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::places;

    #[test]
    fn types_at_the_left_margin_are_found() {
        for (line, expected) in [
            ("pub struct Host {", Some("Host")),
            ("pub(crate) enum StagePlan {", Some("StagePlan")),
            ("pub(in crate::call) trait Port: Send {", Some("Port")),
            ("type Pair<T> = (T, T);", Some("Pair")),
            ("struct Unit;", Some("Unit")),
            ("    struct Inner;", None),
            ("pub fn structure() {", None),
            ("use crate::types;", None),
        ] {
            assert_eq!(defined_type(line), expected, "{line}");
        }
    }

    #[test]
    fn a_name_stands_for_one_type() {
        for (files, expected) in [
            (
                vec![
                    ("crates/a/src/x.rs", "struct State;\n"),
                    ("crates/b/src/y.rs", "\npub enum State {}\n"),
                ],
                vec!["crates/b/src/y.rs:2"],
            ),
            (
                vec![
                    ("crates/a/src/x.rs", "struct Arguments;\n"),
                    ("crates/b/src/y.rs", "struct Arguments;\n"),
                ],
                vec![],
            ),
            (
                vec![
                    ("crates/a2e/src/x.rs", "pub struct ToolResult;\n"),
                    ("crates/model/src/y.rs", "pub struct ToolResult;\n"),
                ],
                vec![],
            ),
            (
                vec![
                    ("crates/core/src/x.rs", "pub struct ToolResult;\n"),
                    ("crates/model/src/y.rs", "pub struct ToolResult;\n"),
                ],
                vec!["crates/model/src/y.rs:1"],
            ),
            (
                vec![
                    ("crates/a/src/x.rs", "struct Page;\n"),
                    ("crates/a/tests/it/y.rs", "struct Page;\n"),
                    (
                        "crates/a/src/z.rs",
                        "#[cfg(test)]\nmod tests {\n    struct Page;\n}\n",
                    ),
                ],
                vec![],
            ),
        ] {
            assert_eq!(places(&check(&Repo::of(&files))), expected, "{files:?}");
        }
    }

    #[test]
    fn participles_are_no_names() {
        for (name, refused) in [
            ("Asked", true),
            ("Kept", true),
            ("Standing", true),
            ("Feed", false),
            ("RecordedCall", false),
            ("Record", false),
        ] {
            assert_eq!(is_participle(name), refused, "{name}");
        }
    }

    #[test]
    fn a_small_file_is_not_alone_in_a_folder() {
        let long = "// a line\n".repeat(LONE_CHILD_LINES);
        for (files, expected) in [
            (
                vec![("a/src/x.rs", "mod y;\n"), ("a/src/x/y.rs", "fn f() {}\n")],
                vec!["a/src/x/y.rs:1"],
            ),
            (
                vec![("a/src/x.rs", "mod y;\n"), ("a/src/x/y.rs", long.as_str())],
                vec![],
            ),
            (
                vec![
                    ("a/src/x.rs", "mod y;\nmod z;\n"),
                    ("a/src/x/y.rs", ""),
                    ("a/src/x/z.rs", ""),
                ],
                vec![],
            ),
        ] {
            assert_eq!(places(&check(&Repo::of(&files))), expected);
        }
    }
}
