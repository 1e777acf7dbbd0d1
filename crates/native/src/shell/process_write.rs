//! `shell.process_write`: writes to the standard input of a process.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::unix::pipe::Sender};
use toolpost_model::{
    CallContext, CallInput, Declaration, EffectClass, Effects, ErrorClass, ResourceAccess,
    ResourceKey, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_processes::Children;

use super::{
    declare,
    process_status::standing,
    processes::{BackgroundProcesses, ProcessEntry},
    told::count,
};
use crate::arguments::read_arguments;

pub(super) struct ProcessWrite {
    children: Arc<Children>,
    processes: Arc<BackgroundProcesses>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The process.
    process_id: String,
    /// What to write to its standard input. A line needs its `\n`.
    #[serde(default)]
    text: String,
    /// Close its standard input afterwards; it then reads the end.
    #[serde(default)]
    close: bool,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WriteResult")]
struct ProcessWriteResult {
    /// The process.
    process_id: String,
    /// Bytes that were written.
    written: u64,
    /// Its standard input is closed now.
    closed: bool,
}

/// Only one call at a time writes to a process or ends it, and its session may run other calls meanwhile. The process
/// stays within the confines that it was started in, and those are no wider than the usual ones.
pub(super) fn effects_on(input: &CallInput, children: &Children) -> Effects {
    let confined = children.confined(children.settings().profile);
    let effects = Effects {
        concurrency_safe: true,
        open_world: false,
        confined,
        ..Effects::of(EffectClass::Execute)
    };
    match input.arguments().str("process_id") {
        Some(id) => effects.using(ResourceKey::new("process", id), ResourceAccess::Write),
        None => effects,
    }
}

impl ProcessWrite {
    pub(super) fn new(children: Arc<Children>, processes: Arc<BackgroundProcesses>) -> Self {
        Self {
            children,
            processes,
        }
    }
}

fn has_no_input(entry: &ProcessEntry) -> ToolFailure {
    let message = format!("`{}` no longer reads input: {}", entry.id, standing(entry));
    ToolFailure::new(message).code("input_closed").untouched()
}

/// Writes as much as the process reads before the end of the call's time.
async fn write(
    pipe: &mut Sender,
    text: &[u8],
    context: &CallContext,
) -> Result<usize, std::io::Error> {
    let mut written = 0;
    while written < text.len() {
        tokio::select! {
            biased;
            more = pipe.write(&text[written..]) => written += more?,
            () = context.canceled() => break,
        }
    }
    Ok(written)
}

impl Tool for ProcessWrite {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, ProcessWriteResult>(
            "process_write",
            "Writes text to the standard input of a process that runs in the background, as if it were typed. End a \
             line with `\\n`. `close: true` closes the input afterwards, which ends programs that read to the end. Use \
             `process_read` with `wait_seconds` to see what it says to it.",
            EffectClass::Execute,
        );
        declaration.title = Some("Write to process".to_owned());
        declaration.search_hint =
            "background job stdin input type answer send line interactive".to_owned();
        declaration.input.examples = vec![
            json!({ "process_id": "p3f09c41d77aa", "text": "yes\n" }),
            json!({ "process_id": "p3f09c41d77aa", "close": true }),
        ];
        declaration
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        Some(effects_on(input, &self.children))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let entry = self.processes.find(&call.context, &arguments.process_id)?;
        let mut stdin = entry.stdin().lock().await;
        let pipe = stdin.as_mut().ok_or_else(|| has_no_input(&entry))?;
        let text = arguments.text.as_bytes();
        let written = match write(pipe, text, &call.context).await {
            Ok(written) => written,
            Err(_) => {
                *stdin = None;
                return Err(has_no_input(&entry));
            }
        };
        if written < text.len() {
            let message = format!(
                "`{}` read {written} of {} bytes and then stopped reading",
                entry.id,
                text.len()
            );
            return Err(ToolFailure::of(ErrorClass::Timeout, message).code("input_full"));
        }
        if arguments.close {
            *stdin = None;
        }
        let closed = if arguments.close {
            ", and its input is closed"
        } else {
            ""
        };
        let summary = format!(
            "wrote {} to {}{closed}",
            count(written as u64, "byte"),
            entry.id
        );
        let result = ProcessWriteResult {
            process_id: entry.id.clone(),
            written: written as u64,
            closed: arguments.close,
        };
        Ok(ToolOutput::text(summary.clone())
            .with_summary(summary)
            .with_structured(serde_json::to_value(&result)?))
    }
}
