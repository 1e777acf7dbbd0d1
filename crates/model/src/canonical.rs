//! One text per JSON value, for digests.
//!
//! Objects keep the order in which their members were written, because models and plugins see that order. A digest must
//! not depend on it: the same arguments in another order are the same call, and pins, idempotency keys and parked
//! questions that were stored with sorted keys stay valid.

use serde_json::{Map, Value};

/// Writes a value with sorted keys and without blanks.
///
/// ```
/// use serde_json::json;
/// use toolpost_model::canonical_json;
///
/// assert_eq!(canonical_json(&json!({"b": [1, {"d": 2, "c": 3}], "a": "x"})), r#"{"a":"x","b":[1,{"c":3,"d":2}]}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => write_object(members, text),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

fn write_object(members: &Map<String, Value>, text: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (place, (key, value)) in sorted.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        text.push_str(&Value::String(key.clone()).to_string());
        text.push(':');
        write_value(value, text);
    }
    text.push('}');
}
