//! Writes Markdown or plain text: a blank line between blocks, marks of lists and quotations at the start of each line,
//! and one space for any white space.

/// The deepest nesting with marks for lists and quotations. Deeper lines get the marks of this level: a page could
/// otherwise turn each of its lines into a thousand characters.
const MARKED_LEVELS: usize = 12;

/// The style of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageTextStyle {
    /// As Markdown.
    Markdown,
    /// Without marks, except those of lists.
    Text,
}

/// The marks at the beginning of lines.
enum LineMargin {
    Quote,
    /// An item of a list; its mark is written once.
    Item {
        mark: Option<String>,
        width: usize,
    },
}

/// A mark around part of a line.
struct OpenMarkdownMarkup {
    text: &'static str,
    written: bool,
}

/// The gap between the text so far and the next text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextGap {
    None,
    Space,
    Line,
    Blank,
}

/// Text with a size limit; further text is left out. The limit is checked at every write: a line of a page can have a
/// margin of hundreds of characters, so a check between elements would come too late.
struct BoundedText {
    text: String,
    room: usize,
    is_full: bool,
}

impl BoundedText {
    fn push_str(&mut self, text: &str) {
        match self.room.checked_sub(text.len()) {
            Some(room) => {
                self.room = room;
                self.text.push_str(text);
            }
            None => (self.room, self.is_full) = (0, true),
        }
    }
}

pub(super) struct PageTextWriter {
    pub(super) style: PageTextStyle,
    out: BoundedText,
    gap: TextGap,
    margins: Vec<LineMargin>,
    marks: Vec<OpenMarkdownMarkup>,
    /// The number of open elements that must stay on a single line: headings, links, cells.
    single_line: usize,
}

impl PageTextWriter {
    /// `room` is the most bytes that are written.
    pub(super) fn new(style: PageTextStyle, room: usize) -> Self {
        Self {
            style,
            out: BoundedText {
                text: String::new(),
                room,
                is_full: false,
            },
            gap: TextGap::None,
            margins: Vec::new(),
            marks: Vec::new(),
            single_line: 0,
        }
    }

    /// The bytes that may still be written.
    pub(super) fn room(&self) -> usize {
        self.out.room
    }

    /// Whether text was left out.
    pub(super) fn is_full(&self) -> bool {
        self.out.is_full
    }

    /// Notes that a part of the next text was left out.
    pub(super) fn mark_full(&mut self) {
        self.out.is_full = true;
    }

    pub(super) fn finish(self) -> String {
        let mut text = self.out.text;
        text.truncate(text.trim_end().len());
        text
    }

    /// Requests a gap before the next text.
    pub(super) fn gap(&mut self, gap: TextGap) {
        if gap >= TextGap::Line && self.single_line > 0 {
            self.gap = self.gap.max(TextGap::Space);
            return;
        }
        if gap >= TextGap::Line {
            // A mark must not extend over several lines; it is written again where the text goes on.
            for mark in self.marks.iter_mut().rev().filter(|mark| mark.written) {
                self.out.push_str(mark.text);
                mark.written = false;
            }
        }
        // The first paragraph of an item is beside the item's mark.
        let beside_mark = matches!(
            self.margins.last(),
            Some(LineMargin::Item { mark: Some(_), .. })
        );
        let gap = if beside_mark {
            gap.min(TextGap::Line)
        } else {
            gap
        };
        self.gap = self.gap.max(gap);
    }

    /// Ends the line; the second time, leaves a blank line.
    pub(super) fn break_line(&mut self) {
        let gap = if self.gap >= TextGap::Line {
            TextGap::Blank
        } else {
            TextGap::Line
        };
        self.gap(gap);
    }

    /// Writes running text: any white space is one space.
    pub(super) fn text(&mut self, text: &str) {
        let mut words = text
            .split(|c: char| c.is_ascii_whitespace())
            .filter(|word| !word.is_empty())
            .peekable();
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.gap = self.gap.max(TextGap::Space);
        }
        while let Some(word) = words.next() {
            self.exact(word);
            if words.peek().is_some() {
                self.gap = TextGap::Space;
            }
        }
        if text.ends_with(|c: char| c.is_ascii_whitespace()) {
            self.gap = self.gap.max(TextGap::Space);
        }
    }

    /// Writes text unchanged, within a line.
    pub(super) fn exact(&mut self, text: &str) {
        self.make_gap();
        for mark in self.marks.iter_mut().filter(|mark| !mark.written) {
            self.out.push_str(mark.text);
            mark.written = true;
        }
        self.out.push_str(text);
    }

    /// Writes lines unchanged, each after the margin.
    pub(super) fn lines(&mut self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.gap = TextGap::None;
                self.out.push_str("\n");
                self.margin();
            } else {
                self.make_gap();
            }
            self.out.push_str(line);
        }
    }

    fn make_gap(&mut self) {
        let gap = std::mem::replace(&mut self.gap, TextGap::None);
        if self.out.text.is_empty() {
            self.margin();
            return;
        }
        match gap {
            TextGap::None => {}
            TextGap::Space => self.out.push_str(" "),
            TextGap::Line | TextGap::Blank => {
                if gap == TextGap::Blank {
                    self.out.push_str("\n");
                    let quotes = self.margins.iter().take(MARKED_LEVELS);
                    let quoted = quotes
                        .filter(|margin| matches!(margin, LineMargin::Quote))
                        .count();
                    self.out.push_str(">".repeat(quoted).as_str());
                }
                self.out.push_str("\n");
                self.margin();
            }
        }
    }

    fn margin(&mut self) {
        for margin in self.margins.iter_mut().take(MARKED_LEVELS) {
            match margin {
                LineMargin::Quote => self.out.push_str("> "),
                LineMargin::Item { mark, width } => match mark.take() {
                    Some(mark) => self.out.push_str(&mark),
                    None => self.out.push_str(&" ".repeat(*width)),
                },
            }
        }
    }

    pub(super) fn open_quote(&mut self) {
        self.gap(TextGap::Blank);
        self.margins.push(LineMargin::Quote);
    }

    pub(super) fn open_item(&mut self, mark: String) {
        self.gap(TextGap::Line);
        let width = mark.chars().count();
        self.margins.push(LineMargin::Item {
            mark: Some(mark),
            width,
        });
    }

    pub(super) fn close_margin(&mut self, gap: TextGap) {
        self.margins.pop();
        self.gap(gap);
    }

    /// Begins a mark, which is written when there is text to mark.
    pub(super) fn open_mark(&mut self, text: &'static str) {
        self.marks.push(OpenMarkdownMarkup {
            text,
            written: false,
        });
    }

    /// Ends the mark that was begun last, and returns whether it was written.
    pub(super) fn close_mark(&mut self, end: &str) -> bool {
        let written = self.marks.pop().is_some_and(|mark| mark.written);
        if written {
            self.out.push_str(end);
        }
        written
    }

    pub(super) fn open_line(&mut self) {
        self.single_line += 1;
    }

    pub(super) fn close_line(&mut self) {
        self.single_line = self.single_line.saturating_sub(1);
    }

    /// Whether line breaks are spaces here.
    pub(super) fn in_line(&self) -> bool {
        self.single_line > 0
    }
}
