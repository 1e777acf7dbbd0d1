//! Keeps a search within its time, although a single search of the engine cannot be interrupted.
//!
//! The engine takes linear time, but the factor is the size of the compiled expression: `[ab]*a[ab]{200}c` is small and
//! takes a microsecond per byte on lines that are made for it. The engine therefore gets text in pieces of whole lines,
//! with a check of the clock in between, and a line that is too long for an expression of its size is skipped and
//! counted.

use std::cell::Cell;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;

use super::expression::SearchExpression;
use crate::search::watch::SearchStopSignal;

/// How much text the engine gets at once, if lines are shorter.
const PIECE_BYTES: usize = 32 << 10;

/// The least that a search counts, however early it finds a match.
const SEARCH_BYTES: usize = 64;

/// One thread's access to the engine.
pub(super) struct CarefulMatcher<'c> {
    /// A copy per thread: threads that share an engine would wait for its caches.
    engine: RegexMatcher,
    multiline: bool,
    longest_line: usize,
    watch: &'c SearchStopSignal<'c>,
    long_lines: Cell<u64>,
    /// Bytes that the engine has read since the last check of the clock.
    since_look: Cell<usize>,
}

/// The search ended early.
#[derive(Debug, thiserror::Error)]
#[error("the search is over")]
pub(super) struct SearchEnd;

impl<'c> CarefulMatcher<'c> {
    pub(super) fn new(expression: &SearchExpression, watch: &'c SearchStopSignal<'c>) -> Self {
        Self {
            engine: expression.engine.clone(),
            multiline: expression.multiline,
            longest_line: expression.longest_text,
            watch,
            long_lines: Cell::new(0),
            since_look: Cell::new(0),
        }
    }

    /// The number of skipped lines so far.
    pub(super) fn long_lines(&self) -> u64 {
        self.long_lines.get()
    }

    /// Passes `text` from `at` on to `search` in pieces, until `search` returns a match and its position.
    fn in_pieces<T>(
        &self,
        text: &[u8],
        mut at: usize,
        mut search: impl FnMut(usize, usize) -> Option<(T, usize)>,
    ) -> Result<Option<T>, SearchEnd> {
        let piece = PIECE_BYTES.min(self.longest_line);
        while at < text.len() {
            // If every line matches, there is one search per line, and a check of the clock at each would take longer
            // than the search itself. So only the bytes since the last check count.
            if self.since_look.get() >= piece {
                self.since_look.set(0);
                if !self.watch.look() {
                    return Err(SearchEnd);
                }
            }
            let window = &text[at..text.len().min(at + piece)];
            let end = match window.iter().rposition(|&byte| byte == b'\n') {
                Some(last) => at + last + 1,
                None => text[at..]
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .map_or(text.len(), |end| at + end + 1),
            };
            if end - at > self.longest_line {
                self.long_lines.set(self.long_lines.get() + 1);
            } else if let Some((found, place)) = search(at, end) {
                self.passed((place - at).max(SEARCH_BYTES));
                return Ok(Some(found));
            } else {
                self.passed(end - at);
            }
            at = end;
        }
        // An empty text is searched, too: some expressions match it.
        Ok(if text.is_empty() {
            search(at, at).map(|(found, _)| found)
        } else {
            None
        })
    }

    fn passed(&self, bytes: usize) {
        self.since_look.set(self.since_look.get() + bytes);
    }
}

impl Matcher for CarefulMatcher<'_> {
    type Captures = NoCaptures;
    type Error = SearchEnd;

    fn find_at(&self, text: &[u8], at: usize) -> Result<Option<Match>, SearchEnd> {
        // The engine's error type has no values.
        let find = |at: usize, end: usize| self.engine.find_at(&text[..end], at).ok().flatten();
        if self.multiline {
            return if self.watch.look() {
                Ok(find(at, text.len()))
            } else {
                Err(SearchEnd)
            };
        }
        self.in_pieces(text, at, |at, end| {
            find(at, end).map(|found| (found, found.end()))
        })
    }

    fn new_captures(&self) -> Result<NoCaptures, SearchEnd> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.engine.non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.engine.line_terminator()
    }

    fn find_candidate_line(&self, text: &[u8]) -> Result<Option<LineMatchKind>, SearchEnd> {
        self.in_pieces(text, 0, |at, end| {
            let found = self
                .engine
                .find_candidate_line(&text[at..end])
                .ok()
                .flatten()?;
            Some(match found {
                LineMatchKind::Confirmed(place) => {
                    (LineMatchKind::Confirmed(at + place), at + place)
                }
                LineMatchKind::Candidate(place) => {
                    (LineMatchKind::Candidate(at + place), at + place)
                }
            })
        })
    }

    fn shortest_match_at(&self, text: &[u8], at: usize) -> Result<Option<usize>, SearchEnd> {
        if self.multiline {
            return Ok(self.find_at(text, at)?.map(|found| found.end()));
        }
        self.in_pieces(text, at, |at, end| {
            let place = self
                .engine
                .shortest_match_at(&text[..end], at)
                .ok()
                .flatten()?;
            Some((place, place))
        })
    }
}
