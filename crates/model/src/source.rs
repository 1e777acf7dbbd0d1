//! Where tools come from: something that lists many tools and runs them.

use std::{future::Future, pin::Pin, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CallInput, Declaration, EffectOrigin, Effects, ErrorClass, PathRulesInForce, Principal,
    ProgramFile, SandboxPlan, SandboxProfile, SessionId, ToolCall, ToolFailure, ToolId, ToolOutput,
};

/// A boxed future, as traits behind pointers need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place tools come from: the native set, an MCP server, a mounted module.
pub trait Source: Send + Sync + 'static {
    /// Its name, for records and health.
    fn name(&self) -> &str;

    /// The origin of the effects that its tools state.
    fn origin(&self) -> EffectOrigin;

    /// The naming of its tools on the wire.
    fn naming(&self) -> WireNaming;

    /// The kind of place that its tools come from. Fail-closed: a source that does not override this is an outside one.
    fn provenance(&self) -> Provenance {
        Provenance::Outside
    }

    /// The tools at this time. The host lists again after a [`SourceNotice::ToolsChanged`].
    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>>;

    /// Checks whether the list changed without a notice, before the host gives it to a caller. `true`: the list
    /// changed, and the host lists again. `None`: the source gives a notice of every change.
    fn freshen(&self) -> Option<BoxFuture<'_, bool>> {
        None
    }

    /// The parts of the source that are missing. Read after each `list`.
    fn problems(&self) -> Vec<SourceProblem> {
        Vec::new()
    }

    /// The present state of the source.
    fn health(&self) -> SourceHealth {
        SourceHealth::default()
    }

    /// The offers of the source beside tools, as of the last `list`.
    fn companions(&self) -> Arc<SourceCompanions> {
        Arc::default()
    }

    /// Accepts quarantined definitions: of one tool, or all as they are now. With `seen`, a
    /// [`QuarantinedDefinition::digest`], accepts only that definition, because the server may change it again while
    /// the operator reads. Gives the tools that are usable from now on.
    fn accept<'a>(
        &'a self,
        tool: Option<&'a ToolId>,
        seen: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ToolId>, SourceError>> {
        let _ = (tool, seen);
        let reason = "nothing of it is held back".to_owned();
        let error = SourceError {
            origin: self.name().to_owned(),
            reason,
        };
        Box::pin(std::future::ready(Err(error)))
    }

    /// The source's own search, best first. `None`: the catalog's index is enough.
    fn search<'a>(&'a self, query: &'a str, limit: usize) -> Option<BoxFuture<'a, Vec<ToolId>>> {
        let _ = (query, limit);
        None
    }

    /// Opens the source for one session, at the session's first call of one of its tools.
    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>>;

    /// Receives the channel for notices and for the path rules in force. Called once, before the first `list`.
    fn connect(&self, feed: SourceFeed) {
        let _ = feed;
    }

    /// Closes the connections and processes behind the source. Called when the host shuts down, after the last call;
    /// the host waits for it for a short time only.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The session a source is opened for.
#[derive(Clone, Debug)]
pub struct SessionScope {
    /// The session.
    pub session_id: SessionId,
    /// The session's principal.
    pub principal: Principal,
}

/// A source, opened for a session.
pub trait SourceSession: Send + Sync {
    /// Checks the values, after the schema and before any I/O.
    fn check(&self, tool: &ToolId, input: &CallInput) -> Result<(), InputRefusal> {
        let _ = (tool, input);
        Ok(())
    }

    /// The effects of the call. `None`: the effects of the declaration.
    fn effects(&self, tool: &ToolId, input: &CallInput) -> Option<Effects> {
        let _ = (tool, input);
        None
    }

    /// Prepares slow facts for [`caution`](Self::caution). Awaited before each decision about a call. `None`: there is
    /// nothing to prepare.
    fn prepare_decision<'a>(&'a self, tool: &'a ToolId) -> Option<BoxFuture<'a, ()>> {
        let _ = tool;
        None
    }

    /// Why a person should look at the call, for reasons that the host's own code finds in the state of the source: for
    /// example, its process can reach a path that rules hide from the caller. It counts for any origin of the tool's
    /// effects, and must be cheap: every call asks for it.
    fn caution(&self, tool: &ToolId) -> Option<String> {
        let _ = tool;
        None
    }

    /// Why path rules cannot bind the tool, for `explain`: it runs outside of this host's sandbox. `None`: they bind
    /// it, or [`caution`](Self::caution) gives the reason.
    fn unbound_paths(&self, tool: &ToolId) -> Option<String> {
        let _ = tool;
        None
    }

    /// The planned confinement of the process that the call starts. See [`Tool::sandbox`](crate::Tool::sandbox).
    fn sandbox(
        &self,
        tool: &ToolId,
        input: &CallInput,
        narrowed: Option<SandboxProfile>,
    ) -> Option<SandboxPlan> {
        let _ = (tool, input, narrowed);
        None
    }

    /// The files that the call would run. See [`Tool::programs`](crate::Tool::programs).
    fn programs<'a>(
        &'a self,
        tool: &'a ToolId,
        input: &'a CallInput,
    ) -> BoxFuture<'a, Result<Vec<ProgramFile>, ToolFailure>> {
        let _ = (tool, input);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Executes the call.
    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>>;

    /// The session ended: stops the work that still runs for it.
    fn close(&self) {}
}

/// How tools are named on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireNaming {
    /// By their bare name: native tools, and tools for which the operator set it.
    Bare,
    /// As `namespace__name`.
    Namespaced,
}

/// The kind of place that the tools of a source come from. It decides which source keeps a name that two sources want,
/// and whether a bare name in an `allow` rule or in a setting that loosens applies to a tool (see
/// [`ToolPattern::names_exactly`]).
///
/// Sources with a lower value get their names first.
///
/// [`ToolPattern::names_exactly`]: crate::ToolPattern::names_exactly
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// Code of the host, code of an embedder, and commands that the operator declared.
    CompiledIn,
    /// Modules of a mount plan and plugins of an A2E file.
    MountPlan,
    /// Everything else, such as MCP servers.
    #[default]
    Outside,
}

/// A notice from a source to its host, outside of calls.
#[derive(Clone, Debug)]
pub enum SourceNotice {
    /// The list of tools changed.
    ToolsChanged,
    /// The list of resources changed.
    ResourcesChanged,
    /// The list of prompts changed.
    PromptsChanged,
    /// The resource at this address changed.
    ResourceUpdated(String),
    /// A message for operators.
    Log(String),
}

/// The offers of a source beside tools: MCP's own objects, made safe for display, and the tools that serve them. Those
/// tools are called like any other, so rules, limits and the record apply to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceCompanions {
    /// Resources, each with its `uri`.
    pub resources: Vec<Value>,
    /// Templates of addresses.
    pub templates: Vec<Value>,
    /// Prompts, each with its `name`.
    pub prompts: Vec<Value>,
    /// Reads a resource: `{uri}`.
    pub read: Option<ToolId>,
    /// Makes a prompt: `{name, arguments}`.
    pub prompt: Option<ToolId>,
    /// Completes an argument: `{ref, argument, context}`.
    pub complete: Option<ToolId>,
    /// Subscribes to changes: `{uri}`.
    pub subscribe: Option<ToolId>,
    /// Ends a subscription: `{uri}`.
    pub unsubscribe: Option<ToolId>,
}

/// The state of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceHealth {
    /// The state, in one word.
    pub state: SourceState,
    /// The fault, or the thing that the source waits for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// The number of restarts.
    #[serde(default)]
    pub restarts: u64,
    /// Definitions that are blocked until an operator accepts them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quarantined: Vec<QuarantinedDefinition>,
}

/// The state of a source, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It answers.
    #[default]
    Ready,
    /// It is not running, and is started when a call needs it.
    Idle,
    /// It is being started.
    Starting,
    /// It cannot be reached; the host tries again.
    Failing,
    /// It was closed for good.
    Stopped,
}

impl SourceState {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Failing => "failing",
            Self::Stopped => "stopped",
        }
    }
}

/// A definition that is blocked until an operator accepts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Quarantined")]
pub struct QuarantinedDefinition {
    /// The tool.
    pub tool: ToolId,
    /// `new` or `changed`.
    pub change: String,
    /// The differences, one a line, with hidden characters written out.
    pub diff: String,
    /// The digest of the definition.
    pub digest: String,
}

/// The channel between a source and its host, outside of calls.
#[derive(Clone)]
pub struct SourceFeed {
    listen: Arc<dyn Fn(SourceNotice) + Send + Sync>,
    path_rules: Arc<dyn Fn() -> Option<Arc<dyn PathRulesInForce>> + Send + Sync>,
}

impl SourceFeed {
    /// Wraps the host's side. Without [`with_path_rules`](Self::with_path_rules), no rule hides any path.
    pub fn new(listen: impl Fn(SourceNotice) + Send + Sync + 'static) -> Self {
        Self {
            listen: Arc::new(listen),
            path_rules: Arc::new(|| None),
        }
    }

    /// The same, with access to the path rules in force.
    #[must_use]
    pub fn with_path_rules(
        self,
        path_rules: impl Fn() -> Option<Arc<dyn PathRulesInForce>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            path_rules: Arc::new(path_rules),
            ..self
        }
    }

    /// Sends a notice to the host.
    pub fn notify(&self, notice: SourceNotice) {
        (self.listen)(notice);
    }

    /// The path rules in force now. `None`: the host has none, or has shut down.
    pub fn path_rules(&self) -> Option<Arc<dyn PathRulesInForce>> {
        (self.path_rules)()
    }
}

/// Why a source cannot list or open.
#[derive(Clone, Debug, thiserror::Error)]
#[error("source `{origin}` is not available: {reason}")]
pub struct SourceError {
    /// The source's name.
    pub origin: String,
    /// The fault.
    pub reason: String,
}

/// A source, or a part of one, that is missing.
#[derive(
    Clone,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    thiserror::Error,
)]
#[error("`{part}`{} {}: {message}", .origin.as_ref().map(|from| format!(" (from `{from}`)")).unwrap_or_default(), self.state())]
pub struct SourceProblem {
    /// The missing part: a module, a server, the source itself.
    pub part: String,
    /// The place that it was expected from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    /// The kind of problem, as one word.
    pub code: String,
    /// The fault and a way to fix it.
    pub message: String,
}

impl SourceProblem {
    /// The code of a part that is present but incomplete.
    pub const REDUCED: &str = "reduced";
    /// The code of a part that chose to offer nothing. This is no fault.
    pub const DECLINED: &str = "declined";
    /// Finer codes of an incomplete part.
    const PARTIAL: [&str; 5] = [
        "invalid_schema",
        "invalid_spec",
        "invalid_tool_name",
        "oversized",
        "too_many_tools",
    ];

    /// Whether the part is present, and only some of it is missing.
    pub fn is_partial(&self) -> bool {
        self.code == Self::REDUCED || Self::PARTIAL.contains(&self.code.as_str())
    }

    /// Whether the part chose to offer nothing.
    pub fn is_declined(&self) -> bool {
        self.code == Self::DECLINED
    }

    fn state(&self) -> &'static str {
        match (self.is_declined(), self.is_partial()) {
            (true, _) => "declined",
            (false, true) => "is incomplete",
            (false, false) => "is not available",
        }
    }
}

/// Why values were refused before any I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRefusal {
    /// The kind; usually [`ErrorClass::InvalidArguments`].
    pub class: ErrorClass,
    /// JSON pointer of the value.
    pub at: String,
    /// The fault of the value, and a correct form.
    pub message: String,
}

impl InputRefusal {
    /// The value at `at` cannot work.
    pub fn invalid(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::InvalidArguments,
            at: at.into(),
            message: message.into(),
        }
    }

    /// The value at `at` reaches outside of its bounds.
    pub fn violation(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::SandboxViolation,
            at: at.into(),
            message: message.into(),
        }
    }
}
