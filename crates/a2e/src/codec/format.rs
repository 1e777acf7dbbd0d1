//! JSON in pure ASCII, and broken into lines between tokens where that is wanted.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Escapes everything that is not ASCII. The control characters some readers take for line breaks are escaped by
/// JSON's own rules.
pub(super) struct AsciiFormatter {
    /// Break the line once it has so many bytes.
    limit: usize,
    /// About how many it has.
    length: usize,
}

/// What begins a further line of the same event.
const NEXT_LINE: &[u8] = b"\ndata: ";
/// What a token takes beside its text, roughly: quotes, a comma, a colon, digits.
const TOKEN: usize = 8;

impl AsciiFormatter {
    pub(super) fn on_one_line() -> Self {
        Self {
            limit: usize::MAX,
            length: 0,
        }
    }

    pub(super) fn broken_after(limit: usize) -> Self {
        Self { limit, length: 0 }
    }

    fn between_tokens<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.length += TOKEN;
        if self.length < self.limit {
            return Ok(());
        }
        self.length = 0;
        writer.write_all(NEXT_LINE)
    }

    fn escape<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        self.length += text.len();
        if text.is_ascii() {
            return writer.write_all(text.as_bytes());
        }
        let mut rest = text;
        while let Some(place) = rest.bytes().position(|byte| !byte.is_ascii()) {
            let (plain, strange) = rest.split_at(place);
            writer.write_all(plain.as_bytes())?;
            let mut characters = strange.chars();
            if let Some(character) = characters.next() {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                    self.length += 6;
                }
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

impl Formatter for AsciiFormatter {
    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.between_tokens(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.between_tokens(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b":")?;
        self.between_tokens(writer)
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.escape(writer, fragment)
    }

    /// JSON that was text already. Outside of strings it is ASCII anyway, and may be spread over several lines;
    /// inside of them a line break is written in another way.
    fn write_raw_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for (number, line) in fragment.split(['\n', '\r']).enumerate() {
            if number > 0 {
                writer.write_all(b" ")?;
            }
            self.escape(writer, line)?;
        }
        Ok(())
    }
}
