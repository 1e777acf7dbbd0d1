//! Declarations of module tools for the catalog, and the problems found in them.

use std::sync::Arc;

use serde_json::json;
use toolpost_amplifier::{LoadFailure, ModuleId, ToolSpec};
use toolpost_core::Schema;
use toolpost_model::{Declaration, SourceProblem};

/// The declaration of a module's tool. A schema that cannot be used does not lose the tool: the declaration then
/// accepts any object, and a problem is reported. `Err`: the tool cannot be offered at all.
pub(crate) fn declare(
    module: &ModuleId,
    spec: &ToolSpec,
) -> Result<(Declaration, Vec<SourceProblem>), SourceProblem> {
    let declared = spec.declare(module).map_err(|error| {
        let message = format!("its tool `{}` cannot be offered: {error}", spec.name);
        problem(module, "invalid_tool_name", message)
    })?;
    let mut declaration = declared.declaration;
    let mut problems: Vec<SourceProblem> = declared
        .notes
        .into_iter()
        .map(|note| problem(module, "oversized", note))
        .collect();
    if let Err(error) = Schema::try_out(&declaration.input.schema) {
        let message = format!(
            "the schema of its tool `{}` is invalid, so any object is accepted: {error}",
            spec.name
        );
        problems.push(problem(module, "invalid_schema", message));
        declaration.input.schema = Arc::new(json!({ "type": "object" }));
    }
    Ok((declaration, problems))
}

/// A problem of a module, for the operator.
pub(crate) fn problem(module: &ModuleId, code: &str, message: String) -> SourceProblem {
    SourceProblem {
        part: module.to_string(),
        origin: None,
        code: code.to_owned(),
        message,
    }
}

/// The problem of a module that failed to load.
pub(crate) fn not_loaded(failure: &LoadFailure) -> SourceProblem {
    SourceProblem {
        part: failure.module.to_string(),
        origin: failure.origin.clone(),
        code: failure.reason.as_str().to_owned(),
        message: failure.message.clone(),
    }
}

/// The problem of a module that brings nothing here, by its own choice unless a reason is given.
pub(crate) fn declined(
    module: &ModuleId,
    origin: Option<String>,
    because: Option<&str>,
) -> SourceProblem {
    let message = because
        .unwrap_or("its `mount` returned nothing and mounted nothing")
        .to_owned();
    SourceProblem {
        origin,
        ..problem(module, SourceProblem::DECLINED, message)
    }
}

/// The problem of a module that lacks a part.
pub(crate) fn reduced(failure: &LoadFailure) -> SourceProblem {
    SourceProblem {
        code: SourceProblem::REDUCED.to_owned(),
        ..not_loaded(failure)
    }
}

/// Merges similar problems of one module into one with their number: a thousand tools too many are one mistake.
pub(crate) fn counted(problems: Vec<SourceProblem>) -> Vec<SourceProblem> {
    let mut kinds: Vec<(String, SourceProblem, usize)> = Vec::new();
    for problem in problems {
        let kind = kind_of(&problem);
        match kinds
            .iter_mut()
            .find(|(known, first, _)| *known == kind && first.part == problem.part)
        {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((kind, problem, 1)),
        }
    }
    let told = |(_, problem, count): (String, SourceProblem, usize)| match count {
        1 => problem,
        _ => SourceProblem {
            message: format!("{} (and {} more like it)", problem.message, count - 1),
            ..problem
        },
    };
    kinds.into_iter().map(told).collect()
}

/// The code; for a general code also the words of the message that are no names.
fn kind_of(problem: &SourceProblem) -> String {
    match problem.code == SourceProblem::REDUCED {
        true => problem.message.split('`').step_by(2).collect(),
        false if problem.is_partial() => problem.code.clone(),
        false => format!("{} {}", problem.code, problem.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_a_kind_are_one() {
        let module = ModuleId::new("tool-many");
        let of = |code, message: &str| problem(&module, code, message.to_owned());
        let all = vec![
            of("reduced", "its tool `a` is already mounted by `x`"),
            of("reduced", "its tool `b` is already mounted by `y`"),
            of("reduced", "it mounts more than 256 tools"),
            of("invalid_schema", "the schema of `c`"),
            of("invalid_schema", "another schema"),
            of("invalid_schema", "a third"),
            of("unknown", "no key"),
        ];
        let told: Vec<String> = counted(all).iter().map(ToString::to_string).collect();
        let expected = [
            "`tool-many` is incomplete: its tool `a` is already mounted by `x` (and 1 more like it)",
            "`tool-many` is incomplete: it mounts more than 256 tools",
            "`tool-many` is incomplete: the schema of `c` (and 2 more like it)",
            "`tool-many` is not available: no key",
        ];
        assert_eq!(told, expected);
    }
}
