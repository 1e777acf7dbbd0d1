//! A server's offers: declarations for the catalog, problems for the operator.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use toolpost_model::{
    CancelSupport, ClassFact, Declaration, EffectClass, ExecutionKind, Lifecycle, LoadingStrategy,
    QuarantinedDefinition, SourceCompanions, SourceProblem, ToolId, ToolKind,
};

use super::{
    McpServer, clean,
    definition::{Definition, companion_id, id_of, namespace, problem},
    manifest::{DefinitionHoldReason, UpstreamManifest},
};

/// The declaration of a tool that is held back: its name and the reason. It contains no text of the server, because a
/// model reads declarations before any decision about a call.
fn kept_back(id: &ToolId, what: &str) -> Declaration {
    let mut declaration = Declaration::new(id.clone(), "");
    declaration.kind = ToolKind::Mcp;
    let why =
        format!("its definition {what}; an operator accepts it with `toolpost tools accept {id}`");
    declaration.lifecycle = Lifecycle::RequiresSetup(why);
    declaration
}

/// The most problems with single tools that are reported.
const PROBLEMS: usize = 100;

#[derive(Clone, Debug, Default)]
pub(super) struct UpstreamListing {
    pub(super) declarations: Vec<Declaration>,
    /// The request that a call of each tool becomes.
    pub(super) targets: HashMap<ToolId, McpCallTarget>,
    pub(super) problems: Vec<SourceProblem>,
    pub(super) quarantined: Vec<QuarantinedDefinition>,
    pub(super) companions: Arc<SourceCompanions>,
}

/// The request that a call becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum McpCallTarget {
    /// A tool, by its native name.
    Tool(String),
    /// `resources/read`.
    Read,
    /// `prompts/get`.
    Prompt,
    /// `completion/complete`.
    Complete,
    /// Subscribe to a resource (`true`), or unsubscribe.
    Subscribe(bool),
}

impl UpstreamListing {
    /// Builds the listing from a manifest. `route`: the way to the server. `problems`: those of the fetch.
    pub(super) fn of(
        server: &McpServer,
        route: &str,
        manifest: &UpstreamManifest,
        mut problems: Vec<SourceProblem>,
    ) -> Self {
        let mut listing = Self::default();
        let namespace = namespace(&server.name);
        // The manifest may be older than the operator's `allow` and `deny` lists.
        for definition in manifest
            .offered()
            .filter(|definition| server.wants(&definition.name))
        {
            let Some(id) = id_of(&namespace, &definition.name) else {
                continue;
            };
            let (declaration, odd) = definition.declare(&id, server, route);
            problems.extend(odd);
            if listing
                .targets
                .insert(id, McpCallTarget::Tool(definition.name.clone()))
                .is_none()
            {
                listing.declarations.push(declaration);
            }
        }
        listing.problems = told(problems, &server.name);
        for native in manifest.held.keys().filter(|native| server.wants(native)) {
            let Some(id) = id_of(&namespace, native) else {
                continue;
            };
            let change = manifest.change(native);
            let diff = manifest.diff(native);
            let what = match change {
                DefinitionHoldReason::New => "is new",
                DefinitionHoldReason::Changed => "changed since it was accepted",
            };
            let message = format!(
                "`{id}` is held back: its definition {what}\nhint: review it, then run `toolpost tools accept {id}`"
            );
            listing
                .problems
                .push(problem(&server.name, SourceProblem::REDUCED, message));
            listing.declarations.push(kept_back(&id, what));
            let change = change.as_str().to_owned();
            let digest = manifest
                .held
                .get(native)
                .map(Definition::digest)
                .unwrap_or_default();
            listing.quarantined.push(QuarantinedDefinition {
                tool: id,
                change,
                diff,
                digest,
            });
        }
        listing.add_companions(server, &namespace, &manifest.beside);
        listing
    }

    fn add_companions(&mut self, server: &McpServer, namespace: &str, beside: &Value) {
        let objects = |field: &str| beside[field].as_array().cloned().unwrap_or_default();
        let offers = |pointer: &str| {
            beside["capabilities"]
                .pointer(pointer)
                .is_some_and(|value| *value != json!(false))
        };
        let mut companions = SourceCompanions {
            resources: objects("resources"),
            templates: objects("templates"),
            prompts: objects("prompts"),
            ..SourceCompanions::default()
        };
        if offers("/resources") {
            companions.read = self.companion(server, namespace, &READ, McpCallTarget::Read);
        }
        if offers("/resources/subscribe") {
            companions.subscribe = self.companion(
                server,
                namespace,
                &SUBSCRIBE,
                McpCallTarget::Subscribe(true),
            );
            companions.unsubscribe = self.companion(
                server,
                namespace,
                &UNSUBSCRIBE,
                McpCallTarget::Subscribe(false),
            );
        }
        if offers("/prompts") {
            companions.prompt = self.companion(server, namespace, &PROMPT, McpCallTarget::Prompt);
        }
        if offers("/completions") {
            companions.complete =
                self.companion(server, namespace, &COMPLETE, McpCallTarget::Complete);
        }
        self.companions = Arc::new(companions);
    }

    fn companion(
        &mut self,
        server: &McpServer,
        namespace: &str,
        kind: &Companion,
        target: McpCallTarget,
    ) -> Option<ToolId> {
        let id = companion_id(namespace, kind.name)?;
        let mut declaration =
            Declaration::new(id.clone(), format!("{} of `{}`", kind.about, server.name));
        let properties: serde_json::Map<String, Value> = kind
            .arguments
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), json!({ "type": schema })))
            .collect();
        declaration.input.schema = Arc::new(
            json!({ "type": "object", "properties": properties, "required": [kind.arguments[0].0] }),
        );
        declaration.kind = ToolKind::Mcp;
        declaration.toolkit.clone_from(&server.name);
        declaration.loading = LoadingStrategy::Companion;
        let interface = &mut declaration.interface;
        interface.safety.class = ClassFact::Always(EffectClass::Network);
        interface.execution.kind = ExecutionKind::McpServer;
        interface.execution.cancel = CancelSupport::Cooperative;
        interface.execution.idempotent = true;
        interface.rendering.subject_argument = Some(kind.arguments[0].0.to_owned());
        self.targets.insert(id.clone(), target);
        self.declarations.push(declaration);
        Some(id)
    }
}

/// Limits problems to a number that an operator can read.
fn told(mut problems: Vec<SourceProblem>, server: &str) -> Vec<SourceProblem> {
    let more = problems.len().saturating_sub(PROBLEMS);
    if more > 0 {
        problems.truncate(PROBLEMS);
        let message = format!("{more} more problems with its tools are not shown");
        problems.push(problem(server, SourceProblem::REDUCED, message));
    }
    problems
}

/// A tool that stands for a request of the protocol.
struct Companion {
    name: &'static str,
    about: &'static str,
    /// Names with types. The first argument is required.
    arguments: &'static [(&'static str, &'static str)],
}

const READ: Companion = Companion {
    name: "read_resource",
    about: "Reads a resource",
    arguments: &[("uri", "string")],
};
const PROMPT: Companion = Companion {
    name: "get_prompt",
    about: "Gets a prompt",
    arguments: &[("name", "string"), ("arguments", "object")],
};
const COMPLETE: Companion = Companion {
    name: "complete",
    about: "Completes an argument of a prompt or template",
    arguments: &[
        ("ref", "object"),
        ("argument", "object"),
        ("context", "object"),
    ],
};
const SUBSCRIBE: Companion = Companion {
    name: "subscribe",
    about: "Subscribes to changes of a resource",
    arguments: &[("uri", "string")],
};
const UNSUBSCRIBE: Companion = Companion {
    name: "unsubscribe",
    about: "Ends the subscription to a resource",
    arguments: &[("uri", "string")],
};

/// The entries of a list other than tools, without hidden characters. An entry with hidden characters in its key is
/// left out: without them the key would name another object, and with them a reader could not see which object a call
/// requests.
pub(super) fn objects(list: Vec<Value>, key: &str) -> Vec<Value> {
    let usable = |object: &Value| {
        object
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty() && !clean::has_hidden(text))
    };
    let mut kept: Vec<Value> = list.into_iter().filter(usable).collect();
    kept.iter_mut().for_each(|object| {
        clean::value(object);
    });
    kept
}
