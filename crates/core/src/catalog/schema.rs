//! JSON Schemas: bounded on entry, compiled once, with violations worded so that a model can fix its call.

mod sensitive;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use jsonschema::{PatternOptions, Validator, error::ValidationErrorKind};
use serde::Serialize;
use serde_json::Value;

/// Larger schemas are refused: no real tool needs more, and every surface carries them.
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 64;
/// A model fixes a handful of faults at a time.
const MAX_VIOLATIONS: usize = 8;
/// The length of the shown part of a wrong value.
const SHOWN_VALUE: usize = 80;

/// A schema with its compiled form and the pointers of its sensitive fields.
pub struct Schema {
    value: Arc<Value>,
    /// Compiled at first use, so that ten thousand tools cost nothing at start, and never again after.
    compiled: OnceLock<Result<Validator, SchemaError>>,
    has_marks: bool,
    /// The operator's additional sensitive pointers.
    sensitive: Vec<String>,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Over a limit.
    #[error("its schema is over the limit of {limit} {unit}")]
    TooLarge {
        /// The limit.
        limit: usize,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// A reference that would have to be fetched.
    #[error("its schema refers to `{0}`; only references within the schema are followed")]
    OutsideReference(String),
    /// Not a schema for arguments.
    #[error("its schema does not describe an object")]
    NotAnObject,
    /// Not a valid schema.
    #[error("its schema is not valid: {0}")]
    Invalid(String),
}

/// One fault: the place, the expected value, the given value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchemaViolation {
    /// JSON pointer into the arguments; empty for the object itself.
    pub at: String,
    /// The expected value.
    pub expected: String,
    /// The given value.
    pub given: String,
    #[serde(skip)]
    pub(crate) kind: ViolationKind,
}

/// The kind of a fault, which decides how its message is worded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViolationKind {
    /// `expected` is the name of the property.
    MissingProperty,
    /// `expected` lists the known properties, `given` the unknown ones.
    UnknownProperty,
    /// A value that does not match the schema.
    WrongValue,
    /// A value that is refused for a reason of its own, which is in `expected`.
    RefusedValue,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            at,
            expected,
            given,
            kind,
        } = self;
        if !at.is_empty() {
            write!(f, "at {at}: ")?;
        }
        match kind {
            ViolationKind::MissingProperty => write!(f, "{expected} is missing"),
            ViolationKind::UnknownProperty => write!(f, "{given}: expected {expected}"),
            ViolationKind::WrongValue => write!(f, "expected {expected}, got {given}"),
            ViolationKind::RefusedValue => f.write_str(expected),
        }
    }
}

impl Schema {
    /// Checks the bounds and finds the sensitive fields. The schema is compiled at its first use.
    pub fn new(value: Arc<Value>) -> Result<Self, SchemaError> {
        if !value.is_object() && !value.is_boolean() {
            return Err(SchemaError::NotAnObject);
        }
        let mut nodes = 0;
        bounded(&value, 0, &mut nodes)?;
        let has_marks = sensitive::has_marks(&value);
        Ok(Self {
            value,
            compiled: OnceLock::new(),
            has_marks,
            sensitive: Vec::new(),
        })
    }

    /// Checks a schema, for sources that get theirs from outside.
    pub fn try_out(value: &Arc<Value>) -> Result<(), SchemaError> {
        Self::new(Arc::clone(value))?.check()
    }

    /// Adds sensitive pointers, which are kept out of every record.
    pub(super) fn with_sensitive(mut self, pointers: &[String]) -> Self {
        self.sensitive = pointers.to_vec();
        self
    }

    /// The schema itself.
    pub fn value(&self) -> &Arc<Value> {
        &self.value
    }

    fn compiled(&self) -> Result<&Validator, &SchemaError> {
        let build = || {
            jsonschema::draft202012::options()
                .offline()
                .with_pattern_options(
                    PatternOptions::fancy_regex()
                        .backtrack_limit(50_000)
                        .size_limit(1 << 20),
                )
                .build(&self.value)
                .map_err(|error| SchemaError::Invalid(error.to_string()))
        };
        self.compiled.get_or_init(build).as_ref()
    }

    /// Whether a schema can be compiled at all.
    pub fn check(&self) -> Result<(), SchemaError> {
        self.compiled().map(|_| ()).map_err(Clone::clone)
    }

    /// The faults of `instance`, at most eight of them.
    pub fn violations(&self, instance: &Value) -> Result<Vec<SchemaViolation>, SchemaError> {
        let validator = self.compiled().map_err(Clone::clone)?;
        if validator.is_valid(instance) {
            return Ok(Vec::new());
        }
        let secret = self.sensitive_pointers(instance);
        let found = validator
            .iter_errors(instance)
            .take(MAX_VIOLATIONS)
            .map(|error| {
                let at = error.instance_path().to_string();
                let hidden = secret
                    .iter()
                    .any(|pointer| at.starts_with(pointer.as_str()));
                violation(at, error.kind(), error.instance(), &self.value, hidden)
            });
        Ok(found.collect())
    }

    /// JSON pointers of the sensitive values that are present in `instance`.
    pub(crate) fn sensitive_pointers(&self, instance: &Value) -> Vec<String> {
        let mut found = sensitive::pointers(&self.value, self.has_marks, instance);
        if !self.sensitive.is_empty() {
            found.extend(
                self.sensitive
                    .iter()
                    .filter(|at| instance.pointer(at).is_some())
                    .cloned(),
            );
            // Outer values first: a value inside of one is removed with it.
            found.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
            found.dedup();
        }
        found
    }
}

fn violation(
    at: String,
    kind: &ValidationErrorKind,
    instance: &Value,
    schema: &Value,
    hidden: bool,
) -> SchemaViolation {
    let given = if hidden {
        "[redacted:argument]".to_owned()
    } else {
        shown(instance)
    };
    let worded = match kind {
        ValidationErrorKind::Required { .. } => ViolationKind::MissingProperty,
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } => ViolationKind::UnknownProperty,
        _ => ViolationKind::WrongValue,
    };
    let (expected, given) = match kind {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            (format!("`{name}`"), "nothing".to_owned())
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = property_names(schema, &at);
            let expected = match known.is_empty() {
                true => "no other properties".to_owned(),
                false => format!("only {}", known.join(", ")),
            };
            (expected, format!("unknown `{}`", unexpected.join("`, `")))
        }
        ValidationErrorKind::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(one) => (format!("{one}"), given),
            jsonschema::error::TypeKind::Multiple(many) => {
                let names: Vec<String> = many.iter().map(|one| one.to_string()).collect();
                (names.join(" or "), given)
            }
        },
        ValidationErrorKind::Enum { options } => (format!("one of {options}"), given),
        ValidationErrorKind::Constant { expected_value } => (format!("{expected_value}"), given),
        ValidationErrorKind::Minimum { limit } => (format!("a number of at least {limit}"), given),
        ValidationErrorKind::Maximum { limit } => (format!("a number of at most {limit}"), given),
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            (format!("a number over {limit}"), given)
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            (format!("a number under {limit}"), given)
        }
        ValidationErrorKind::MinLength { limit } => {
            (format!("a text of at least {limit} characters"), given)
        }
        ValidationErrorKind::MaxLength { limit } => {
            (format!("a text of at most {limit} characters"), given)
        }
        ValidationErrorKind::Pattern { pattern } => {
            (format!("a text that matches `{pattern}`"), given)
        }
        ValidationErrorKind::Format { format } => {
            (format!("a text of the format `{format}`"), given)
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            ("a value that matches one of the schemas".to_owned(), given)
        }
        // Other keywords are rare. The keyword is enough, and the library's text could quote the value.
        other => (
            format!("a value that satisfies `{}` of the schema", other.keyword()),
            given,
        ),
    };
    SchemaViolation {
        at,
        expected,
        given,
        kind: worded,
    }
}

/// The names under `properties` for the object at `at`, if the schema contains them in place.
fn property_names(schema: &Value, at: &str) -> Vec<String> {
    let mut here = schema;
    for part in at.split('/').skip(1) {
        let next = here
            .pointer(&format!("/properties/{part}"))
            .or_else(|| here.get("items"));
        let Some(next) = next else { return Vec::new() };
        here = next;
    }
    let names = here.get("properties").and_then(Value::as_object);
    names
        .map(|names| names.keys().cloned().collect())
        .unwrap_or_default()
}

fn shown(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => return format!("an array of {} items", items.len()),
        Value::Object(_) => return "an object".to_owned(),
    };
    let text = value.to_string();
    let cut = text.char_indices().nth(SHOWN_VALUE).map(|(place, _)| place);
    match cut {
        Some(place) => format!("{kind} {}…", &text[..place]),
        None => format!("{kind} {text}"),
    }
}

fn bounded(value: &Value, depth: usize, nodes: &mut usize) -> Result<(), SchemaError> {
    *nodes += 1;
    if *nodes > MAX_NODES {
        return Err(SchemaError::TooLarge {
            limit: MAX_NODES,
            unit: "nodes",
        });
    }
    if depth > MAX_DEPTH {
        return Err(SchemaError::TooLarge {
            limit: MAX_DEPTH,
            unit: "levels",
        });
    }
    match value {
        Value::Object(object) => {
            for key in ["$ref", "$dynamicRef"] {
                let target = object.get(key).and_then(Value::as_str);
                if let Some(target) = target.filter(|target| !target.starts_with('#')) {
                    return Err(SchemaError::OutsideReference(target.to_owned()));
                }
            }
            object
                .values()
                .try_for_each(|inner| bounded(inner, depth + 1, nodes))
        }
        Value::Array(items) => items
            .iter()
            .try_for_each(|inner| bounded(inner, depth + 1, nodes)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::{Schema, SchemaError};

    fn schema(value: Value) -> Schema {
        Schema::new(Arc::new(value)).unwrap()
    }

    fn check(schema: &Schema, instance: &Value, expected: &[(&str, &str, &str)]) {
        let found = schema.violations(instance).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|v| (v.at.as_str(), v.expected.as_str(), v.given.as_str()))
            .collect();
        assert_eq!(found, expected, "{instance}");
    }

    #[test]
    fn a_violation_names_place_expectation_and_value() {
        let schema = schema(json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1 },
                "mode": { "enum": ["a", "b"] },
                "password": { "type": "string" },
                "rows": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } }
            }
        }));
        check(&schema, &json!({ "path": "x", "limit": 3 }), &[]);
        check(&schema, &json!({}), &[("", "`path`", "nothing")]);
        check(
            &schema,
            &json!({ "path": 5 }),
            &[("/path", "string", "number 5")],
        );
        check(
            &schema,
            &json!({ "path": "x", "limit": 0 }),
            &[("/limit", "a number of at least 1", "number 0")],
        );
        check(
            &schema,
            &json!({ "path": "x", "mode": "c" }),
            &[("/mode", "one of [\"a\",\"b\"]", "string \"c\"")],
        );
        check(
            &schema,
            &json!({ "path": "x", "password": 12345678 }),
            &[("/password", "string", "[redacted:argument]")],
        );
        check(
            &schema,
            &json!({ "path": "x", "rows": [{ "n": 1 }, { "n": "2" }] }),
            &[("/rows/1/n", "integer", "string \"2\"")],
        );
        check(
            &schema,
            &json!({ "path": "x", "paht": "y" }),
            &[(
                "",
                "only path, limit, mode, password, rows",
                "unknown `paht`",
            )],
        );
    }

    #[test]
    fn schemas_are_bounded_and_never_fetched() {
        let outside = Schema::new(Arc::new(json!({ "$ref": "http://127.0.0.1:1/x.json" })));
        assert!(matches!(outside, Err(SchemaError::OutsideReference(_))));
        let mut deep = json!(true);
        for _ in 0..80 {
            deep = json!({ "not": deep });
        }
        assert!(matches!(
            Schema::new(Arc::new(deep)),
            Err(SchemaError::TooLarge { .. })
        ));
        let wide: Vec<Value> = (0..30_000).map(Value::from).collect();
        assert!(matches!(
            Schema::new(Arc::new(json!({ "enum": wide }))),
            Err(SchemaError::TooLarge { .. })
        ));
    }
}
