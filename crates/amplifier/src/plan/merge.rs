//! Laying one configuration over another: tables merge, lists add up, single values are replaced.
//!
//! A list that replaces the one beneath it is written `{replace: […]}`.

use serde_json::{Map, Value};

/// The key of a table that stands for a replacing list.
pub(super) const REPLACE: &str = "replace";

/// Lays `over` over `under`.
pub(super) fn merge(under: Value, over: Value) -> Value {
    match (under, over) {
        (Value::Array(_), over) if replacement(&over).is_some() => over,
        // A replacing list stays one, so that a later layer can add to it.
        (under, Value::Array(more)) if replacement(&under).is_some() => {
            let list = replacement(&under).cloned().unwrap_or_default();
            Value::Object(Map::from_iter([(
                REPLACE.to_owned(),
                Value::Array(joined(list, more)),
            )]))
        }
        (Value::Object(under), Value::Object(over))
            if replacement_in(&over).is_none() && replacement_in(&under).is_none() =>
        {
            Value::Object(merge_tables(under, over))
        }
        (Value::Array(under), Value::Array(over)) => Value::Array(joined(under, over)),
        (_, over) => over,
    }
}

/// The same for tables.
pub(super) fn merge_tables(
    mut under: Map<String, Value>,
    over: Map<String, Value>,
) -> Map<String, Value> {
    for (key, value) in over {
        match under.get_mut(&key) {
            Some(place) => *place = merge(place.take(), value),
            None => {
                under.insert(key, value);
            }
        }
    }
    under
}

/// The first list, and the values of the second that are not in it. Equal values have the same type: `1` is neither
/// `"1"` nor `true`.
fn joined(mut first: Vec<Value>, second: Vec<Value>) -> Vec<Value> {
    for value in second {
        if !first.contains(&value) {
            first.push(value);
        }
    }
    first
}

/// Turns `{replace: […]}` into its list at any depth, after the last layer was merged.
pub(super) fn settle(value: Value) -> Value {
    match value {
        Value::Object(mut table) => match replacement_in(&table).is_some() {
            true => settle(table.remove(REPLACE).unwrap_or_default()),
            false => Value::Object(
                table
                    .into_iter()
                    .map(|(key, value)| (key, settle(value)))
                    .collect(),
            ),
        },
        Value::Array(items) => Value::Array(items.into_iter().map(settle).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// The list in a value of the form `{replace: […]}`.
pub(super) fn replacement(value: &Value) -> Option<&Vec<Value>> {
    replacement_in(value.as_object()?)
}

fn replacement_in(table: &Map<String, Value>) -> Option<&Vec<Value>> {
    if table.len() == 1 {
        table.get(REPLACE)?.as_array()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(under: &Value, over: &Value, expected: &Value) {
        let merged = settle(merge(under.clone(), over.clone()));
        assert_eq!(&merged, expected, "{under} under {over}");
    }

    #[test]
    fn tables_merge_lists_add_up_and_single_values_are_replaced() {
        check(
            &json!({ "a": 1, "b": { "c": 1 } }),
            &json!({ "b": { "d": 2 } }),
            &json!({ "a": 1, "b": { "c": 1, "d": 2 } }),
        );
        check(&json!([1, 2]), &json!([2, 3]), &json!([1, 2, 3]));
        check(
            &json!([1, "1"]),
            &json!(["1", true]),
            &json!([1, "1", true]),
        );
        check(
            &json!([{ "a": 1, "b": 2 }]),
            &json!([{ "b": 2, "a": 1 }]),
            &json!([{ "a": 1, "b": 2 }]),
        );
        check(
            &json!({ "a": [1] }),
            &json!({ "a": "x" }),
            &json!({ "a": "x" }),
        );
        check(
            &json!({ "a": { "b": 1 } }),
            &json!({ "a": null }),
            &json!({ "a": null }),
        );
    }

    #[test]
    fn a_list_is_replaced_where_the_later_one_says_so() {
        check(
            &json!({ "a": [1, 2] }),
            &json!({ "a": { "replace": [3] } }),
            &json!({ "a": [3] }),
        );
        check(
            &json!({ "a": [1, 2] }),
            &json!({ "a": { "replace": [] } }),
            &json!({ "a": [] }),
        );
        check(
            &json!({}),
            &json!({ "a": { "replace": [3] } }),
            &json!({ "a": [3] }),
        );
        check(
            &json!({ "a": { "replace": [1] } }),
            &json!({ "a": [2] }),
            &json!({ "a": [1, 2] }),
        );
        check(
            &json!({ "a": { "replace": [1] } }),
            &json!({ "a": { "replace": [2] } }),
            &json!({ "a": [2] }),
        );
        // To get a table of exactly this form, write it twice. No other form has this meaning.
        check(
            &json!({}),
            &json!({ "a": { "replace": { "replace": [3] } } }),
            &json!({ "a": { "replace": [3] } }),
        );
        check(
            &json!({}),
            &json!({ "a": { "replace": "x" } }),
            &json!({ "a": { "replace": "x" } }),
        );
        check(
            &json!({}),
            &json!({ "a": { "replace": [1], "b": 2 } }),
            &json!({ "a": { "replace": [1], "b": 2 } }),
        );
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3i64).prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[ab]|replace", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn laid_over_itself_or_over_nothing_it_is_itself(a in any_value()) {
            prop_assert_eq!(&merge(Value::Null, a.clone()), &a);
            prop_assert_eq!(merge(a.clone(), a.clone()), a);
        }
    }
}
