//! Replaces a text in another one and keeps line endings. No I/O.

use std::{borrow::Cow, fmt, ops::Range};

use crate::files::lines::words;
use toolpost_processes::CallStopError;

/// The most line numbers of a result.
const TOLD_LINES: usize = 100;
/// The most line numbers of a message.
const LINES_IN_MESSAGE: usize = 8;
/// The most near misses of a message: places that differ only in blanks.
const NEAR_MISSES: usize = 3;
/// The most lines that are compared to find near misses.
const COMPARED_LINES: usize = 2_000_000;
/// In a text with more lines no near misses are searched, because comparing takes many times the size of a line.
const LOOKED_THROUGH_LINES: usize = 200_000;
/// Occurrences between two checks whether the call goes on.
const LOOK_EVERY: u64 = 1 << 16;

/// The occurrences that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplacedOccurrences {
    /// The single one; a second one is an error.
    Only,
    All,
}

/// A text with its replacements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditedText {
    pub(super) text: String,
    pub(super) count: u64,
    /// The lines where the replaced texts began.
    pub(super) lines: Vec<u64>,
}

/// Why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditMismatch {
    NotFound {
        /// Places that differ only in blanks: first and last line.
        near: Vec<(u64, u64)>,
        /// The text seems to contain copied line numbers.
        numbered: bool,
    },
    Ambiguous {
        count: u64,
        lines: Vec<u64>,
    },
}

impl EditMismatch {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "no_match",
            Self::Ambiguous { .. } => "ambiguous",
        }
    }

    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { numbered: true, .. } => {
                "leave out the line numbers and the tab after them"
            }
            Self::NotFound { near, .. } if !near.is_empty() => {
                "read those lines again and copy them with their blanks"
            }
            Self::NotFound { .. } => "read the file again and copy the text exactly",
            Self::Ambiguous { .. } => {
                "add surrounding lines to `old_string`, or set `replace_all` to change all"
            }
        }
    }
}

impl fmt::Display for EditMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { near, .. } if near.is_empty() => f.write_str("does not occur"),
            Self::NotFound { near, .. } => {
                let places = near.iter().map(|(first, last)| match first == last {
                    true => format!("line {first}"),
                    false => format!("lines {first} to {last}"),
                });
                let verb = if near.len() == 1 && near[0].0 == near[0].1 {
                    "differs"
                } else {
                    "differ"
                };
                let places = places.collect::<Vec<_>>().join(" and ");
                write!(
                    f,
                    "does not occur exactly, but {places} {verb} from it only in blanks or line ends,"
                )
            }
            Self::Ambiguous { count, lines } => {
                let told: Vec<_> = lines
                    .iter()
                    .take(LINES_IN_MESSAGE)
                    .map(u64::to_string)
                    .collect();
                let more = if *count > told.len() as u64 {
                    " and more"
                } else {
                    ""
                };
                write!(f, "occurs {count} times (lines {}{more})", told.join(", "))
            }
        }
    }
}

/// A replacement.
pub(super) struct TextReplacement<'e> {
    pub(super) old: &'e str,
    pub(super) new: &'e str,
    pub(super) which: ReplacedOccurrences,
    /// The most bytes of the new text.
    pub(super) most: usize,
}

/// Why there is no new text.
#[derive(Debug)]
pub(super) enum ExchangeError {
    Mismatch(EditMismatch),
    /// The new text would have this many bytes.
    Grows {
        bytes: u64,
    },
    Stopped(CallStopError),
}

impl From<CallStopError> for ExchangeError {
    fn from(stopped: CallStopError) -> Self {
        Self::Stopped(stopped)
    }
}

/// Replaces a text in `content`. Occurrences are counted first, so that the size of the result is known before it is
/// built: a small call could otherwise allocate more memory than the host has.
///
/// A text without carriage returns matches both kinds of line ends, and the new text gets the kind of its place. A text
/// with carriage returns must match exactly.
pub(super) fn replace(
    content: &str,
    exchange: &TextReplacement<'_>,
    go_on: &dyn Fn() -> Result<(), CallStopError>,
) -> Result<EditedText, ExchangeError> {
    let TextReplacement {
        old,
        new,
        which,
        most,
    } = *exchange;
    let by_line = !old.contains('\r') && !new.contains('\r') && content.contains("\r\n");
    let searched = if by_line {
        NormalizedSearchText::by_line(content)
    } else {
        NormalizedSearchText::as_it_is(content)
    };
    let with_carriage_returns = by_line.then(|| new.replace('\n', "\r\n"));
    let new = NewText {
        plain: new,
        with_carriage_returns: with_carriage_returns.as_deref(),
    };
    let mut ends = LineEnds::new(content);

    let mut count = 0_u64;
    let mut bytes = content.len() as u64;
    let mut told = Vec::new();
    for place in searched.places(old) {
        if count.is_multiple_of(LOOK_EVERY) {
            go_on()?;
        }
        count += 1;
        bytes = bytes - place.len() as u64 + new.at(place.start, &mut ends).len() as u64;
        if told.len() < TOLD_LINES {
            told.push(place.start);
        }
    }
    if count == 0 {
        let near = near_misses(content, old);
        let numbered = is_numbered(old);
        return Err(ExchangeError::Mismatch(EditMismatch::NotFound {
            near,
            numbered,
        }));
    }
    if count == 1 && which == ReplacedOccurrences::Only {
        let overlapping = searched.place_within_first(old);
        count += overlapping.iter().count() as u64;
        told.extend(overlapping);
    }
    let lines = line_numbers(content, &told);
    if count > 1 && which == ReplacedOccurrences::Only {
        return Err(ExchangeError::Mismatch(EditMismatch::Ambiguous {
            count,
            lines,
        }));
    }
    let size = usize::try_from(bytes).ok().filter(|size| *size <= most);
    let size = size.ok_or(ExchangeError::Grows { bytes })?;

    let mut ends = LineEnds::new(content);
    let mut text = String::with_capacity(size);
    let mut done = 0;
    for place in searched.places(old) {
        text.push_str(&content[done..place.start]);
        text.push_str(new.at(place.start, &mut ends));
        done = place.end;
    }
    text.push_str(&content[done..]);
    Ok(EditedText { text, count, lines })
}

/// A text in its searchable form, with the way back to the original.
struct NormalizedSearchText<'c> {
    text: Cow<'c, str>,
    /// The positions in `text` where a carriage return was left out.
    dropped: Vec<usize>,
}

impl<'c> NormalizedSearchText<'c> {
    fn as_it_is(content: &'c str) -> Self {
        Self {
            text: content.into(),
            dropped: Vec::new(),
        }
    }

    /// The text with newlines only.
    fn by_line(content: &str) -> Self {
        let mut plain = String::with_capacity(content.len());
        let mut dropped = Vec::with_capacity(content.matches("\r\n").count());
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
        Self {
            text: plain.into(),
            dropped,
        }
    }

    fn original(&self, at: usize) -> usize {
        at + self.dropped.partition_point(|place| *place < at)
    }

    /// The places of `old`, without overlaps, in the original text.
    fn places(&self, old: &str) -> impl Iterator<Item = Range<usize>> {
        let found = self.text.match_indices(old);
        found.map(|(start, text)| self.original(start)..self.original(start + text.len()))
    }

    /// A second place of `old` that begins within its first one. `aXa` occurs twice in `aXaXa`, although the places
    /// overlap: it is then unclear which one is meant.
    fn place_within_first(&self, old: &str) -> Option<usize> {
        let first = self.text.find(old)?;
        let next = first + old.chars().next().map_or(1, char::len_utf8);
        self.text[next..]
            .find(old)
            .map(|start| self.original(next + start))
    }
}

/// The new text with both kinds of line ends, if they differ.
#[derive(Clone, Copy)]
struct NewText<'n> {
    plain: &'n str,
    with_carriage_returns: Option<&'n str>,
}

impl<'n> NewText<'n> {
    fn at(self, place: usize, ends: &mut LineEnds<'_>) -> &'n str {
        match self.with_carriage_returns {
            Some(text) if ends.has_carriage_return(place) => text,
            Some(_) | None => self.plain,
        }
    }
}

/// The kinds of line ends in a text, queried from its beginning to its end. Each line is read once: a line with eight
/// million occurrences would otherwise be read as often.
struct LineEnds<'c> {
    content: &'c str,
    /// The answer is known up to this position.
    known: Option<usize>,
    has_carriage_return: bool,
}

impl<'c> LineEnds<'c> {
    fn new(content: &'c str) -> Self {
        Self {
            content,
            known: None,
            has_carriage_return: false,
        }
    }

    /// The kind of line end at `at`: that of its line, or of the previous line if its own has none.
    fn has_carriage_return(&mut self, at: usize) -> bool {
        if self.known.is_none_or(|known| at > known) {
            let own = self.content[at..].find('\n').map(|end| at + end);
            self.known = Some(own.unwrap_or(self.content.len()));
            let end = own.or_else(|| self.content[..at].rfind('\n'));
            self.has_carriage_return = end.is_some_and(|end| self.content[..end].ends_with('\r'));
        }
        self.has_carriage_return
    }
}

fn line_numbers(content: &str, places: &[usize]) -> Vec<u64> {
    let mut line = 1;
    let mut done = 0;
    let mut numbers = Vec::new();
    for &place in places {
        line += content[done..place]
            .bytes()
            .filter(|byte| *byte == b'\n')
            .count() as u64;
        done = place;
        numbers.push(line);
    }
    numbers
}

/// Whether every line begins with a number and a tab, as in the output of `read_file`.
fn is_numbered(old: &str) -> bool {
    let numbered = |line: &str| {
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.trim_start().len() && rest.starts_with('\t')
    };
    old.lines().all(|line| line.is_empty() || numbered(line))
}

/// Places with the same words and other blanks between them.
fn near_misses(content: &str, old: &str) -> Vec<(u64, u64)> {
    if content.lines().count().max(old.lines().count()) > LOOKED_THROUGH_LINES {
        return Vec::new();
    }
    let wanted: Vec<Cow<'_, str>> = old.trim().lines().map(words).collect();
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        return Vec::new();
    };
    let lines: Vec<Cow<'_, str>> = content.lines().map(words).collect();
    let mut near = Vec::new();
    let mut compared = 0_usize;
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

#[cfg(test)]
mod tests {
    use super::{
        CallStopError, EditMismatch, EditedText, ExchangeError, ReplacedOccurrences,
        TextReplacement,
    };

    fn replace(
        content: &str,
        old: &str,
        new: &str,
        which: ReplacedOccurrences,
    ) -> Result<EditedText, EditMismatch> {
        let exchange = TextReplacement {
            old,
            new,
            which,
            most: 8 << 20,
        };
        super::replace(content, &exchange, &|| Ok(())).map_err(|error| match error {
            ExchangeError::Mismatch(mismatch) => mismatch,
            ExchangeError::Grows { bytes } => panic!("{bytes} bytes"),
            ExchangeError::Stopped(stopped) => panic!("{stopped}"),
        })
    }

    fn check(content: &str, old: &str, new: &str, expected: &str) {
        let edited = replace(content, old, new, ReplacedOccurrences::Only)
            .unwrap_or_else(|why| panic!("{old:?}: {why}"));
        assert_eq!(edited.text, expected, "{old:?} by {new:?} in {content:?}");
    }

    fn refused(content: &str, old: &str) -> String {
        replace(content, old, "new", ReplacedOccurrences::Only)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_result_that_is_too_large_is_never_built() {
        let content = "a".repeat(8 << 20);
        let new = "b".repeat(100 << 10);
        let exchange = TextReplacement {
            old: "a",
            new: &new,
            which: ReplacedOccurrences::All,
            most: 8 << 20,
        };
        let error = super::replace(&content, &exchange, &|| Ok(())).unwrap_err();
        assert!(
            matches!(error, ExchangeError::Grows { bytes } if bytes == (8 << 20) * (100 << 10)),
            "{error:?}"
        );
        let exchange = TextReplacement {
            old: "a",
            new: "bb",
            which: ReplacedOccurrences::All,
            most: 4,
        };
        assert_eq!(
            super::replace("aa", &exchange, &|| Ok(())).unwrap().text,
            "bbbb"
        );
        assert!(super::replace("aaa", &exchange, &|| Ok(())).is_err());
        let stopped = super::replace("aa", &exchange, &|| Err(CallStopError)).unwrap_err();
        assert!(matches!(stopped, ExchangeError::Stopped(_)), "{stopped:?}");
    }

    #[test]
    fn a_long_line_of_occurrences_is_looked_through_once() {
        let content = format!("{}\r\n", "a".repeat(4 << 20));
        let edited = replace(&content, "a", "b", ReplacedOccurrences::All).unwrap();
        assert_eq!((edited.count, edited.text.len()), (4 << 20, content.len()));
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
        check(
            "a\r\nb\r\nc\r\n",
            "a\nb\n",
            "x\ny\nz\n",
            "x\r\ny\r\nz\r\nc\r\n",
        );
        check("a\r\nb", "b", "b\nc", "a\r\nb\r\nc");
        check("a\r\nb\r\n", "\nb", "\n\nb", "a\r\n\r\nb\r\n");
        check("a\r\nb\r\n", "a", "x", "x\r\nb\r\n");
        check("a\r\nb\nc\n", "b\nc", "b\nd", "a\r\nb\nd\n");
        check("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n");
        check("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n");
        check("a\nb\n", "a\n", "a\r\n", "a\r\nb\n");
        let all = replace("x\r\ny\nx\r\n", "x\n", "1\n2\n", ReplacedOccurrences::All).unwrap();
        assert_eq!(
            (all.text.as_str(), all.count, all.lines),
            ("1\r\n2\r\ny\n1\r\n2\r\n", 2, vec![1, 3])
        );
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
        let all = replace("x\ny\nx", "x", "xx", ReplacedOccurrences::All).unwrap();
        assert_eq!((all.text.as_str(), all.count), ("xx\ny\nxx", 2));
    }

    #[test]
    fn near_misses_are_named() {
        let content = "fn a() {\n    one();\n\ttwo();  \n}\n";
        assert!(
            refused(content, "fn a() {\n  one();")
                .contains("lines 1 to 2 differ from it only in blanks")
        );
        assert!(refused(content, "one();\n  two();\n}").contains("lines 2 to 4 differ"));
        assert!(refused("  x = 1\n", "x  = 1").contains("line 1 differs"));
        assert_eq!(refused(content, "three"), "does not occur");
        assert_eq!(refused(content, "  "), "occurs 3 times (lines 2, 2, 3)");
        let numbered = replace(
            content,
            "     2\t    one();",
            "x",
            ReplacedOccurrences::Only,
        )
        .unwrap_err();
        assert!(
            matches!(numbered, EditMismatch::NotFound { numbered: true, .. }),
            "{numbered:?}"
        );
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
