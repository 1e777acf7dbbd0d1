//! Tables: data tables become rows, layout tables become blocks.

use super::writer::{PageTextStyle, PageTextWriter, TextGap};

/// The most columns; further ones are joined to the last.
const MAX_COLUMNS: usize = 64;
/// A cell with more characters is not data.
const CELL_CHARS: usize = 600;

/// A table that is being read.
#[derive(Default)]
pub(super) struct HtmlTable {
    rows: Vec<Vec<String>>,
    /// The writer outside of the open cell.
    outside: Option<PageTextWriter>,
    /// Bytes of the cells so far. They count towards the room of the writer outside.
    held: usize,
    holds_table: bool,
}

impl HtmlTable {
    pub(super) fn open_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Begins a cell with a writer of its own, unless one is open.
    pub(super) fn open_cell(&mut self, writer: &mut PageTextWriter) -> bool {
        if self.outside.is_some() {
            return false;
        }
        let cell = PageTextWriter::new(writer.style, writer.room().saturating_sub(self.held));
        self.outside = Some(std::mem::replace(writer, cell));
        true
    }

    /// Ends the open cell.
    pub(super) fn close_cell(&mut self, writer: &mut PageTextWriter) {
        let Some(outside) = self.outside.take() else {
            return;
        };
        let cell = std::mem::replace(writer, outside);
        if cell.is_full() {
            writer.mark_full();
        }
        let text = cell.finish();
        self.held += text.len() + 1;
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        let Some(row) = self.rows.last_mut() else {
            return;
        };
        let full = row.len() >= MAX_COLUMNS;
        match row.last_mut() {
            Some(last) if full => {
                last.push(' ');
                last.push_str(&text);
            }
            Some(_) | None => row.push(text),
        }
    }

    /// The open cell contains another table.
    pub(super) fn mark_nested(&mut self) {
        self.holds_table = true;
    }

    fn holds_data(&self) -> bool {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let small = |cell: &String| cell.len() <= CELL_CHARS;
        columns > 1
            && self.rows.len() > 1
            && !self.holds_table
            && self.rows.iter().flatten().all(small)
    }

    /// Writes the table.
    pub(super) fn write(mut self, writer: &mut PageTextWriter) {
        self.rows
            .retain(|row| row.iter().any(|cell| !cell.is_empty()));
        writer.gap(TextGap::Blank);
        if !self.holds_data() {
            for cell in self.rows.iter().flatten().filter(|cell| !cell.is_empty()) {
                writer.gap(TextGap::Line);
                writer.lines(cell);
            }
        } else if writer.style == PageTextStyle::Markdown {
            let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
            for (number, row) in self.rows.iter().enumerate() {
                let cells = (0..columns).map(|column| row.get(column).map(|cell| one_line(cell)));
                let cells: Vec<String> = cells
                    .map(|cell| cell.unwrap_or_default().replace('|', "\\|"))
                    .collect();
                writer.gap(TextGap::Line);
                writer.lines(&format!("| {} |", cells.join(" | ")));
                if number == 0 {
                    writer.gap(TextGap::Line);
                    writer.lines(&format!("|{}", " --- |".repeat(columns)));
                }
            }
        } else {
            for row in &self.rows {
                writer.gap(TextGap::Line);
                writer.lines(
                    &row.iter()
                        .map(|cell| one_line(cell))
                        .collect::<Vec<_>>()
                        .join("\t"),
                );
            }
        }
        writer.gap(TextGap::Blank);
    }
}

fn one_line(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}
