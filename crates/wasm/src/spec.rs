//! What a component says of its tools. It is a stranger: sizes are bounded, and what is odd is left out and told.

use std::sync::Arc;

use jsonschema::PatternOptions;
use serde_json::{Map, Value};
use toolpost_model::{Declaration, ExternalMapping, SourceProblem, ToolId};

use crate::settings::InstanceUse;

const MOST_TOOLS: usize = 256;
const LONGEST_NAME: usize = 128;
const LONGEST_DESCRIPTION: usize = 16 * 1024;
const LARGEST_SCHEMA: usize = 256 * 1024;

/// The tools of a component.
#[derive(Default)]
pub(crate) struct Specs {
    /// Each with the name that the component knows it by.
    pub(crate) tools: Vec<(String, Declaration)>,
    pub(crate) problems: Vec<SourceProblem>,
    /// How long the component wants its instances to live.
    pub(crate) instances: Option<InstanceUse>,
}

impl Specs {
    /// Reads what `get-spec` or `get-specs` answered.
    pub(crate) fn read(module: &str, json: &[u8]) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| format!("its spec is not JSON: {error}"))?;
        let list = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        let mut specs = Self::default();
        if list.len() > MOST_TOOLS {
            specs.problem(
                module,
                "too_many_tools",
                format!("only the first {MOST_TOOLS} of its {} tools are taken", list.len()),
            );
        }
        for (place, spec) in list.into_iter().take(MOST_TOOLS).enumerate() {
            specs.add(module, place, spec);
        }
        match (specs.tools.is_empty(), specs.problems.first()) {
            (true, Some(problem)) => Err(problem.message.clone()),
            (true, None) => Err("it has no tools".to_owned()),
            (false, _) => Ok(specs),
        }
    }

    fn add(&mut self, module: &str, place: usize, spec: Value) {
        let Value::Object(mut spec) = spec else {
            let message = format!("spec {place} is not a JSON object");
            return self.problem(module, "invalid_spec", message);
        };
        let name = match spec.get("name").and_then(Value::as_str) {
            Some(name) if !name.is_empty() && name.len() <= LONGEST_NAME => name.to_owned(),
            Some(name) if !name.is_empty() => {
                let message = format!("spec {place} has a name of more than {LONGEST_NAME} bytes");
                return self.problem(module, "invalid_spec", message);
            }
            _ => return self.problem(module, "invalid_spec", format!("spec {place} has no `name`")),
        };
        let Some(id) = tool_id(module, &name) else {
            let message = format!("the tool `{}` cannot be named here", name.escape_default());
            return self.problem(module, "invalid_spec", message);
        };
        if self.tools.iter().any(|(_, known)| known.tool_id == id) {
            let message = format!("it has two tools of the name `{}`; the first is taken", id.name());
            return self.problem(module, "duplicate_tool", message);
        }
        if spec.get("instance").and_then(Value::as_str) == Some("session") {
            self.instances = Some(InstanceUse::PerSession);
        }
        let description = spec.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut declaration = Declaration::new(id, cut(description, LONGEST_DESCRIPTION));
        declaration.toolkit = module.to_owned();
        if declaration.tool_id.name() != name {
            declaration.title = Some(name.clone());
        }
        let native_id = name.clone();
        declaration.external_mappings = vec![ExternalMapping { system: "amplifier".to_owned(), native_id }];
        match schema(&mut spec) {
            Ok(None) => {}
            Ok(Some(schema)) => declaration.input.schema = Arc::new(schema),
            Err(fault) => {
                let message =
                    format!("the schema of its tool `{}` is left out: {fault}", declaration.tool_id.name());
                self.problem(module, "invalid_schema", message);
            }
        }
        self.tools.push((name, declaration));
    }

    pub(crate) fn problem(&mut self, module: &str, code: &str, message: String) {
        let (part, code) = (module.to_owned(), code.to_owned());
        self.problems.push(SourceProblem { part, origin: None, code, message });
    }
}

/// `<module>.<tool>`, with `_` for what an id cannot hold.
fn tool_id(module: &str, name: &str) -> Option<ToolId> {
    let fitting = |text: &str, also: &[char]| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || also.contains(&c) { c } else { '_' }).collect()
    };
    let module = fitting(module, &['_', '-', '/', ':']);
    ToolId::new(&module, &fitting(name, &['_', '-', '.', '/', ':'])).ok()
}

/// The schema of the arguments. `None`: any object.
fn schema(spec: &mut Map<String, Value>) -> Result<Option<Value>, String> {
    let schema = match spec.remove("parameters").or_else(|| spec.remove("input_schema")) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(schema)) if schema.is_empty() => return Ok(None),
        Some(schema @ Value::Object(_)) => schema,
        Some(_) => return Err("it is not an object".to_owned()),
    };
    if schema.to_string().len() > LARGEST_SCHEMA {
        return Err(format!("it has more than {LARGEST_SCHEMA} bytes"));
    }
    // As the host will compile it: without looking anywhere else, and with patterns that end.
    let patterns = PatternOptions::fancy_regex().backtrack_limit(50_000).size_limit(1 << 20);
    let options = jsonschema::draft202012::options().offline().with_pattern_options(patterns);
    match options.build(&schema) {
        Ok(_) => Ok(Some(schema)),
        Err(error) => Err(cut(&error.to_string(), 200)),
    }
}

fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}
