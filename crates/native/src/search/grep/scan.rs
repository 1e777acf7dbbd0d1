//! The first pass: the files with matching lines, and their number. It keeps counts and no text.

use std::{
    io::{self, Read},
    ops::AddAssign,
    path::Path,
};

use cap_std::fs::File;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use parking_lot::Mutex;
use rustix::fs::Stat;

use super::{
    careful::CarefulMatcher,
    expression::{HELD_BYTES, SearchExpression, line_terminator},
};
use crate::search::{
    newest::{ModificationTime, NewestHits},
    walk::{FileVisitor, WalkedFile, open_file},
    watch::SearchStopSignal,
};

/// Files up to this size are read in one piece.
const SMALL_FILE: usize = 64 << 10;
/// How much is read between two checks of the clock.
const BYTES_A_LOOK: usize = 1 << 20;

/// The query for each file.
pub(super) struct GrepScanQuery<'w> {
    pub(super) expression: &'w SearchExpression,
    /// Whether one line is enough.
    pub(super) first_only: bool,
}

/// A searcher with the limits for every file. It never uses memory maps: a file that is truncated during the search
/// would end the process.
pub(super) fn searcher(multiline: bool) -> SearcherBuilder {
    let mut builder = SearcherBuilder::new();
    builder
        .line_terminator(line_terminator())
        .multi_line(multiline)
        .heap_limit(Some(HELD_BYTES))
        .binary_detection(BinaryDetection::quit(0));
    builder
}

/// Counts of files that were searched, and of those that were not.
#[derive(Clone, Copy, Default)]
pub(super) struct GrepScanCounts {
    pub(super) files: u64,
    /// Files with a NUL before any match.
    pub(super) binary: u64,
    /// Files that cannot be opened or read, or have a line that is too long to hold.
    pub(super) unsearched: u64,
    /// Lines that are too long for the expression.
    pub(super) long_lines: u64,
}

impl AddAssign for GrepScanCounts {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.binary += other.binary;
        self.unsearched += other.unsearched;
        self.long_lines += other.long_lines;
    }
}

/// One thread's share of the search.
pub(super) struct GrepFileScanner<'s> {
    wanted: &'s GrepScanQuery<'s>,
    matcher: CarefulMatcher<'s>,
    searcher: Searcher,
    watch: &'s SearchStopSignal<'s>,
    found: &'s Mutex<NewestHits>,
    scanned: GrepScanCounts,
    total: &'s Mutex<GrepScanCounts>,
    buffer: Vec<u8>,
}

impl<'s> GrepFileScanner<'s> {
    pub(super) fn new(
        wanted: &'s GrepScanQuery<'s>,
        watch: &'s SearchStopSignal<'s>,
        found: &'s Mutex<NewestHits>,
        total: &'s Mutex<GrepScanCounts>,
    ) -> Self {
        Self {
            wanted,
            matcher: CarefulMatcher::new(wanted.expression, watch),
            searcher: searcher(wanted.expression.multiline)
                .line_number(false)
                .build(),
            watch,
            found,
            scanned: GrepScanCounts::default(),
            total,
            // One byte more than a small file has, to see that it ends.
            buffer: vec![0; SMALL_FILE + 1],
        }
    }

    /// Searches an open file at `place`.
    pub(super) fn search(&mut self, file: File, stat: &Stat, place: &Path) {
        let mut count = MatchCounter {
            lines: 0,
            binary: false,
            first_only: self.wanted.first_only,
        };
        if let Err(_error) = self.run(file, stat, &mut count) {
            self.scanned.unsearched += u64::from(!self.watch.is_over());
            return;
        }
        self.scanned.files += 1;
        self.scanned.binary += u64::from(count.binary && count.lines == 0);
        if count.lines > 0 {
            let mut found = self.found.lock();
            found.offer(ModificationTime::of(stat), place, count.lines);
        }
    }

    fn run(&mut self, mut file: File, stat: &Stat, count: &mut MatchCounter) -> io::Result<()> {
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        let expression = self.wanted.expression;
        if expression.multiline && size > expression.longest_text {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if size > SMALL_FILE {
            return self.searcher.search_reader(
                &self.matcher,
                WatchedFileReader::new(file, self.watch),
                count,
            );
        }
        let mut read = 0;
        while read < self.buffer.len() {
            let more = file.read(&mut self.buffer[read..])?;
            read += more;
            // The size saves a second read that would only find the end. A size of zero is not trusted, because the
            // kernel's own files have it.
            if more == 0 || read == size {
                return self
                    .searcher
                    .search_slice(&self.matcher, &self.buffer[..read], count);
            }
        }
        // The file has grown.
        let whole = (&self.buffer[..read]).chain(WatchedFileReader::new(file, self.watch));
        self.searcher.search_reader(&self.matcher, whole, count)
    }
}

impl FileVisitor for GrepFileScanner<'_> {
    fn file(&mut self, met: &WalkedFile<'_>) {
        match open_file(met.dir, met.name) {
            Ok((file, stat)) => self.search(file, &stat, met.place),
            Err(_) => self.scanned.unsearched += 1,
        }
    }
}

impl Drop for GrepFileScanner<'_> {
    fn drop(&mut self) {
        self.scanned.long_lines = self.matcher.long_lines();
        *self.total.lock() += self.scanned;
    }
}

/// Counts matching lines.
struct MatchCounter {
    lines: u64,
    binary: bool,
    first_only: bool,
}

impl Sink for MatchCounter {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        self.lines += matched.lines().count() as u64;
        Ok(!self.first_only)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// A file that fails once the search is over.
pub(super) struct WatchedFileReader<'w, R> {
    file: R,
    watch: &'w SearchStopSignal<'w>,
    until_look: usize,
}

impl<'w, R> WatchedFileReader<'w, R> {
    pub(super) fn new(file: R, watch: &'w SearchStopSignal<'w>) -> Self {
        Self {
            file,
            watch,
            until_look: BYTES_A_LOOK,
        }
    }
}

impl<R: Read> Read for WatchedFileReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until_look == 0 {
            self.until_look = BYTES_A_LOOK;
            if !self.watch.look() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let read = self.file.read(buffer)?;
        self.until_look = self.until_look.saturating_sub(read);
        Ok(read)
    }
}
