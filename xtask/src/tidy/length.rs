//! Length: good and bad code bases have like medians and differ in the tail, so only the tail is checked.

use super::rust_code::RustCode;
use super::{Repo, Violation};

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 80;
/// A story told in one test may be longer than a step of the program.
const TEST_FUNCTION_LINES: usize = 120;

pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repo.rust_files() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            let message = format!("file of {lines} lines, the limit is {FILE_LINES}");
            let hint = "split it by what its parts are about";
            found.push(Violation::new(&file.path, 1, message, hint));
        }
        let limit = if file.is_test() { TEST_FUNCTION_LINES } else { FUNCTION_LINES };
        for Function { name, start, lines } in functions(&file.code()) {
            if lines > limit {
                let message = format!("function `{name}` of {lines} lines, the limit is {limit}");
                let hint = "give its steps names and functions";
                found.push(Violation::new(&file.path, start, message, hint));
            }
        }
    }
    found
}

#[derive(PartialEq, Eq, Debug)]
struct Function {
    name: String,
    start: usize,
    lines: usize,
}

fn functions(code: &RustCode) -> Vec<Function> {
    let function = |(start, line): (usize, &str)| {
        let name = function_name(line)?;
        let lines = code.item_end(start)? - start + 1;
        Some(Function { name, start, lines })
    };
    code.lines().filter_map(function).collect()
}

/// The name after `fn `; pointer types are written `fn(…)` and have none.
fn function_name(line: &str) -> Option<String> {
    let at = line
        .match_indices("fn ")
        .map(|(at, _)| at)
        .find(|at| *at == 0 || line[..*at].ends_with([' ', '(']))?;
    let name =
        line[at + "fn ".len()..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '#').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::places;

    #[test]
    fn functions_are_measured() {
        for (text, expected) in [
            ("fn a() {}", vec![("a", 1, 1)]),
            ("pub(crate) async fn a(x: fn(u8)) {\n    x(1);\n}\n", vec![("a", 1, 3)]),
            ("trait T {\n    fn a(&self);\n    fn b() {\n    }\n}", vec![("a", 2, 1), ("b", 3, 2)]),
            ("fn a(\n    x: u8,\n) -> u8\nwhere\n    X: Y,\n{\n    if x {\n    }\n}\n", vec![("a", 1, 9)]),
            ("fn a() {\n    fn b() {\n        1;\n    }\n}", vec![("a", 1, 5), ("b", 2, 3)]),
            ("fn a() {\n    let s = \"\n}\n\";\n}", vec![("a", 1, 5)]),
            ("// fn a() {}\nlet f: fn (u8) = 1;\nlet often = 1;", vec![]),
            ("extern \"C\" fn a() {\n}\nfn r#gen() {}", vec![("a", 1, 2), ("r#gen", 3, 1)]),
            ("macro_rules! m {\n    () => {\n        fn $name() {}\n    };\n}", vec![]),
        ] {
            let found = functions(&RustCode::new(text));
            let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.start, f.lines)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn limits_of_files_and_functions() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        for (path, text, expected) in [
            ("src/a.rs", function(80), vec![]),
            ("src/a.rs", function(81), vec!["src/a.rs:1"]),
            ("tests/it/a.rs", function(120), vec![]),
            ("crates/x/tests/it/a.rs", function(121), vec!["crates/x/tests/it/a.rs:1"]),
            ("src/a.rs", "a();\n".repeat(500), vec![]),
            ("src/a.rs", "a();\n".repeat(501), vec!["src/a.rs:1"]),
            ("docs/a.md", "a\n".repeat(501), vec![]),
        ] {
            assert_eq!(places(&check(&Repo::of(&[(path, &text)]))), expected, "{path}");
        }
    }
}
