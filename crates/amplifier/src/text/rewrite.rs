//! JSON text in the form that `json.dumps` gives it. Works on the text, so that the order of keys, large numbers and
//! half surrogate pairs come through as they are.

use std::fmt::Write as _;

use super::number;
use crate::json::escaped_unit;

/// Valid JSON in Python's form.
pub(super) fn rewrite(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + text.len() / 8);
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let end = match byte {
            b'"' => string(text, at, &mut written),
            b'-' | b'0'..=b'9' => {
                let end = number_end(text, at);
                written.push_str(&number::python(&text[at..end]));
                end
            }
            b',' => separator(", ", at, &mut written),
            b':' => separator(": ", at, &mut written),
            b' ' | b'\t' | b'\n' | b'\r' => at + 1,
            other => {
                written.push(char::from(*other));
                at + 1
            }
        };
        at = end;
    }
    written
}

fn separator(text: &str, at: usize, written: &mut String) -> usize {
    written.push_str(text);
    at + 1
}

pub(super) fn number_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let length = rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'));
    at + length.unwrap_or(rest.len())
}

/// Writes the string that begins at a place, and says where it ends.
fn string(text: &str, start: usize, written: &mut String) -> usize {
    written.push('"');
    let mut at = start + 1;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                at += 1;
                break;
            }
            '\\' => at = escape(text, at, written),
            c => {
                character(c, written);
                at += c.len_utf8();
            }
        }
    }
    written.push('"');
    at
}

/// Writes what an escape stands for, and says where it ends.
fn escape(text: &str, at: usize, written: &mut String) -> usize {
    if let Some(unit) = escaped_unit(text, at) {
        match char::from_u32(u32::from(unit)) {
            Some(c) => character(c, written),
            None => hex(unit, written),
        }
        return at + 6;
    }
    let meant = match text.as_bytes().get(at + 1) {
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(other) => char::from(*other),
        None => return at + 1,
    };
    character(meant, written);
    at + 2
}

fn character(c: char, written: &mut String) {
    match c {
        '"' => written.push_str("\\\""),
        '\\' => written.push_str("\\\\"),
        '\n' => written.push_str("\\n"),
        '\r' => written.push_str("\\r"),
        '\t' => written.push_str("\\t"),
        '\u{8}' => written.push_str("\\b"),
        '\u{c}' => written.push_str("\\f"),
        ' '..='~' => written.push(c),
        other => other.encode_utf16(&mut [0; 2]).iter().for_each(|unit| hex(*unit, written)),
    }
}

fn hex(unit: u16, written: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(written, "\\u{unit:04x}");
}
