//! The host as a running call sees it, in parts: the call itself, its caller, its rules, the calls beside it, and
//! artifacts. Each part has a default for code that runs without a host.

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

/// The host's services for a running call. The host implements it; tools hold it as
/// [`CallContext`](crate::CallContext).
pub trait CallPort: Send + Sync {
    /// The call.
    fn invocation_id(&self) -> InvocationId;
    /// The session it runs in.
    fn session_id(&self) -> &SessionId;
    /// The caller.
    fn principal(&self) -> &Principal;
    /// When the host will stop the work.
    fn deadline(&self) -> Instant;
    /// The call's span, to pass on to other services: in its caller's trace, or in a trace of its own.
    fn trace(&self) -> TraceContext {
        TraceContext::of_call(self.invocation_id())
    }
    /// Passes an event on. Never blocks.
    fn emit(&self, body: EventBody);
    /// Whether a cancellation was requested.
    fn is_canceled(&self) -> bool;
    /// Resolves when a cancellation is requested.
    fn canceled(&self) -> BoxFuture<'_, ()>;

    /// The other parts; the defaults without a host.
    fn around(&self) -> CallSurroundings<'_> {
        CallSurroundings::default()
    }
}

/// The parts of the host that a running call may use.
#[derive(Clone, Copy)]
pub struct CallSurroundings<'a> {
    /// The call's caller.
    pub caller: &'a dyn CallerPort,
    /// The rules behind the call's decision.
    pub rules: &'a dyn CallRules,
    /// The other calls of the same principal.
    pub calls: &'a dyn SiblingCalls,
    /// The artifacts of the same principal's calls.
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
    /// The kinds of question that the caller answers while the call runs; none without a caller.
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

    /// Metadata of the caller beside the arguments, for tools that use the same protocol: MCP's `_meta`.
    fn meta(&self) -> Option<&Map<String, Value>> {
        None
    }
}

/// The permissions that rules give to a running call.
pub trait CallRules: Send + Sync {
    /// Whether the decision took a caution into account. A tool that finds a reason for a caution only while it works
    /// must stop, because the decision was about other facts.
    fn cautioned(&self) -> bool {
        false
    }

    /// Whether the decision took a caution about this path into account. The path is absolute, with links resolved.
    fn cautioned_about(&self, path: &Path) -> bool {
        let _ = path;
        self.cautioned()
    }

    /// Whether rules or the mode let this call change a file that steers agents without a question. The path is
    /// absolute, with links resolved. For processes, which cannot ask about each path.
    fn may_steer(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Whether rules hide any path from this call. Tools check it before work that would look at every path.
    fn has_path_rules(&self) -> bool {
        false
    }

    /// Whether rules let this call use a path: absolute, with links resolved. A tool that meets paths outside its
    /// declared effects, such as a search, asks for each one.
    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        let _ = (path, access);
        true
    }

    /// The places of paths that rules hide from this call: absolute paths, each with everything beneath it. A tool need
    /// not check paths elsewhere. `/` means anywhere.
    fn kept_places(&self) -> Vec<PathBuf> {
        vec![PathBuf::from("/")]
    }

    /// Whether rules let this call follow a redirect or a link to another URL.
    fn may_request(&self, method: &str, url: &str) -> bool {
        let _ = (method, url);
        true
    }

    /// The profile that the operator sets for this tool's processes. A tool runs its processes under the stricter of
    /// this profile and its own.
    fn profile(&self) -> Option<SandboxProfile> {
        None
    }
}

/// Other calls of the same principal.
pub trait SiblingCalls: Send + Sync {
    /// The tools that this call's session could call now; none without a host.
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

    /// The state of another call of the same principal, after it ends or after `wait`.
    fn look_at_call(
        &self,
        id: InvocationId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        let _ = wait;
        Box::pin(std::future::ready(Err(no_such_call(id))))
    }

    /// Requests the cancellation of another call of the same principal, and gives its state at that time. A call that
    /// has ended is unchanged.
    fn cancel_call(&self, id: InvocationId) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        Box::pin(std::future::ready(Err(no_such_call(id))))
    }
}

/// The artifacts of the same principal's calls.
pub trait CallArtifactStore: Send + Sync {
    /// Begins an artifact of the result. Fails without a host, because there is no store.
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

    /// Opens an artifact that a call of the same principal made.
    fn open_artifact(
        &self,
        id: ArtifactId,
    ) -> BoxFuture<'_, Result<Arc<dyn StoredArtifact>, ArtifactError>> {
        Box::pin(std::future::ready(Err(ArtifactError::Unknown(id))))
    }
}

fn no_such_call(id: InvocationId) -> ToolFailure {
    ToolFailure::invalid(format!(
        "the call `{id}` is unknown: there is no host around this call"
    ))
}
