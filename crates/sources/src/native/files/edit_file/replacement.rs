//! Finds a text in another and puts a third in its place, keeping line endings. No I/O.

use std::{borrow::Cow, fmt, ops::Range};

/// How many line numbers are told at most.
const TOLD_LINES: usize = 100;
/// How many are told in a message.
const LINES_IN_MESSAGE: usize = 8;
/// How many places that differ only in blanks are told.
const NEAR_MISSES: usize = 3;
/// How many lines are compared in search of them.
const COMPARED_LINES: usize = 2_000_000;

/// Which occurrences are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrences {
    /// The only one there is.
    Only,
    /// Each of them.
    All,
}

/// A text with replacements made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) text: String,
    pub(super) count: u64,
    /// Where the replaced texts began.
    pub(super) lines: Vec<u64>,
}

/// Why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    NotFound {
        /// Places that differ only in blanks: first and last line.
        near: Vec<(u64, u64)>,
        /// The text looks as if line numbers had been copied with it.
        numbered: bool,
    },
    Ambiguous {
        count: usize,
        lines: Vec<u64>,
    },
}

impl Mismatch {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "no_match",
            Self::Ambiguous { .. } => "ambiguous",
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { numbered: true, .. } => "leave out the line numbers and the tab behind them",
            Self::NotFound { near, .. } if !near.is_empty() => {
                "read those lines again and copy them with their blanks"
            }
            Self::NotFound { .. } => "read the file again and copy the text exactly",
            Self::Ambiguous { .. } => {
                "add lines around the one you mean to `old_string`, or set `replace_all` to change all"
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { near, .. } if near.is_empty() => f.write_str("does not occur"),
            Self::NotFound { near, .. } => {
                let places = near.iter().map(|(first, last)| match first == last {
                    true => format!("line {first}"),
                    false => format!("lines {first} to {last}"),
                });
                let verb = if near.len() == 1 && near[0].0 == near[0].1 { "differs" } else { "differ" };
                let places = places.collect::<Vec<_>>().join(" and ");
                write!(f, "does not occur exactly, but {places} {verb} from it only in blanks or line ends,")
            }
            Self::Ambiguous { count, lines } => {
                let told: Vec<_> = lines.iter().take(LINES_IN_MESSAGE).map(u64::to_string).collect();
                let more = if *count > told.len() { " and more" } else { "" };
                write!(f, "occurs {count} times (lines {}{more})", told.join(", "))
            }
        }
    }
}

/// Replaces `old` by `new` in `content`.
///
/// A text without carriage returns matches both kinds of line ends, and the new text gets the kind that stands at
/// its place. Who writes carriage returns means them.
pub(super) fn replace(content: &str, old: &str, new: &str, which: Occurrences) -> Result<Edited, Mismatch> {
    let by_line = !old.contains('\r') && !new.contains('\r') && content.contains("\r\n");
    let found = match by_line {
        true => find_by_line(content, old, which),
        false => find(content, old, which),
    };
    if found.is_empty() {
        let (near, numbered) = (near_misses(content, old), is_numbered(old));
        return Err(Mismatch::NotFound { near, numbered });
    }
    if which == Occurrences::Only && found.len() > 1 {
        return Err(Mismatch::Ambiguous { count: found.len(), lines: line_numbers(content, &found) });
    }
    let mut text = String::with_capacity(content.len() + new.len());
    let mut done = 0;
    for place in &found {
        text.push_str(&content[done..place.start]);
        match by_line && ends_with_carriage_return(content, place.start) {
            true => text.push_str(&new.replace('\n', "\r\n")),
            false => text.push_str(new),
        }
        done = place.end;
    }
    text.push_str(&content[done..]);
    Ok(Edited { text, count: found.len() as u64, lines: line_numbers(content, &found) })
}

fn find(content: &str, old: &str, which: Occurrences) -> Vec<Range<usize>> {
    let range = |start: usize| start..start + old.len();
    let mut found: Vec<_> = content.match_indices(old).map(|(start, _)| range(start)).collect();
    if let ([only], Occurrences::Only) = (found.as_slice(), which) {
        // `aXa` occurs twice in `aXaXa`, though not side by side: also then nobody knows which one is meant.
        let next = only.start + old.chars().next().map_or(1, char::len_utf8);
        found.extend(content[next..].find(old).map(|start| range(next + start)));
    }
    found
}

/// Searches with newlines only, and maps what was found back.
fn find_by_line(content: &str, old: &str, which: Occurrences) -> Vec<Range<usize>> {
    let mut plain = String::with_capacity(content.len());
    // Where, in `plain`, a carriage return was left out.
    let mut dropped = Vec::new();
    for line in content.split_inclusive('\n') {
        match line.strip_suffix("\r\n") {
            Some(text) => {
                plain.push_str(text);
                dropped.push(plain.len());
                plain.push('\n');
            }
            None => plain.push_str(line),
        }
    }
    let original = |at: usize| at + dropped.partition_point(|place| *place < at);
    find(&plain, old, which).into_iter().map(|place| original(place.start)..original(place.end)).collect()
}

/// The kind of line end at `at`: that of its line, or of the line before where its own has none.
fn ends_with_carriage_return(content: &str, at: usize) -> bool {
    let end = content[at..].find('\n').map(|end| at + end).or_else(|| content[..at].rfind('\n'));
    end.is_some_and(|end| content[..end].ends_with('\r'))
}

fn line_numbers(content: &str, places: &[Range<usize>]) -> Vec<u64> {
    let (mut line, mut done) = (1, 0);
    let mut numbers = Vec::new();
    for place in places.iter().take(TOLD_LINES) {
        line += content[done..place.start].bytes().filter(|byte| *byte == b'\n').count() as u64;
        done = place.start;
        numbers.push(line);
    }
    numbers
}

/// Whether every line begins with a number and a tab, as `read_file` shows lines.
fn is_numbered(old: &str) -> bool {
    let numbered = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.trim_start().len() && rest.starts_with('\t')
    };
    old.lines().all(|line| line.is_empty() || numbered(line))
}

/// Places where the same words stand with other blanks between them.
fn near_misses(content: &str, old: &str) -> Vec<(u64, u64)> {
    let wanted: Vec<Cow<'_, str>> = old.trim().lines().map(words).collect();
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Vec::new() };
    let lines: Vec<Cow<'_, str>> = content.lines().map(words).collect();
    let (mut near, mut compared) = (Vec::new(), 0_usize);
    for start in 0..(lines.len() + 1).saturating_sub(wanted.len()) {
        let place = &lines[start..start + wanted.len()];
        let fits = match place {
            [only] => only.contains(&**first),
            [begin, middle @ .., end] => {
                begin.ends_with(&**first)
                    && middle.iter().zip(&wanted[1..]).all(|(line, wanted)| {
                        compared += 1;
                        line == wanted
                    })
                    && end.starts_with(&**last)
            }
            [] => false,
        };
        compared += 1;
        if fits {
            near.push((start as u64 + 1, (start + wanted.len()) as u64));
        }
        if near.len() == NEAR_MISSES || compared > COMPARED_LINES {
            break;
        }
    }
    near
}

/// A line with single blanks between its words and none around them.
fn words(line: &str) -> Cow<'_, str> {
    let trimmed = line.trim();
    let odd = trimmed.contains("  ") || trimmed.contains(|c: char| c.is_whitespace() && c != ' ');
    match odd {
        false => trimmed.into(),
        true => trimmed.split_whitespace().collect::<Vec<_>>().join(" ").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Mismatch, Occurrences, replace};

    fn check(content: &str, old: &str, new: &str, expected: &str) {
        let edited =
            replace(content, old, new, Occurrences::Only).unwrap_or_else(|why| panic!("{old:?}: {why}"));
        assert_eq!(edited.text, expected, "{old:?} by {new:?} in {content:?}");
    }

    fn refused(content: &str, old: &str) -> String {
        replace(content, old, "new", Occurrences::Only).unwrap_err().to_string()
    }

    #[test]
    fn the_one_occurrence_is_replaced_and_all_else_stays() {
        check("a b c", "b", "x", "a x c");
        check("a\nb\n", "b\n", "", "a\n");
        check("a\nb", "b", "b\nc", "a\nb\nc");
        check("größe 文", "文", "語", "größe 語");
        check("\u{feff}first\n", "first", "second", "\u{feff}second\n");
    }

    #[test]
    fn line_ends_are_kept_whatever_the_edit_is_written_with() {
        check("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n");
        check("a\r\nb", "b", "b\nc", "a\r\nb\r\nc");
        check("a\r\nb\r\n", "\nb", "\n\nb", "a\r\n\r\nb\r\n");
        check("a\r\nb\r\n", "a", "x", "x\r\nb\r\n");
        check("a\r\nb\nc\n", "b\nc", "b\nd", "a\r\nb\nd\n");
        check("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n");
        check("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n");
        check("a\nb\n", "a\n", "a\r\n", "a\r\nb\n");
        let all = replace("x\r\ny\nx\r\n", "x\n", "1\n2\n", Occurrences::All).unwrap();
        assert_eq!((all.text.as_str(), all.count, all.lines), ("1\r\n2\r\ny\n1\r\n2\r\n", 2, vec![1, 3]));
    }

    #[test]
    fn several_occurrences_are_counted_and_located() {
        assert_eq!(refused("x\ny\nx\nx", "x"), "occurs 3 times (lines 1, 3, 4)");
        assert_eq!(
            refused(&"x\n".repeat(200), "x"),
            "occurs 200 times (lines 1, 2, 3, 4, 5, 6, 7, 8 and more)"
        );
        assert_eq!(refused("aXaXa", "aXa"), "occurs 2 times (lines 1, 1)");
        assert_eq!(refused("}\n}\n}\n", "}\n}"), "occurs 2 times (lines 1, 2)");
        let all = replace("x\ny\nx", "x", "xx", Occurrences::All).unwrap();
        assert_eq!((all.text.as_str(), all.count), ("xx\ny\nxx", 2));
    }

    #[test]
    fn near_misses_are_named() {
        let content = "fn a() {\n    one();\n\ttwo();  \n}\n";
        assert!(
            refused(content, "fn a() {\n  one();").contains("lines 1 to 2 differ from it only in blanks")
        );
        assert!(refused(content, "one();\n  two();\n}").contains("lines 2 to 4 differ"));
        assert!(refused("  x = 1\n", "x  = 1").contains("line 1 differs"));
        assert_eq!(refused(content, "three"), "does not occur");
        assert_eq!(refused(content, "  "), "occurs 3 times (lines 2, 2, 3)");
        let numbered = replace(content, "     2\t    one();", "x", Occurrences::Only).unwrap_err();
        assert!(matches!(numbered, Mismatch::NotFound { numbered: true, .. }), "{numbered:?}");
    }

    #[test]
    fn texts_that_match_almost_everywhere_cost_little() {
        let content = "a\n".repeat(1_000_000);
        let old = format!("{}b", "a\n".repeat(1_000_000 / 2));
        assert_eq!(refused(&content, &old), "does not occur");
        let old = "a\n".repeat(1_000_000 / 2);
        assert!(refused(&content, &old).starts_with("occurs 2 times"));
    }
}
