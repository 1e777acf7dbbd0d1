//! Layer 2: how a tool validates, classifies, executes, renders and persists. Every default fails closed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EffectClass, PersistStrategy};

/// How a tool behaves, apart from what it is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interface {
    /// What it may do.
    pub safety: SafetyFacts,
    /// What a person deciding about it should know.
    pub permission: PermissionProfile,
    /// How it runs.
    pub execution: ExecutionProfile,
    /// How its results are shown.
    pub rendering: Rendering,
    /// How its results are kept.
    pub persistence: Persistence,
}

/// What a tool may do, before any input is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SafetyFacts {
    /// Its class of effect.
    pub class: ClassFact,
    /// It may destroy what cannot be brought back.
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
    /// Only the input tells.
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

/// What a person deciding about the tool should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PermissionProfile {
    /// How bad a wrong call can be.
    pub risk: RiskLevel,
    /// What it reaches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<AccessKind>,
    /// Ask even where a mode would allow.
    pub approval_required: bool,
    /// The tool itself asks for approval of every call. Unlike `approval_required`, which is
    /// the host's or the operator's word, this gives way to mode `bypass` and to a rule that allows the tool by its id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approval_requested: bool,
    /// What single arguments mean to rules. Paths that the tool's effects name need not be listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentMeaning>,
    /// Names of other tools whose `deny` and `ask` rules bind this one too, because it does the same work.
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

/// What an argument means to rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentMeaning {
    /// Which argument, as a JSON pointer; where it is a list, each of its elements.
    pub pointer: String,
    /// What it is.
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

/// What an argument is to rules.
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

/// What a tool reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Reads files.
    FileRead,
    /// Writes files.
    FileWrite,
    /// Talks to other machines.
    Network,
    /// Uses stored credentials.
    Credential,
    /// Sends something to people or systems outside.
    ExternalSend,
    /// Runs code.
    CodeExecution,
}

/// How a tool runs. What is not supported is said, not implied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExecutionProfile {
    /// Where it runs.
    pub kind: ExecutionKind,
    /// It reports events while it runs.
    pub streaming: bool,
    /// It stops when told to.
    pub cancel: CancelSupport,
    /// Running it twice equals running it once, for every input.
    pub idempotent: bool,
    /// What becomes of a running call when others of its batch are canceled.
    pub interrupt: Interrupt,
    /// The deadline it wants, in milliseconds; the host's default applies where there is none.
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

/// What happens when a running call is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelSupport {
    /// It listens and stops by itself.
    Cooperative,
    /// It is dropped at its next await point.
    AtAwaitPoints,
    /// It runs on unseen; only its answer is dropped.
    Unsupported,
}

/// What becomes of a running call when others of its batch are canceled. A caller's own word to stop is always
/// obeyed.
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
    /// The argument worth showing beside the tool's name, such as `path`.
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
    /// What becomes of a larger one. A tool that reads what can be read again, such as a file or a kept result, says
    /// [`PersistStrategy::NeverPersist`]: its output would only be a copy that could be read by the same tool.
    pub strategy: PersistStrategy,
}
