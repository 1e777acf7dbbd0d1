//! The second pass: reads the matching lines from the few files that are shown.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{self, Read},
};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::visible_text;

use super::{
    careful::CarefulMatcher,
    expression::SearchExpression,
    scan::{WatchedFileReader, searcher},
};
use crate::search::{
    SearchPageRange, newest::SearchHit, start::SearchStart, walk::open_file_beneath,
    watch::SearchStopSignal,
};

/// The most text of lines in one result.
pub(super) const TEXT_BYTES: usize = 64 << 10;
/// The size of a line's number and frame.
const FRAME_BYTES: usize = 16;
/// How much of a line is shown.
const LINE_BYTES: usize = 400;
/// How much of a long line is shown before its match.
const LEAD_BYTES: usize = 100;

/// A line of a file.
#[derive(Clone, Serialize, JsonSchema)]
#[schemars(rename = "Line")]
pub(crate) struct GrepLine {
    /// Its number, counted from 1.
    pub(super) line: u64,
    /// Its text; of a long line the part around the match, with `…` where it was cut.
    pub(super) text: String,
    /// It does not match and is there to show where the match stands.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) context: bool,
}

/// Lines in the format of `grep`: the sign after the number tells matches from context, and `--` marks a gap.
pub(crate) fn listing(lines: &[GrepLine]) -> String {
    let mut text = String::new();
    let has_context = lines.iter().any(|line| line.context);
    let mut next = None;
    for line in lines {
        if has_context && next.is_some_and(|next| next != line.line) {
            text.push_str("--\n");
        }
        let sign = if line.context { '-' } else { ':' };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{}{sign}{}", line.line, visible_text(&line.text));
        next = Some(line.line + 1);
    }
    text
}

/// The context of a match.
#[derive(Clone, Copy)]
pub(in crate::search) struct ContextLines {
    pub(in crate::search) before: usize,
    pub(in crate::search) after: usize,
}

/// The lines to collect.
pub(in crate::search) struct MatchLineQuery<'c> {
    pub(in crate::search) expression: &'c SearchExpression,
    pub(in crate::search) around: ContextLines,
    pub(in crate::search) page: SearchPageRange,
}

/// The lines of one file.
pub(super) struct FileLines<'h> {
    pub(super) hit: &'h SearchHit,
    pub(super) lines: Vec<GrepLine>,
}

/// Collects the page's lines from `hits`, which are in order.
pub(super) fn collect<'h>(
    wanted: &MatchLineQuery<'_>,
    start: &SearchStart,
    hits: &'h [SearchHit],
    watch: &SearchStopSignal<'_>,
) -> Vec<FileLines<'h>> {
    let matcher = CarefulMatcher::new(wanted.expression, watch);
    let mut searcher = line_searcher(wanted);
    let mut skip = wanted.page.offset as u64;
    let mut room = GrepLineBudget {
        lines: wanted.page.limit,
        bytes: TEXT_BYTES,
    };
    let mut files = Vec::new();
    for hit in hits {
        if skip >= hit.lines {
            skip -= hit.lines;
            continue;
        }
        if room.is_full() || !watch.look() {
            break;
        }
        // A file that vanished or was swapped since the first pass has no lines any more.
        if let Ok((file, _)) = open_file_beneath(&start.dir, start.path_to(&hit.place)) {
            let mut sink = GrepLineSink::new(wanted, std::mem::take(&mut skip), &mut room);
            // An error ends the file early; the lines before it are valid.
            let _ =
                searcher.search_reader(&matcher, WatchedFileReader::new(file, watch), &mut sink);
            files.push(FileLines {
                hit,
                lines: sink.lines,
            });
            room.bytes = room.bytes.saturating_sub(hit.place.as_os_str().len());
        }
        skip = 0;
    }
    files.retain(|file| !file.lines.is_empty());
    files
}

/// The lines of one text.
pub(in crate::search) struct CollectedLines {
    pub(in crate::search) lines: Vec<GrepLine>,
    /// Whether there was room for no more.
    pub(in crate::search) is_full: bool,
    pub(in crate::search) is_binary: bool,
    pub(in crate::search) long_lines: u64,
    /// The error that ended the text early; the lines before it are valid.
    pub(in crate::search) error: Option<io::Error>,
}

/// Collects the page's lines from one text.
pub(in crate::search) fn collect_from(
    wanted: &MatchLineQuery<'_>,
    text: impl Read,
    watch: &SearchStopSignal<'_>,
) -> CollectedLines {
    let matcher = CarefulMatcher::new(wanted.expression, watch);
    let mut room = GrepLineBudget {
        lines: wanted.page.limit,
        bytes: TEXT_BYTES,
    };
    let mut sink = GrepLineSink::new(wanted, wanted.page.offset as u64, &mut room);
    let searched = line_searcher(wanted).search_reader(
        &matcher,
        WatchedFileReader::new(text, watch),
        &mut sink,
    );
    let lines = sink.lines;
    let is_binary = sink.is_binary;
    let is_full = room.is_full();
    let long_lines = matcher.long_lines();
    CollectedLines {
        lines,
        is_full,
        is_binary,
        long_lines,
        error: searched.err(),
    }
}

fn line_searcher(wanted: &MatchLineQuery<'_>) -> Searcher {
    searcher(wanted.expression.multiline)
        .line_number(true)
        .before_context(wanted.around.before)
        .after_context(wanted.around.after)
        .build()
}

/// The room that the result still has.
struct GrepLineBudget {
    /// Matching lines.
    lines: usize,
    /// Text of all lines.
    bytes: usize,
}

impl GrepLineBudget {
    fn is_full(&self) -> bool {
        self.lines == 0 || self.bytes == 0
    }
}

struct GrepLineSink<'l> {
    matcher: &'l RegexMatcher,
    around: ContextLines,
    skip: u64,
    room: &'l mut GrepLineBudget,
    lines: Vec<GrepLine>,
    /// The last lines that were not shown, in case the next line matches.
    before: VecDeque<GrepLine>,
    /// Whether the search ended at a byte that is not text.
    is_binary: bool,
}

impl<'l> GrepLineSink<'l> {
    fn new(wanted: &MatchLineQuery<'l>, skip: u64, room: &'l mut GrepLineBudget) -> Self {
        let before = VecDeque::new();
        Self {
            matcher: &wanted.expression.engine,
            around: wanted.around,
            skip,
            room,
            lines: Vec::new(),
            before,
            is_binary: false,
        }
    }

    /// Keeps a line as context for a later match.
    fn remember(&mut self, number: u64, line: &[u8]) {
        if self.around.before == 0 {
            return;
        }
        if self.before.len() == self.around.before {
            self.before.pop_front();
        }
        self.before.push_back(GrepLine {
            line: number,
            text: shortened(line, 0),
            context: true,
        });
    }

    /// Shows a line. `false` if there is no room for it.
    fn show(&mut self, line: GrepLine) -> bool {
        let bytes = line.text.len() + FRAME_BYTES;
        if bytes > self.room.bytes {
            self.room.bytes = 0;
            return false;
        }
        self.room.bytes -= bytes;
        self.lines.push(line);
        true
    }

    fn matching(&mut self, number: u64, line: &[u8]) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            self.remember(number, line);
            return true;
        }
        if self.room.is_full() {
            return false;
        }
        for before in std::mem::take(&mut self.before) {
            if !self.show(before) {
                return false;
            }
        }
        // With `multiline` the match may have begun on an earlier line.
        let at = self
            .matcher
            .find(line)
            .ok()
            .flatten()
            .map_or(0, |found| found.start());
        let shown = self.show(GrepLine {
            line: number,
            text: shortened(line, at),
            context: false,
        });
        self.room.lines -= usize::from(shown);
        shown
    }
}

impl Sink for GrepLineSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let first = matched.line_number().unwrap_or(1);
        for (number, line) in (first..).zip(matched.lines()) {
            if !self.matching(number, line) {
                return Ok(false);
            }
        }
        Ok(!self.room.is_full() || self.around.after > 0)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or(1);
        match context.kind() {
            SinkContextKind::After if !self.lines.is_empty() => Ok(self.show(GrepLine {
                line: number,
                text: shortened(context.bytes(), 0),
                context: true,
            })),
            // Context after a skipped match may be context before a shown one.
            SinkContextKind::Before | SinkContextKind::After | SinkContextKind::Other => {
                self.remember(number, context.bytes());
                Ok(true)
            }
        }
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.before.clear();
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The text of a line without its end; of a long line the part around `at`.
fn shortened(line: &[u8], at: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_BYTES {
        return String::from_utf8_lossy(line).into_owned();
    }
    let within = |at: usize| {
        line.get(at)
            .is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
    };
    let latest = line.len() - LINE_BYTES;
    let mut begin = at.saturating_sub(LEAD_BYTES).min(latest);
    let mut end = begin + LINE_BYTES;
    // A character has at most three such bytes; bytes that are not text may have any number.
    for _ in 0..3 {
        begin -= usize::from(begin > 0 && within(begin));
        end -= usize::from(within(end));
    }
    let text = String::from_utf8_lossy(&line[begin..end]);
    format!(
        "{}{text}{}",
        if begin > 0 { "…" } else { "" },
        if end < line.len() { "…" } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{LINE_BYTES, shortened};

    #[test]
    fn long_lines_are_cut_around_the_match() {
        assert_eq!(shortened(b"short\r\n", 3), "short");
        let line = format!("{}needle{}\n", "a".repeat(1000), "b".repeat(1000));
        let shown = shortened(line.as_bytes(), 1000);
        assert!(
            shown.starts_with("…aaa") && shown.contains("needle") && shown.ends_with("b…"),
            "{shown}"
        );
        assert!(shortened(line.as_bytes(), 0).starts_with("aaa"));
        let end = format!("{}needle\n", "a".repeat(1000));
        assert!(shortened(end.as_bytes(), 1000).ends_with("aneedle"));
        let wide = format!("{}needle{}", "é".repeat(700), "文".repeat(700));
        let shown = shortened(wide.as_bytes(), 1400);
        assert!(
            shown.contains("needle") && !shown.contains('\u{fffd}'),
            "{shown}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_cut_within_bounds(line in prop::collection::vec(any::<u8>(), 0..3000), at in 0_usize..3000) {
            let shown = shortened(&line, at.min(line.len()));
            // A byte that is not UTF-8 becomes a mark of three bytes.
            assert!(shown.len() <= 3 * (LINE_BYTES + 8), "{}", shown.len());
        }
    }
}
