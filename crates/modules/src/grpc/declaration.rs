//! A service's description of its tool, declared like every module's tool. Its schema comes as text, which may be anything.

use serde_json::{Map, Value};
use toolpost_amplifier::{ModuleId, ToolSpec};
use toolpost_model::{Declaration, ExecutionKind, SourceProblem};

use super::message::GrpcToolSpec;
use crate::declared::{declare as declare_tool, problem};

/// The longest schema that is read at all. What is longer than modules may have is told where all are declared.
const LONGEST_TEXT: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
enum BrokenSchema {
    #[error("it has {0} bytes")]
    TooLong(usize),
    #[error("it is not JSON: {0}")]
    NoJson(#[from] serde_json::Error),
    #[error("it is not an object")]
    NoObject,
}

/// The declaration, with what had to be mended about it. `Err`: there is no way to offer the tool.
pub(super) fn declare(
    module: &ModuleId,
    spec: GrpcToolSpec,
    kind: ExecutionKind,
) -> Result<(Declaration, Vec<SourceProblem>), SourceProblem> {
    let (parameters, broken) = match parameters(&spec.parameters_json) {
        Ok(parameters) => (parameters, None),
        Err(why) => {
            let message =
                format!("the schema of its input is broken, any object is taken instead: {why}");
            (Map::new(), Some(problem(module, "invalid_schema", message)))
        }
    };
    let spec = ToolSpec::new(spec.name.trim(), parameters).describe(spec.description);
    let (mut declaration, mut problems) = declare_tool(module, &spec)?;
    problems.extend(broken);
    declaration.interface.execution.kind = kind;
    Ok((declaration, problems))
}

/// The schema of the input: none at all, like an empty one, takes any object.
fn parameters(text: &str) -> Result<Map<String, Value>, BrokenSchema> {
    if text.len() > LONGEST_TEXT {
        return Err(BrokenSchema::TooLong(text.len()));
    }
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text)? {
        Value::Object(keywords) => Ok(keywords),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(BrokenSchema::NoObject)
        }
    }
}
