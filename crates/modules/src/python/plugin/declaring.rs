//! Declarations of the tools and the messages of plugins.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_a2e::ToolDefinition;
use toolpost_amplifier::{ModuleId, ToolSpec};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, CancelSupport, ClassFact, Declaration, ExecutionKind,
    LoadingStrategy, PersistStrategy, SourceProblem, ToolId,
};

use super::{
    super::super::declared::{declare, problem},
    MessageTaker, NAMESPACE, message_name, message_standing,
};

/// The declaration of a plugin's tool, with every field of its definition.
pub(in super::super) fn declare_tool(
    plugin: &ModuleId,
    name: &str,
    definition: &Value,
) -> Result<(Declaration, Vec<SourceProblem>), SourceProblem> {
    let definition: ToolDefinition =
        serde_json::from_value(definition.clone()).map_err(|error| {
            let message = format!(
                "its tool `{name}` cannot be offered: its definition is not an A2E definition: {error}"
            );
            problem(plugin, "invalid_spec", message)
        })?;
    let schema = definition.schema().into_owned();
    let mut spec = ToolSpec::new(
        name.to_owned(),
        schema.as_object().cloned().unwrap_or_default(),
    );
    spec.description = Some(definition.description.clone()).filter(|text| !text.is_empty());
    let (mut declaration, problems) = declare(plugin, &spec)?;
    declaration.output.schema = definition.result_schema().map(Arc::new);
    declaration.tags = definition.tags;
    declaration.version = definition.version;
    declaration.toolkit = definition.toolkit.unwrap_or_default();
    if definition.defer_loading {
        declaration.loading = LoadingStrategy::Deferred;
    }
    runs_in_process(&mut declaration);
    declaration.interface.execution.streaming = definition.streaming;
    declaration.interface.execution.idempotent = definition.idempotent;
    Ok((declaration, problems))
}

/// The call that dispatches a message.
pub(in super::super) fn declare_dispatch(
    id: ToolId,
    taker: &MessageTaker,
    required: &[String],
) -> Declaration {
    let about = format!(
        "The A2E message `{}`, for every plugin that takes it",
        taker.kind
    );
    let mut declaration = declare_message(id, &about, taker, required);
    declaration.loading = LoadingStrategy::Companion;
    declaration.interface.safety.class =
        ClassFact::Always(message_standing(message_name(&taker.kind)).class());
    declaration
}

/// The step that passes a message to one plugin.
pub(in super::super) fn declare_step(taker: &MessageTaker, required: &[String]) -> Declaration {
    let about = format!(
        "The A2E message `{}`, for the plugin `{}`",
        taker.kind, taker.plugin
    );
    let mut declaration = declare_message(taker.step.clone(), &about, taker, required);
    declaration.loading = LoadingStrategy::Internal;
    // The class of the dispatching call decides whether the message is denied or allowed. `ByInput` keeps a step from
    // being denied before its call is made.
    declaration.interface.safety.class = ClassFact::ByInput;
    // A rule that denies or asks about the message applies to each way to a plugin, also from another plugin.
    let message = format!("{NAMESPACE}.{}", message_name(&taker.kind));
    declaration.interface.permission.bound_like.push(message);
    declaration
}

fn declare_message(
    id: ToolId,
    about: &str,
    taker: &MessageTaker,
    required: &[String],
) -> Declaration {
    let mut declaration = Declaration::new(id, about);
    // The plugin's own class validates the fields. Only the members that it cannot do without are required before the
    // decision.
    let schema = json!({ "type": "object", "required": required });
    declaration.input.schema = Arc::new(schema);
    declaration.toolkit.clone_from(&taker.plugin);
    // The agent's program needs the whole answer, and the protocol has no way to send a part of it.
    declaration.interface.persistence.strategy = PersistStrategy::Inline;
    if message_name(&taker.kind) == "proc/spawn" {
        declaration.interface.permission.arguments = vec![
            ArgumentMeaning::of("cmd", ArgumentKind::Words),
            ArgumentMeaning::of("cwd", ArgumentKind::Directory),
            ArgumentMeaning::of("env", ArgumentKind::Environment),
        ];
        // Rules that deny or ask about shell commands apply to this message too.
        declaration.interface.permission.bound_like = vec!["shell".to_owned()];
    }
    runs_in_process(&mut declaration);
    declaration.interface.execution.streaming = true;
    declaration
}

fn runs_in_process(declaration: &mut Declaration) {
    declaration.interface.execution.kind = ExecutionKind::LocalProcess;
    declaration.interface.execution.cancel = CancelSupport::Cooperative;
}
