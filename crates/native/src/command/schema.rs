//! The arguments of a declared command as JSON Schema.

use serde_json::{Map, Value, json};

use super::declaration::{CommandDeclaration, CommandParameter, CommandParameterType};

/// The schema of the arguments.
pub(super) fn of(declaration: &CommandDeclaration) -> Value {
    let properties: Map<String, Value> = declaration
        .parameters
        .iter()
        .map(|(name, parameter)| (name.clone(), property(parameter)))
        .collect();
    let required: Vec<&String> = declaration
        .parameters
        .iter()
        .filter(|(_, parameter)| parameter.required)
        .map(|(name, _)| name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(parameter: &CommandParameter) -> Value {
    let mut schema = match &parameter.kind {
        CommandParameterType::Text { pattern: None } => json!({ "type": "string" }),
        CommandParameterType::Text {
            pattern: Some(pattern),
        } => {
            json!({ "type": "string", "pattern": format!("^(?:{pattern})$") })
        }
        CommandParameterType::Integer { minimum, maximum } => bounded(
            "integer",
            minimum.map(Value::from),
            maximum.map(Value::from),
        ),
        CommandParameterType::Number { minimum, maximum } => bounded(
            "number",
            minimum.clone().map(Value::Number),
            maximum.clone().map(Value::Number),
        ),
        CommandParameterType::Boolean => json!({ "type": "boolean" }),
        CommandParameterType::Path => json!({ "type": "string", "minLength": 1 }),
        CommandParameterType::Choice(values) => json!({ "type": "string", "enum": values }),
    };
    let mut description = parameter.description.clone();
    if matches!(parameter.kind, CommandParameterType::Path) {
        let note = "a path, relative to the workspace";
        description = if description.is_empty() {
            note.to_owned()
        } else {
            format!("{description} ({note})")
        };
    }
    schema["description"] = Value::String(description);
    if let Some(default) = &parameter.default {
        schema["default"] = default.clone();
    }
    schema
}

fn bounded(kind: &str, minimum: Option<Value>, maximum: Option<Value>) -> Value {
    let mut schema = json!({ "type": kind });
    for (bound, value) in [("minimum", minimum), ("maximum", maximum)] {
        if let Some(value) = value {
            schema[bound] = value;
        }
    }
    schema
}
