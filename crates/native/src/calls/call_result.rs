//! `calls.call_result`: the state or result of an earlier call.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, Effects, InputRefusal, PersistStrategy, Tool, ToolCall, ToolFailure,
    ToolOutput,
};

use super::{check_id, declare, effects, id_of, told};
use crate::arguments::read_arguments;

/// Kept back from the call's own time, so that it can still answer.
const MARGIN: Duration = Duration::from_millis(500);

pub(super) struct CallResultTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The id that the call was answered with.
    invocation_id: String,
    /// Wait so many seconds for its end if it has not ended yet.
    #[serde(default)]
    #[schemars(range(min = 0, max = 600))]
    wait_seconds: u16,
}

impl Tool for CallResultTool {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments>(
            "call_result",
            "Tells what became of an earlier call of yours that was started in the background, or whose answer was lost: \
             how far it is, or its result. `wait_seconds` waits for its end. Asking changes nothing; ask as often as \
             needed.",
        );
        declaration.title = Some("Result of a call".to_owned());
        declaration.search_hint =
            "background call status wait join poll invocation handle outcome answer".to_owned();
        declaration.input.examples = vec![
            json!({ "invocation_id": "0198c0de-0000-7000-8000-000000000000", "wait_seconds": 30 }),
        ];
        // The caller decides how long to wait, up to the operator's limit. A large result was stored with its own call.
        declaration.interface.persistence.strategy = PersistStrategy::NeverPersist;
        declaration.interface.execution.timeout_ms = Some(600_000);
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        check_id(input)
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(effects())
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let left = call
            .context
            .deadline()
            .saturating_duration_since(Instant::now())
            .saturating_sub(MARGIN);
        let wait = Duration::from_secs(arguments.wait_seconds.into()).min(left);
        told(
            call.context
                .look_at_call(id_of(&arguments.invocation_id)?, wait)
                .await?,
        )
    }
}
