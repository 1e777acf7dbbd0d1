//! A service's description of its tool, declared like the tools of other modules. Its schema arrives as text and may
//! be malformed.

use serde_json::{Map, Value};
use toolpost_amplifier::{ModuleId, ToolSpec};
use toolpost_model::{Declaration, ExecutionKind, SourceProblem};

use super::message::GrpcToolSpec;
use crate::declared::{declare as declare_tool, problem};

/// The longest schema text that is parsed. The smaller limit for schemas of modules applies where all tools are
/// declared.
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

/// The declaration, with its repaired problems. `Err`: the tool cannot be offered.
pub(super) fn declare(
    module: &ModuleId,
    spec: GrpcToolSpec,
    kind: ExecutionKind,
) -> Result<(Declaration, Vec<SourceProblem>), SourceProblem> {
    let (parameters, broken) = match parameters(&spec.parameters_json) {
        Ok(parameters) => (parameters, None),
        Err(why) => {
            let message = format!("its input schema is invalid, so any object is accepted: {why}");
            (Map::new(), Some(problem(module, "invalid_schema", message)))
        }
    };
    let spec = ToolSpec::new(spec.name.trim(), parameters).describe(spec.description);
    let (mut declaration, mut problems) = declare_tool(module, &spec)?;
    problems.extend(broken);
    declaration.interface.execution.kind = kind;
    Ok((declaration, problems))
}

/// The schema of the input. A missing schema and an empty one accept any object.
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
