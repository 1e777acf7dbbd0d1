//! The arguments that must be kept out of every record.
//!
//! There are two ways to find them: the schema's own mark, `x-sensitive: true`, through references and alternatives;
//! and the names of the arguments that were sent, at any depth, also where the schema is silent. The second way is
//! needed because most schemas carry no marks, and because a model can send fields that no schema lists. A field with
//! `x-sensitive: false` is not sensitive even if its name looks sensitive.

use serde_json::Value;

/// Words in a field's name that make it sensitive.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "access_token",
    "private_key",
    "authorization",
];

const MARK: &str = "x-sensitive";

/// JSON pointers of the sensitive values in `instance`, none inside another.
///
/// The values are walked together with the schemas that apply to them, so a schema that refers to itself needs no
/// bound: the finite arguments end the walk.
pub(super) fn pointers(schema: &Value, has_marks: bool, instance: &Value) -> Vec<String> {
    let mut search = SensitiveFieldSearch {
        root: schema,
        found: Vec::new(),
    };
    let top = if has_marks { vec![schema] } else { Vec::new() };
    search.inside(instance, &top, "");
    search.found
}

/// Whether a schema marks anything: most do not, and then only names have to be checked.
pub(super) fn has_marks(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object.contains_key(MARK) || object.values().any(has_marks),
        Value::Array(items) => items.iter().any(has_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

struct SensitiveFieldSearch<'a> {
    root: &'a Value,
    found: Vec<String>,
}

impl<'a> SensitiveFieldSearch<'a> {
    /// Checks the direct members of `value`, to which `schemas` apply.
    fn inside(&mut self, value: &Value, schemas: &[&'a Value], pointer: &str) {
        let schemas = self.all_that_apply(schemas);
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    let apply: Vec<&Value> = schemas
                        .iter()
                        .flat_map(|schema| of_key(schema, key))
                        .collect();
                    self.look(inner, key, &apply, || join(pointer, key));
                }
            }
            Value::Array(items) => {
                let apply: Vec<&Value> =
                    schemas.iter().flat_map(|schema| of_items(schema)).collect();
                for (place, inner) in items.iter().enumerate() {
                    self.look(inner, "", &apply, || format!("{pointer}/{place}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn look(
        &mut self,
        value: &Value,
        name: &str,
        schemas: &[&'a Value],
        pointer: impl FnOnce() -> String,
    ) {
        let marks = self.all_that_apply(schemas);
        let mut marks = marks
            .iter()
            .filter_map(|schema| schema.get(MARK).and_then(Value::as_bool))
            .peekable();
        let sensitive = match marks.peek() {
            Some(_) => marks.any(|mark| mark),
            None => SECRET_WORDS
                .iter()
                .any(|word| contains_ignoring_case(name, word)),
        };
        if sensitive {
            self.found.push(pointer());
        } else if value.is_object() || value.is_array() {
            self.inside(value, schemas, &pointer());
        }
    }

    /// The schemas themselves, and all schemas that they refer to or offer as alternatives.
    fn all_that_apply(&self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut all: Vec<&Value> = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            if all.iter().any(|&seen| std::ptr::eq(seen, schema)) {
                continue;
            }
            all.push(schema);
            let target = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|target| target.strip_prefix('#'));
            open.extend(target.and_then(|pointer| self.root.pointer(pointer)));
            for word in ["anyOf", "oneOf", "allOf", "if", "then", "else"] {
                match schema.get(word) {
                    Some(Value::Array(alternatives)) => open.extend(alternatives),
                    Some(one) => open.push(one),
                    None => {}
                }
            }
        }
        all
    }
}

/// The schemas that a schema has for one key. Patterns are not matched: a mark in any of them counts.
fn of_key<'a>(schema: &'a Value, key: &str) -> Vec<&'a Value> {
    let named = schema
        .get("properties")
        .and_then(|properties| properties.get(key));
    let patterns = schema
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|all| all.values());
    let rest = schema
        .get("additionalProperties")
        .filter(|_| named.is_none());
    named.into_iter().chain(patterns).chain(rest).collect()
}

fn of_items(schema: &Value) -> Vec<&Value> {
    let first = schema
        .get("prefixItems")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    first.chain(schema.get("items")).collect()
}

/// `word` is lower-case ASCII. `-` and `_` are equal here: header names use the one, arguments the other.
fn contains_ignoring_case(text: &str, word: &str) -> bool {
    let fold = |byte: u8| {
        if byte == b'-' {
            b'_'
        } else {
            byte.to_ascii_lowercase()
        }
    };
    text.as_bytes()
        .windows(word.len())
        .any(|window| window.iter().map(|&byte| fold(byte)).eq(word.bytes()))
}

fn join(pointer: &str, key: &str) -> String {
    if key.contains(['~', '/']) {
        return format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    }
    format!("{pointer}/{key}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{has_marks, pointers};

    fn check(schema: &Value, instance: &Value, expected: &[&str]) {
        assert_eq!(
            pointers(schema, has_marks(schema), instance),
            expected,
            "{schema} {instance}"
        );
    }

    #[test]
    fn marks_count_wherever_the_schema_puts_them() {
        let mark = json!({ "type": "string", "x-sensitive": true });
        check(
            &json!({ "properties": { "pin": mark } }),
            &json!({ "pin": "1", "x": "2" }),
            &["/pin"],
        );
        let behind_ref = json!({
            "properties": { "login": { "$ref": "#/$defs/Login" } },
            "$defs": { "Login": { "properties": { "pin": mark } } }
        });
        check(
            &behind_ref,
            &json!({ "login": { "pin": "1" } }),
            &["/login/pin"],
        );
        let optional = json!({ "properties": { "login": { "anyOf": [{ "properties": { "pin": mark } }, { "type": "null" }] } } });
        check(
            &optional,
            &json!({ "login": { "pin": "1" } }),
            &["/login/pin"],
        );
        check(
            &json!({ "additionalProperties": mark }),
            &json!({ "a/b": "1" }),
            &["/a~1b"],
        );
        let rows =
            json!({ "properties": { "rows": { "items": { "properties": { "pin": mark } } } } });
        check(
            &rows,
            &json!({ "rows": [{ "pin": "1" }, {}, { "pin": "2" }] }),
            &["/rows/0/pin", "/rows/2/pin"],
        );
    }

    #[test]
    fn names_count_at_any_depth_and_without_any_schema() {
        let sent = json!({ "API-Key": "k", "a": [{ "deep": { "clientSecret": { "x": 1 } } }], "token_count": 5 });
        check(&json!({}), &sent, &["/API-Key", "/a/0/deep/clientSecret"]);
        let harmless = json!({ "properties": { "secret_santa": { "x-sensitive": false } } });
        check(&harmless, &json!({ "secret_santa": "bob" }), &[]);
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let tree = json!({
            "$ref": "#/$defs/Node",
            "$defs": { "Node": { "properties": {
                "left": { "$ref": "#/$defs/Node" }, "right": { "$ref": "#/$defs/Node" }, "pin": { "x-sensitive": true }
            } } }
        });
        check(
            &tree,
            &json!({ "left": { "pin": "1" }, "right": { "right": { "pin": "2" } } }),
            &["/left/pin", "/right/right/pin"],
        );
    }
}
