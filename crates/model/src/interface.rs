//! Layer 2: how a tool validates, classifies, executes, renders and persists. Every default fails closed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EffectClass, PersistStrategy};

/// The behavior of a tool, apart from its names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interface {
    /// The possible effects of the tool.
    pub safety: SafetyFacts,
    /// Facts for an operator who decides about its calls.
    pub permission: PermissionProfile,
    /// How it runs.
    pub execution: ExecutionProfile,
    /// How its results are shown.
    pub rendering: Rendering,
    /// How its results are kept.
    pub persistence: Persistence,
}

/// The possible effects of a tool, before any input is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SafetyFacts {
    /// Its class of effect.
    pub class: ClassFact,
    /// It may destroy data beyond recovery.
    pub destructive: bool,
    /// It cannot run without a person at hand.
    pub requires_user_interaction: bool,
}

/// Whether the class is the same for every input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClassFact {
    /// The same for every input.
    Always(EffectClass),
    /// The class depends on the input.
    ByInput,
}

impl Default for ClassFact {
    fn default() -> Self {
        Self::Always(EffectClass::Unknown)
    }
}

impl ClassFact {
    /// The class to assume while the input is not known.
    pub fn worst(self) -> EffectClass {
        match self {
            Self::Always(class) => class,
            Self::ByInput => EffectClass::Unknown,
        }
    }
}

/// Facts for an operator, to decide about the tool's calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PermissionProfile {
    /// How bad a wrong call can be.
    pub risk: RiskLevel,
    /// The kinds of thing that it reaches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<AccessKind>,
    /// Ask even where a mode would allow.
    pub approval_required: bool,
    /// The tool itself asks for approval of every call. Unlike `approval_required`, which the host or the operator
    /// sets, this gives way to mode `bypass` and to a rule that allows the tool by its id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approval_requested: bool,
    /// The meaning of single arguments to rules. Paths that the tool's effects name need not be listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentMeaning>,
    /// Names of other tools. Their `deny` and `ask` rules bind this tool too, because it does the same work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bound_like: Vec<String>,
}

impl Default for PermissionProfile {
    fn default() -> Self {
        Self {
            risk: RiskLevel::High,
            access: Vec::new(),
            approval_required: false,
            approval_requested: false,
            arguments: Vec::new(),
            bound_like: Vec::new(),
        }
    }
}

/// The meaning of one argument to rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentMeaning {
    /// The argument, as a JSON pointer; for a list, each of its elements.
    pub pointer: String,
    /// The meaning.
    pub kind: ArgumentKind,
}

impl ArgumentMeaning {
    /// An argument by its name at the top of the arguments.
    pub fn of(name: &str, kind: ArgumentKind) -> Self {
        Self {
            pointer: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
            kind,
        }
    }
}

/// The meaning of an argument to rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentKind {
    /// A shell command: matched command by command.
    Command,
    /// A command as a list of words, the program first.
    Words,
    /// Where commands and relative paths begin.
    Directory,
    /// Variables set for every command: an object of names and values, or a list of `NAME=value`.
    Environment,
    /// A path that is read.
    ReadPath,
    /// A path that is written.
    WritePath,
    /// A URL.
    Url,
    /// The method it is requested with.
    Method,
}

/// How bad a wrong call can be.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// Nothing lasting.
    Low,
    /// Can be undone.
    Medium,
    /// Hard to undo.
    High,
    /// Money, people or production.
    Critical,
}

/// A kind of thing that a tool reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Reads files.
    FileRead,
    /// Writes files.
    FileWrite,
    /// Connects to other machines.
    Network,
    /// Uses stored credentials.
    Credential,
    /// Sends something to people or systems outside.
    ExternalSend,
    /// Runs code.
    CodeExecution,
}

/// How a tool runs. Support is stated explicitly, never implied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExecutionProfile {
    /// Where it runs.
    pub kind: ExecutionKind,
    /// It reports events while it runs.
    pub streaming: bool,
    /// Its support for cancellation.
    pub cancel: CancelSupport,
    /// Running it twice equals running it once, for every input.
    pub idempotent: bool,
    /// The handling of a running call when others of its batch are canceled.
    pub interrupt: Interrupt,
    /// The tool's deadline in milliseconds; the host's default without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Default for ExecutionProfile {
    fn default() -> Self {
        Self {
            kind: ExecutionKind::EmbeddedRuntime,
            streaming: false,
            cancel: CancelSupport::AtAwaitPoints,
            idempotent: false,
            interrupt: Interrupt::Block,
            timeout_ms: None,
        }
    }
}

/// Where a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionKind {
    /// In this process.
    EmbeddedRuntime,
    /// In a child process.
    LocalProcess,
    /// In a shell.
    Shell,
    /// Behind an HTTP API.
    HttpApi,
    /// In an MCP server.
    McpServer,
}

/// The effect of a cancellation on a running call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelSupport {
    /// The tool watches for the cancellation and stops by itself.
    Cooperative,
    /// It is dropped at its next await point.
    AtAwaitPoints,
    /// The tool runs on; only its answer is dropped.
    Unsupported,
}

/// The handling of a running call when others of its batch are canceled. A cancellation by the caller is always obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// It is canceled with them.
    Cancel,
    /// It runs to its end.
    Block,
}

/// How results are shown to people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rendering {
    /// The argument to show beside the tool's name, such as `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_argument: Option<String>,
}

/// How results are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Persistence {
    /// The largest text shown whole, in characters; the host's limit applies where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_inline_chars: Option<usize>,
    /// The handling of a larger result. A tool whose content can be read again, such as a file or an artifact, sets
    /// [`PersistStrategy::NeverPersist`]: a stored output would only be a copy that the same tool reads.
    pub strategy: PersistStrategy,
}
