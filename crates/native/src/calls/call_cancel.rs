//! `calls.call_cancel`: stops an earlier call.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, Effects, InputRefusal, Tool, ToolCall, ToolFailure, ToolOutput,
};

use super::{check_id, declare, effects, id_of, told};
use crate::arguments::read_arguments;

pub(super) struct CallCancel;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The id that the call was answered with.
    invocation_id: String,
}

impl Tool for CallCancel {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments>(
            "call_cancel",
            "Tells an earlier call of yours to stop, such as one that was started in the background, and says where it \
             stood. One that has ended stays as it is. Ask `call_result` for how it ended.",
        );
        declaration.title = Some("Cancel a call".to_owned());
        declaration.search_hint =
            "background call stop abort kill end invocation handle".to_owned();
        declaration.input.examples =
            vec![json!({ "invocation_id": "0198c0de-0000-7000-8000-000000000000" })];
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
        told(
            call.context
                .cancel_call(id_of(&arguments.invocation_id)?)
                .await?,
        )
    }
}
