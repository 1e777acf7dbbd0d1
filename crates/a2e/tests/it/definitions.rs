//! Tools as the field's strict clients want to read them. One wrong field anywhere loses them a whole list.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolpost_a2e::ToolDefinition;
use toolpost_model::{Declaration, ToolId};

fn define(schema: Value) -> ToolDefinition {
    let mut declaration = Declaration::new(ToolId::new("files", "read").unwrap(), "reads");
    declaration.input.schema = Arc::new(schema.clone());
    declaration.output.schema = Some(Arc::new(schema));
    ToolDefinition::of("read", &declaration, false)
}

/// Says what a strict client would not accept.
fn objections(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |place: &str, holds: bool| {
        if !holds {
            found.push(format!("{place}: {}", definition[place]));
        }
    };
    for (place, required) in [
        ("name", true),
        ("description", true),
        ("version", false),
        ("toolkit", false),
    ] {
        let value = &definition[place];
        expect(
            place,
            value.is_string() || (!required && definition.get(place).is_none()),
        );
    }
    for place in ["streaming", "idempotent", "defer_loading"] {
        expect(place, definition.get(place).is_none_or(Value::is_boolean));
    }
    expect(
        "tags",
        definition.get("tags").is_none_or(is_list_of_strings),
    );
    for place in ["input_parameters", "output_parameters"] {
        match definition.get(place) {
            None => {}
            Some(Value::Array(list)) => {
                list.iter()
                    .for_each(|one| found.extend(objections_to_parameter(one)));
            }
            Some(other) => found.push(format!("{place}: {other}")),
        }
    }
    found
}

fn objections_to_parameter(parameter: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for place in ["name", "type", "description"] {
        if !parameter[place].is_string() {
            found.push(format!("{place} of {parameter}"));
        }
    }
    if parameter
        .get("required")
        .is_some_and(|required| !required.is_boolean())
    {
        found.push(format!("required of {parameter}"));
    }
    if parameter
        .get("enum")
        .is_some_and(|choices| !is_list_of_strings(choices))
    {
        found.push(format!("enum of {parameter}"));
    }
    match parameter.get("properties") {
        None => {}
        Some(Value::Object(members)) => {
            members
                .values()
                .for_each(|member| found.extend(objections_to_parameter(member)));
        }
        Some(_) => found.push(format!("properties of {parameter}")),
    }
    found
}

fn is_list_of_strings(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().all(Value::is_string))
}

/// The parameters of a schema with these properties, checked for acceptance.
#[track_caller]
fn parameters(properties: &Value) -> Value {
    let definition =
        define(json!({ "type": "object", "properties": properties, "required": ["a"] }));
    let wire = serde_json::to_value(&definition).unwrap();
    assert_eq!(objections(&wire), [] as [String; 0], "{wire}");
    let back: ToolDefinition = serde_json::from_value(wire.clone()).unwrap();
    // Numbers among the choices are text there, so it is the wire that must be the same.
    assert_eq!(serde_json::to_value(back).unwrap(), wire);
    wire["input_parameters"].clone()
}

#[track_caller]
fn check(schema: &Value, mut expected: Value) {
    expected["name"] = json!("a");
    expected["required"] = json!(true);
    assert_eq!(parameters(&json!({ "a": schema })), json!([expected]));
}

#[test]
fn parameters_of_schemas() {
    check(
        &json!({ "type": "string" }),
        json!({ "type": "string", "description": "" }),
    );
    check(
        &json!({ "type": ["null", "integer"], "description": "how many", "default": 3, "minimum": 0 }),
        json!({ "type": "integer", "description": "how many (at least 0, default 3)" }),
    );
    check(
        &json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "type": "array", "description": "(list of string)" }),
    );
    check(
        &json!({ "enum": [1, 2.5, "x", null, true] }),
        json!({ "type": "number", "description": "", "enum": ["1", "2.5", "x", "true"] }),
    );
    check(
        &json!({ "anyOf": [{ "type": "null" }, { "type": "boolean", "description": "or not" }] }),
        json!({ "type": "boolean", "description": "or not" }),
    );
    check(&json!(true), json!({ "type": "string", "description": "" }));
    check(&json!({}), json!({ "type": "string", "description": "" }));
    check(
        &json!({ "description": 3 }),
        json!({ "type": "string", "description": "" }),
    );
}

#[test]
fn objects_in_objects_are_keyed_by_name() {
    check(
        &json!({ "type": "object", "required": ["x"], "properties": {
            "x": { "type": "number" },
            "y": { "properties": { "z": { "type": "string", "description": "deep" } } }
        } }),
        json!({ "type": "object", "description": "", "properties": {
            "x": { "name": "x", "type": "number", "description": "", "required": true },
            "y": { "name": "y", "type": "object", "description": "", "properties": {
                "z": { "name": "z", "type": "string", "description": "deep" }
            } }
        } }),
    );
}

#[test]
fn references_are_followed_and_cycles_end() {
    let tree = json!({ "type": "object", "$defs": {
        "node": { "type": "object", "properties": { "left": { "$ref": "#/$defs/node" }, "right": { "$ref": "#/$defs/node" } } },
        "loop": { "$ref": "#/$defs/loop" },
        "size": { "type": "integer", "description": "bytes" }
    }, "properties": {
        "tree": { "$ref": "#/$defs/node" },
        "loop": { "$ref": "#/$defs/loop" },
        "size": { "$ref": "#/$defs/size" },
        "elsewhere": { "$ref": "https://example.org/schema" }
    } });
    let definition = define(tree.clone());
    let wire = serde_json::to_value(&definition).unwrap();
    assert_eq!(objections(&wire), [] as [String; 0]);
    let kind = |name: &str| {
        definition
            .input_parameters
            .iter()
            .find(|one| one.name == name)
            .unwrap()
            .kind
            .clone()
    };
    assert_eq!((&*kind("tree"), &*kind("size")), ("object", "integer"));
    assert_eq!((&*kind("loop"), &*kind("elsewhere")), ("string", "string"));
    // The parameters cannot tell it all, so the schema comes along, and is what the client gets.
    assert_eq!(*definition.schema(), tree);
    assert!(
        wire.to_string().len() < 200_000,
        "{}",
        wire.to_string().len()
    );
}

#[test]
fn a_definition_holds_no_null() {
    fn nulls(value: &Value) -> usize {
        match value {
            Value::Null => 1,
            Value::Array(list) => list.iter().map(nulls).sum(),
            Value::Object(members) => members.values().map(nulls).sum(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }
    let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    for schema in [json!({}), json!(true), plain] {
        assert_eq!(nulls(&serde_json::to_value(define(schema)).unwrap()), 0);
    }
}

#[test]
fn a_plain_schema_needs_no_copy() {
    let schema = json!({ "type": "object", "required": ["a"], "properties": {
        "a": { "type": "string", "description": "text", "enum": ["x", "y"] },
        "b": { "type": "object", "properties": { "c": { "type": "integer" } } }
    } });
    let definition = define(schema.clone());
    assert_eq!(definition.input_schema, None);
    assert_eq!(*definition.schema(), schema);
}

/// Schemas such as careless generators write.
fn schema() -> impl Strategy<Value = Value> {
    let kinds = prop_oneof![
        Just(json!("string")),
        Just(json!("object")),
        Just(json!("array")),
        Just(json!(["null", "number"])),
        Just(json!([])),
        Just(json!(7)),
        Just(Value::Null),
    ];
    let leaf = (kinds, "[ -~]{0,9}", any::<u8>()).prop_map(|(kind, text, bits)| {
        let mut schema = json!({ "type": kind });
        let extras = [
            ("description", json!(text)),
            ("description", json!(null)),
            ("enum", json!([1, null, { "a": 1 }, "x"])),
            ("default", json!({ "a": [null] })),
            ("format", json!(null)),
            ("$ref", json!("#/properties/a")),
            ("const", json!(null)),
            ("items", json!([{ "type": "string" }])),
        ];
        for (bit, (key, value)) in extras.into_iter().enumerate() {
            if bits & (1 << bit) != 0 {
                schema[key] = value;
            }
        }
        schema
    });
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            proptest::collection::btree_map("[a-c]", inner.clone(), 0..4).prop_map(
                |members| json!({ "type": "object", "properties": members, "required": ["a", 3] })
            ),
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|list| json!({ "anyOf": list })),
            inner.prop_map(|items| json!({ "type": "array", "items": items })),
        ]
    })
}

proptest! {
    #[test]
    fn every_definition_is_acceptable(members in proptest::collection::btree_map("[a-d]", schema(), 0..4)) {
        let members = json!(members);
        parameters(&members);
    }
}
