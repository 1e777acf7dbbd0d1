//! Converts a page to readable text in one pass over its tokens, with a bounded stack of open elements.

mod opening;

use std::time::Instant;

use reqwest::Url;

use super::{
    elements::{ElementRole, HtmlElement},
    entities::decoded,
    table::HtmlTable,
    tokens::{HtmlStartTag, HtmlToken, HtmlTokenizer},
    writer::{PageTextStyle, PageTextWriter, TextGap},
};

/// The most open elements that are tracked. The text of deeper ones is still read.
const MAX_DEPTH: usize = 128;
/// The most nested tables that are kept apart.
const MAX_TABLES: usize = 4;
/// The largest output: long addresses and margins could make a page grow a thousandfold.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;
/// The longest address of a link or of the page. A page could otherwise put a long base address before each of its
/// links.
const MAX_LINK: usize = 8 * 1024;
/// Tokens between two checks of the clock.
const LOOK_EVERY: usize = 1024;
/// A page with a shorter main part is shown whole.
const MAIN_CHARS: usize = 200;

/// A converted page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConvertedPage {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Whether the output reached its limit.
    pub(super) cut: bool,
}

/// The conversion ran out of time.
#[derive(Debug)]
pub(super) struct OutOfTime;

/// The part of a page that is converted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageScope {
    Main,
    Whole,
}

/// Converts a page to Markdown or text. Only its `<main>` is taken if that is long enough.
pub(super) fn convert(
    html: &str,
    base: &Url,
    style: PageTextStyle,
    until: Instant,
) -> Result<ConvertedPage, OutOfTime> {
    if html.contains("main") || html.contains("MAIN") {
        let mut main = HtmlConverter::new(base, style, PageScope::Main);
        main.run(html, until)?;
        let has_main = main.seen_main;
        let main = main.finish();
        if has_main && main.text.len() >= MAIN_CHARS {
            return Ok(main);
        }
    }
    let mut whole = HtmlConverter::new(base, style, PageScope::Whole);
    whole.run(html, until)?;
    Ok(whole.finish())
}

/// An open element, and the action at its end.
struct OpenElement {
    element: HtmlElement,
    end: ElementEndAction,
}

enum ElementEndAction {
    /// Only a gap.
    Gap(TextGap),
    Nothing,
    /// Its content is not shown.
    Noise,
    Main,
    Mark(&'static str),
    /// A mark and the end of a single line.
    Line {
        gap: TextGap,
        mark: String,
    },
    Margin(TextGap),
    /// A list, with the next number.
    List {
        next: Option<u64>,
    },
    Preformatted,
    Code,
    Table,
    Cell,
}

struct PreformattedBlock {
    text: String,
    language: Option<String>,
}

struct HtmlConverter {
    base: Url,
    base_is_given: bool,
    part: PageScope,
    writer: PageTextWriter,
    stack: Vec<OpenElement>,
    /// Elements that were opened beyond the limit of the stack.
    beyond: usize,
    noise: usize,
    main: usize,
    seen_main: bool,
    title: Option<String>,
    preformatted: Option<PreformattedBlock>,
    code: Option<String>,
    tables: Vec<HtmlTable>,
    written: usize,
}

impl HtmlConverter {
    fn new(base: &Url, style: PageTextStyle, part: PageScope) -> Self {
        Self {
            base: base.clone(),
            base_is_given: false,
            part,
            writer: PageTextWriter::new(style, MAX_OUTPUT),
            stack: Vec::new(),
            beyond: 0,
            noise: 0,
            main: 0,
            seen_main: false,
            title: None,
            preformatted: None,
            code: None,
            tables: Vec::new(),
            written: 0,
        }
    }

    fn run(&mut self, html: &str, until: Instant) -> Result<(), OutOfTime> {
        for (number, token) in HtmlTokenizer::new(html).enumerate() {
            if number % LOOK_EVERY == 0 && Instant::now() >= until {
                return Err(OutOfTime);
            }
            if self.is_full() {
                break;
            }
            match token {
                HtmlToken::Text(text) => self.text(text),
                HtmlToken::Start(tag) => self.start(tag),
                HtmlToken::End(name) => self.end(name),
                HtmlToken::Raw { name, text } => self.raw(name, text),
            }
        }
        Ok(())
    }

    fn finish(mut self) -> ConvertedPage {
        self.close_down_to(0);
        let cut = self.is_full();
        ConvertedPage {
            title: self.title,
            text: self.writer.finish(),
            cut,
        }
    }

    fn is_full(&self) -> bool {
        self.written > MAX_OUTPUT || self.writer.is_full()
    }

    fn is_shown(&self) -> bool {
        self.noise == 0 && (self.part == PageScope::Whole || self.main > 0)
    }

    fn text(&mut self, text: &str) {
        if !self.is_shown() {
            return;
        }
        let text = decoded(text);
        self.written += text.len();
        if let Some(preformatted) = &mut self.preformatted {
            preformatted.text.push_str(&text);
        } else if let Some(code) = &mut self.code {
            code.push_str(&text);
        } else {
            self.writer.text(&text);
        }
    }

    fn raw(&mut self, name: &str, text: &str) {
        if name.eq_ignore_ascii_case("title") && self.title.is_none() && self.noise == 0 {
            let title = decoded(text)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            self.title = (!title.is_empty()).then_some(title);
        }
    }

    fn start(&mut self, tag: HtmlStartTag<'_>) {
        let Some(element) = HtmlElement::named(tag.name) else {
            return;
        };
        if element.role.is_void() {
            return self.void(element.role, tag);
        }
        self.end_implied(element.role);
        if self.stack.len() == MAX_DEPTH {
            self.beyond += 1;
            if element.role.is_block() && self.is_shown() && self.preformatted.is_none() {
                self.writer.gap(TextGap::Line);
            }
            return;
        }
        let end = self.open(element, tag);
        self.stack.push(OpenElement { element, end });
    }

    fn end(&mut self, name: &str) {
        let Some(element) = HtmlElement::named(name) else {
            return;
        };
        if self.beyond > 0 {
            if !element.role.is_void() {
                self.beyond -= 1;
            }
            return;
        }
        // An end tag inside a cell does not close elements around its table.
        let of_table = matches!(
            element.role,
            ElementRole::Table
                | ElementRole::Row
                | ElementRole::RowGroup
                | ElementRole::Cell
                | ElementRole::HeadCell
        );
        let barrier = |role: ElementRole| {
            !of_table && matches!(role, ElementRole::Cell | ElementRole::HeadCell)
        };
        self.end_last(|open| open == element, barrier);
    }

    /// Closes the elements that the start of this role implicitly ends, such as an open paragraph.
    fn end_implied(&mut self, role: ElementRole) {
        use ElementRole::{
            Bullets, Cell, Definition, HeadCell, Heading, Item, Link, Numbers, Quote, Row,
            RowGroup, Table,
        };
        let cell = |role| matches!(role, Cell | HeadCell | Table);
        if role.is_block() {
            self.end_last(
                |open| open.role == ElementRole::Paragraph,
                |role| cell(role) || role == ElementRole::Noise,
            );
        }
        match role {
            Item => self.end_last(
                |open| open.role == Item,
                |role| cell(role) || matches!(role, Bullets | Numbers),
            ),
            ElementRole::Term | Definition => self.end_last(
                |open| matches!(open.role, ElementRole::Term | Definition),
                |role| cell(role) || matches!(role, Item | Quote),
            ),
            Cell | HeadCell => {
                self.end_last(
                    |open| matches!(open.role, Cell | HeadCell),
                    |role| matches!(role, Row | Table),
                );
            }
            Row => self.end_last(|open| open.role == Row, |role| role == Table),
            RowGroup => self.end_last(|open| open.role == RowGroup, |role| role == Table),
            Heading(_) => self.end_last(|open| matches!(open.role, Heading(_)), cell),
            Link => self.end_last(|open| open.role == Link, cell),
            _ => {}
        }
    }

    /// Closes the innermost matching element with everything in it, unless a barrier is in between.
    fn end_last(
        &mut self,
        wanted: impl Fn(HtmlElement) -> bool,
        barrier: impl Fn(ElementRole) -> bool,
    ) {
        for place in (0..self.stack.len()).rev() {
            let element = self.stack[place].element;
            if wanted(element) {
                return self.close_down_to(place);
            }
            if barrier(element.role) {
                return;
            }
        }
    }

    fn close_down_to(&mut self, place: usize) {
        while self.stack.len() > place {
            let Some(open) = self.stack.pop() else { return };
            self.close(open.end);
        }
    }

    fn close(&mut self, end: ElementEndAction) {
        match end {
            ElementEndAction::Nothing => {}
            ElementEndAction::Gap(gap) => self.writer.gap(gap),
            ElementEndAction::Noise => self.noise -= 1,
            ElementEndAction::Main => self.main -= 1,
            ElementEndAction::Mark(mark) => {
                self.writer.close_mark(mark);
            }
            ElementEndAction::Line { gap, mark } => {
                self.writer.close_mark(&mark);
                self.writer.close_line();
                self.writer.gap(gap);
            }
            ElementEndAction::Margin(gap) => self.writer.close_margin(gap),
            ElementEndAction::List { .. } => {
                let within = self
                    .stack
                    .iter()
                    .any(|open| open.element.role == ElementRole::Item);
                self.writer.gap(if within {
                    TextGap::Line
                } else {
                    TextGap::Blank
                });
            }
            ElementEndAction::Preformatted => self.write_preformatted(),
            ElementEndAction::Code => self.write_code(),
            ElementEndAction::Table => {
                if let Some(table) = self.tables.pop() {
                    table.write(&mut self.writer);
                }
            }
            ElementEndAction::Cell => {
                if let Some(table) = self.tables.last_mut() {
                    table.close_cell(&mut self.writer);
                }
            }
        }
    }

    fn write_preformatted(&mut self) {
        let Some(PreformattedBlock { text, language }) = self.preformatted.take() else {
            return;
        };
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if text.is_empty() {
            return;
        }
        if self.writer.in_line() {
            return self.writer.text(text);
        }
        self.writer.gap(TextGap::Blank);
        if self.writer.style == PageTextStyle::Markdown {
            let fence = "`".repeat(longest_run(text).max(2) + 1);
            self.writer.lines(&format!(
                "{fence}{}\n{text}\n{fence}",
                language.unwrap_or_default()
            ));
        } else {
            self.writer.lines(text);
        }
        self.writer.gap(TextGap::Blank);
    }

    fn write_code(&mut self) {
        let text = self.code.take().unwrap_or_default();
        let words = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() {
            return self.writer.text(&text);
        }
        if text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.writer.text(" ");
        }
        if self.writer.style == PageTextStyle::Markdown {
            let ticks = "`".repeat(longest_run(&words) + 1);
            let pad = if words.starts_with('`') || words.ends_with('`') {
                " "
            } else {
                ""
            };
            self.writer
                .exact(&format!("{ticks}{pad}{words}{pad}{ticks}"));
        } else {
            self.writer.exact(&words);
        }
        if text.ends_with(|c: char| c.is_ascii_whitespace()) {
            self.writer.text(" ");
        }
    }
}

/// The longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
