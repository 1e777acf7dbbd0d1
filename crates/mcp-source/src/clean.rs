//! Texts of servers, without hidden characters. People see such characters written out instead
//! ([`toolpost_model::visible`]).

use std::borrow::Cow;

use serde_json::Value;
use toolpost_model::is_hidden;

/// Whether a character is hidden. Line ends and tabs are not.
fn hides(c: char) -> bool {
    !matches!(c, '\n' | '\t') && is_hidden(c)
}

/// Whether a text contains hidden characters.
pub(super) fn has_hidden(text: &str) -> bool {
    text.chars().any(hides)
}

/// The text without hidden characters, for models.
pub(super) fn stripped(text: &str) -> Cow<'_, str> {
    match has_hidden(text) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.chars().filter(|c| !hides(*c)).collect()),
    }
}

/// One line of at most so many bytes, without hidden characters.
pub(super) fn line(text: &str, longest: usize) -> String {
    let text = stripped(text);
    shortened(&text.replace(['\n', '\t'], " "), longest)
}

/// A text of at most so many bytes, with a note if it was cut.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

/// Removes hidden characters from every text in a value, except keys. Returns whether there were any.
pub(super) fn value(value: &mut Value) -> bool {
    match value {
        Value::String(text) => match has_hidden(text) {
            true => {
                *text = stripped(text).into_owned();
                true
            }
            false => false,
        },
        Value::Array(items) => items.iter_mut().map(self::value).filter(|any| *any).count() > 0,
        Value::Object(fields) => {
            fields
                .values_mut()
                .map(self::value)
                .filter(|any| *any)
                .count()
                > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a schema names something with hidden characters. Without them, the name would denote something else.
pub(super) fn hides_names(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            has_hidden(key)
                || match key.as_str() {
                    "enum" | "const" | "required" => has_hidden_texts(value) || hides_names(value),
                    _ => hides_names(value),
                }
        }),
        Value::Array(items) => items.iter().any(hides_names),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn has_hidden_texts(value: &Value) -> bool {
    match value {
        Value::String(text) => has_hidden(text),
        Value::Array(items) => items.iter().any(has_hidden_texts),
        Value::Object(fields) => fields.values().any(has_hidden_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{hides_names, line, shortened, stripped, value};

    #[test]
    fn what_hides_is_stripped_for_models() {
        let tricky = "read\u{202e}elif\u{200b} \u{1b}[31ma\u{e0041}\n\tb";
        assert_eq!(stripped(tricky), "readelif [31ma\n\tb");
        assert_eq!(stripped("größe ünï 漢字"), "größe ünï 漢字");
    }

    #[test]
    fn lines_are_single_and_short() {
        assert_eq!(line("a\nb\u{7}c", 10), "a bc");
        assert_eq!(shortened("äää", 3), "ä… (6 bytes in all)");
    }

    #[test]
    fn names_in_a_schema_that_hide_something_are_found() {
        assert!(!hides_names(
            &json!({ "properties": { "a": { "description": "x\u{200b}", "enum": ["y"] } } })
        ));
        assert!(hides_names(&json!({ "properties": { "a\u{200b}": {} } })));
        assert!(hides_names(
            &json!({ "items": [{ "enum": ["y", "y\u{202e}"] }] })
        ));
        assert!(hides_names(
            &json!({ "anyOf": [{ "const": { "k": "\u{7}" } }] })
        ));
    }

    #[test]
    fn texts_deep_in_a_value_are_stripped() {
        let mut deep = json!({ "a": [{ "b": "x\u{200d}y" }], "n": 1 });
        assert!(value(&mut deep));
        assert_eq!(deep, json!({ "a": [{ "b": "xy" }], "n": 1 }));
        assert!(!value(&mut deep));
    }
}
