//! Turns `key=value` words into a JSON object, guided by the tool's schema.

use serde_json::{Map, Value};

use crate::exit::UsageError;

/// `key=value` converts the value to the type in the schema; `key:=JSON` takes it as JSON.
pub(crate) fn from_words(words: &[String], schema: Option<&Value>) -> anyhow::Result<Value> {
    let mut object = Map::new();
    for word in words {
        let Some((key, given)) = word.split_once('=') else {
            return Err(UsageError(format!(
                "`{word}` is not `key=value`\nhint: write `path=README.md`, or `count:=3` for JSON"
            ))
            .into());
        };
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let value = serde_json::from_str(given).map_err(|error| {
                    UsageError(format!(
                        "`{given}` is not JSON, which `{key}:=` requires: {error}"
                    ))
                })?;
                (key, value)
            }
            None => (
                key,
                guided(
                    given,
                    schema.and_then(|schema| schema.pointer(&format!("/properties/{key}"))),
                ),
            ),
        };
        if object.insert(key.to_owned(), value).is_some() {
            return Err(UsageError(format!("`{key}` is given twice")).into());
        }
    }
    Ok(Value::Object(object))
}

/// Text stays text unless the schema has another type and the text is a value of it.
fn guided(given: &str, schema: Option<&Value>) -> Value {
    let takes_text = match schema.and_then(|schema| schema.get("type")) {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        _ => schema
            .is_none_or(|schema| schema.get("enum").is_some() || schema.get("anyOf").is_none()),
    };
    if takes_text {
        return Value::String(given.to_owned());
    }
    serde_json::from_str(given).unwrap_or_else(|_| Value::String(given.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::from_words;

    /// `null` stands for an error.
    fn check(words: &[&str], expected: &Value) {
        let schema = json!({ "properties": {
            "path": { "type": "string" }, "limit": { "type": ["integer", "null"] }, "deep": { "type": "boolean" }
        } });
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(
            &from_words(&words, Some(&schema)).unwrap_or_default(),
            expected,
            "{words:?}"
        );
    }

    #[test]
    fn words_become_what_the_schema_wants() {
        check(&[], &json!({}));
        check(
            &["path=5", "limit=5", "deep=true"],
            &json!({ "path": "5", "limit": 5, "deep": true }),
        );
        check(
            &["path=a=b", "other=1"],
            &json!({ "path": "a=b", "other": "1" }),
        );
        check(&["other:=[1,2]"], &json!({ "other": [1, 2] }));
        check(&["limit=many"], &json!({ "limit": "many" }));
        check(&["path"], &Value::Null);
        check(&["x:={"], &Value::Null);
        check(&["path=a", "path=b"], &Value::Null);
    }
}
