//! Length of files: good and bad code bases have like medians and differ in the tail, so only the
//! tail is checked. Clippy's `too_many_lines` checks functions.

use super::{Repo, TidyViolation};

/// Lines of code, without comments and blank lines: rustfmt's defaults make many short lines.
const FILE_LINES: usize = 600;
/// Tests are tables of cases more often than code is.
const TEST_FILE_LINES: usize = 820;

pub(crate) fn check(repo: &Repo) -> Vec<TidyViolation> {
    let mut found = Vec::new();
    for file in repo.rust_files() {
        let lines = file
            .code()
            .lines()
            .filter(|(_, line)| !line.is_empty())
            .count();
        let limit = if file.is_test() {
            TEST_FILE_LINES
        } else {
            FILE_LINES
        };
        if lines > limit {
            let message = format!("file of {lines} lines of code, the limit is {limit}");
            let hint = "split it by topic";
            found.push(TidyViolation::new(&file.path, 1, message, hint));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::places;

    #[test]
    fn comments_and_blank_lines_do_not_count() {
        let code = "let x = 1;\n";
        for (text, expected) in [
            (code.repeat(FILE_LINES), vec![]),
            (code.repeat(FILE_LINES + 1), vec!["a.rs:1"]),
            (code.repeat(FILE_LINES) + "\n// why\n/// what\n\n", vec![]),
        ] {
            let repo = Repo::of(&[("a.rs", &text)]);
            assert_eq!(places(&check(&repo)), expected);
        }
    }
}
