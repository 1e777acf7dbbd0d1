//! The specs of a component's tools. They are foreign input: sizes are bounded, and a spec with a fault is left out
//! with a problem for the operator.

use jsonschema::{PatternOptions, ValidationError};
use serde_json::{Map, Value};
use toolpost_amplifier::{MAX_TOOLS, ModuleId, ToolSpec};
use toolpost_model::{Declaration, InputContract, SourceProblem, ToolIdError};

use crate::settings::InstanceUse;

/// How much of a component's text a message quotes.
const SHOWN: usize = 200;

/// A component without a usable tool.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpecsError {
    #[error("its spec is not JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    #[error("it has no tools")]
    NoTools,
    /// Every tool was left out; this is the first one.
    #[error(transparent)]
    AllLeftOut(LeftOut),
}

/// A tool that is not offered, by its position among all, from 1.
#[derive(Debug, thiserror::Error)]
#[error("its tool {place} is left out: {fault}")]
pub(crate) struct LeftOut {
    place: usize,
    fault: SpecError,
}

/// A fault in the spec of one tool.
#[derive(Debug, thiserror::Error)]
enum SpecError {
    #[error("its spec is not a JSON object")]
    NoObject,
    #[error("it has no name")]
    NoName,
    #[error("an earlier tool has the name `{0}`")]
    NameTaken(String),
    #[error("{}", cut(&.0.to_string()))]
    NotOffered(#[from] ToolIdError),
}

/// The tools of a component.
pub(crate) struct ComponentSpecs {
    module: ModuleId,
    pub(crate) tools: Vec<Declaration>,
    pub(crate) problems: Vec<SourceProblem>,
    /// The instance lifetime that the component asks for.
    pub(crate) instances: Option<InstanceUse>,
}

impl ComponentSpecs {
    /// Reads the answer of `get-spec` or `get-specs`.
    pub(crate) fn read(module: &ModuleId, json: &[u8]) -> Result<Self, SpecsError> {
        let list = match serde_json::from_slice::<Value>(json)? {
            Value::Array(list) => list,
            one => vec![one],
        };
        let mut specs = Self {
            module: module.clone(),
            tools: Vec::new(),
            problems: Vec::new(),
            instances: None,
        };
        if list.len() > MAX_TOOLS {
            let message = format!(
                "only the first {MAX_TOOLS} of its {} tools are offered",
                list.len()
            );
            specs.problem("too_many_tools", message);
        }
        let mut first = None;
        for (place, spec) in (1..).zip(list.into_iter().take(MAX_TOOLS)) {
            if let Err(fault) = specs.add(spec) {
                let left_out = LeftOut { place, fault };
                specs.problem("invalid_spec", left_out.to_string());
                first.get_or_insert(left_out);
            }
        }
        match (specs.tools.is_empty(), first) {
            (true, Some(left_out)) => Err(SpecsError::AllLeftOut(left_out)),
            (true, None) => Err(SpecsError::NoTools),
            (false, _) => Ok(specs),
        }
    }

    /// Reports a problem with a part of the module.
    pub(crate) fn problem(&mut self, code: &str, message: String) {
        let part = self.module.to_string();
        let code = code.to_owned();
        self.problems.push(SourceProblem {
            part,
            origin: None,
            code,
            message,
        });
    }

    fn add(&mut self, spec: Value) -> Result<(), SpecError> {
        let Value::Object(mut fields) = spec else {
            return Err(SpecError::NoObject);
        };
        let name = match fields.remove("name") {
            Some(Value::String(name)) if !name.is_empty() => name,
            _ => return Err(SpecError::NoName),
        };
        let (parameters, misfit) = match fields.remove("parameters") {
            None | Some(Value::Null) => (Map::new(), false),
            Some(Value::Object(parameters)) => (parameters, false),
            Some(_) => (Map::new(), true),
        };
        let mut spec = ToolSpec::new(name, parameters);
        if let Some(Value::String(description)) = fields.remove("description") {
            spec = spec.describe(description);
        }
        let declared = spec.declare(&self.module)?;
        let mut declaration = declared.declaration;
        let mut notes = declared.notes;
        let shown = declaration.tool_id.name().to_owned();
        if self
            .tools
            .iter()
            .any(|known| known.tool_id == declaration.tool_id)
        {
            return Err(SpecError::NameTaken(shown));
        }
        if misfit {
            notes.push(format!(
                "the schema of `{shown}` is not an object; any object is accepted"
            ));
        }
        if let Err(fault) = compiles(&declaration.input.schema) {
            declaration.input = InputContract::default();
            let fault = cut(&fault.to_string());
            notes.push(format!(
                "the schema of `{shown}` is invalid, so any object is accepted: {fault}"
            ));
        }
        notes
            .into_iter()
            .for_each(|note| self.problem("invalid_spec", note));
        if fields.get("instance").and_then(Value::as_str) == Some("session") {
            self.instances = Some(InstanceUse::PerSession);
        }
        self.tools.push(declaration);
        Ok(())
    }
}

/// Checks that the host can use a schema: without references to other documents, and with patterns that are sure to
/// end.
fn compiles(schema: &Value) -> Result<(), Box<ValidationError<'static>>> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(50_000)
        .size_limit(1 << 20);
    let options = jsonschema::draft202012::options()
        .offline()
        .with_pattern_options(patterns);
    options.build(schema).map(|_| ()).map_err(Box::new)
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_amplifier::ModuleId;

    use super::ComponentSpecs;

    /// Reads the specs and compares either the tools' ids and the problems' messages, or the error.
    fn check(specs: &serde_json::Value, expected: Result<(&[&str], &[&str]), &str>) {
        let read = ComponentSpecs::read(&ModuleId::new("my.module"), specs.to_string().as_bytes());
        let texts = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        match (read, expected) {
            (Ok(read), Ok((ids, problems))) => {
                let found: Vec<String> = read
                    .tools
                    .iter()
                    .map(|tool| tool.tool_id.to_string())
                    .collect();
                assert_eq!(found, texts(ids), "{specs}");
                let found: Vec<String> = read
                    .problems
                    .into_iter()
                    .map(|problem| problem.message)
                    .collect();
                assert_eq!(found, texts(problems), "{specs}");
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{specs}"),
            (Ok(_), Err(expected)) => panic!("expected `{expected}` of {specs}"),
            (Err(error), Ok(_)) => panic!("{error} of {specs}"),
        }
    }

    #[test]
    fn specs_are_taken_as_far_as_they_can_be() {
        check(&json!({ "name": "a" }), Ok((&["my_module.a"], &[])));
        check(
            &json!([{ "name": "a b", "parameters": null }]),
            Ok((&["my_module.a_b"], &[])),
        );
        check(&json!([]), Err("it has no tools"));
        check(
            &json!([3]),
            Err("its tool 1 is left out: its spec is not a JSON object"),
        );
        check(
            &json!({ "name": "" }),
            Err("its tool 1 is left out: it has no name"),
        );
        check(
            &json!([{ "name": "a" }, { "name": "a" }, { "description": "no name" }]),
            Ok((
                &["my_module.a"],
                &[
                    "its tool 2 is left out: an earlier tool has the name `a`",
                    "its tool 3 is left out: it has no name",
                ],
            )),
        );
        check(
            &json!({ "name": "a", "parameters": "text" }),
            Ok((
                &["my_module.a"],
                &["the schema of `a` is not an object; any object is accepted"],
            )),
        );
    }

    #[test]
    fn a_schema_that_is_not_valid_costs_the_schema_and_not_the_tool() {
        let json = json!({ "name": "a", "parameters": { "type": "nonsense" } }).to_string();
        let specs = ComponentSpecs::read(&ModuleId::new("m"), json.as_bytes()).unwrap();
        assert_eq!(*specs.tools[0].input.schema, json!({ "type": "object" }));
        let said = &specs.problems[0].message;
        assert!(
            said.starts_with("the schema of `a` is invalid, so any object is accepted"),
            "{said}"
        );
    }
}
