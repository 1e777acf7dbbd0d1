//! JSON text written anew, as `json.dumps` or as Amplifier's models write it. Works on the text, so that the order of keys
//! and large numbers come through as they are.

use std::fmt::Write as _;

use super::number;
use crate::json::escaped_unit;

/// The program to imitate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonTextStyle {
    /// `json.dumps`: ASCII alone, a blank after each comma and colon.
    Dumps,
    /// The models' own dump: as short as it can be.
    Compact,
}

impl JsonTextStyle {
    fn separator(self, byte: u8) -> &'static str {
        match (self, byte) {
            (Self::Dumps, b':') => ": ",
            (Self::Dumps, _) => ", ",
            (Self::Compact, b':') => ":",
            (Self::Compact, _) => ",",
        }
    }

    fn number(self, token: &str) -> String {
        match self {
            Self::Dumps => number::python(token),
            Self::Compact => number::compact(token),
        }
    }

    fn character(self, c: char, written: &mut String) {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\u{8}' => written.push_str("\\b"),
            '\u{c}' => written.push_str("\\f"),
            ' '..='~' => written.push(c),
            c if self == Self::Compact && c >= ' ' => written.push(c),
            other => other
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| hex(*unit, written)),
        }
    }

    /// Half a surrogate pair, which JSON can write only as an escape.
    fn half_pair(self, unit: u16, written: &mut String) {
        match self {
            Self::Dumps => hex(unit, written),
            Self::Compact => {}
        }
    }
}

/// Valid JSON in a style.
pub(crate) fn rewrite(text: &str, style: JsonTextStyle) -> String {
    let mut written = String::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        at = match byte {
            b'"' => string(text, at, style, &mut written),
            b'-' | b'0'..=b'9' => {
                let end = number_end(text, at);
                written.push_str(&style.number(&text[at..end]));
                end
            }
            b',' | b':' => {
                written.push_str(style.separator(*byte));
                at + 1
            }
            b' ' | b'\t' | b'\n' | b'\r' => at + 1,
            other => {
                written.push(char::from(*other));
                at + 1
            }
        };
    }
    written
}

fn number_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let length = rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'));
    at + length.unwrap_or(rest.len())
}

/// Writes the string that begins at a place, and returns its end.
fn string(text: &str, start: usize, style: JsonTextStyle, written: &mut String) -> usize {
    written.push('"');
    let mut at = start + 1;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                at += 1;
                break;
            }
            '\\' => at = escape(text, at, style, written),
            c => {
                style.character(c, written);
                at += c.len_utf8();
            }
        }
    }
    written.push('"');
    at
}

/// Writes the character of an escape, and returns the end of the escape.
fn escape(text: &str, at: usize, style: JsonTextStyle, written: &mut String) -> usize {
    let Some(unit) = escaped_unit(text, at) else {
        return short_escape(text, at, style, written);
    };
    let pair = [unit, escaped_unit(text, at + 6).unwrap_or_default()];
    match char::decode_utf16(pair).next() {
        Some(Ok(c)) => {
            style.character(c, written);
            if c.len_utf16() == 2 { at + 12 } else { at + 6 }
        }
        Some(Err(_)) | None => {
            style.half_pair(unit, written);
            at + 6
        }
    }
}

fn short_escape(text: &str, at: usize, style: JsonTextStyle, written: &mut String) -> usize {
    let meant = match text.as_bytes().get(at + 1) {
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(other) => char::from(*other),
        None => return at + 1,
    };
    style.character(meant, written);
    at + 2
}

fn hex(unit: u16, written: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(written, "\\u{unit:04x}");
}
