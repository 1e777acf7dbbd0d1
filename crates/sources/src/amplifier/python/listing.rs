//! What the modules of a set brought, as the catalog and the operator are told of it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleId, ModuleKind, ToolSpec, events};
use toolpost_model::{CancelSupport, Declaration, ExecutionKind, Loading, SourceProblem, ToolId};

use super::{
    super::declared::{declare, not_loaded},
    BridgedModule,
    protocol::{MountedModule, MountedTool},
};

/// The tools, and what is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    pub(super) declarations: Vec<Declaration>,
    /// Where a tool is found in the bridge.
    pub(super) places: BTreeMap<ToolId, Place>,
    pub(super) failures: Vec<LoadFailure>,
    /// Those of them that should look at calls and cannot.
    pub(super) blind: Vec<LoadFailure>,
    pub(super) problems: Vec<SourceProblem>,
    /// The events that each module has handlers for.
    pub(super) events: Vec<(String, Vec<String>)>,
}

/// A tool in the bridge.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) module: String,
    pub(super) tool: String,
}

impl Listing {
    /// From what a mount brought.
    pub(super) fn of(planned: &[BridgedModule], mounted: Vec<MountedModule>) -> Self {
        let mut listing = Self::default();
        for (planned, mounted) in planned.iter().zip(mounted) {
            for problem in &mounted.problems {
                let failure = failure(planned, reason(&problem.reason), problem.message.clone());
                match problem.fatal {
                    true => listing.missing(failure),
                    false => listing.problems.push(not_loaded(&failure)),
                }
            }
            for tool in mounted.tools {
                listing.add(planned, tool);
            }
            listing.events.push((mounted.module, mounted.events));
        }
        listing
    }

    /// Where nothing could be mounted at all.
    pub(super) fn without(planned: &[BridgedModule], message: &str) -> Self {
        let mut listing = Self::default();
        for planned in planned {
            let failure = failure(planned, LoadReason::Unknown, message.to_owned());
            listing.missing(failure);
        }
        listing
    }

    fn missing(&mut self, failure: LoadFailure) {
        self.problems.push(not_loaded(&failure));
        if failure.kind == ModuleKind::Hook {
            self.blind.push(failure.clone());
        }
        self.failures.push(failure);
    }

    fn add(&mut self, planned: &BridgedModule, tool: MountedTool) {
        let description = Some(tool.description).filter(|text| !text.is_empty());
        let mut spec = ToolSpec::new(tool.name.clone(), tool.schema.unwrap_or_default());
        spec.description = description;
        let (mut declaration, problems) = match declare(&planned.planned.id, &spec) {
            Ok(declared) => declared,
            Err(problem) => return self.problems.push(problem),
        };
        self.problems.extend(problems);
        let interface = &mut declaration.interface;
        interface.execution.kind = ExecutionKind::LocalProcess;
        interface.execution.streaming = true;
        interface.execution.cancel = CancelSupport::Cooperative;
        interface.permission.approval_required |= tool.asks;
        let place = Place { module: planned.planned.id.to_string(), tool: tool.name };
        self.places.insert(declaration.tool_id.clone(), place);
        self.declarations.push(declaration);
    }

    /// The modules with handlers that hear an event.
    pub(super) fn hearing(&self, event: &str) -> Vec<String> {
        let hears = |patterns: &[String]| patterns.iter().any(|pattern| events::matches(pattern, event));
        let all = self.events.iter().filter(|(_, patterns)| hears(patterns));
        all.map(|(module, _)| module.clone()).collect()
    }
}

fn failure(planned: &BridgedModule, reason: LoadReason, message: String) -> LoadFailure {
    LoadFailure {
        module: planned.planned.id.clone(),
        kind: planned.planned.kind,
        origin: planned.planned.source.as_ref().map(origin),
        reason,
        message,
    }
}

fn origin(source: &toolpost_amplifier::ModuleSource) -> String {
    use toolpost_amplifier::ModuleSource::{Archive, Git, Package, Path, Unspoken};
    match source {
        Git { url, reference, .. } => match reference {
            Some(reference) => format!("git+{url}@{reference}"),
            None => format!("git+{url}"),
        },
        Path(path) => path.display().to_string(),
        Archive { url, .. } => url.clone(),
        Package(name) | Unspoken { text: name, .. } => name.clone(),
    }
}

fn reason(word: &str) -> LoadReason {
    let all = [
        LoadReason::InvalidPackageLayout,
        LoadReason::MissingSource,
        LoadReason::InvalidEntryPoint,
        LoadReason::InvalidModuleMetadata,
        LoadReason::ValidationFailed,
    ];
    all.into_iter().find(|reason| reason.as_str() == word).unwrap_or(LoadReason::Unknown)
}

/// The declaration of the tool that asks a person on behalf of a module.
pub(super) fn ask_declaration(id: ToolId) -> Declaration {
    let about = "Asks the operator a question on behalf of a module; an approval is a yes";
    let mut declaration = Declaration::new(id, about);
    declaration.input.schema = Arc::new(json!({
        "type": "object",
        "properties": {
            "question": { "type": "string", "description": "What is to be decided" },
            "options": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["question"],
        "additionalProperties": false,
    }));
    declaration.toolkit = ModuleId::new("amplifier").to_string();
    // Agents ask people themselves.
    declaration.loading = Loading::Internal;
    declaration.interface.permission.approval_required = true;
    declaration.interface.safety.requires_user_interaction = true;
    declaration.interface.rendering.subject_argument = Some("question".to_owned());
    declaration
}

/// What that tool answers once somebody has said yes.
pub(super) fn ask_answer() -> Value {
    json!({ "approved": true })
}
