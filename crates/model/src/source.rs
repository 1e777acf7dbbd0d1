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

    /// Who vouches for what its tools say of their effects.
    fn origin(&self) -> EffectOrigin;

    /// How its tools are named on the wire.
    fn naming(&self) -> WireNaming;

    /// Where its tools come from. Fail-closed: a source that does not override this is an outside one.
    fn provenance(&self) -> Provenance {
        Provenance::Outside
    }

    /// The tools, now. Asked again after a [`SourceNotice::ToolsChanged`].
    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>>;

    /// Asks whether the list changed without a notice, before a caller is given one. `true`: it did, and is asked for anew.
    /// `None`: the source tells of every change.
    fn freshen(&self) -> Option<BoxFuture<'_, bool>> {
        None
    }

    /// What of it is not there although it should be. Asked after each `list`, which tells of the rest.
    fn problems(&self) -> Vec<SourceProblem> {
        Vec::new()
    }

    /// How it is doing, now.
    fn health(&self) -> SourceHealth {
        SourceHealth::default()
    }

    /// What it offers beside tools, as of the last `list`.
    fn companions(&self) -> Arc<SourceCompanions> {
        Arc::default()
    }

    /// Takes definitions that were kept back: of one tool, or all as they are now. With `seen`, a
    /// [`QuarantinedDefinition::digest`], only that very definition: a server may change it again while somebody reads. Gives the
    /// tools that may be used from now on.
    fn accept<'a>(
        &'a self,
        tool: Option<&'a ToolId>,
        seen: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ToolId>, SourceError>> {
        let _ = (tool, seen);
        let reason = "nothing of it is kept back".to_owned();
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

    /// Opens the source for one session. Called at the session's first call of one of its tools.
    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>>;

    /// Takes the way on which changes are told and the path rules in force are read. Called once, before the first
    /// `list`.
    fn connect(&self, feed: SourceFeed) {
        let _ = feed;
    }

    /// Says goodbye to whatever is behind it. Called when the host shuts down, after the last call; the host waits for it,
    /// but not for long.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The session a source is opened for.
#[derive(Clone, Debug)]
pub struct SessionScope {
    /// The session.
    pub session_id: SessionId,
    /// Whose it is.
    pub principal: Principal,
}

/// A source, opened for a session.
pub trait SourceSession: Send + Sync {
    /// Checks the values, after the schema and before any I/O.
    fn check(&self, tool: &ToolId, input: &CallInput) -> Result<(), InputRefusal> {
        let _ = (tool, input);
        Ok(())
    }

    /// What the call will touch. `None`: what the declaration says.
    fn effects(&self, tool: &ToolId, input: &CallInput) -> Option<Effects> {
        let _ = (tool, input);
        None
    }

    /// Finds out what [`caution`](Self::caution) depends on, where that takes a while. Awaited before each decision about
    /// a call. `None`: there is nothing to find out.
    fn prepare_decision<'a>(&'a self, tool: &'a ToolId) -> Option<BoxFuture<'a, ()>> {
        let _ = tool;
        None
    }

    /// Why a person should look at the call, for reasons that the host's own code finds in the state of the source: its
    /// process is not kept from a path that rules keep from the caller. Counts whoever vouches for the tool's effects,
    /// and must be cheap: every call asks.
    fn caution(&self, tool: &ToolId) -> Option<String> {
        let _ = tool;
        None
    }

    /// Why path rules cannot bind the tool, for `explain`: it runs where no sandbox of this host reaches. `None`: they
    /// bind it, or [`caution`](Self::caution) tells why not.
    fn unbound_paths(&self, tool: &ToolId) -> Option<String> {
        let _ = tool;
        None
    }

    /// What would confine the process that the call starts. See [`Tool::sandbox`](crate::Tool::sandbox).
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

    /// Does the work.
    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>>;

    /// The session ended: stop what still runs for it.
    fn close(&self) {}
}

/// How tools are named on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireNaming {
    /// By their bare name: native tools, and what the operator wants so.
    Bare,
    /// As `namespace__name`.
    Namespaced,
}

/// Where the tools of a source come from. It decides which source keeps a name that two sources want, and whether a
/// bare name in an `allow` rule or in a setting that loosens means a tool (see [`ToolPattern::names_exactly`]).
///
/// The order is the order in which names are given out.
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

/// What a source tells its host unasked.
#[derive(Clone, Debug)]
pub enum SourceNotice {
    /// The list is not what it was.
    ToolsChanged,
    /// The resources are not what they were.
    ResourcesChanged,
    /// The prompts are not what they were.
    PromptsChanged,
    /// What is found at an address is not what it was.
    ResourceUpdated(String),
    /// Something happened that an operator should read.
    Log(String),
}

/// What a source offers beside tools: MCP's own objects, made safe to be shown, and the tools that serve them. Those are
/// calls like any other, so that rules, limits and the record hold for them.
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
    /// Asks to be told of changes: `{uri}`.
    pub subscribe: Option<ToolId>,
    /// And no longer: `{uri}`.
    pub unsubscribe: Option<ToolId>,
}

/// How a source is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceHealth {
    /// In one word.
    pub state: SourceState,
    /// What is wrong, or what is being waited for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// How often it was started again.
    #[serde(default)]
    pub restarts: u64,
    /// Definitions that are kept back until an operator accepts them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quarantined: Vec<QuarantinedDefinition>,
}

/// How a source is doing, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It answers.
    #[default]
    Ready,
    /// It is not running, and will be started when it is needed.
    Idle,
    /// It is being started.
    Starting,
    /// It cannot be reached; it is tried again.
    Failing,
    /// It was closed for good.
    Stopped,
}

impl SourceState {
    /// The word on the wire.
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

/// A definition that is kept back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Quarantined")]
pub struct QuarantinedDefinition {
    /// The tool.
    pub tool: ToolId,
    /// `new` or `changed`.
    pub change: String,
    /// What is different, a line each, with odd characters made visible.
    pub diff: String,
    /// Which definition that is.
    pub digest: String,
}

/// The way between a source and its host, outside of calls.
#[derive(Clone)]
pub struct SourceFeed {
    listen: Arc<dyn Fn(SourceNotice) + Send + Sync>,
    path_rules: Arc<dyn Fn() -> Option<Arc<dyn PathRulesInForce>> + Send + Sync>,
}

impl SourceFeed {
    /// Wraps the host's side. Without [`with_path_rules`](Self::with_path_rules), no rule keeps any path.
    pub fn new(listen: impl Fn(SourceNotice) + Send + Sync + 'static) -> Self {
        Self {
            listen: Arc::new(listen),
            path_rules: Arc::new(|| None),
        }
    }

    /// The same with the place where the path rules in force are found.
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

    /// Tells the host.
    pub fn notify(&self, notice: SourceNotice) {
        (self.listen)(notice);
    }

    /// The path rules in force now. `None`: the host has none, or is gone.
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
    /// What is wrong.
    pub reason: String,
}

/// A part of a source, or a whole one, that should be there and is not.
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
    /// What is missing: a module, a server, the source itself.
    pub part: String,
    /// Where it was to come from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub origin: Option<String>,
    /// The kind of problem, as one word.
    pub code: String,
    /// What is wrong, and what would help.
    pub message: String,
}

impl SourceProblem {
    /// The code of a part that is there, but is not all that it should be.
    pub const REDUCED: &str = "reduced";
    /// The code of a part that chose to bring nothing. That is its own decision, and no fault.
    pub const DECLINED: &str = "declined";
    /// Finer codes of a part that is reduced.
    const PARTIAL: [&str; 5] = [
        "invalid_schema",
        "invalid_spec",
        "invalid_tool_name",
        "oversized",
        "too_many_tools",
    ];

    /// Whether the part is there all the same, and only something of it is missing.
    pub fn is_partial(&self) -> bool {
        self.code == Self::REDUCED || Self::PARTIAL.contains(&self.code.as_str())
    }

    /// Whether the part chose to bring nothing.
    pub fn is_declined(&self) -> bool {
        self.code == Self::DECLINED
    }

    fn state(&self) -> &'static str {
        match (self.is_declined(), self.is_partial()) {
            (true, _) => "declined",
            (false, true) => "is not whole",
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
    /// What is wrong with it, and what would be right.
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

    /// The value at `at` reaches outside.
    pub fn violation(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::SandboxViolation,
            at: at.into(),
            message: message.into(),
        }
    }
}
