//! The differences between a call and a recorded one, for messages about a miss.

use serde::Serialize;
use serde_json::Value;

use super::input;

/// More differences than this are only counted.
const MOST_SHOWN: usize = 12;
/// The length of the shown part of a long value, around the first difference.
const SHOWN_CHARS: usize = 120;
const CHARS_BEFORE: usize = 30;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CallDifference {
    /// The place, as a JSON pointer; empty for the arguments as a whole.
    pub(crate) at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) given: Option<String>,
}

/// Every place where the given arguments differ from the recorded ones.
pub(crate) fn between(recorded: &Value, given: &Value) -> Vec<CallDifference> {
    let mut found = Vec::new();
    collect(recorded, given, &mut String::new(), &mut found);
    found
}

fn collect(recorded: &Value, given: &Value, at: &mut String, found: &mut Vec<CallDifference>) {
    if input::fits(recorded, given) {
        return;
    }
    let mut inner =
        |key: &str, one: Option<&Value>, other: Option<&Value>, found: &mut Vec<CallDifference>| {
            let length = at.len();
            at.push('/');
            at.push_str(&key.replace('~', "~0").replace('/', "~1"));
            match (one, other) {
                (Some(one), Some(other)) => collect(one, other, at, found),
                (one, other) => {
                    let short = |value: &Value| shown(&value.to_string(), 0);
                    found.push(CallDifference {
                        at: at.clone(),
                        recorded: one.map(short),
                        given: other.map(short),
                    });
                }
            }
            at.truncate(length);
        };
    match (recorded, given) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in one {
                inner(key, Some(value), other.get(key), found);
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                inner(key, None, Some(value), found);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for place in 0..one.len().max(other.len()) {
                inner(&place.to_string(), one.get(place), other.get(place), found);
            }
        }
        (one, other) => {
            let one = one.to_string();
            let other = other.to_string();
            let same = one
                .chars()
                .zip(other.chars())
                .take_while(|(left, right)| left == right)
                .count();
            let recorded = Some(shown(&one, same));
            let given = Some(shown(&other, same));
            found.push(CallDifference {
                at: at.clone(),
                recorded,
                given,
            });
        }
    }
}

/// A text, or its part around the first difference.
fn shown(text: &str, same: usize) -> String {
    let length = text.chars().count();
    if length <= SHOWN_CHARS {
        return text.to_owned();
    }
    let from = same.saturating_sub(CHARS_BEFORE).min(length - SHOWN_CHARS);
    let part: String = text.chars().skip(from).take(SHOWN_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if from + SHOWN_CHARS < length {
        "…"
    } else {
        ""
    };
    format!("{before}{part}{after}")
}

/// The differences as lines: `-` for the recorded value, `+` for the given one.
pub(crate) fn told(differences: &[CallDifference]) -> String {
    let mut text = String::new();
    for difference in differences.iter().take(MOST_SHOWN) {
        let at = if difference.at.is_empty() {
            ""
        } else {
            &format!("{}: ", difference.at)
        };
        for (sign, value) in [('-', &difference.recorded), ('+', &difference.given)] {
            if let Some(value) = value {
                text.push_str(&format!("\n{sign} {at}{value}"));
            }
        }
    }
    if differences.len() > MOST_SHOWN {
        text.push_str(&format!("\n  and {} more", differences.len() - MOST_SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{between, told};

    fn check(recorded: &Value, given: &Value, expected: &str) {
        assert_eq!(told(&between(recorded, given)), expected);
    }

    #[test]
    fn differences_are_told_place_by_place() {
        check(&json!({ "a": 1 }), &json!({ "a": 1.0 }), "");
        check(
            &json!({ "path": "a.txt", "n": 1 }),
            &json!({ "path": "b.txt", "n": 1 }),
            "\n- /path: \"a.txt\"\n+ /path: \"b.txt\"",
        );
        check(
            &json!({ "a": [1, 2], "b/c": 1 }),
            &json!({ "a": [1, 3, 4] }),
            "\n- /a/1: 2\n+ /a/1: 3\n+ /a/2: 4\n- /b~1c: 1",
        );
        check(
            &json!({ "key": "[redacted:x]" }),
            &json!({ "key": "any" }),
            "",
        );
        let many: Value = (0..15)
            .map(|n| (n.to_string(), json!(n)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert!(told(&between(&many, &json!({}))).ends_with("\n  and 3 more"));
    }

    #[test]
    fn long_texts_show_where_they_part() {
        let one = "x".repeat(500) + "left" + &"y".repeat(500);
        let other = "x".repeat(500) + "right" + &"y".repeat(500);
        let said = told(&between(&json!({ "text": one }), &json!({ "text": other })));
        assert!(
            said.contains("xleftyyy") && said.contains("xrightyyy") && said.len() < 500,
            "{said}"
        );
    }
}
