//! The equality of two calls' arguments: equal values in any spelling, apart from redacted parts.

use serde_json::{Value, json};
use toolpost_model::canonical_json;

/// The beginning of a redaction mark.
const REDACTED: &str = "[redacted:";

/// One spelling for equal values: sorted keys, no blanks, whole numbers without a fraction.
pub(super) fn spelled(value: &Value) -> String {
    // The host reads `1.0` as an integer, so it is spelled as one.
    fn even(value: &Value) -> Value {
        match value {
            Value::Number(number) => {
                let whole = number
                    .as_f64()
                    .filter(|_| number.is_f64())
                    .filter(|given| given.fract() == 0.0);
                let small = whole.filter(|whole| whole.abs() < 9_007_199_254_740_992.0);
                small.map_or_else(|| value.clone(), |whole| json!(whole as i64))
            }
            Value::Array(items) => items.iter().map(even).collect(),
            Value::Object(object) => object
                .iter()
                .map(|(key, inner)| (key.clone(), even(inner)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
        }
    }
    canonical_json(&even(value))
}

pub(super) fn has_gaps(spelled: &str) -> bool {
    spelled.contains(REDACTED)
}

/// Whether given arguments match the recorded ones. Any text may stand at a redaction mark, because the redacted part
/// cannot be compared.
pub(super) fn fits(recorded: &Value, given: &Value) -> bool {
    match (recorded, given) {
        (Value::String(recorded), given) if is_gap(recorded) => !given.is_null(),
        (Value::String(recorded), Value::String(given)) => fits_text(recorded, given),
        (Value::Array(recorded), Value::Array(given)) => {
            recorded.len() == given.len()
                && recorded
                    .iter()
                    .zip(given)
                    .all(|(one, other)| fits(one, other))
        }
        (Value::Object(recorded), Value::Object(given)) => {
            let known = |(key, one): (&String, &Value)| {
                given.get(key).is_some_and(|other| fits(one, other))
            };
            recorded.len() == given.len() && recorded.iter().all(known)
        }
        (recorded, given) => spelled(recorded) == spelled(given),
    }
}

fn is_gap(text: &str) -> bool {
    text.strip_prefix(REDACTED)
        .and_then(|rest| rest.find(']'))
        .is_some_and(|end| end + REDACTED.len() + 1 == text.len())
}

fn fits_text(recorded: &str, given: &str) -> bool {
    let mut pieces = Vec::new();
    let mut rest = recorded;
    while let Some((before, after)) = rest.split_once(REDACTED) {
        let Some((_, after)) = after.split_once(']') else {
            break;
        };
        pieces.push(before);
        rest = after;
    }
    // A redaction mark in the given text may have another kind.
    if pieces.is_empty() {
        return recorded == given;
    }
    let Some(mut left) = given
        .strip_prefix(pieces[0])
        .and_then(|left| left.strip_suffix(rest))
    else {
        return false;
    };
    for piece in &pieces[1..] {
        let Some((_, after)) = left.split_once(piece) else {
            return false;
        };
        left = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fits, has_gaps, spelled};

    #[test]
    fn equal_values_have_one_spelling() {
        assert_eq!(
            spelled(&json!({ "b": [1.0, 1.5], "a": { "d": 1, "c": null } })),
            r#"{"a":{"c":null,"d":1},"b":[1,1.5]}"#
        );
    }

    #[test]
    fn anything_fits_where_a_secret_was() {
        let recorded = json!({ "key": "[redacted:argument]", "text": "a [redacted:github] b [redacted:jwt]", "n": 1 });
        assert!(has_gaps(&spelled(&recorded)));
        let check = |given, expected| assert_eq!(fits(&recorded, &given), expected, "{given}");
        check(json!({ "key": "x", "text": "a ghp b ey", "n": 1.0 }), true);
        check(json!({ "key": { "x": 1 }, "text": "a  b ", "n": 1 }), true);
        check(
            json!({ "key": "[redacted:env]", "text": "a [redacted:x] b [redacted:y]", "n": 1 }),
            true,
        );
        check(json!({ "key": null, "text": "a  b ", "n": 1 }), false);
        check(json!({ "key": "x", "text": "a ghp c", "n": 1 }), false);
        check(json!({ "key": "x", "text": "a ghp b", "n": 1 }), false);
        check(json!({ "key": "x", "text": "a ghp b ey", "n": 2 }), false);
        check(json!({ "key": "x", "text": "a ghp b ey" }), false);
    }
}
