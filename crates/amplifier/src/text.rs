//! Values in Python's notation: Amplifier makes the model's text with `json.dumps` and `str`, and a model should see
//! the same form here.

mod number;
mod repr;
mod rewrite;

use std::borrow::Cow;

use serde_json::Value;

pub(crate) use rewrite::{JsonTextStyle, rewrite};

use crate::VerbatimJson;

/// A value as `json.dumps` writes it: ASCII alone, a blank after each comma and colon, keys as the value came.
pub fn python_json(json: &VerbatimJson) -> String {
    match json.text() {
        Some(text) => rewrite(text, JsonTextStyle::Dumps),
        None => rewrite(&json.value().to_string(), JsonTextStyle::Dumps),
    }
}

/// A value as `str` writes it: a text as it is, `True`, `None`, `1.0`, and objects in Python's own notation.
pub fn python_str(json: &VerbatimJson) -> String {
    match json.value() {
        Value::String(text) => text.clone(),
        value => repr::of(value, json.text()),
    }
}

/// A text without control characters; tabs and line ends stay.
pub fn sanitized(text: &str) -> Cow<'_, str> {
    let is_unwanted = |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}');
    match text.contains(is_unwanted) {
        true => Cow::Owned(text.replace(is_unwanted, "")),
        false => Cow::Borrowed(text),
    }
}

/// Whether the value is false in Python.
pub(crate) fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
