//! Values in Python's own notation, as `str` of a dictionary or a list shows them.

use std::fmt::Write as _;

use serde_json::{Value, value::RawValue};

use super::number;
use crate::json::in_order;

/// The notation of a value. `text` is its original JSON, which has the order of keys.
pub(super) fn of(value: &Value, text: Option<&str>) -> String {
    let mut written = String::new();
    match text {
        Some(text) => raw(text, value, &mut written),
        None => plain(value, &mut written),
    }
    written
}

fn plain(value: &Value, written: &mut String) {
    match value {
        Value::Null => written.push_str("None"),
        Value::Bool(true) => written.push_str("True"),
        Value::Bool(false) => written.push_str("False"),
        Value::Number(number) => written.push_str(&as_str(&number::python(&number.to_string()))),
        Value::String(text) => quoted(text, written),
        Value::Array(items) => list(items.iter(), written, plain),
        Value::Object(fields) => {
            dictionary(
                fields.iter().map(|(key, value)| (key.as_str(), value)),
                written,
                plain,
            );
        }
    }
}

/// Follows the text for the order of keys and the digits of numbers, and the value for everything else. Where the two
/// disagree, as they do over a key that is written twice, the value alone is shown.
fn raw(text: &str, value: &Value, written: &mut String) {
    match value {
        Value::Object(fields) => {
            let ordered = in_order(text).filter(|found| found.len() == fields.len());
            let pairs = ordered.and_then(|found| {
                let pair = |(key, text): (String, Box<RawValue>)| {
                    let (key, value) = fields.get_key_value(&key)?;
                    Some((key.as_str(), (text, value)))
                };
                found.into_iter().map(pair).collect::<Option<Vec<_>>>()
            });
            match pairs {
                Some(pairs) => {
                    dictionary(pairs.into_iter(), written, |(text, value), written| {
                        raw(text.get(), value, written);
                    });
                }
                None => plain(value, written),
            }
        }
        Value::Array(items) => match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
            Ok(texts) if texts.len() == items.len() => {
                list(texts.iter().zip(items), written, |(text, item), written| {
                    raw(text.get(), item, written);
                });
            }
            Ok(_) | Err(_) => plain(value, written),
        },
        Value::Number(_) => written.push_str(&as_str(&number::python(text.trim()))),
        Value::Null | Value::Bool(_) | Value::String(_) => plain(value, written),
    }
}

/// `json.dumps` and `str` name infinity differently.
fn as_str(number: &str) -> String {
    number.replace("Infinity", "inf")
}

fn list<T>(items: impl Iterator<Item = T>, written: &mut String, each: impl Fn(T, &mut String)) {
    written.push('[');
    for (place, item) in items.enumerate() {
        written.push_str(if place > 0 { ", " } else { "" });
        each(item, written);
    }
    written.push(']');
}

fn dictionary<'a, T>(
    fields: impl Iterator<Item = (&'a str, T)>,
    written: &mut String,
    each: impl Fn(T, &mut String),
) {
    written.push('{');
    for (place, (key, value)) in fields.enumerate() {
        written.push_str(if place > 0 { ", " } else { "" });
        quoted(key, written);
        written.push_str(": ");
        each(value, written);
    }
    written.push('}');
}

fn quoted(text: &str, written: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    written.push(quote);
    for c in text.chars() {
        match c {
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\\' => written.push_str("\\\\"),
            c if c == quote => {
                written.push('\\');
                written.push(c);
            }
            c if is_printable(c) => written.push(c),
            c => escaped(u32::from(c), written),
        }
    }
    written.push(quote);
}

fn escaped(code: u32, written: &mut String) {
    // Writing to a string cannot fail.
    let _ = match code {
        0..=0xFF => write!(written, "\\x{code:02x}"),
        0x100..=0xFFFF => write!(written, "\\u{code:04x}"),
        _ => write!(written, "\\U{code:08x}"),
    };
}

/// Whether Python shows a character as itself. Rust's debugging form is made of the same categories of Unicode; it treats
/// a combining mark apart only at the beginning of a text.
fn is_printable(c: char) -> bool {
    let follows = String::from_iter(['a', c]);
    matches!(c, ' '..='~') || follows.escape_debug().eq(follows.chars())
}
