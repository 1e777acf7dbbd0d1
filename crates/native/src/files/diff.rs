//! A change as a unified diff of bounded size, for models and people.

use std::{fmt::Write as _, time::Duration};

use similar::{ChangeTag, TextDiff};
use toolpost_model::{visible_line, visible_text};

/// The most lines of a diff that are shown.
const SHOWN_LINES: usize = 200;
/// The most bytes of a diff that are shown.
const SHOWN_BYTES: usize = 16 * 1024;
/// The longest line that is shown whole, in characters.
const LINE_CHARS: usize = 400;
/// Larger texts are not compared, because their diff would be too long to read.
const COMPARED_BYTES: usize = 2 * 1024 * 1024;
/// Texts with more lines are not compared: a comparison takes over a hundred bytes per line, however short it is.
const COMPARED_LINES: usize = 200_000;
/// A comparison that takes longer gets less exact.
const COMPARED_FOR: Duration = Duration::from_millis(300);

/// A change of one file.
pub(crate) struct Diff {
    /// Unified, with `a/` and `b/` before the path; ends with a newline unless it is empty.
    pub(crate) text: String,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// Compares two contents of the file `path`. `None` stands for a missing file.
pub(crate) fn unified(path: &str, old: Option<&str>, new: Option<&str>) -> Option<Diff> {
    let before = old.unwrap_or_default();
    let after = new.unwrap_or_default();
    let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    if before.len() + after.len() > COMPARED_BYTES || lines(before) + lines(after) > COMPARED_LINES
    {
        return None;
    }
    let compared = TextDiff::configure()
        .timeout(COMPARED_FOR)
        .diff_lines(before, after);
    let count = |tag: ChangeTag| {
        compared
            .iter_all_changes()
            .filter(|change| change.tag() == tag)
            .count() as u64
    };
    let added = count(ChangeTag::Insert);
    let removed = count(ChangeTag::Delete);
    let name = |side: &str, content: Option<&str>| match content {
        Some(_) => format!("{side}/{}", visible_line(path)),
        None => "/dev/null".to_owned(),
    };
    let mut unified = compared.unified_diff();
    let whole = unified
        .context_radius(3)
        .header(&name("a", old), &name("b", new))
        .to_string();
    Some(Diff {
        text: bounded(&whole),
        added,
        removed,
    })
}

fn bounded(whole: &str) -> String {
    let mut text = String::with_capacity(whole.len().min(SHOWN_BYTES));
    for (number, line) in whole.split_inclusive('\n').enumerate() {
        if number == SHOWN_LINES || text.len() + line.len().min(LINE_CHARS * 4) > SHOWN_BYTES {
            let left = whole.split_inclusive('\n').count() - number;
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "… [{left} more lines of the diff not shown]");
            return text;
        }
        let line = visible_text(line);
        match line.char_indices().nth(LINE_CHARS) {
            Some((end, _)) if end < line.trim_end().len() => {
                let _ = writeln!(text, "{}… [cut]", &line[..end]);
            }
            Some(_) | None => text.push_str(&line),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{LINE_CHARS, SHOWN_BYTES, unified};

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let old: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 5", "line five");
        let diff = unified("a.txt", Some(&old), Some(&new)).unwrap();
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+line five\n \
                        line 6\n line 7\n line 8\n";
        assert_eq!(
            (diff.text.as_str(), diff.added, diff.removed),
            (expected, 1, 1)
        );
        let gone = unified("a.txt", Some("x\n"), None).unwrap();
        assert_eq!(gone.text, "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
        assert!(
            unified("a.txt", Some("x\n"), Some("x\n"))
                .unwrap()
                .text
                .is_empty()
        );
    }

    #[test]
    fn a_diff_is_bounded_whatever_changed() {
        let many = unified("a", Some(""), Some(&"x\n".repeat(100_000))).unwrap();
        assert!(
            many.text
                .ends_with("… [99803 more lines of the diff not shown]\n"),
            "{}",
            many.text
        );
        let wide = unified("a", Some(""), Some(&"é".repeat(500_000))).unwrap();
        assert!(wide.text.len() < LINE_CHARS * 3 && wide.text.contains("é… [cut]\n"));
        let both = unified(
            "a",
            Some(""),
            Some(&format!("{}\n", "y".repeat(300)).repeat(1000)),
        )
        .unwrap();
        assert!(both.text.len() < SHOWN_BYTES + 100 && both.added == 1000);
        assert!(unified("a", Some(""), Some(&"z".repeat(3_000_000))).is_none());
        assert!(unified("a", Some(&"\n".repeat(150_000)), Some(&"\n".repeat(50_001))).is_none());
    }
}
