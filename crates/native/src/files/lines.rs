//! A text as lines with their ends, and a search for consecutive lines. No I/O.

use std::{borrow::Cow, collections::HashMap};

/// A line with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextLine<'t> {
    pub(crate) text: &'t str,
    pub(crate) end: TextLineEnding,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextLineEnding {
    /// The end of the text.
    Open,
    Newline,
    CarriageReturn,
}

impl TextLineEnding {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "",
            Self::Newline => "\n",
            Self::CarriageReturn => "\r\n",
        }
    }
}

pub(crate) fn split(text: &str) -> Vec<TextLine<'_>> {
    let line = |line| match str::strip_suffix(line, '\n') {
        None => TextLine {
            text: line,
            end: TextLineEnding::Open,
        },
        Some(rest) => match rest.strip_suffix('\r') {
            None => TextLine {
                text: rest,
                end: TextLineEnding::Newline,
            },
            Some(rest) => TextLine {
                text: rest,
                end: TextLineEnding::CarriageReturn,
            },
        },
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Lines for many searches: equal lines have the same number. `u32` is enough for the lines of any file, and halves the
/// index of a file with many short lines.
pub(crate) struct LineIndex<'t> {
    numbers: HashMap<&'t str, u32>,
    lines: Vec<u32>,
    /// By number: how often a line occurs, and its first position.
    occurrences: Vec<(u32, u32)>,
    /// By position: the next position of the same line, or [`NOWHERE`].
    next_same: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;
/// A line that occurs at most this often leads a search from place to place. Without it, a patch of thousands of hunks
/// would read a large file thousands of times.
const RARE: u32 = 64;

/// The result of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LineSearchMatches {
    /// The positions of full matches, at most a few.
    pub(crate) found: Vec<usize>,
    /// The longest partial match from the first line on: its position and its number of lines.
    pub(crate) longest: (usize, usize),
}

impl<'t> LineIndex<'t> {
    pub(crate) fn new(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut index = Self {
            numbers: HashMap::new(),
            lines: Vec::new(),
            occurrences: Vec::new(),
            next_same: Vec::new(),
        };
        let mut last_same: Vec<u32> = Vec::new();
        for (at, line) in (0..NOWHERE).zip(lines) {
            let next = u32::try_from(index.occurrences.len()).unwrap_or(at);
            let number = *index.numbers.entry(line).or_insert(next);
            index.lines.push(number);
            index.next_same.push(NOWHERE);
            match last_same.get_mut(number as usize) {
                Some(last) => {
                    index.next_same[*last as usize] = at;
                    index.occurrences[number as usize].0 += 1;
                    *last = at;
                }
                None => {
                    index.occurrences.push((1, at));
                    last_same.push(at);
                }
            }
        }
        index
    }

    /// Whether `wanted` is at `at`.
    pub(crate) fn stands_at(&self, wanted: &[&str], at: usize) -> bool {
        let lines = at
            .checked_add(wanted.len())
            .and_then(|end| self.lines.get(at..end));
        lines.is_some_and(|lines| {
            lines
                .iter()
                .zip(wanted)
                .all(|(line, wanted)| self.numbers.get(wanted) == Some(line))
        })
    }

    /// Searches `wanted`, which must not be empty, from `from` on. Stops after `most` matches.
    pub(crate) fn search(&self, wanted: &[&str], from: usize, most: usize) -> LineSearchMatches {
        let wanted: Vec<Option<u32>> = wanted
            .iter()
            .map(|line| self.numbers.get(line).copied())
            .collect();
        let found = self.search_by_rare_line(&wanted, from, most);
        match found.first() {
            Some(first) => LineSearchMatches {
                longest: (*first, wanted.len()),
                found,
            },
            None => self.search_all(&wanted, from, most),
        }
    }

    /// Searches around the places of the rarest line. Empty if no line of `wanted` is rare.
    fn search_by_rare_line(&self, wanted: &[Option<u32>], from: usize, most: usize) -> Vec<usize> {
        let Some(wanted) = wanted.iter().copied().collect::<Option<Vec<u32>>>() else {
            return Vec::new();
        };
        let rarest = wanted
            .iter()
            .enumerate()
            .min_by_key(|(_, number)| self.occurrences[**number as usize].0);
        let Some((offset, number)) = rarest else {
            return Vec::new();
        };
        let (count, first) = self.occurrences[*number as usize];
        if count > RARE {
            return Vec::new();
        }
        let next = |at: &u32| Some(self.next_same[*at as usize]).filter(|next| *next != NOWHERE);
        let places = std::iter::successors(Some(first), next);
        let starts = places
            .filter_map(|at| (at as usize).checked_sub(offset))
            .filter(|start| *start >= from);
        let stands =
            |start: &usize| self.lines.get(*start..*start + wanted.len()) == Some(&wanted[..]);
        starts.filter(stands).take(most).collect()
    }

    /// Searches in linear time (Knuth, Morris and Pratt), for any file and patch.
    fn search_all(&self, wanted: &[Option<u32>], from: usize, most: usize) -> LineSearchMatches {
        let mut back = vec![0; wanted.len()];
        let mut matched = 0;
        for at in 1..wanted.len() {
            while matched > 0 && wanted[at] != wanted[matched] {
                matched = back[matched - 1];
            }
            matched += usize::from(wanted[at] == wanted[matched]);
            back[at] = matched;
        }
        let mut search = LineSearchMatches::default();
        matched = 0;
        for (at, line) in self.lines.iter().enumerate().skip(from) {
            while matched > 0 && wanted[matched] != Some(*line) {
                matched = back[matched - 1];
            }
            matched += usize::from(wanted[matched] == Some(*line));
            if matched > search.longest.1 {
                search.longest = (at + 1 - matched, matched);
            }
            if matched == wanted.len() {
                search.found.push(at + 1 - matched);
                matched = back[matched - 1];
                if search.found.len() == most {
                    break;
                }
            }
        }
        search
    }
}

/// A line with single blanks between its words and none around them.
pub(crate) fn words(line: &str) -> Cow<'_, str> {
    let trimmed = line.trim();
    let odd = trimmed.contains("  ") || trimmed.contains(|c: char| c.is_whitespace() && c != ' ');
    match odd {
        false => trimmed.into(),
        true => trimmed
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, proptest};

    use super::{LineIndex, LineSearchMatches, TextLineEnding, split};

    #[test]
    fn ends_are_kept_apart_from_texts() {
        let lines = split("a\r\n\nb\r");
        let told: Vec<_> = lines.iter().map(|line| (line.text, line.end)).collect();
        let expected = [
            ("a", TextLineEnding::CarriageReturn),
            ("", TextLineEnding::Newline),
            ("b\r", TextLineEnding::Open),
        ];
        assert_eq!(told, expected);
        assert!(split("").is_empty());
    }

    proptest! {
        #[test]
        fn lines_put_together_are_the_text(text in "[ab\r\n]{0,20}") {
            let joined: String = split(&text).iter().flat_map(|line| [line.text, line.end.as_str()]).collect();
            assert_eq!(joined, text);
        }

        #[test]
        fn a_search_finds_what_comparing_everywhere_finds(
            lines in prop::collection::vec("[ab]", 0..30),
            wanted in prop::collection::vec("[abc]", 1..5),
            from in 0_usize..5,
        ) {
            let (lines, wanted): (Vec<_>, Vec<_>) =
                (lines.iter().map(String::as_str).collect(), wanted.iter().map(String::as_str).collect());
            let index = LineIndex::new(lines.iter().copied());
            let search = index.search(&wanted, from, usize::MAX);
            let numbers: Vec<_> = wanted.iter().map(|line| index.numbers.get(line).copied()).collect();
            assert_eq!(search, index.search_all(&numbers, from, usize::MAX));
            let LineSearchMatches { found, .. } = search;
            let everywhere: Vec<_> = (from..lines.len())
                .filter(|at| lines[*at..].starts_with(&wanted))
                .collect();
            assert_eq!(found, everywhere);
            for at in 0..35 {
                assert_eq!(index.stands_at(&wanted, at), lines.get(at..).is_some_and(|rest| rest.starts_with(&wanted)));
            }
        }
    }
}
