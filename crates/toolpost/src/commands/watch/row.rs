//! A line of text that fits: measured in terminal columns, and without control sequences.

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use crate::terminal::{spelled_out, styled};

/// Marks the end of a text that was cut.
const CUT: char = '…';
/// The most characters per column before the line is cut: marks without a width could pile up without end.
const PILED: usize = 4;
/// Spaces that a tab becomes.
const TAB: &str = "    ";

/// Pieces of text with their styles, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct StyledLine {
    pieces: Vec<(Style, String)>,
}

impl StyledLine {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds text of this program.
    pub(super) fn own(mut self, style: Style, text: impl Into<String>) -> Self {
        self.pieces.push((style, text.into()));
        self
    }

    /// Puts text of this program in front.
    pub(super) fn after(mut self, style: Style, text: &str) -> Self {
        self.pieces.insert(0, (style, text.to_owned()));
        self
    }

    /// Adds everything of another line.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.pieces.extend(other.pieces.iter().cloned());
        self
    }

    /// Adds text of foreign origin: invisible characters are spelled out. At most `most` of its characters are read.
    pub(super) fn foreign(self, style: Style, text: &str, most: usize) -> Self {
        let mut head = text;
        if let Some((end, _)) = text.char_indices().nth(most) {
            head = &text[..end];
        }
        let mut shown = spelled_out(&head.replace('\t', TAB));
        if head.len() < text.len() {
            shown.push(CUT);
        }
        self.own(style, shown)
    }

    /// The styled line in at most `columns`, with its width.
    pub(super) fn fit(&self, columns: usize) -> FittedLine {
        let whole: usize = self.pieces.iter().map(|(_, text)| width(text)).sum();
        // The last column of a text that is too wide is for the mark of the cut.
        let room = if whole <= columns {
            columns
        } else {
            columns.saturating_sub(1)
        };
        let most = room.saturating_mul(PILED).max(PILED);
        let mut fitted = FittedLine::default();
        let mut plain = String::new();
        let mut characters = 0;
        let mut cut = false;
        for (style, text) in &self.pieces {
            plain.clear();
            for c in text.chars() {
                let wide = c.width().unwrap_or(0);
                if fitted.columns + wide > room || characters == most {
                    cut = true;
                    break;
                }
                fitted.columns += wide;
                characters += 1;
                plain.push(c);
            }
            if cut && columns > 0 {
                plain.push(CUT);
                fitted.columns += 1;
            }
            if !plain.is_empty() {
                fitted.text.push_str(&styled(*style, &plain));
            }
            if cut {
                break;
            }
        }
        fitted
    }

    /// The line without styles, cut to the columns.
    pub(super) fn plain(&self, columns: usize) -> String {
        anstream::adapter::strip_str(&self.fit(columns).text).to_string()
    }
}

/// A line ready for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FittedLine {
    pub(super) text: String,
    pub(super) columns: usize,
}

/// Columns that a text takes.
fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::StyledLine;

    fn fitted(text: &str, columns: usize) -> (String, usize) {
        let row = StyledLine::new().foreign(Style::new(), text, 1_000);
        (row.plain(columns), row.fit(columns).columns)
    }

    #[test]
    fn lines_take_the_columns_they_say() {
        for (text, columns, expected, taken) in [
            ("plain", 5, "plain", 5),
            ("plain", 4, "pla…", 4),
            ("你好吗", 6, "你好吗", 6),
            // Half of a wide character does not fit.
            ("你好吗", 5, "你好…", 5),
            ("你好吗", 4, "你…", 3),
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}", 2),
            ("a\tb", 20, "a    b", 6),
            ("", 0, "", 0),
            ("plain", 0, "", 0),
            ("plain", 1, "…", 1),
        ] {
            assert_eq!(
                fitted(text, columns),
                (expected.to_owned(), taken),
                "{text:?} in {columns}"
            );
        }
    }

    #[test]
    fn nothing_commands_the_terminal() {
        for (text, expected) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\r\nb", "a\\r\\nb"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("a\u{200d}b\u{feff}", "a\\u{200d}b\\u{feff}"),
        ] {
            assert_eq!(fitted(text, 80).0, expected);
        }
    }

    #[test]
    fn marks_that_take_no_room_are_not_piled_up_for_ever() {
        let text = format!("a{}", "\u{301}".repeat(900));
        assert!(fitted(&text, 10).0.chars().count() <= 41);
    }

    #[test]
    fn long_texts_are_not_looked_at_to_their_end() {
        let row = StyledLine::new().foreign(Style::new(), &"x".repeat(1_000), 3);
        assert_eq!(row.plain(80), "xxx…");
    }

    #[test]
    fn styles_take_no_columns_and_end_with_their_text() {
        let row = StyledLine::new()
            .own(Style::new().bold(), "name")
            .own(Style::new(), "  rest");
        let fitted = row.fit(6);
        assert_eq!(
            (fitted.text.as_str(), fitted.columns),
            ("\u{1b}[1mname\u{1b}[0m …", 6)
        );
    }
}
