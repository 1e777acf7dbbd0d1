//! Converts between JSON Schema and the protocol's parameters.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

use crate::lax;

/// One value of the arguments or of the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolParameter {
    /// The parameter's name.
    pub name: String,
    /// A single type of JSON Schema.
    #[serde(rename = "type")]
    pub kind: String,
    /// The description.
    pub description: String,
    /// Whether the parameter is required.
    #[serde(
        default,
        deserialize_with = "lax::flag",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub required: bool,
    /// The allowed values; empty if every value is allowed. On the wire all of them are text.
    #[serde(
        rename = "enum",
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "as_texts",
        deserialize_with = "or_none"
    )]
    pub choices: Vec<Value>,
    /// The members of an object. On the wire they form an object, keyed by name.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "by_name",
        deserialize_with = "of_names"
    )]
    pub properties: Vec<ToolParameter>,
}

fn as_texts<S: Serializer>(choices: &[Value], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(choices.iter().map(|choice| match choice {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        other => Cow::Owned(other.to_string()),
    }))
}

fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    Option::<Vec<Value>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn by_name<S: Serializer>(members: &[ToolParameter], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|member| (&member.name, member)))
}

fn of_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ToolParameter>, D::Error> {
    // Read through a map that keeps the author's order.
    let members = Option::<Map<String, Value>>::deserialize(deserializer)?.unwrap_or_default();
    members
        .into_values()
        .map(|member| serde_json::from_value(member).map_err(D::Error::custom))
        .collect()
}

/// The depth to which nested objects are followed; a schema may refer to itself.
const MAX_DEPTH: usize = 8;
/// The most consecutive references, and nested alternatives.
const MAX_STEPS: usize = 8;

/// The parameters that the schema of an object describes.
pub(super) fn of_schema(schema: &Value) -> Vec<ToolParameter> {
    let reader = ParameterSchemaReader { root: schema };
    reader.members(reader.plain(schema), 0).collect()
}

struct ParameterSchemaReader<'a> {
    root: &'a Value,
}

impl<'a> ParameterSchemaReader<'a> {
    /// The schema behind references and alternatives: the first alternative that is not null.
    fn plain(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_STEPS {
            let next = match schema.get("$ref").and_then(Value::as_str) {
                Some(place) => place
                    .strip_prefix('#')
                    .and_then(|pointer| self.root.pointer(pointer)),
                None if schema.get("type").is_some() || schema.get("properties").is_some() => None,
                None => ["anyOf", "oneOf", "allOf"]
                    .iter()
                    .find_map(|word| schema.get(*word))
                    .and_then(Value::as_array)
                    .and_then(|list| {
                        list.iter()
                            .find(|one| one.get("type") != Some(&Value::from("null")))
                    }),
            };
            match next {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    fn members(&self, schema: &'a Value, depth: usize) -> impl Iterator<Item = ToolParameter> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = move |name: &str| {
            required.is_some_and(|names| names.iter().any(|given| given.as_str() == Some(name)))
        };
        let members = schema.get("properties").and_then(Value::as_object);
        members.into_iter().flatten().map(move |(name, schema)| {
            let mut member = self.parameter(name, schema, depth);
            member.required = is_required(name);
            member
        })
    }

    fn parameter(&self, name: &str, schema: &'a Value, depth: usize) -> ToolParameter {
        let plain = self.plain(schema);
        let kind = kind_of(plain);
        let is_followed = kind == "object" && depth < MAX_DEPTH;
        let properties = if is_followed {
            self.members(plain, depth + 1).collect()
        } else {
            Vec::new()
        };
        ToolParameter {
            name: name.to_owned(),
            kind: kind.to_owned(),
            description: self.describe(schema, plain, kind),
            required: false,
            choices: choices(plain),
            properties,
        }
    }

    /// The description, with the constraints that a parameter has no field for.
    fn describe(&self, schema: &Value, plain: &'a Value, kind: &str) -> String {
        let own = |schema: &Value| {
            schema
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut text = own(schema).or_else(|| own(plain)).unwrap_or_default();
        let mut notes = Vec::new();
        if let (true, Some(items)) = (kind == "array", plain.get("items")) {
            notes.push(format!("list of {}", kind_of(self.plain(items))));
        }
        for (key, word) in [
            ("format", "format"),
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("default", "default"),
        ] {
            // The formats of numbers are names of machine types, which callers do not need.
            if key == "format" && kind != "string" {
                continue;
            }
            match schema.get(key).or_else(|| plain.get(key)) {
                None | Some(Value::Null) => {}
                Some(Value::String(value)) => notes.push(format!("{word} {value}")),
                Some(value) => notes.push(format!("{word} {value}")),
            }
        }
        if !notes.is_empty() {
            let gap = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{gap}({})", notes.join(", ")));
        }
        text
    }
}

/// The type of a schema. Of several types it is the first that is not `null`; without any it is derived from the other
/// members.
fn kind_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or("string"),
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => match schema
            .get("const")
            .or_else(|| schema.get("enum").and_then(|list| list.get(0)))
        {
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(_)) => "number",
            _ => "string",
        },
    }
}

fn choices(schema: &Value) -> Vec<Value> {
    let given = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(list)), _) => list.as_slice(),
        (_, Some(only)) => std::slice::from_ref(only),
        _ => &[],
    };
    given
        .iter()
        .filter(|value| !value.is_null())
        .cloned()
        .collect()
}

/// Whether the parameters cover the whole schema.
pub(super) fn tells_all_of(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else {
        return false;
    };
    let of_objects = |(key, value): (&String, &Value)| match key.as_str() {
        "type" => value == "object",
        "properties" => value
            .as_object()
            .is_some_and(|members| members.values().all(is_told)),
        "required" => true,
        _ => false,
    };
    object.iter().all(of_objects)
}

fn is_told(schema: &Value) -> bool {
    let Some(object) = schema.as_object() else {
        return false;
    };
    let is_object = object.get("type").is_some_and(|kind| kind == "object");
    object.get("type").is_some_and(Value::is_string)
        && object.iter().all(|(key, value)| match key.as_str() {
            "type" => true,
            "description" => value.is_string(),
            "enum" => value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            "properties" if is_object => value
                .as_object()
                .is_some_and(|members| !members.is_empty() && members.values().all(is_told)),
            "required" => is_object,
            _ => false,
        })
}

/// The schema that the parameters describe.
pub(super) fn to_schema<'a>(parameters: impl Iterator<Item = &'a ToolParameter>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        if parameter.required {
            required.push(Value::from(parameter.name.as_str()));
        }
        let mut schema = match parameter.properties.as_slice() {
            [] => json!({ "type": parameter.kind }),
            members => to_schema(members.iter()),
        };
        if !parameter.description.is_empty() {
            schema["description"] = Value::from(parameter.description.as_str());
        }
        if !parameter.choices.is_empty() {
            schema["enum"] = Value::from(parameter.choices.clone());
        }
        properties.insert(parameter.name.clone(), schema);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema
}
