//! Checks of a mounted module: those of Amplifier's validator, and further ones.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolpost_core::Schema;
use toolpost_model::Declaration;

use super::{
    behaviour::TriedTool,
    check::CheckName,
    entry_point,
    found::ModuleCandidate,
    report::{CheckSeverity, ValidationCheck},
    workbench::ModuleWorkbench,
};
use crate::terminal::counted;

/// The bridge's report about a Python module.
#[derive(Deserialize)]
struct ModuleInspection {
    checks: Vec<SeenCheck>,
    #[serde(default)]
    package: Option<String>,
    #[serde(default)]
    tools: Vec<SeenTool>,
    #[serde(default)]
    events: Vec<String>,
    kind: Option<SeenKind>,
    source: Option<SeenSource>,
}

#[derive(Deserialize)]
struct SeenCheck {
    name: CheckName,
    passed: bool,
    message: String,
    severity: SeenSeverity,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SeenSeverity {
    Info,
    Warning,
    Error,
}

#[derive(Deserialize)]
struct SeenTool {
    mounted: String,
    name: Option<String>,
    schema: Value,
}

#[derive(Deserialize)]
struct SeenKind {
    said: Option<String>,
}

#[derive(Deserialize)]
struct SeenSource {
    logs: bool,
    prints: Vec<String>,
}

/// Inspects the mounted module, and returns the tools to try.
pub(super) async fn examine(
    found: &ModuleCandidate,
    bench: &ModuleWorkbench,
    checks: &mut Vec<ValidationCheck>,
) -> Vec<TriedTool> {
    match bench.inspect().await {
        Some(Ok(seen)) => match serde_json::from_value::<ModuleInspection>(seen) {
            Ok(seen) => of_python(found, bench, seen, checks),
            Err(error) => {
                checks.push(ValidationCheck::failed(
                    CheckName::ModuleImportable,
                    format!("the bridge's report cannot be read: {error}"),
                ));
                Vec::new()
            }
        },
        Some(Err(problem)) => {
            checks.push(ValidationCheck::failed(
                CheckName::ModuleImportable,
                problem,
            ));
            Vec::new()
        }
        None => of_declarations(bench, checks),
    }
}

fn of_python(
    found: &ModuleCandidate,
    bench: &ModuleWorkbench,
    mut seen: ModuleInspection,
    checks: &mut Vec<ValidationCheck>,
) -> Vec<TriedTool> {
    let imported = |check: &mut SeenCheck| {
        if let Some(core) = bench
            .core()
            .filter(|_| check.passed && check.name == CheckName::ModuleImportable)
        {
            check.message.push_str(&core);
        }
    };
    seen.checks.iter_mut().for_each(imported);
    checks.extend(seen.checks.into_iter().map(|check| ValidationCheck {
        severity: match check.severity {
            SeenSeverity::Info => CheckSeverity::Info,
            SeenSeverity::Warning => CheckSeverity::Warning,
            SeenSeverity::Error => CheckSeverity::Error,
        },
        ..if check.passed {
            ValidationCheck::passed(check.name, check.message)
        } else {
            ValidationCheck::failed(check.name, check.message)
        }
    }));
    let Some(package) = seen.package else {
        return Vec::new();
    };
    checks.push(entry_point::check(
        found.pyproject.as_deref(),
        Some(&package),
    ));
    checks.extend(
        seen.kind
            .and_then(|kind| kind.said)
            .map(|said| module_type(&said)),
    );
    checks.extend(
        seen.source
            .into_iter()
            .flat_map(|source| source_checks(&source)),
    );
    // Without a mounted tool the module did not get as far as declaring its events.
    if !seen.tools.is_empty() {
        checks.push(observability(&seen.events));
    }
    let mut tried = Vec::new();
    for tool in seen.tools {
        if let Some(name) = tool
            .name
            .as_ref()
            .filter(|name| !name.is_empty() && **name != tool.mounted)
        {
            let message = format!(
                "`{name}` is mounted as `{}`: the model sees one name and calls another",
                tool.mounted
            );
            checks.push(ValidationCheck::failed(CheckName::MountName, message));
        }
        let schema = schema(&tool.mounted, &tool.schema, checks);
        let declared = bench
            .declarations()
            .into_iter()
            .find(|one| native_name(one) == tool.mounted);
        if let Some(declared) = declared {
            tried.push(TriedTool {
                name: tool.mounted,
                wire: declared.tool_id.to_string(),
                schema,
            });
        }
    }
    tried
}

fn observability(events: &[String]) -> ValidationCheck {
    if events.is_empty() {
        let message = "it declares no events\nhint: \
                       coordinator.register_contributor(\"observability.events\", \"my-tool\", lambda: [...])";
        return ValidationCheck::failed(CheckName::ObservabilityEvents, message);
    }
    ValidationCheck::passed(
        CheckName::ObservabilityEvents,
        format!("it declares {}", listed(events)),
    )
}

/// Components and services: only their declarations can be inspected.
fn of_declarations(bench: &ModuleWorkbench, checks: &mut Vec<ValidationCheck>) -> Vec<TriedTool> {
    let declarations = bench.declarations();
    let problems = bench.problems();
    checks.extend(
        problems
            .iter()
            .map(|problem| ValidationCheck::failed(CheckName::ModuleImportable, &problem.message)),
    );
    if declarations.is_empty() {
        if problems.is_empty() {
            checks.push(ValidationCheck::failed(
                CheckName::ProtocolCompliance,
                "it has no tool",
            ));
        }
        return Vec::new();
    }
    if problems.is_empty() {
        checks.push(ValidationCheck::passed(
            CheckName::ModuleImportable,
            "it is loaded",
        ));
    }
    let mut tried = Vec::new();
    for declaration in declarations {
        let name = native_name(&declaration);
        checks.push(ValidationCheck::passed(
            CheckName::ProtocolCompliance,
            format!("`{name}` is a tool"),
        ));
        checks.push(ValidationCheck::passed(
            CheckName::ToolName,
            format!("`{name}`: its name is `{name}`"),
        ));
        checks.push(match declaration.description.trim() {
            "" => ValidationCheck::failed(
                CheckName::ToolDescription,
                format!("`{name}`: it has no description, so models must guess its purpose"),
            ),
            text => ValidationCheck::passed(
                CheckName::ToolDescription,
                format!(
                    "`{name}`: a description of {} characters",
                    text.chars().count()
                ),
            ),
        });
        let raw = bench
            .schema_of(&declaration.tool_id)
            .unwrap_or_else(|| Arc::new(json!(null)));
        checks.push(input_schema(&name, &raw));
        let schema = schema(&name, &raw, checks);
        tried.push(TriedTool {
            name,
            wire: declaration.tool_id.to_string(),
            schema,
        });
    }
    tried
}

/// The module's own name for a tool.
fn native_name(declaration: &Declaration) -> String {
    let mapped = declaration
        .external_mappings
        .iter()
        .find(|mapping| mapping.system == "amplifier");
    let last = || {
        declaration
            .tool_id
            .as_str()
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    mapped.map_or_else(last, |mapping| mapping.native_id.clone())
}

fn input_schema(name: &str, schema: &Value) -> ValidationCheck {
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => ValidationCheck::passed(
            CheckName::ToolInputSchema,
            format!(
                "`{name}`: a schema of {}",
                counted(properties.len(), "property")
            ),
        ),
        None => ValidationCheck::failed(
            CheckName::ToolInputSchema,
            format!("`{name}`: its schema has no properties, so any input is valid"),
        ),
    }
}

/// A schema that calls can be checked against. A missing one was reported before.
fn schema(name: &str, value: &Value, checks: &mut Vec<ValidationCheck>) -> Option<Schema> {
    if value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    let made =
        Schema::new(Arc::new(value.clone())).and_then(|schema| schema.check().map(|()| schema));
    let problem = match &made {
        Err(error) => Some(error.to_string()),
        Ok(_) => impossible(value),
    };
    checks.push(match &problem {
        Some(problem) => {
            ValidationCheck::failed(CheckName::InputSchemaValid, format!("`{name}`: {problem}"))
        }
        None => ValidationCheck::passed(
            CheckName::InputSchemaValid,
            format!("`{name}`: a JSON Schema for an object"),
        ),
    });
    made.ok()
}

/// A flaw that is valid in a schema but cannot be intended.
fn impossible(schema: &Value) -> Option<String> {
    let kind = schema.get("type");
    if kind.is_some_and(|kind| kind != "object") {
        return Some(format!(
            "its schema is for {}, but input is always an object",
            kind.unwrap_or(&Value::Null)
        ));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let known = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
    let mut unknown = required
        .filter_map(Value::as_str)
        .filter(|name| !known(name));
    unknown
        .next()
        .map(|name| format!("it requires `{name}`, which is not one of its properties"))
}

fn module_type(said: &str) -> ValidationCheck {
    match said {
        "tool" => ValidationCheck::passed(
            CheckName::ModuleType,
            "`__amplifier_module_type__` is `tool`",
        ),
        other => ValidationCheck::failed(
            CheckName::ModuleType,
            format!(
                "`__amplifier_module_type__` is `{other}`, so Amplifier does not look for tools in it"
            ),
        ),
    }
}

fn source_checks(source: &SeenSource) -> Vec<ValidationCheck> {
    let logging = if source.logs {
        ValidationCheck::passed(CheckName::Logging, "it has a logger")
    } else {
        ValidationCheck::failed(
            CheckName::Logging,
            "it has no logger\nhint: logger = logging.getLogger(__name__)",
        )
    };
    let prints = (!source.prints.is_empty()).then(|| {
        ValidationCheck::failed(
            CheckName::PrintNoise,
            format!("it prints to standard output at {}", listed(&source.prints)),
        )
    });
    [Some(logging), prints].into_iter().flatten().collect()
}

/// The first few of a list.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_must_be_one_for_an_object() {
        for (value, expected) in [
            (json!(null), None),
            (json!({}), None),
            (
                json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
                Some(true),
            ),
            (json!({ "properties": { "a": {} } }), Some(true)),
            (json!({ "type": "objct" }), Some(false)),
            (json!({ "type": "array" }), Some(false)),
            (json!({ "type": "object", "required": ["a"] }), Some(false)),
            (json!({ "type": "object", "properties": [] }), Some(false)),
            (json!("text"), Some(false)),
        ] {
            let mut checks = Vec::new();
            schema("t", &value, &mut checks);
            assert_eq!(
                checks.first().map(|check| check.passed),
                expected,
                "{value}: {checks:?}"
            );
        }
    }
}
