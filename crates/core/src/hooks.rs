//! Hooks: code that sees calls before they are decided and after they ended. A hook may change what goes in and what
//! comes out, add a word for the model, have an opinion, or stop the call. It can never allow what a rule denies or
//! asks about, because its opinion is one vote among the others.
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

/// What a hook sees.
pub struct HookCall<'a> {
    /// When it is asked.
    pub event: HookEvent,
    /// The moment it is asked.
    pub at: Timestamp,
    /// The call.
    pub invocation_id: InvocationId,
    /// The caller's own id for it.
    pub request_id: Option<&'a RequestId>,
    /// The batch it belongs to.
    pub batch_id: Option<&'a str>,
    /// The call that made it.
    pub parent: Option<InvocationId>,
    /// The tool's name on the wire.
    pub tool: &'a str,
    /// Its session.
    pub session_id: &'a SessionId,
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments as the hooks before this one left them, sensitive fields replaced.
    pub input: &'a ObservableInput,
    /// Who calls.
    pub principal: &'a Principal,
    /// Nothing will run: somebody wants to know what would happen.
    pub is_dry_run: bool,
    /// What hooks are not shown, for [`HookScope`] alone.
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

/// Sees calls go by. Hooks are asked one after another, in the order they were added.
pub trait Hook: Send + Sync + 'static {
    /// Its name, for records and for whoever is told what it did.
    fn name(&self) -> &str;

    /// What its failure means.
    fn standing(&self) -> HookStanding {
        HookStanding::default()
    }

    /// How long it may take to answer; over it, it failed. `None`: as long as the host gives every hook. Never longer
    /// than a call's usual deadline.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Whether it wants to be asked at all. A hook that does not is not on record for the call.
    fn concerns(&self, call: &HookCall<'_>) -> bool {
        let _ = call;
        true
    }

    /// Before the decision. May change the arguments, have an opinion, stop the call.
    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let _ = call;
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }

    /// After a success. May change the output or withhold it.
    fn after<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let _ = (call, result);
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }

    /// After any other end. May change or withhold what the failed call has to show.
    fn failed<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        let _ = (call, result);
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    }
}
