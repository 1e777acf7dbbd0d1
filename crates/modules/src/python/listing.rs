//! The contributions of a set's modules, for the catalog and the operator.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleId, ModuleKind, ToolSpec, events};
use toolpost_model::{
    CancelSupport, Declaration, ExecutionKind, LoadingStrategy, SourceProblem, ToolId,
};

use super::{
    super::declared::{counted, declare, declined, not_loaded, problem, reduced},
    BridgedModule, LoadedPlugin,
    plugin::{self, MessageTaker},
    protocol::{BridgeTool, MountedModule, MountedPlugin},
};

/// The tools and the problems.
#[derive(Clone, Debug, Default)]
pub(super) struct ModuleSetListing {
    pub(super) declarations: Vec<Declaration>,
    /// The place of each tool in the bridge.
    pub(super) places: BTreeMap<ToolId, BridgeToolAddress>,
    pub(super) failures: Vec<LoadFailure>,
    /// The modules among them that should look at calls and cannot.
    pub(super) blind: Vec<LoadFailure>,
    /// The hook modules that declined.
    pub(super) declined: Vec<ModuleId>,
    pub(super) problems: Vec<SourceProblem>,
    /// The events that each module has handlers for.
    pub(super) events: Vec<(String, Vec<String>)>,
    /// Places of the plan where modules took too long, with their messages.
    pub(super) late: Vec<(usize, String)>,
    /// The plugins of an A2E host file, in the order of the file.
    pub(super) plugins: Vec<LoadedPlugin>,
    /// The plugins for each message, by the call that dispatches it, in the order of dispatch.
    pub(super) dispatches: BTreeMap<ToolId, Vec<MessageTaker>>,
    /// The plugin of each step.
    pub(super) steps: BTreeMap<ToolId, MessageTaker>,
}

/// A tool in the bridge.
#[derive(Clone, Debug)]
pub(super) struct BridgeToolAddress {
    pub(super) module: String,
    pub(super) tool: String,
}

impl ModuleSetListing {
    /// Lists the contributions of a mount.
    pub(super) fn of(planned: &[BridgedModule], mounted: Vec<MountedModule>) -> Self {
        let mut listing = Self::default();
        for (place, (planned, mounted)) in planned.iter().zip(mounted).enumerate() {
            for problem in &mounted.problems {
                if problem.late {
                    listing.late.push((place, problem.message.clone()));
                }
                let failure = failure(planned, reason(&problem.reason), problem.message.clone());
                match problem.fatal {
                    true => listing.missing(failure),
                    false => listing.problems.push(reduced(&failure)),
                }
            }
            if mounted.declined {
                listing.decline(planned, mounted.declined_because.as_deref());
            }
            for tool in mounted.tools {
                listing.add(planned, tool);
            }
            if let Some(plugin) = &mounted.plugin {
                listing.add_plugin(planned, plugin);
            }
            listing.events.push((mounted.module, mounted.events));
        }
        listing.drop_taken_aliases();
        listing
            .dispatches
            .values_mut()
            .for_each(|takers| plugin::by_priority(takers));
        listing.problems = counted(std::mem::take(&mut listing.problems));
        listing
    }

    /// Adds the tools of another mount that this one lacks. None are removed.
    pub(super) fn grown(&self, other: &Self) -> Self {
        let mut grown = self.clone();
        for declaration in &other.declarations {
            let id = &declaration.tool_id;
            if let (false, Some(place)) = (self.places.contains_key(id), other.places.get(id)) {
                grown.places.insert(id.clone(), place.clone());
                grown.declarations.push(declaration.clone());
            }
        }
        grown.drop_taken_aliases();
        let new = other
            .problems
            .iter()
            .filter(|problem| !self.problems.contains(problem));
        grown.problems.extend(new.cloned());
        grown
    }

    /// The failure of a module, if it failed to load.
    pub(super) fn failure_of(&self, module: &str) -> Option<&LoadFailure> {
        self.failures
            .iter()
            .find(|failure| failure.module.as_str() == module)
    }

    /// The listing if no module could be mounted.
    pub(super) fn without(planned: &[BridgedModule], message: &str) -> Self {
        let mut listing = Self::default();
        for planned in planned {
            let failure = failure(planned, LoadReason::Unknown, message.to_owned());
            listing.missing(failure);
        }
        listing
    }

    fn decline(&mut self, planned: &BridgedModule, because: Option<&str>) {
        let module = &planned.planned.id;
        let origin = planned.planned.source.as_ref().map(ToString::to_string);
        self.problems.push(declined(module, origin, because));
        if planned.planned.kind == ModuleKind::Hook {
            self.declined.push(module.clone());
        }
    }

    /// A mounted name belongs to its tool. Another tool with that own name loses the alias.
    fn drop_taken_aliases(&mut self) {
        let mounted: BTreeSet<&str> = self
            .places
            .values()
            .map(|place| place.tool.as_str())
            .collect();
        for declaration in &mut self.declarations {
            declaration
                .aliases
                .retain(|alias| !mounted.contains(alias.as_str()));
        }
    }

    fn missing(&mut self, failure: LoadFailure) {
        self.problems.push(not_loaded(&failure));
        if failure.kind == ModuleKind::Hook {
            self.blind.push(failure.clone());
        }
        self.failures.push(failure);
    }

    fn add_plugin(&mut self, planned: &BridgedModule, mounted: &MountedPlugin) {
        let Some(loaded) = LoadedPlugin::of(planned, mounted) else {
            return;
        };
        for message in &mounted.messages {
            let name = plugin::message_name(&message.kind);
            let ids = ToolId::new(plugin::NAMESPACE, name).and_then(|id| {
                Ok((
                    id,
                    ToolId::new(plugin::NAMESPACE, &format!("{name}:{}", loaded.name))?,
                ))
            });
            let (dispatch, step) = match ids {
                Ok(ids) => ids,
                Err(error) => {
                    let message = format!(
                        "the message type `{}` cannot be served: {error}",
                        message.kind
                    );
                    self.problems.push(problem(
                        &planned.planned.id,
                        SourceProblem::REDUCED,
                        message,
                    ));
                    continue;
                }
            };
            let taker = MessageTaker {
                plugin: loaded.name.clone(),
                kind: message.kind.clone(),
                priority: loaded.priority,
                exclusive: loaded.exclusive,
                step,
            };
            if !self.dispatches.contains_key(&dispatch) {
                let declaration =
                    plugin::declare_dispatch(dispatch.clone(), &taker, &message.required);
                self.declarations.push(declaration);
            }
            self.declarations
                .push(plugin::declare_step(&taker, &message.required));
            self.steps.insert(taker.step.clone(), taker.clone());
            self.dispatches.entry(dispatch).or_default().push(taker);
        }
        self.plugins.push(loaded);
    }

    fn add(&mut self, planned: &BridgedModule, tool: BridgeTool) {
        if let Some(definition) = &tool.definition {
            match plugin::declare_tool(&planned.planned.id, &tool.name, definition) {
                Ok((declaration, problems)) => {
                    self.problems.extend(problems);
                    self.add_declared(planned, tool.name, declaration);
                }
                Err(problem) => self.problems.push(problem),
            }
            return;
        }
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
        interface.permission.approval_requested |= tool.asks;
        declaration
            .aliases
            .extend(tool.own_name.filter(|own| is_alias(own, &tool.name)));
        self.add_declared(planned, tool.name, declaration);
    }

    fn add_declared(&mut self, planned: &BridgedModule, tool: String, declaration: Declaration) {
        let place = BridgeToolAddress {
            module: planned.planned.id.to_string(),
            tool,
        };
        self.places.insert(declaration.tool_id.clone(), place);
        self.declarations.push(declaration);
    }

    /// The same listing with the plugin tools of another listing of the same modules: plugins list their tools
    /// repeatedly, and the newest list counts.
    pub(super) fn with_plugin_tools_of(&self, other: &Self) -> Self {
        let is_plugin = |module: &str| self.plugins.iter().any(|plugin| plugin.name == module);
        let of_plugin = |listing: &Self, id: &ToolId| {
            listing
                .places
                .get(id)
                .is_some_and(|place| is_plugin(&place.module))
        };
        let mut renewed = self.clone();
        renewed
            .declarations
            .retain(|declaration| !of_plugin(self, &declaration.tool_id));
        renewed.places.retain(|_, place| !is_plugin(&place.module));
        let tools = other
            .declarations
            .iter()
            .filter(|declaration| of_plugin(other, &declaration.tool_id));
        renewed.declarations.extend(tools.cloned());
        let places = other
            .places
            .iter()
            .filter(|(_, place)| is_plugin(&place.module));
        renewed
            .places
            .extend(places.map(|(id, place)| (id.clone(), place.clone())));
        renewed
    }

    /// The modules with handlers for an event.
    pub(super) fn hearing(&self, event: &str) -> Vec<String> {
        let hears = |patterns: &[String]| {
            patterns
                .iter()
                .any(|pattern| events::matches(pattern, event))
        };
        let all = self.events.iter().filter(|(_, patterns)| hears(patterns));
        all.map(|(module, _)| module.clone()).collect()
    }
}

/// Whether a tool may also be called by its own name beside its mounted one. A name with a `.` or `__` looks like the
/// id of another tool.
fn is_alias(own: &str, mounted: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    own != mounted
        && !own.is_empty()
        && own.len() <= 64
        && own.chars().all(is_plain)
        && !own.contains("__")
}

fn failure(planned: &BridgedModule, reason: LoadReason, message: String) -> LoadFailure {
    LoadFailure {
        module: planned.planned.id.clone(),
        kind: planned.planned.kind,
        origin: planned.planned.source.as_ref().map(ToString::to_string),
        reason,
        message,
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
    all.into_iter()
        .find(|reason| reason.as_str() == word)
        .unwrap_or(LoadReason::Unknown)
}

/// The declaration of the tool that asks an operator on behalf of a module.
pub(super) fn ask_declaration(id: ToolId) -> Declaration {
    let about = "Asks the operator a question on behalf of a module; an approval means yes";
    let mut declaration = Declaration::new(id, about);
    declaration.input.schema = Arc::new(json!({
        "type": "object",
        "properties": {
            "question": { "type": "string", "description": "The question for the operator" },
            "options": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["question"],
        "additionalProperties": false,
    }));
    declaration.toolkit = ModuleId::new("amplifier").to_string();
    // Agents have their own ways to ask their users.
    declaration.loading = LoadingStrategy::Internal;
    declaration.interface.permission.approval_required = true;
    declaration.interface.safety.requires_user_interaction = true;
    declaration.interface.rendering.subject_argument = Some("question".to_owned());
    declaration
}

/// The answer of that tool after an approval.
pub(super) fn ask_answer() -> Value {
    json!({ "approved": true })
}
