//! Phrases that do not enter the repository: unfinished work, silenced warnings and tests, errors turned into strings.
//! Clippy finds some of them, but can be silenced in the source; this check cannot.

use super::repo::RepoFile;
use super::rust_code::RustCode;
use super::{Repo, TidyViolation};

/// Looked for in code, not in comments or strings, which is why this file does not strike itself.
const IN_CODE: &[(&str, &str)] = &[
    (
        "todo!(",
        "finish it, or return an error that names the missing part",
    ),
    (
        "unimplemented!(",
        "finish it, or return an error that names the missing part",
    ),
    ("dbg!(", "remove it, or use `tracing::debug!`"),
    (
        "#[ignore",
        "fix the test or delete it; slow ones get a longer limit in .config/nextest.toml",
    ),
    ("assert!(true)", "assert something that can fail"),
    (
        "#[allow(",
        "use `#[expect(…, reason = \"…\")]`, which warns when it is no longer needed",
    ),
    (
        "#![allow(",
        "use `#![expect(…, reason = \"…\")]`, which warns when it is no longer needed",
    ),
    (
        "map_err(ToString::to_string)",
        "keep the error: a variant with `#[source]` or `#[from]`",
    ),
];

/// Comments are searched too, so the word is put together here.
const UNFINISHED: &str = concat!("FIX", "ME");

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    repo.rust_files().flat_map(check_file).collect()
}

fn check_file(file: &RepoFile) -> Vec<TidyViolation> {
    let code = file.code();
    let mut found = Vec::new();
    let mut strike = |line, message: String, hint: &str| {
        found.push(TidyViolation::new(&file.path, line, message, hint));
    };
    for (number, line) in code.lines() {
        for (phrase, hint) in IN_CODE.iter().filter(|(phrase, _)| contains(line, phrase)) {
            strike(number, format!("`{phrase}` in code"), hint);
        }
        if let Some(closure) = stringly_closure(line) {
            let hint = "keep the error: a variant with `#[source]` or `#[from]`";
            strike(
                number,
                format!("`map_err({closure})` turns an error into a string"),
                hint,
            );
        }
        if (line.contains("#[expect(") || line.contains("#![expect("))
            && !gives_reason(&code, number)
        {
            strike(
                number,
                "`expect` attribute without a reason".to_owned(),
                "add `reason = \"…\"`",
            );
        }
    }
    for (index, _) in file
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(UNFINISHED))
    {
        strike(
            index + 1,
            format!("`{UNFINISHED}` left behind"),
            "fix it now or open an issue",
        );
    }
    found
}

/// `my_todo!(` is not `todo!(`.
fn contains(line: &str, phrase: &str) -> bool {
    line.match_indices(phrase)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The closure in `map_err(|e| e.to_string())`, with any argument name.
fn stringly_closure(line: &str) -> Option<String> {
    let (_, after) = line.split_once("map_err(|")?;
    let (argument, body) = after.split_once('|')?;
    let name = argument.split(':').next()?.trim();
    let method = body.trim_start().strip_prefix(name)?;
    method
        .starts_with(".to_string()")
        .then(|| format!("|{argument}| {name}.to_string()"))
}

/// rustfmt gives long attributes several lines.
fn gives_reason(code: &RustCode, start: usize) -> bool {
    for (_, line) in code.lines().skip(start - 1) {
        if line.contains("reason =") {
            return true;
        }
        if line.contains(")]") {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::places;

    #[test]
    fn phrases_are_found_in_code() {
        let unfinished = format!("// {UNFINISHED}: later");
        for (text, expected) in [
            ("fn f() {\n    todo!()\n}", vec!["a.rs:2"]),
            (
                "// todo!() and \"dbg!(\"\nlet s = \"unimplemented!(\";",
                vec![],
            ),
            ("my_todo!()", vec![]),
            ("#[test]\n#[ignore = \"slow\"]", vec!["a.rs:2"]),
            ("assert!(true);", vec!["a.rs:1"]),
            ("assert!(true_enough)", vec![]),
            ("#![allow(dead_code)]", vec!["a.rs:1"]),
            ("#[expect(dead_code)]", vec!["a.rs:1"]),
            ("#[expect(dead_code, reason = \"why\")]", vec![]),
            (
                "#![expect(\n    dead_code,\n    reason = \"why\"\n)]",
                vec![],
            ),
            (
                "#[expect(\n    dead_code\n)]\nlet reason = 1;",
                vec!["a.rs:1"],
            ),
            ("x.map_err(|e| e.to_string())?", vec!["a.rs:1"]),
            (
                "x.map_err(|err: io::Error| err.to_string())",
                vec!["a.rs:1"],
            ),
            ("x.map_err(ToString::to_string)", vec!["a.rs:1"]),
            ("x.map_err(|e| Wrong::Text(e.to_string()))", vec![]),
            (&unfinished, vec!["a.rs:1"]),
        ] {
            assert_eq!(
                places(&check(&Repo::of(&[("a.rs", text)]))),
                expected,
                "{text}"
            );
        }
    }
}
