//! Keeps a search within time although a single look of the engine cannot be interrupted.
//!
//! The engine takes linear time, but the factor is the size of the compiled expression: `[ab]*a[ab]{200}c` is
//! small and takes a microsecond a byte on lines made for it. So text is given to the engine in pieces of whole
//! lines, with a look at the clock in between, and a line that is too long for an expression of its size is
//! passed over and counted.

use std::cell::Cell;

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;

use super::expression::SearchExpression;
use crate::search::watch::SearchStopSignal;

/// How much text the engine is given at once, where lines are shorter.
const PIECE_BYTES: usize = 32 << 10;

/// What a search counts for at least, however early it finds something.
const SEARCH_BYTES: usize = 64;

/// One thread's way to the engine.
pub(super) struct CarefulMatcher<'c> {
    /// A copy of its own: threads that share one would wait for its caches.
    engine: RegexMatcher,
    multiline: bool,
    longest_line: usize,
    watch: &'c SearchStopSignal<'c>,
    long_lines: Cell<u64>,
    /// Bytes the engine was through since the last look at the clock.
    since_look: Cell<usize>,
}

/// The search is over.
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

    /// How many lines were passed over so far.
    pub(super) fn long_lines(&self) -> u64 {
        self.long_lines.get()
    }

    /// Gives `text` from `at` on to `search`, piece by piece, until it finds something and says where.
    fn in_pieces<T>(
        &self,
        text: &[u8],
        mut at: usize,
        mut search: impl FnMut(usize, usize) -> Option<(T, usize)>,
    ) -> Result<Option<T>, SearchEnd> {
        let piece = PIECE_BYTES.min(self.longest_line);
        while at < text.len() {
            // Where every line matches there is a search a line, and a look each time would take longer than that.
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
        // The engine has its say on text that is empty.
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
        // The engine's type of error has no value.
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
