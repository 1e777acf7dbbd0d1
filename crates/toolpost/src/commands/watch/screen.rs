//! Drawing on a terminal: finished calls scroll away above, open ones are redrawn in place below them.
//!
//! A frame is one write. Lines are overwritten and then cleared to their end, never wiped first, so nothing flickers.

use std::io::Write;

use super::row::{FittedLine, StyledLine};

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Terminals that support it show the frame when it is complete; others ignore it.
const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Columns and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScreenSize {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

impl ScreenSize {
    /// The usable columns: terminals differ about the cursor position after the last one.
    pub(super) fn room(self) -> usize {
        self.columns.saturating_sub(1).max(1)
    }
}

/// The picture, without the terminal to draw on.
#[derive(Debug, Default)]
pub(super) struct ScreenPicture {
    /// The widths of the open lines in the last frame.
    drawn: Vec<usize>,
    begun: bool,
}

impl ScreenPicture {
    /// The bytes of the next frame: `settled` lines for good, then the open ones in place of the last drawn ones.
    pub(super) fn frame(
        &mut self,
        settled: &[StyledLine],
        open: &[StyledLine],
        size: ScreenSize,
        colours: bool,
    ) -> String {
        let mut frame = String::from(BEGIN_FRAME);
        if !std::mem::replace(&mut self.begun, true) {
            frame.push_str(HIDE_CURSOR);
        }
        // The terminal may be narrower now, and then a line takes several rows.
        let lines = |columns: &usize| columns.div_ceil(size.columns.max(1)).max(1);
        let above: usize = self.drawn.iter().map(lines).sum();
        frame.push('\r');
        if above > 0 {
            frame.push_str(&format!("\x1b[{above}A"));
        }
        self.drawn.clear();
        for (number, row) in settled.iter().chain(open).enumerate() {
            let FittedLine { text, columns } = row.fit(size.room());
            if colours {
                frame.push_str(&text);
            } else {
                frame.push_str(&anstream::adapter::strip_str(&text).to_string());
            }
            frame.push_str(CLEAR_LINE);
            frame.push_str("\r\n");
            if number >= settled.len() {
                self.drawn.push(columns);
            }
        }
        frame.push_str(CLEAR_BELOW);
        frame.push_str(END_FRAME);
        frame
    }
}

/// A picture on stdout. Dropping it shows the cursor again.
pub(super) struct WatchScreen {
    picture: ScreenPicture,
    last: String,
    colours: bool,
}

impl WatchScreen {
    pub(super) fn new() -> Self {
        Self {
            picture: ScreenPicture::default(),
            last: String::new(),
            colours: crate::terminal::has_colours(),
        }
    }

    pub(super) fn size() -> ScreenSize {
        let (columns, lines) = crate::terminal::size();
        ScreenSize { columns, lines }
    }

    pub(super) fn draw(&mut self, settled: &[StyledLine], open: &[StyledLine], size: ScreenSize) {
        let frame = self.picture.frame(settled, open, size, self.colours);
        // Without a change there is nothing to write.
        if settled.is_empty() && frame == self.last {
            return;
        }
        crate::terminal::print_text(format_args!("{frame}"));
        self.last = frame;
    }
}

impl Drop for WatchScreen {
    fn drop(&mut self) {
        if self.picture.begun {
            let mut stdout = std::io::stdout();
            let _ = stdout
                .write_all(SHOW_CURSOR.as_bytes())
                .and_then(|()| stdout.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::*;

    /// A terminal that supports exactly the sequences of a frame, and counts unknown ones.
    #[derive(Default)]
    struct Terminal {
        lines: Vec<String>,
        line: usize,
    }

    impl Terminal {
        fn show(&mut self, frame: &str) {
            let mut rest = frame;
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '\r' => {}
                    '\n' => self.line += 1,
                    '\u{1b}' => {
                        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                        let (code, after) = rest.split_at(end + 1);
                        rest = after;
                        self.obey(code);
                    }
                    _ => {
                        // A line replaces the old one as a whole, since it ends with a clear sequence.
                        let end = rest.find(['\u{1b}', '\r']).unwrap();
                        self.lines
                            .resize(self.lines.len().max(self.line + 1), String::new());
                        self.lines[self.line] = format!("{c}{}", &rest[..end]);
                        rest = &rest[end..];
                    }
                }
            }
        }

        fn obey(&mut self, code: &str) {
            match code {
                "[K" | "[?25l" | "[?2026h" | "[?2026l" => {}
                "[J" => {
                    self.lines.truncate(self.line);
                }
                up => {
                    let up: usize = up
                        .strip_prefix('[')
                        .unwrap()
                        .strip_suffix('A')
                        .unwrap()
                        .parse()
                        .unwrap();
                    self.line -= up;
                }
            }
        }
    }

    fn rows(texts: &[&str]) -> Vec<StyledLine> {
        texts
            .iter()
            .map(|text| StyledLine::new().own(Style::new(), *text))
            .collect()
    }

    #[test]
    fn open_lines_are_drawn_in_place_and_settled_ones_stay() {
        let size = ScreenSize {
            columns: 20,
            lines: 10,
        };
        let mut picture = ScreenPicture::default();
        let mut terminal = Terminal::default();
        for (settled, open, expected) in [
            (&[][..], &["a 1", "b 1"][..], &["a 1", "b 1"][..]),
            (&[], &["a 2", "b 2"], &["a 2", "b 2"]),
            (
                &["a done", "  → yes"],
                &["b 3"],
                &["a done", "  → yes", "b 3"],
            ),
            (
                &[],
                &["b 4", "c 1", "d 1"],
                &["a done", "  → yes", "b 4", "c 1", "d 1"],
            ),
            (&["d done"], &[], &["a done", "  → yes", "d done"]),
            (&["end"], &[], &["a done", "  → yes", "d done", "end"]),
        ] {
            terminal.show(&picture.frame(&rows(settled), &rows(open), size, false));
            assert_eq!(terminal.lines, expected);
        }
    }

    #[test]
    fn a_narrower_terminal_has_folded_what_was_drawn() {
        let mut picture = ScreenPicture::default();
        picture.frame(
            &[],
            &rows(&["0123456789", "x"]),
            ScreenSize {
                columns: 20,
                lines: 9,
            },
            false,
        );
        let frame = picture.frame(
            &[],
            &rows(&["y"]),
            ScreenSize {
                columns: 4,
                lines: 9,
            },
            false,
        );
        assert!(frame.contains("\x1b[4A"), "{frame:?}");
    }

    #[test]
    fn a_frame_obeys_the_width_and_the_wish_for_no_colours() {
        let mut picture = ScreenPicture::default();
        let row = StyledLine::new().own(Style::new().bold(), "0123456789");
        let size = ScreenSize {
            columns: 6,
            lines: 9,
        };
        let plain = picture.frame(std::slice::from_ref(&row), &[], size, false);
        assert!(
            plain.contains("0123…") && !plain.contains("\x1b[1m"),
            "{plain:?}"
        );
        assert!(
            picture
                .frame(&[row], &[], size, true)
                .contains("\x1b[1m0123…\x1b[0m")
        );
    }
}
