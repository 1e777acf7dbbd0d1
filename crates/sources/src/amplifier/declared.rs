//! Tools of modules as the catalog gets them, with what is wrong with them told.

use std::sync::Arc;

use serde_json::json;
use toolpost_amplifier::{LoadFailure, ModuleId, ToolSpec};
use toolpost_core::Schema;
use toolpost_model::{Declaration, SourceProblem};

/// The declaration of a module's tool. A schema that cannot be used does not lose the tool: any object is taken instead,
/// and that is a problem to tell. `Err`: there is no way to offer the tool.
pub(crate) fn declare(
    module: &ModuleId,
    spec: &ToolSpec,
) -> Result<(Declaration, Vec<SourceProblem>), SourceProblem> {
    let declared = spec.declare(module).map_err(|error| {
        let message = format!("its tool `{}` cannot be offered: {error}", spec.name);
        problem(module, "invalid_tool_name", message)
    })?;
    let mut declaration = declared.declaration;
    let mut problems: Vec<SourceProblem> =
        declared.notes.into_iter().map(|note| problem(module, "oversized", note)).collect();
    if let Err(error) = Schema::try_out(&declaration.input.schema) {
        let message =
            format!("the schema of its tool `{}` is broken, any object is taken instead: {error}", spec.name);
        problems.push(problem(module, "invalid_schema", message));
        declaration.input.schema = Arc::new(json!({ "type": "object" }));
    }
    Ok((declaration, problems))
}

/// Something about a module that an operator should know.
pub(crate) fn problem(module: &ModuleId, code: &str, message: String) -> SourceProblem {
    SourceProblem { part: module.to_string(), origin: None, code: code.to_owned(), message }
}

/// A module that is not there.
pub(crate) fn not_loaded(failure: &LoadFailure) -> SourceProblem {
    SourceProblem {
        part: failure.module.to_string(),
        origin: failure.origin.clone(),
        code: failure.reason.as_str().to_owned(),
        message: failure.message.clone(),
    }
}
