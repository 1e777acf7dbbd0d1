//! JSON in pure ASCII, optionally broken into lines between tokens.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Escapes everything that is not ASCII. JSON's own rules already escape the control characters that some readers take
/// for line breaks.
pub(super) struct AsciiFormatter {
    /// The line is broken once it has this many bytes.
    limit: usize,
    /// The approximate length of the current line.
    length: usize,
}

/// The beginning of a further line of the same event.
const NEXT_LINE: &[u8] = b"\ndata: ";
/// The approximate size of a token without its text: quotes, a comma, a colon, digits.
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

    /// Writes a value that is JSON text already. Outside of strings it is ASCII and may be broken into lines; inside of
    /// strings line breaks are escaped.
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
