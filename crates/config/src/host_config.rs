//! The settings as used: resolved, checked, with every default filled in.

mod commands;
mod hooks;
mod native;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use toolpost_model::{EffectClass, Mode, Requirements, Role, Rule, ToolId};

pub use commands::{CommandConfig, ParameterConfig, ParameterKind, Piece, Template};
pub use hooks::HookConfig;
pub use native::{
    ChildVariables, CodeConfig, CredentialConfig, CredentialSource, NetworkConfig, ProtectConfig, RootConfig,
    SandboxConfig,
};

/// What a host runs with. `Default` holds the documented defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// What happens where no rule speaks.
    pub mode: Mode,
    /// The rules of all layers, in the order they were written.
    pub rules: Vec<Rule>,
    /// The folder the tools work in; the caller decides where there is none.
    pub workspace: Option<PathBuf>,
    /// Where the journal and the results are kept; the caller decides where there is none.
    pub data_dir: Option<PathBuf>,
    /// Folders beside the workspace that tools may work in.
    pub roots: Vec<RootConfig>,
    /// Paths whose change asks even where writing is allowed.
    pub protect: ProtectConfig,
    /// What confines the processes that tools start.
    pub sandbox: SandboxConfig,
    /// Where tools that talk HTTP may go.
    pub network: NetworkConfig,
    /// Programs that a model writes.
    pub code: CodeConfig,
    /// Tools made of a command line.
    pub commands: Vec<CommandConfig>,
    /// Programs that look at calls, in their order.
    pub hooks: Vec<HookConfig>,
    /// What of the host's environment its children may see.
    pub environment: ChildVariables,
    /// Settings of single tools by name or id. Ask [`settings_for`](Self::settings_for), which knows both.
    pub tools: BTreeMap<String, ToolSettings>,
    /// The HTTP listener.
    pub http: HttpConfig,
    /// Tokens that callers may come with.
    pub tokens: Vec<TokenConfig>,
    /// How much at once, how long and how large.
    pub limits: Limits,
    /// How tools are found.
    pub discovery: Discovery,
    /// Agents that speak A2E.
    pub a2e: A2eConfig,
}

impl HostConfig {
    /// The settings of one tool: those by its id and those by its name together, the stricter of each.
    ///
    /// Were the id simply to win, a file that may only restrict could loosen what a trusted file says of the
    /// name by speaking of the id.
    pub fn settings_for(&self, id: &ToolId) -> ToolSettings {
        match (self.tools.get(id.as_str()), self.tools.get(id.name())) {
            (Some(by_id), Some(by_name)) => by_id.clone().stricter(by_name),
            (Some(only), None) | (None, Some(only)) => only.clone(),
            (None, None) => ToolSettings::default(),
        }
    }
}

/// Settings of one tool. `None` leaves a thing as the tool declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether the tool can be used at all.
    pub enabled: bool,
    /// Whether it stays out of lists until a search shows it.
    pub deferred: Option<bool>,
    /// How long one call may run.
    pub timeout: Option<Duration>,
    /// What its calls count as.
    pub class: Option<EffectClass>,
    /// The longest text shown whole, in characters.
    pub max_inline_chars: Option<usize>,
    /// Ask a person even where the mode would allow.
    pub approval_required: Option<bool>,
    /// What a caller must offer before it sees the tool.
    pub requires: Option<Requirements>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            deferred: None,
            timeout: None,
            class: None,
            max_inline_chars: None,
            approval_required: None,
            requires: None,
        }
    }
}

impl ToolSettings {
    /// The stricter of each. Where neither is stricter than the other (class, requirements), `self` wins.
    fn stricter(self, other: &Self) -> Self {
        Self {
            enabled: self.enabled && other.enabled,
            deferred: self.deferred.max(other.deferred),
            timeout: smaller(self.timeout, other.timeout),
            class: self.class.or(other.class),
            max_inline_chars: smaller(self.max_inline_chars, other.max_inline_chars),
            approval_required: self.approval_required.max(other.approval_required),
            requires: self.requires.or_else(|| other.requires.clone()),
        }
    }
}

/// The smaller of two limits, where none is no limit. (`Option`'s own order would take none for the smallest.)
fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The HTTP listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// Further names a request may give as its `Host`, with a port or for every port.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may call.
    pub allowed_origins: Vec<String>,
    /// The largest request body, in bytes.
    pub body_limit: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8765)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_limit: 4 << 20,
        }
    }
}

/// A token that a caller may come with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The name that calls made with it are recorded under.
    pub name: String,
    /// What the caller is to the host.
    pub role: Role,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// How much at once, how long and how large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls that run at the same time.
    pub concurrency: usize,
    /// Calls of one session that run at the same time.
    pub session_concurrency: usize,
    /// Calls that wait for their turn.
    pub queue: usize,
    /// How long a call may run where neither the tool nor the caller says.
    pub deadline: Duration,
    /// The longest deadline anybody may ask for.
    pub deadline_ceiling: Duration,
    /// The longest text of a result shown whole, in characters.
    pub inline_chars: usize,
    /// Sessions open at the same time.
    pub sessions: usize,
    /// How long a session is kept after its last request.
    pub session_idle: Duration,
    /// The room the journal may take on disk, in bytes.
    pub journal: u64,
    /// The largest arguments of one call, in bytes.
    pub argument_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 64,
            session_concurrency: 16,
            queue: 1024,
            deadline: Duration::from_secs(60),
            deadline_ceiling: Duration::from_secs(600),
            inline_chars: 400_000,
            sessions: 1024,
            session_idle: Duration::from_secs(24 * 60 * 60),
            journal: 10 << 30,
            argument_bytes: 4 << 20,
        }
    }
}

/// How tools are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// Whether a deferred tool must have been shown in the session before it is called.
    pub require_shown: bool,
}

impl Default for Discovery {
    fn default() -> Self {
        Self { require_shown: true }
    }
}

/// Agents that speak A2E.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct A2eConfig {
    /// What the host calls itself towards agents.
    pub host_id: Option<String>,
    /// Whether an agent must have negotiated the capability `tools` before it can list or call them.
    pub require_negotiated: bool,
    /// The file with one line for each request.
    pub audit: AuditConfig,
}

/// The audit file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The file; none is written where this is `None`.
    pub path: Option<PathBuf>,
    /// How large it may grow before it is moved aside, in bytes.
    pub max_bytes: u64,
    /// How many files moved aside are kept.
    pub backup_count: u32,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { path: None, max_bytes: 10 << 20, backup_count: 5 }
    }
}
