//! Changes of arguments and output, and the way redacted values survive them.

use std::{borrow::Cow, collections::BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::HookError;
use crate::record::body::state_defaults;

/// A change of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mutation", transform = state_defaults)]
pub struct InputMutation {
    /// `hook`, `permission_prompt` or `runtime`.
    // `runtime` stands for the operator's settings.
    pub source_type: Cow<'static, str>,
    /// Who made it.
    pub source: String,
    /// The fields at the top of the arguments that differ.
    pub changed_fields: Vec<String>,
    /// Why.
    pub reason: String,
    /// When, in microseconds from the request on.
    #[serde(default)]
    pub at_us: u64,
    /// The arguments that it changed, where another change came before it.
    // In observable form. The first change applies to the model's arguments, which the record of the call has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_before: Option<Value>,
}

/// A change of the output.
// The replaced output is not kept, because a hook may have replaced it to keep it secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OutputMutation")]
pub struct OutputMutation {
    /// `hook`.
    pub source_type: Cow<'static, str>,
    /// Which one.
    pub source: String,
    /// `content`, `structured_content`.
    pub changed_fields: Vec<Cow<'static, str>>,
    /// How much content there was.
    pub bytes_before: u64,
    /// How much there is.
    pub bytes_after: u64,
    /// Why.
    pub reason: String,
}

/// The top-level fields in which two objects differ.
pub(crate) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let keys = |value: &Value| {
        value
            .as_object()
            .map(|o| o.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    let mut all = keys(before);
    all.extend(keys(after));
    all.sort();
    all.dedup();
    all.retain(|key| before.get(key) != after.get(key));
    all
}

/// The arguments after a hook's rewrite, with the hidden values restored where the hook left their marks unchanged. A
/// mark in any other place is an error.
///
/// A hook sees marks such as `[redacted:argument]` instead of secrets. If a mark reached the tool, the tool would take
/// it for the value. Restoring by search and replace would be ambiguous, because different values can have the same
/// mark. So a value is restored only at its old place.
pub(crate) fn restored(
    original: &Value,
    shown: &Value,
    rewritten: Value,
) -> Result<Value, HookError> {
    let mut marks = BTreeSet::new();
    collect_marks(original, shown, &mut marks);
    if marks.is_empty() {
        return Ok(rewritten);
    }
    restore(Some(original), Some(shown), rewritten, &marks)
}

fn restore(
    original: Option<&Value>,
    shown: Option<&Value>,
    rewritten: Value,
    marks: &BTreeSet<String>,
) -> Result<Value, HookError> {
    if let Some(original) = original
        && shown == Some(&rewritten)
    {
        return Ok(original.clone());
    }
    match (original, shown, rewritten) {
        (Some(Value::Object(original)), Some(Value::Object(shown)), Value::Object(rewritten)) => {
            let mut whole = Map::new();
            for (key, value) in rewritten {
                refuse_marks_in(&key, marks)?;
                let value = restore(original.get(&key), shown.get(&key), value, marks)?;
                whole.insert(key, value);
            }
            Ok(Value::Object(whole))
        }
        // Only in an array of the same length does an index still refer to the same item.
        (Some(Value::Array(original)), Some(Value::Array(shown)), Value::Array(rewritten))
            if shown.len() == rewritten.len() =>
        {
            let pairs = original.iter().zip(shown);
            let items = rewritten.into_iter().zip(pairs);
            items
                .map(|(new, (old, seen))| restore(Some(old), Some(seen), new, marks))
                .collect()
        }
        (_, _, rewritten) => {
            refuse_marks(&rewritten, marks)?;
            Ok(rewritten)
        }
    }
}

fn refuse_marks(value: &Value, marks: &BTreeSet<String>) -> Result<(), HookError> {
    match value {
        Value::String(text) => refuse_marks_in(text, marks),
        Value::Array(items) => items.iter().try_for_each(|item| refuse_marks(item, marks)),
        Value::Object(object) => object.iter().try_for_each(|(key, inner)| {
            refuse_marks_in(key, marks)?;
            refuse_marks(inner, marks)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn refuse_marks_in(text: &str, marks: &BTreeSet<String>) -> Result<(), HookError> {
    match marks.iter().find(|mark| text.contains(mark.as_str())) {
        None => Ok(()),
        Some(mark) => Err(HookError(format!(
            "its new arguments contain `{mark}`, which replaces a value that is hidden from hooks; keep such a \
             text unchanged in its place or remove it"
        ))),
    }
}

/// Collects the marks in `shown` that replace a value. Text of this form that was in the original is no mark.
fn collect_marks(original: &Value, shown: &Value, marks: &mut BTreeSet<String>) {
    match (original, shown) {
        (Value::Object(original), Value::Object(shown)) => {
            for (key, value) in shown {
                match original.get(key) {
                    Some(before) => collect_marks(before, value, marks),
                    None => {
                        marks.extend(marks_in(key));
                        collect_marks(&Value::Null, value, marks);
                    }
                }
            }
        }
        (Value::Array(original), Value::Array(shown)) => {
            original
                .iter()
                .zip(shown)
                .for_each(|(before, value)| collect_marks(before, value, marks));
        }
        (original, Value::String(text)) if original.as_str() != Some(text) => {
            marks.extend(marks_in(text));
        }
        (_, Value::Object(shown)) => {
            shown
                .values()
                .for_each(|value| collect_marks(&Value::Null, value, marks));
        }
        (_, Value::Array(shown)) => shown
            .iter()
            .for_each(|value| collect_marks(&Value::Null, value, marks)),
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
    }
}

fn marks_in(text: &str) -> impl Iterator<Item = String> + '_ {
    text.match_indices("[redacted:").filter_map(|(start, _)| {
        let end = text[start..].find(']')?;
        Some(text[start..=start + end].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::restored;

    fn check(original: &Value, shown: &Value, rewritten: &Value, expected: Option<&Value>) {
        assert_eq!(
            restored(original, shown, rewritten.clone()).ok().as_ref(),
            expected,
            "{rewritten}"
        );
    }

    #[test]
    fn values_a_hook_could_not_see_survive_its_rewrite_and_marks_never_become_values() {
        let original = json!({
            "key": "hunter2hunter2", "note": "say [redacted:argument]", "deep": [{ "key": 7 }, { "n": 1 }],
            "text": "curl tp_0123456789 now", "n": 1,
        });
        let shown = json!({
            "key": "[redacted:argument]", "note": "say [redacted:argument]",
            "deep": [{ "key": "[redacted:argument]" }, { "n": 1 }], "text": "curl [redacted:token] now", "n": 1,
        });
        let changed = |change: &dyn Fn(&mut Value), of: &Value| {
            let mut value = of.clone();
            change(&mut value);
            value
        };
        let fine: [&dyn Fn(&mut Value); 4] = [
            &|v| v["n"] = json!(2),
            &|v| v["deep"][1]["n"] = json!(2),
            &|v| v["extra"] = json!("[redacted:other] is no mark of this call"),
            &|v| v["text"] = json!("curl elsewhere"),
        ];
        for change in fine {
            check(
                &original,
                &shown,
                &changed(change, &shown),
                Some(&changed(change, &original)),
            );
        }
        let without = |value: &Value| {
            changed(
                &|v| {
                    v.as_object_mut().unwrap().remove("key");
                },
                value,
            )
        };
        check(
            &original,
            &shown,
            &without(&shown),
            Some(&without(&original)),
        );
        let refused: [&dyn Fn(&mut Value); 6] = [
            &|v| v["n"] = json!("[redacted:argument]"),
            &|v| v["text"] = json!("curl -s [redacted:token] now"),
            &|v| v["deep"] = json!([{ "key": "[redacted:argument]" }]),
            &|v| v["deep"] = json!({ "0": { "key": "[redacted:argument]" } }),
            &|v| v["x"] = json!({ "a": ["[redacted:token]"] }),
            &|v| v["say [redacted:token]"] = json!(1),
        ];
        for change in refused {
            check(&original, &shown, &changed(change, &shown), None);
        }
    }

    #[test]
    fn without_redaction_a_text_that_looks_like_a_mark_is_a_text() {
        let same = json!({ "a": "[redacted:argument]" });
        let moved = json!({ "b": "[redacted:argument]" });
        check(&same, &same, &moved, Some(&moved));
    }

    #[test]
    fn a_key_that_was_a_secret_is_not_written_back_as_its_mark() {
        let original = json!({ "map": { "tp_0123456789": 1, "b": 2 } });
        let shown = json!({ "map": { "[redacted:token]": 1, "b": 2 } });
        check(&original, &shown, &shown, Some(&original));
        check(
            &original,
            &shown,
            &json!({ "map": { "[redacted:token]": 1, "b": 3 } }),
            None,
        );
        check(
            &original,
            &shown,
            &json!({ "map": { "b": 3 } }),
            Some(&json!({ "map": { "b": 3 } })),
        );
    }
}
