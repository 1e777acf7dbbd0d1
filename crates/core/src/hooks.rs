//! Hooks: code of the operator that sees calls before their decision and after their end. A hook can change arguments
//! and output, add text for the model, vote, or stop the call. It can never allow a call that a rule denies or asks
//! about, because its opinion is one vote among the others.
//!
//! This folder has the port and the records of hooks; `hooks/run.rs` runs hooks and applies their output.

pub(crate) mod after;
pub(crate) mod before;
mod concern;
mod mutation;
mod output;
pub(crate) mod run;
pub(crate) mod witness;

use std::time::Duration;

use jiff::Timestamp;
use toolpost_model::{
    BoxFuture, CallInput, Declaration, Effects, HookEvent, HookStanding, InvocationId,
    ObservableInput, Principal, RequestId, SessionId, ToolResult,
};

pub use concern::{ConcernError, HookScope};
pub use mutation::{InputMutation, OutputMutation};
pub(crate) use mutation::{changed_fields, restored};
pub use output::{HookError, HookOutput, HookVote};

use crate::{invocation::ResolvedTool, permission::decide::effects_of};

/// A call in the form that hooks see.
pub struct HookCall<'a> {
    /// The event that the hook runs for.
    pub event: HookEvent,
    /// The current time.
    pub at: Timestamp,
    /// The call.
    pub invocation_id: InvocationId,
    /// The caller's id of the request.
    pub request_id: Option<&'a RequestId>,
    /// The batch of the call.
    pub batch_id: Option<&'a str>,
    /// The parent call, if it is a nested call.
    pub parent: Option<InvocationId>,
    /// The tool's name on the wire.
    pub tool: &'a str,
    /// The session of the call.
    pub session_id: &'a SessionId,
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments as the hooks before this one left them, sensitive fields replaced.
    pub input: &'a ObservableInput,
    /// The caller.
    pub principal: &'a Principal,
    /// Whether this is a dry run, which executes nothing.
    pub is_dry_run: bool,
    /// The parts of the call that only [`HookScope`] may use.
    pub(crate) known: &'a ResolvedCall,
}

/// The call as its tool would get it.
pub(crate) struct ResolvedCall {
    pub(crate) resolved: ResolvedTool,
    pub(crate) input: CallInput,
}

impl ResolvedCall {
    fn effects(&self) -> Effects {
        effects_of(&self.resolved, &self.input)
    }
}

/// Runs before and after calls. Hooks run one after another, in the order in which they were added.
pub trait Hook: Send + Sync + 'static {
    /// Its name in records and messages.
    fn name(&self) -> &str;

    /// The effect of its failure.
    fn standing(&self) -> HookStanding {
        HookStanding::default()
    }

    /// The time limit for an answer, after which the hook counts as failed. `None` is the host's limit for hooks. The
    /// default deadline of calls is an upper bound.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Whether the hook applies to the call. A hook that does not apply is not recorded for the call.
    fn concerns(&self, call: &HookCall<'_>) -> bool {
        let _ = call;
        true
    }

    /// Runs before the decision. It may change the arguments, vote or stop the call.
    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let _ = call;
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }

    /// Runs after a success. It may change or withhold the output.
    fn after<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let _ = (call, result);
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }

    /// Runs after any other outcome. It may change or withhold the content of the failed call.
    fn failed<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let _ = (call, result);
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }
}
