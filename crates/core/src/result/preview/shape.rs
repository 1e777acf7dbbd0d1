//! The shape of a JSON value: again JSON, with notes in place of the omitted parts.

use serde_json::{Map, Value};

#[derive(Clone, Copy)]
struct PreviewDetail {
    items: usize,
    keys: usize,
    letters: usize,
    depth: usize,
}

/// From much to little; the first that fits is used.
const DETAILS: [PreviewDetail; 7] = [
    PreviewDetail {
        items: 50,
        keys: 100,
        letters: 2_000,
        depth: 12,
    },
    PreviewDetail {
        items: 20,
        keys: 60,
        letters: 500,
        depth: 8,
    },
    PreviewDetail {
        items: 8,
        keys: 40,
        letters: 200,
        depth: 6,
    },
    PreviewDetail {
        items: 4,
        keys: 30,
        letters: 100,
        depth: 5,
    },
    PreviewDetail {
        items: 2,
        keys: 20,
        letters: 60,
        depth: 4,
    },
    PreviewDetail {
        items: 1,
        keys: 12,
        letters: 30,
        depth: 3,
    },
    PreviewDetail {
        items: 0,
        keys: 6,
        letters: 12,
        depth: 1,
    },
];

/// As much of the value as `room` characters hold. Always JSON; if not even the least detail fits, one line that
/// describes the value.
pub(super) fn of(value: &Value, room: usize) -> String {
    let fits = DETAILS
        .iter()
        .map(|&detail| shown(value, detail).to_string());
    let mut fits = fits.filter(|json| json.chars().count() <= room);
    fits.next()
        .unwrap_or_else(|| Value::from(told(value)).to_string())
}

/// A value in a few words.
fn told(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("text of {} characters", text.chars().count()),
        Value::Array(items) => format!("list of {}", items.len()),
        Value::Object(object) => format!("object with {} keys", object.len()),
    }
}

fn shown(value: &Value, detail: PreviewDetail) -> Value {
    let Some(deeper) = detail
        .depth
        .checked_sub(1)
        .map(|depth| PreviewDetail { depth, ..detail })
    else {
        return match value {
            Value::Array(items) if !items.is_empty() => Value::from(format!("… {}", told(value))),
            Value::Object(object) if !object.is_empty() => {
                Value::from(format!("… {}", told(value)))
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value.clone(),
            Value::String(text) => cut(text, detail.letters),
        };
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => cut(text, detail.letters),
        Value::Array(items) => {
            let mut first: Vec<Value> = items
                .iter()
                .take(detail.items)
                .map(|item| shown(item, deeper))
                .collect();
            if items.len() > first.len() {
                first.push(Value::from(format!(
                    "… {} of {} items not shown",
                    items.len() - first.len(),
                    items.len()
                )));
            }
            Value::Array(first)
        }
        Value::Object(object) => {
            let shown = |(key, inner): (&String, &Value)| (key.clone(), shown(inner, deeper));
            let mut first: Map<String, Value> =
                object.iter().take(detail.keys).map(shown).collect();
            if object.len() > first.len() {
                let left = object.len() - first.len();
                first.insert(
                    "…".to_owned(),
                    Value::from(format!("{left} of {} keys not shown", object.len())),
                );
            }
            Value::Object(first)
        }
    }
}

fn cut(text: &str, letters: usize) -> Value {
    match text.char_indices().nth(letters) {
        None => Value::from(text),
        Some((end, _)) => Value::from(format!(
            "{}… ({} characters)",
            &text[..end],
            text.chars().count()
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::of;

    #[test]
    fn what_is_left_out_is_told_in_its_place() {
        let rows: Vec<Value> = (0..500)
            .map(|n| json!({ "id": n, "name": "x".repeat(300) }))
            .collect();
        let value = json!({ "rows": rows, "next": null });
        let shown: Value = serde_json::from_str(&of(&value, 1_000)).unwrap();
        assert_eq!(shown["next"], Value::Null);
        assert_eq!(shown["rows"][0]["id"], 0);
        assert!(
            shown["rows"][0]["name"]
                .as_str()
                .unwrap()
                .ends_with("… (300 characters)")
        );
        let rows = shown["rows"].as_array().unwrap();
        let left = format!("… {} of 500 items not shown", 500 - (rows.len() - 1));
        assert_eq!(rows.last().unwrap(), &Value::from(left));
    }

    #[test]
    fn a_wide_or_deep_value_is_told_in_little_room() {
        let wide: Value = (0..10_000)
            .map(|n| (format!("key{n}"), json!([n])))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert!(of(&wide, 200).contains(" of 10000 keys not shown"));
        assert_eq!(of(&wide, 10), "\"object with 10000 keys\"");
        let deep = (0..60).fold(json!(1), |inner, _| json!([inner, inner.is_number()]));
        assert!(of(&deep, 300).contains("… list of 2"));
    }

    proptest! {
        #[test]
        fn it_is_json_and_fits_where_there_is_some_room(texts in prop::collection::vec(".{0,60}", 0..40), room in 200_usize..2_000) {
            let shape = of(&json!({ "a": texts, "b": { "c": texts } }), room);
            prop_assert!(serde_json::from_str::<Value>(&shape).is_ok());
            prop_assert!(shape.chars().count() <= room);
        }
    }
}
