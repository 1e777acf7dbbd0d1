//! What the host offers to a running call, in parts: the call itself, its caller, its rules, and the calls and artifacts
//! beside it. Without a host around a call, each part has a default.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use crate::{
    ArtifactError, ArtifactHeader, ArtifactId, ArtifactSink, BoxFuture, CallReport, CallableTool,
    ConsultError, ConsultKinds, ConsultQuestion, ConsultReply, ErrorClass, EventBody, InvocationId,
    NestedCall, Principal, ResourceAccess, SandboxProfile, SessionId, StoredArtifact, ToolFailure,
    ToolResult, TraceContext,
};

/// What the host offers to a running call. Implemented by the host; tools hold it as [`CallContext`](crate::CallContext).
pub trait CallPort: Send + Sync {
    /// The call.
    fn invocation_id(&self) -> InvocationId;
    /// The session it runs in.
    fn session_id(&self) -> &SessionId;
    /// Who called.
    fn principal(&self) -> &Principal;
    /// When the work will be stopped.
    fn deadline(&self) -> Instant;
    /// The call's span, for what it sends on: its caller's trace, or one of its own.
    fn trace(&self) -> TraceContext {
        TraceContext::of_call(self.invocation_id())
    }
    /// Passes an event on. Never blocks.
    fn emit(&self, body: EventBody);
    /// Whether the call was told to stop.
    fn is_canceled(&self) -> bool;
    /// Resolves when the call is told to stop.
    fn canceled(&self) -> BoxFuture<'_, ()>;

    /// The other parts. Without a host around the call, the defaults.
    fn around(&self) -> CallSurroundings<'_> {
        CallSurroundings::default()
    }
}

/// The parts of the host that a running call may use.
#[derive(Clone, Copy)]
pub struct CallSurroundings<'a> {
    /// Its caller.
    pub caller: &'a dyn CallerPort,
    /// The rules that its decision was made on.
    pub rules: &'a dyn CallRules,
    /// The calls beside it.
    pub calls: &'a dyn SiblingCalls,
    /// Kept pieces of results.
    pub artifacts: &'a dyn CallArtifactStore,
}

impl Default for CallSurroundings<'_> {
    fn default() -> Self {
        Self {
            caller: &NoHost,
            rules: &NoHost,
            calls: &NoHost,
            artifacts: &NoHost,
        }
    }
}

/// No host around a call.
struct NoHost;

impl CallerPort for NoHost {}
impl CallRules for NoHost {}
impl SiblingCalls for NoHost {}
impl CallArtifactStore for NoHost {}

/// The caller of a running call.
pub trait CallerPort: Send + Sync {
    /// What its caller can be asked while it runs. Without a caller, nothing.
    fn consultable(&self) -> ConsultKinds {
        ConsultKinds::default()
    }

    /// Asks the caller.
    fn consult(
        &self,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>> {
        let _ = questions;
        Box::pin(std::future::ready(Err(ConsultError::Nobody)))
    }

    /// What the caller said beside the arguments, for tools of the same system: MCP's `_meta`.
    fn meta(&self) -> Option<&Map<String, Value>> {
        None
    }
}

/// What rules let a running call do.
pub trait CallRules: Send + Sync {
    /// Whether the call was decided with a caution. A tool that finds cause for one only while it works must stop:
    /// what was decided on is not what is there.
    fn cautioned(&self) -> bool {
        false
    }

    /// Whether the call was decided with a caution that covers this path: absolute, links resolved.
    fn cautioned_about(&self, path: &Path) -> bool {
        let _ = path;
        self.cautioned()
    }

    /// Whether rules or the mode let this call change a file that steers agents without a question: absolute, links
    /// resolved. For processes, which cannot be asked about each path.
    fn may_steer(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Whether some paths are kept from this call by rules. Asked before work that would look at every path.
    fn has_path_rules(&self) -> bool {
        false
    }

    /// Whether rules let this call use a path: absolute, links resolved. A tool that meets paths its effects did not
    /// name, as a search does, asks for each.
    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        let _ = (path, access);
        true
    }

    /// Where paths that rules keep from this call can lie: absolute paths, each meant with all beneath it, so that a
    /// tool need not look elsewhere for them. `/`: anywhere.
    fn kept_places(&self) -> Vec<PathBuf> {
        vec![PathBuf::from("/")]
    }

    /// Whether rules let this call go on to another URL, where an answer leads it there.
    fn may_request(&self, method: &str, url: &str) -> bool {
        let _ = (method, url);
        true
    }

    /// The profile that the operator gives this tool's processes. A tool that starts some runs them under the stricter
    /// of this and its own.
    fn profile(&self) -> Option<SandboxProfile> {
        None
    }
}

/// Other calls of the same principal.
pub trait SiblingCalls: Send + Sync {
    /// The tools this call's session could call now. Without a host around it, none.
    fn callable(&self) -> Vec<CallableTool> {
        Vec::new()
    }

    /// Calls another tool on behalf of this call.
    fn call_tool(&self, call: NestedCall) -> BoxFuture<'_, Result<ToolResult, ToolFailure>> {
        let message = format!(
            "`{}` cannot be called from here: there is no host around this call",
            call.tool
        );
        Box::pin(std::future::ready(Err(ToolFailure::of(
            ErrorClass::UnknownTool,
            message,
        )
        .untouched())))
    }

    /// Where another call of the same principal stands, once it has ended or `wait` is over.
    fn look_at_call(
        &self,
        id: InvocationId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        let _ = wait;
        Box::pin(std::future::ready(Err(no_such_call(id))))
    }

    /// Tells another call of the same principal to stop, and where it stood. One that has ended stays as it is.
    fn cancel_call(&self, id: InvocationId) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        Box::pin(std::future::ready(Err(no_such_call(id))))
    }
}

/// Kept pieces of results.
pub trait CallArtifactStore: Send + Sync {
    /// Begins a kept piece of the result. Without a host around the call there is nowhere to keep one.
    fn create_artifact(
        &self,
        artifact: ArtifactHeader,
    ) -> BoxFuture<'_, Result<Box<dyn ArtifactSink>, ArtifactError>> {
        let message = format!(
            "there is no host around this call to keep `{}`",
            artifact.name
        );
        Box::pin(std::future::ready(Err(ArtifactError::Storage(message))))
    }

    /// Opens a kept piece that a call of the same principal made.
    fn open_artifact(
        &self,
        id: ArtifactId,
    ) -> BoxFuture<'_, Result<Arc<dyn StoredArtifact>, ArtifactError>> {
        Box::pin(std::future::ready(Err(ArtifactError::Unknown(id))))
    }
}

fn no_such_call(id: InvocationId) -> ToolFailure {
    ToolFailure::invalid(format!(
        "no call `{id}` is known: there is no host around this call"
    ))
}
