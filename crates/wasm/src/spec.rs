//! What a component says of its tools. It is a stranger: sizes are bounded, and what is odd is left out and told.

use jsonschema::PatternOptions;
use serde_json::{Map, Value};
use toolpost_amplifier::{MAX_TOOLS, ModuleId, ToolSpec};
use toolpost_model::{Declaration, InputContract, SourceProblem};

use crate::settings::InstanceUse;

/// How much of somebody else's words is repeated in a message.
const SHOWN: usize = 200;

/// The tools of a component.
pub(crate) struct Specs {
    module: ModuleId,
    pub(crate) tools: Vec<Declaration>,
    pub(crate) problems: Vec<SourceProblem>,
    /// How long the component wants its instances to live.
    pub(crate) instances: Option<InstanceUse>,
}

impl Specs {
    /// Reads what `get-spec` or `get-specs` answered.
    pub(crate) fn read(module: &ModuleId, json: &[u8]) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(json).map_err(|error| format!("its spec is not JSON: {error}"))?;
        let list = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        let mut specs =
            Self { module: module.clone(), tools: Vec::new(), problems: Vec::new(), instances: None };
        if list.len() > MAX_TOOLS {
            let message = format!("only the first {MAX_TOOLS} of its {} tools are taken", list.len());
            specs.problem("too_many_tools", message);
        }
        for (place, spec) in list.into_iter().take(MAX_TOOLS).enumerate() {
            if let Err(fault) = specs.add(spec) {
                specs.problem("invalid_spec", format!("tool {} of it is left out: {fault}", place + 1));
            }
        }
        match (specs.tools.is_empty(), specs.problems.first()) {
            (true, Some(problem)) => Err(problem.message.clone()),
            (true, None) => Err("it has no tools".to_owned()),
            (false, _) => Ok(specs),
        }
    }

    /// Tells that something of the module is not there.
    pub(crate) fn problem(&mut self, code: &str, message: String) {
        let (part, code) = (self.module.to_string(), code.to_owned());
        self.problems.push(SourceProblem { part, origin: None, code, message });
    }

    fn add(&mut self, spec: Value) -> Result<(), String> {
        let Value::Object(mut fields) = spec else { return Err("its spec is not a JSON object".to_owned()) };
        let name = match fields.remove("name") {
            Some(Value::String(name)) if !name.is_empty() => name,
            _ => return Err("it has no name".to_owned()),
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
        let declared = spec.declare(&self.module).map_err(|error| cut(&error.to_string()))?;
        let (mut declaration, mut notes) = (declared.declaration, declared.notes);
        let shown = declaration.tool_id.name().to_owned();
        if self.tools.iter().any(|known| known.tool_id == declaration.tool_id) {
            return Err(format!("another one before it is called `{shown}`"));
        }
        if misfit {
            notes.push(format!("the schema of `{shown}` is not an object; any object is taken instead"));
        }
        if let Err(fault) = compiles(&declaration.input.schema) {
            declaration.input = InputContract::default();
            notes.push(format!("the schema of `{shown}` is not valid, any object is taken instead: {fault}"));
        }
        notes.into_iter().for_each(|note| self.problem("invalid_spec", note));
        if fields.get("instance").and_then(Value::as_str) == Some("session") {
            self.instances = Some(InstanceUse::PerSession);
        }
        self.tools.push(declaration);
        Ok(())
    }
}

/// Whether the host will be able to use a schema: without looking anywhere else, and with patterns that end.
fn compiles(schema: &Value) -> Result<(), String> {
    let patterns = PatternOptions::fancy_regex().backtrack_limit(50_000).size_limit(1 << 20);
    let options = jsonschema::draft202012::options().offline().with_pattern_options(patterns);
    options.build(schema).map(|_| ()).map_err(|error| cut(&error.to_string()))
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_amplifier::ModuleId;

    use super::Specs;

    /// What is made of specs: the tools' ids, then the problems' messages; or why nothing is.
    fn check(specs: &serde_json::Value, expected: Result<(&[&str], &[&str]), &str>) {
        let read = Specs::read(&ModuleId::new("my.module"), specs.to_string().as_bytes());
        let read = read.map(|specs| {
            let ids: Vec<String> = specs.tools.iter().map(|tool| tool.tool_id.to_string()).collect();
            (ids, specs.problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>())
        });
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let expected = expected.map(|(ids, problems)| (owned(ids), owned(problems)));
        assert_eq!(read, expected.map_err(str::to_owned), "{specs}");
    }

    #[test]
    fn specs_are_taken_as_far_as_they_can_be() {
        check(&json!({ "name": "a" }), Ok((&["my_module.a"], &[])));
        check(&json!([{ "name": "a b", "parameters": null }]), Ok((&["my_module.a_b"], &[])));
        check(&json!([]), Err("it has no tools"));
        check(&json!([3]), Err("tool 1 of it is left out: its spec is not a JSON object"));
        check(&json!({ "name": "" }), Err("tool 1 of it is left out: it has no name"));
        check(
            &json!([{ "name": "a" }, { "name": "a" }, { "description": "no name" }]),
            Ok((
                &["my_module.a"],
                &[
                    "tool 2 of it is left out: another one before it is called `a`",
                    "tool 3 of it is left out: it has no name",
                ],
            )),
        );
        check(
            &json!({ "name": "a", "parameters": "text" }),
            Ok((&["my_module.a"], &["the schema of `a` is not an object; any object is taken instead"])),
        );
    }

    #[test]
    fn a_schema_that_is_not_valid_costs_the_schema_and_not_the_tool() {
        let json = json!({ "name": "a", "parameters": { "type": "nonsense" } }).to_string();
        let specs = Specs::read(&ModuleId::new("m"), json.as_bytes()).unwrap();
        assert_eq!(*specs.tools[0].input.schema, json!({ "type": "object" }));
        let said = &specs.problems[0].message;
        assert!(said.starts_with("the schema of `a` is not valid, any object is taken instead"), "{said}");
    }
}
