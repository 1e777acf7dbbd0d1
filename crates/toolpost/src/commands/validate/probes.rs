//! Test arguments for a tool, generated from its schema. Pure functions: nothing here calls the tool.

use serde_json::{Map, Value, json};

/// The most arguments of wrong types that are tried on one tool.
const MOST_WRONG: usize = 6;
/// The deepest nesting of a generated value.
const DEEPEST: usize = 6;

/// One set of arguments to try.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolProbe {
    /// The flaw in the arguments, for the report: "`text` is a number".
    pub(super) about: String,
    /// The fault of a tool that accepts them.
    pub(super) fault: String,
    pub(super) arguments: Value,
}

/// The arguments for one tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolProbes {
    /// Arguments that fit the schema. `None`: none could be generated.
    pub(super) fitting: Option<Value>,
    /// For each probe one argument has a type that the schema forbids; the others fit.
    pub(super) wrong: Vec<ToolProbe>,
    /// Whether the schema has requirements, so that empty arguments do not fit.
    pub(super) demands: bool,
}

impl ToolProbes {
    /// Generates the probes. `fits` checks arguments against the schema, so that wrong arguments are really wrong.
    pub(super) fn of(schema: &Value, fits: impl Fn(&Value) -> bool) -> Self {
        let made = made_up(schema, schema, 0);
        // Arguments are an object, even if the schema does not require it.
        let made = if made.is_object() {
            made
        } else {
            object(schema, schema, 0)
        };
        let fitting = made.as_object().filter(|_| fits(&made)).cloned();
        let base = fitting.clone().unwrap_or_default();
        let properties = schema["properties"].as_object();
        let wrong = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| {
                let WrongValue {
                    demanded,
                    given,
                    value,
                } = wrong_for(schema, property)?;
                let mut arguments = base.clone();
                arguments.insert(name.clone(), value);
                let arguments = Value::Object(arguments);
                (!fits(&arguments)).then(|| ToolProbe {
                    about: format!("`{name}` is {given}"),
                    fault: format!(
                        "it accepts {given} for `{name}`, but its schema demands {demanded}: correct the schema or the check"
                    ),
                    arguments,
                })
            });
        Self {
            wrong: wrong.take(MOST_WRONG).collect(),
            demands: !fits(&json!({})),
            fitting: fitting.map(Value::Object),
        }
    }
}

/// A value for a schema: an example in it, or the simplest value of its type.
fn made_up(schema: &Value, root: &Value, depth: usize) -> Value {
    let schema = referred(schema, root);
    if depth > DEEPEST {
        return Value::Null;
    }
    if let Some(named) = named(schema) {
        return named.clone();
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema[choice]
            .as_array()
            .and_then(|choices| choices.first())
            && schema.get("type").is_none()
        {
            return made_up(first, root, depth + 1);
        }
    }
    match kind(schema) {
        Some("object") => object(schema, root, depth),
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0).min(8);
            (0..count)
                .map(|_| made_up(&schema["items"], root, depth + 1))
                .collect()
        }
        Some("string") => string(schema),
        Some("integer") => json!(number(schema).ceil() as i64),
        Some("number") => json!(number(schema)),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        _ if schema.get("properties").is_some() => object(schema, root, depth),
        _ => json!("text"),
    }
}

/// A value that the schema itself gives as valid.
fn named(schema: &Value) -> Option<&Value> {
    let first = |key: &str| schema[key].as_array().and_then(|values| values.first());
    first("examples")
        .or(schema.get("const"))
        .or(schema.get("default"))
        .or(first("enum"))
}

/// Follows a reference within the schema, once.
fn referred<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let pointer = schema["$ref"]
        .as_str()
        .and_then(|text| text.strip_prefix('#'));
    pointer
        .and_then(|pointer| root.pointer(pointer))
        .unwrap_or(schema)
}

fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        _ => None,
    }
}

/// Only required members: the fewer arguments, the smaller the effects of a call.
fn object(schema: &Value, root: &Value, depth: usize) -> Value {
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let value = |name: &str| {
        (
            name.to_owned(),
            made_up(&schema["properties"][name], root, depth + 1),
        )
    };
    Value::Object(required.map(value).collect::<Map<_, _>>())
}

fn string(schema: &Value) -> Value {
    let by_format = match schema["format"].as_str() {
        Some("date") => "2024-01-31",
        Some("date-time") => "2024-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("email") => "somebody@example.com",
        Some("uri" | "url" | "uri-reference") => "https://example.com/",
        Some("uuid") => "6f2c1c9e-6a0d-4b57-9a53-0c6f1d6c2f10",
        _ => "text",
    };
    let shortest = schema["minLength"].as_u64().unwrap_or(0).min(10_000) as usize;
    let longest = schema["maxLength"]
        .as_u64()
        .map_or(usize::MAX, |length| length as usize);
    json!(
        by_format
            .chars()
            .chain(std::iter::repeat('x'))
            .take(shortest.max(by_format.len()).min(longest))
            .collect::<String>()
    )
}

/// The allowed number that is nearest to one.
fn number(schema: &Value) -> f64 {
    let bound = |key: &str| schema[key].as_f64();
    let least = bound("minimum").or(bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|most| most - 1.0));
    let near = 1.0_f64
        .max(least.unwrap_or(f64::MIN))
        .min(most.unwrap_or(f64::MAX));
    match bound("multipleOf").filter(|step| *step > 0.0) {
        Some(step) => (near / step).ceil() * step,
        None => near,
    }
}

/// A value of another type than the property's.
struct WrongValue {
    /// The property's type, with its article.
    demanded: &'static str,
    /// The type of the value.
    given: &'static str,
    value: Value,
}

fn wrong_for(root: &Value, property: &Value) -> Option<WrongValue> {
    let text = || ("a text", json!("not of this kind"));
    let (demanded, (given, value)) = match kind(referred(property, root))? {
        "string" => ("a text", ("a number", json!(5))),
        "integer" => ("an integer", text()),
        "number" => ("a number", text()),
        "boolean" => ("true or false", text()),
        "array" => ("a list", ("an object", json!({ "not": "a list" }))),
        "object" => ("an object", ("a list", json!([1]))),
        _ => return None,
    };
    Some(WrongValue {
        demanded,
        given,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(schema: &Value, arguments: &Value) -> bool {
        jsonschema::validator_for(schema)
            .unwrap()
            .is_valid(arguments)
    }

    fn check(schema: &Value, fitting: Option<&Value>, wrong: &[(&str, Value)]) {
        let probes = ToolProbes::of(schema, |arguments| fits(schema, arguments));
        assert_eq!(probes.fitting.as_ref(), fitting, "{schema}");
        let found: Vec<_> = probes
            .wrong
            .iter()
            .map(|one| (one.about.as_str(), one.arguments.clone()))
            .collect();
        assert_eq!(found, wrong, "{schema}");
    }

    #[test]
    fn arguments_are_as_few_as_the_schema_lets_them_be() {
        let text = json!({ "type": "string" });
        check(
            &json!({ "type": "object", "properties": { "a": text, "b": { "type": "integer" } }, "required": ["a"] }),
            Some(&json!({ "a": "text" })),
            &[
                ("`a` is a number", json!({ "a": 5 })),
                (
                    "`b` is a text",
                    json!({ "a": "text", "b": "not of this kind" }),
                ),
            ],
        );
        check(&json!({}), Some(&json!({})), &[]);
        check(
            &json!({ "type": "object", "properties": { "free": {} } }),
            Some(&json!({})),
            &[],
        );
    }

    #[test]
    fn a_wrong_argument_names_the_type_that_the_schema_demands() {
        let schema = json!({ "type": "object", "properties": { "top": { "type": "integer" } } });
        let probes = ToolProbes::of(&schema, |arguments| fits(&schema, arguments));
        let fault = "it accepts a text for `top`, but its schema demands an integer: correct the schema or the check";
        assert_eq!(probes.wrong[0].fault, fault);
    }

    #[test]
    fn what_a_schema_names_is_taken() {
        for (property, value) in [
            (json!({ "enum": ["create", "list"] }), json!("create")),
            (json!({ "type": "integer", "default": 7 }), json!(7)),
            (
                json!({ "type": "string", "examples": ["a.txt"] }),
                json!("a.txt"),
            ),
            (
                json!({ "type": "integer", "minimum": 10, "multipleOf": 4 }),
                json!(12),
            ),
            (json!({ "type": "number", "maximum": -2 }), json!(-2.0)),
            (json!({ "type": "string", "minLength": 6 }), json!("textxx")),
            (json!({ "type": "string", "maxLength": 2 }), json!("te")),
            (
                json!({ "type": "string", "format": "date" }),
                json!("2024-01-31"),
            ),
            (json!({ "type": ["null", "boolean"] }), json!(false)),
            (
                json!({ "anyOf": [{ "type": "array", "items": { "type": "string" }, "minItems": 1 }] }),
                json!(["text"]),
            ),
            (json!({ "$ref": "#/$defs/inner" }), json!({ "b": "text" })),
        ] {
            let inner = json!({ "type": "object", "properties": { "b": { "type": "string" } }, "required": ["b"] });
            let schema = json!({
                "type": "object", "properties": { "a": property }, "required": ["a"], "$defs": { "inner": inner }
            });
            let probes = ToolProbes::of(&schema, |arguments| fits(&schema, arguments));
            assert_eq!(probes.fitting, Some(json!({ "a": value })), "{schema}");
            assert!(probes.demands);
        }
    }

    #[test]
    fn what_cannot_be_made_up_is_not_pretended() {
        let digits = json!({ "type": "string", "pattern": "^[0-9]{4}$" });
        let schema = json!({ "type": "object", "properties": { "a": digits }, "required": ["a"] });
        check(&schema, None, &[("`a` is a number", json!({ "a": 5 }))]);
    }
}
