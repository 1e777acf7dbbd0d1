//! Cuts a range of lines out of bytes that arrive in pieces, within fixed limits. No I/O.

use std::fmt::Write as _;

/// The most bytes of shown text: with the numbers of 2,000 lines it is within the host's limit for a result.
const SHOWN_BYTES: usize = 32 * 1024;
/// The most bytes of one line.
const LINE_BYTES: usize = 16 * 1024;

/// Collects the lines from `first` on. Its memory is bounded for any input.
pub(crate) struct LineWindow {
    most_bytes: usize,
    first: u64,
    limit: u64,
    /// The number of the line of the next byte.
    line: u64,
    /// Bytes of the current line so far; 0 if it has not begun.
    line_seen: u64,
    shown: Vec<u8>,
    /// The start of the current line in `shown`.
    line_start: usize,
    lines_shown: u64,
    cut_lines: u64,
    /// The first line after the window, once a byte of it was read.
    next_line: Option<u64>,
}

/// The lines that were cut out.
#[derive(Debug, PartialEq)]
pub(crate) struct TextWindow {
    pub(crate) text: String,
    pub(super) first_line: u64,
    pub(crate) lines_shown: u64,
    pub(super) cut_lines: u64,
    /// The line to continue at, if there is more.
    pub(crate) next_line: Option<u64>,
    /// Known if the whole file was read.
    pub(crate) total_lines: Option<u64>,
    /// Whether bytes that are not UTF-8 were replaced.
    pub(super) lossy: bool,
}

impl LineWindow {
    /// At most `limit` lines from line `first` on, counted from 1.
    pub(crate) fn new(first: u64, limit: u64) -> Self {
        Self {
            most_bytes: SHOWN_BYTES,
            first,
            limit,
            line: 1,
            line_seen: 0,
            shown: Vec::new(),
            line_start: 0,
            lines_shown: 0,
            cut_lines: 0,
            next_line: None,
        }
    }

    /// With at most this many bytes of text.
    pub(crate) fn within(mut self, bytes: usize) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// Reads the next bytes of the file.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let body = piece.strip_suffix(b"\n");
            if self.line >= self.first && self.next_line.is_none() {
                self.take(body.unwrap_or(piece), body.is_some());
            }
            self.line_seen += piece.len() as u64;
            if body.is_some() {
                self.line += 1;
                self.line_seen = 0;
            }
        }
    }

    /// Whether no further byte could be shown.
    pub(crate) fn is_complete(&self) -> bool {
        self.next_line.is_some()
    }

    fn take(&mut self, body: &[u8], ends: bool) {
        if self.lines_shown == self.limit {
            self.next_line = Some(self.line);
            return;
        }
        let kept = self.shown.len() - self.line_start;
        let room = LINE_BYTES.saturating_sub(kept);
        self.shown.extend_from_slice(&body[..body.len().min(room)]);
        if ends {
            self.end_line(self.line_seen + body.len() as u64, ScannedLineEnd::Newline);
        }
    }

    /// Ends the current line, `length` bytes without its newline, and keeps it if it fits.
    fn end_line(&mut self, length: u64, end: ScannedLineEnd) {
        let kept = self.shown.len() - self.line_start;
        let cut = length > kept as u64 || end == ScannedLineEnd::OutOfSight;
        if cut {
            self.shown
                .truncate(self.line_start + whole_characters(&self.shown[self.line_start..]));
            let dropped = length - (self.shown.len() - self.line_start) as u64;
            let mark = match end {
                ScannedLineEnd::OutOfSight => "… [the rest of this line is not scanned]".to_owned(),
                ScannedLineEnd::Newline | ScannedLineEnd::EndOfFile => {
                    format!("… [{dropped} more bytes of this line not shown]")
                }
            };
            self.shown.extend_from_slice(mark.as_bytes());
        }
        if end == ScannedLineEnd::Newline {
            self.shown.push(b'\n');
        }
        if self.shown.len() > self.most_bytes {
            self.shown.truncate(self.line_start);
            self.next_line = Some(self.line);
            return;
        }
        self.cut_lines += u64::from(cut);
        self.lines_shown += 1;
        self.line_start = self.shown.len();
    }

    /// Ends the window: the file ended, or the caller stopped.
    pub(crate) fn finish(mut self, at_end: bool) -> TextWindow {
        let inside_window = self.line >= self.first && self.next_line.is_none();
        if self.line_seen > 0 && inside_window && self.lines_shown < self.limit {
            self.end_line(
                self.line_seen,
                if at_end {
                    ScannedLineEnd::EndOfFile
                } else {
                    ScannedLineEnd::OutOfSight
                },
            );
        }
        let lines = self.line - 1 + u64::from(self.line_seen > 0);
        let (text, lossy) = match String::from_utf8(self.shown) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        TextWindow {
            text,
            lossy,
            first_line: self.first,
            lines_shown: self.lines_shown,
            cut_lines: self.cut_lines,
            next_line: self.next_line,
            total_lines: at_end.then_some(lines),
        }
    }
}

impl TextWindow {
    /// Adds its number before each line, as `cat -n` does.
    pub(super) fn number_lines(&mut self) {
        let lines = self.text.split_inclusive('\n').zip(self.first_line..);
        let mut numbered = String::with_capacity(self.text.len() + self.text.len() / 4 + 8);
        for (line, number) in lines {
            // Writing to a `String` cannot fail.
            let _ = write!(numbered, "{number:>6}\t{line}");
        }
        self.text = numbered;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScannedLineEnd {
    Newline,
    EndOfFile,
    /// The scan stopped within the line.
    OutOfSight,
}

/// The length without an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes
        .iter()
        .rev()
        .take(4)
        .position(|byte| byte & 0b1100_0000 != 0b1000_0000);
    let Some(behind_lead) = tail else {
        return bytes.len();
    };
    let lead = bytes.len() - 1 - behind_lead;
    match std::str::from_utf8(&bytes[lead..]) {
        Err(error) if error.error_len().is_none() => lead,
        Ok(_) | Err(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LineWindow, SHOWN_BYTES, TextWindow};

    /// Feeds the text in pieces of every small size, which must all give the same result.
    fn window(file: &[u8], first: u64, limit: u64) -> TextWindow {
        let cut = |size: usize| {
            let mut window = LineWindow::new(first, limit);
            file.chunks(size).for_each(|piece| window.feed(piece));
            window.finish(true)
        };
        let whole = cut(file.len().max(1));
        for size in [1, 2, 3, 7, 4096] {
            assert_eq!(cut(size), whole, "pieces of {size}");
        }
        whole
    }

    fn check(file: &str, (first, limit): (u64, u64), text: &str, next: Option<u64>, total: u64) {
        let window = window(file.as_bytes(), first, limit);
        assert_eq!(
            (window.text.as_str(), window.next_line),
            (text, next),
            "{file:?} from {first}"
        );
        assert_eq!(
            (window.total_lines, window.lossy, window.cut_lines),
            (Some(total), false, 0)
        );
    }

    #[test]
    fn lines_come_out_exactly_as_they_are() {
        check("", (1, 10), "", None, 0);
        check("a", (1, 10), "a", None, 1);
        check("a\n", (1, 10), "a\n", None, 1);
        check("a\n\n", (1, 1), "a\n", Some(2), 2);
        check("a\n\n", (2, 1), "\n", None, 2);
        check("a\r\nb\r\nc", (2, 1), "b\r\n", Some(3), 3);
        check("a\nb\nc", (3, 5), "c", None, 3);
        check("a\nb\nc", (4, 5), "", None, 3);
        check("\u{feff}a\n", (1, 1), "\u{feff}a\n", None, 1);
    }

    #[test]
    fn a_long_line_is_cut_between_characters_and_says_so() {
        let long = "é".repeat(10_000);
        let window = window(format!("x{long}\nnext\n").as_bytes(), 1, 10);
        let (first, rest) = window.text.split_once('\n').unwrap();
        assert_eq!(rest, "next\n");
        assert!(
            first.ends_with("é… [3618 more bytes of this line not shown]"),
            "{}",
            &first[first.len() - 60..]
        );
        assert_eq!(
            (window.cut_lines, window.lines_shown, window.lossy),
            (1, 2, false)
        );
    }

    #[test]
    fn the_byte_limit_ends_the_window_between_lines() {
        let file = format!("{}\n", "y".repeat(999)).repeat(300);
        let window = window(file.as_bytes(), 1, 2000);
        assert_eq!(window.lines_shown, (SHOWN_BYTES / 1000) as u64);
        assert_eq!(window.next_line, Some(window.lines_shown + 1));
        assert_eq!(window.text.len(), 1000 * window.lines_shown as usize);
    }

    #[test]
    fn an_unfinished_scan_says_that_the_line_goes_on() {
        let mut lines = LineWindow::new(1, 10);
        lines.feed(b"begin");
        let window = lines.finish(false);
        assert_eq!(window.text, "begin… [the rest of this line is not scanned]");
        assert_eq!((window.total_lines, window.cut_lines), (None, 1));
    }

    #[test]
    fn numbers_stand_in_front_of_every_line() {
        let numbered = |file: &str, first: u64| {
            let mut window = window(file.as_bytes(), first, 10);
            window.number_lines();
            window.text
        };
        assert_eq!(numbered("a\n\nb", 1), "     1\ta\n     2\t\n     3\tb");
        assert_eq!(numbered("a\r\nb\r\n", 2), "     2\tb\r\n");
        assert_eq!(numbered("", 1), "");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_only_where_they_are_shown() {
        let file = b"fine\nbroken \xff\n";
        assert!(!window(file, 1, 1).lossy);
        let second = window(file, 2, 1);
        assert!(second.lossy);
        assert_eq!(second.text, "broken \u{fffd}\n");
    }
}
