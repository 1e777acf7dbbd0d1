//! `shell.process_kill`: ends a process and everything that it started.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, EffectClass, Effects, ErrorClass, Tool, ToolCall, ToolFailure,
    ToolOutput,
};
use toolpost_processes::Children;

use super::{
    declare,
    process_status::{ProcessFacts, standing},
    process_write::effects_on,
    processes::BackgroundProcesses,
};
use crate::arguments::read_arguments;

pub(super) struct ProcessKill {
    children: Arc<Children>,
    processes: Arc<BackgroundProcesses>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The process.
    process_id: String,
    /// End it at once, instead of asking it first and giving it three seconds.
    #[serde(default)]
    force: bool,
}

impl ProcessKill {
    pub(super) fn new(children: Arc<Children>, processes: Arc<BackgroundProcesses>) -> Self {
        Self {
            children,
            processes,
        }
    }
}

impl Tool for ProcessKill {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, ProcessFacts>(
            "process_kill",
            "Ends a process that runs in the background, with everything it started. It is asked first (SIGTERM) and \
             ended three seconds later if it still runs; `force: true` ends it at once. Its output stays readable.",
            EffectClass::Execute,
        );
        declaration.title = Some("End process".to_owned());
        declaration.search_hint = "background job stop terminate kill cancel end server".to_owned();
        declaration.input.examples = vec![json!({ "process_id": "p3f09c41d77aa" })];
        declaration.interface.safety.destructive = true;
        declaration
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        Some(effects_on(input, &self.children).idempotent())
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let entry = self.processes.find(&call.context, &arguments.process_id)?;
        let was_alive = entry.is_alive();
        if was_alive {
            if arguments.force {
                entry.kill();
            } else {
                entry.terminate();
            }
            tokio::select! {
                () = entry.gone() => {}
                () = call.context.canceled() => {
                    let message = format!("`{}` got the signal to end but still runs", entry.id);
                    return Err(ToolFailure::of(ErrorClass::Canceled, message));
                }
            }
        }
        let already = if was_alive {
            ""
        } else {
            " (it had already ended)"
        };
        let summary = format!("{}: {}{already}", entry.id, standing(&entry));
        let facts = serde_json::to_value(ProcessFacts::of(&entry))?;
        Ok(ToolOutput::text(summary.clone())
            .with_summary(summary)
            .with_structured(facts))
    }
}
