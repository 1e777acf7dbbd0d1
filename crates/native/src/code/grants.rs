//! The functions of a run: the tools that its session sees, that the operator grants to code, and that the request
//! names. Other tools do not exist for the code.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value};
use toolpost_model::{CallableTool, ToolPattern};

use super::frame::{CodeFunction, FileTool};

/// The suffix of functions that return an awaitable instead of a value.
const LATER: &str = "_async";
/// Python's keywords, which cannot be names.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// The argument of `read_file` that switches line numbers.
const LINE_NUMBERS: &str = "line_numbers";

/// The functions of one run.
pub(super) struct FunctionGrants {
    functions: BTreeMap<String, ToolFunction>,
    by_id: HashMap<String, String>,
}

/// A tool as a function.
#[derive(Clone, Debug)]
pub(super) struct ToolFunction {
    /// Its name on the wire.
    pub(super) tool: String,
    id: String,
    /// The arguments in their positional order.
    parameters: Vec<String>,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FunctionCallMode {
    /// The code waits for the result.
    Now,
    /// The code goes on and awaits the result later.
    Later,
}

/// Arguments that do not fit a function.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BindError {
    #[error("{tool}() takes at most {most} positional arguments but {given} were given")]
    TooMany {
        tool: String,
        most: usize,
        given: usize,
    },
    #[error("{tool}() got multiple values for argument '{name}'")]
    Twice { tool: String, name: String },
}

impl FunctionGrants {
    /// `callable` are the tools that the session sees, `granted` the operator's patterns, which name tools exactly, and
    /// `wanted` the names in the request, or all.
    pub(super) fn new(
        callable: Vec<CallableTool>,
        granted: &[ToolPattern],
        wanted: Option<&[String]>,
    ) -> Self {
        let tools: Vec<CallableTool> = callable
            .into_iter()
            .filter(|tool| granted.iter().any(|pattern| grants(pattern, tool)))
            .filter(|tool| {
                wanted.is_none_or(|names| names.iter().any(|name| is_called(tool, name)))
            })
            .collect();
        let exact: BTreeSet<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let mut functions: BTreeMap<String, Option<ToolFunction>> = BTreeMap::new();
        for tool in tools {
            let name = identifier(&tool.name);
            // A tool with exactly this name keeps it. Two tools with names that only become equal are both left out.
            if name != tool.name && exact.contains(&name) {
                continue;
            }
            let granted = ToolFunction {
                id: tool.id.to_string(),
                parameters: parameters(&tool.schema),
                tool: tool.name,
            };
            functions
                .entry(name)
                .and_modify(|taken| *taken = None)
                .or_insert(Some(granted));
        }
        let functions: BTreeMap<String, ToolFunction> = functions
            .into_iter()
            .filter_map(|(name, granted)| Some((name, granted?)))
            .collect();
        let by_id = functions
            .iter()
            .map(|(name, granted)| (granted.id.clone(), name.clone()))
            .collect();
        Self { functions, by_id }
    }

    /// Names of the functions, sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The function for a request.
    pub(super) fn find(
        &self,
        function: &CodeFunction,
    ) -> Option<(&ToolFunction, FunctionCallMode)> {
        match function {
            CodeFunction::Named(name) => self.named(name),
            CodeFunction::File(tool) => self
                .file_tool(*tool)
                .map(|granted| (granted, FunctionCallMode::Now)),
        }
    }

    fn named(&self, name: &str) -> Option<(&ToolFunction, FunctionCallMode)> {
        let now = self
            .functions
            .get(name)
            .map(|granted| (granted, FunctionCallMode::Now));
        now.or_else(|| {
            Some((
                self.functions.get(name.strip_suffix(LATER)?)?,
                FunctionCallMode::Later,
            ))
        })
    }

    fn file_tool(&self, tool: FileTool) -> Option<&ToolFunction> {
        self.functions.get(self.by_id.get(tool.id())?)
    }

    /// Whether a name in the request is a function.
    pub(super) fn has(&self, wanted: &str) -> bool {
        self.functions.contains_key(wanted)
            || self.by_id.contains_key(wanted)
            || self
                .functions
                .values()
                .any(|granted| granted.tool == wanted)
    }
}

impl ToolFunction {
    /// Builds the tool's arguments from positional and named ones.
    pub(super) fn bind(
        &self,
        positional: Vec<Value>,
        keywords: Map<String, Value>,
    ) -> Result<Value, BindError> {
        // A tool without declared parameters gets the arguments as they are.
        if self.parameters.is_empty()
            && keywords.is_empty()
            && matches!(positional.as_slice(), [Value::Object(_)])
        {
            return Ok(positional.into_iter().collect::<Vec<_>>().swap_remove(0));
        }
        if positional.len() > self.parameters.len() {
            let most = self.parameters.len();
            let given = positional.len();
            return Err(BindError::TooMany {
                tool: self.tool.clone(),
                most,
                given,
            });
        }
        let mut arguments = keywords;
        for (name, value) in self.parameters.iter().zip(positional) {
            if arguments.insert(name.clone(), value).is_some() {
                return Err(BindError::Twice {
                    tool: self.tool.clone(),
                    name: name.clone(),
                });
            }
        }
        // Line numbers are for readers; code needs the content of the file.
        if self.parameters.iter().any(|name| name == LINE_NUMBERS) {
            arguments.entry(LINE_NUMBERS).or_insert(Value::Bool(false));
        }
        Ok(Value::Object(arguments))
    }
}

/// Whether an operator's pattern grants a tool to code. The wire name counts as an alias.
fn grants(pattern: &ToolPattern, tool: &CallableTool) -> bool {
    pattern.names_tool_exactly(&tool.id, std::slice::from_ref(&tool.name), tool.provenance)
}

fn is_called(tool: &CallableTool, name: &str) -> bool {
    tool.name == name || tool.id.as_str() == name || identifier(&tool.name) == name
}

/// A tool's name as a Python identifier.
fn identifier(name: &str) -> String {
    let mut text: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if KEYWORDS.contains(&text.as_str()) {
        text.push('_');
    }
    text
}

/// Whether a name is a valid identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

/// The required arguments in the schema's order, then the others.
fn parameters(schema: &Value) -> Vec<String> {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut parameters: Vec<String> = required
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in properties.into_iter().flat_map(Map::keys) {
        if !parameters.contains(name) {
            parameters.push(name.clone());
        }
    }
    parameters
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use toolpost_model::{CallableTool, Provenance, ToolId, ToolPattern};

    use super::{FunctionCallMode, FunctionGrants, identifier};
    use crate::code::frame::{CodeFunction, FileTool};

    fn tool(name: &str, id: &str) -> CallableTool {
        let schema = json!({
            "properties": { "limit": {}, "offset": {}, "path": {} },
            "required": ["path"],
        });
        let id: ToolId = id.parse().unwrap();
        let provenance = match id.namespace() {
            "files" => Provenance::CompiledIn,
            _ => Provenance::Outside,
        };
        CallableTool {
            name: name.to_owned(),
            id,
            provenance,
            schema: Arc::new(schema),
        }
    }

    fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn surface() -> Vec<CallableTool> {
        vec![
            tool("read_file", "files.read_file"),
            tool("write_file", "files.write_file"),
            tool("git__log-all", "git.log-all"),
            tool("git__log_all", "git.log_all"),
            tool("x-y", "x.y"),
            tool("x_y", "x.z"),
        ]
    }

    #[test]
    fn functions_are_what_all_three_agree_on() {
        let check = |granted: &[&str], wanted: Option<&[&str]>, expected: &[&str]| {
            let own = |names: &[&str]| {
                names
                    .iter()
                    .map(|&name| name.to_owned())
                    .collect::<Vec<_>>()
            };
            let wanted = wanted.map(own);
            let grants = FunctionGrants::new(surface(), &patterns(granted), wanted.as_deref());
            assert_eq!(
                grants.names().collect::<Vec<_>>(),
                expected,
                "{granted:?} {wanted:?}"
            );
        };
        check(&[], None, &[]);
        check(&["read_file"], None, &["read_file"]);
        check(&["files.*"], None, &["read_file", "write_file"]);
        check(&["files.*"], Some(&["read_file"]), &["read_file"]);
        check(
            &["files.*"],
            Some(&["files.write_file", "x_y"]),
            &["write_file"],
        );
        check(&["read_file"], Some(&["write_file"]), &[]);
        // `x_y` is a tool's exact name. `git__log-all` yields to the tool with the exact name.
        check(
            &["*.*"],
            None,
            &["git__log_all", "read_file", "write_file", "x_y"],
        );
        check(&["x.y"], None, &["x_y"]);
        // A bare name or pattern grants only the host's own tools.
        check(&["*"], None, &["read_file", "write_file"]);
        check(&["x_y", "x-y", "git__log_all"], None, &["git__log_all"]);
    }

    #[test]
    fn two_tools_that_only_resemble_a_name_both_go_without() {
        let grants = FunctionGrants::new(
            vec![tool("a-b", "a.b"), tool("a.b", "a.c")],
            &patterns(&["*.*"]),
            None,
        );
        assert_eq!(grants.names().count(), 0);
    }

    #[test]
    fn a_function_is_found_by_name_later_and_as_a_file_tool() {
        let grants = FunctionGrants::new(surface(), &patterns(&["files.read_file"]), None);
        let find = |function: CodeFunction| {
            grants
                .find(&function)
                .map(|(granted, when)| (granted.tool.clone(), when))
        };
        let named = |name: &str| find(CodeFunction::Named(name.to_owned()));
        assert_eq!(
            named("read_file"),
            Some(("read_file".to_owned(), FunctionCallMode::Now))
        );
        assert_eq!(
            named("read_file_async"),
            Some(("read_file".to_owned(), FunctionCallMode::Later))
        );
        assert_eq!(named("write_file"), None);
        assert_eq!(named("_async"), None);
        assert!(find(CodeFunction::File(FileTool::Read)).is_some());
        assert!(find(CodeFunction::File(FileTool::Write)).is_none());
    }

    #[test]
    fn arguments_are_bound_as_python_binds_them() {
        let grants = FunctionGrants::new(surface(), &patterns(&["*.*"]), None);
        let (granted, _) = grants
            .find(&CodeFunction::Named("read_file".to_owned()))
            .unwrap();
        let check = |positional: Value, keywords: Value, expected: Result<Value, &str>| {
            let Value::Array(positional) = positional else {
                panic!("a list")
            };
            let Value::Object(keywords) = keywords else {
                panic!("an object")
            };
            match (granted.bind(positional, keywords), expected) {
                (Ok(bound), Ok(value)) => assert_eq!(bound, value),
                (Err(error), Err(text)) => assert_eq!(error.to_string(), text),
                (got, want) => panic!("{got:?} instead of {want:?}"),
            }
        };
        check(json!(["a"]), json!({}), Ok(json!({ "path": "a" })));
        check(
            json!(["a", 5]),
            json!({ "offset": 2 }),
            Ok(json!({ "path": "a", "limit": 5, "offset": 2 })),
        );
        check(json!([]), json!({ "odd": 1 }), Ok(json!({ "odd": 1 })));
        check(
            json!(["a"]),
            json!({ "path": "b" }),
            Err("read_file() got multiple values for argument 'path'"),
        );
        check(
            json!([1, 2, 3, 4]),
            json!({}),
            Err("read_file() takes at most 3 positional arguments but 4 were given"),
        );
    }

    #[test]
    fn names_become_identifiers() {
        let check = |name: &str, expected: &str| assert_eq!(identifier(name), expected);
        check("read_file", "read_file");
        check("a-b.c", "a_b_c");
        check("2fa", "_2fa");
        check("import", "import_");
    }
}
