//! The settings as used: resolved, checked, with every default filled in.

mod a2a;
mod amplifier;
mod approvals;
mod authorities;
mod commands;
mod hooks;
mod mcp;
mod native;
mod retention;
mod tools;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use toolpost_amplifier::{Include, PlannedModule};
use toolpost_model::{PermissionMode, PrincipalRole, Rule, ShareRules};

pub use a2a::{A2aConfig, A2aEvents};
pub use amplifier::{
    AmplifierConfig, AmplifierCore, ModuleInstall, ModuleIsolation, NativeReplacement,
    PluginConfig, WasmConfig,
};
pub use approvals::ApprovalsConfig;
pub use authorities::{AuthorityConfig, AuthorityReachConfig};
pub use commands::{
    CommandConfig, CommandTemplateConfig, ParameterConfig, ParameterKind, TemplatePieceConfig,
};
pub use hooks::HookConfig;
pub use mcp::{
    McpConfig, McpEra, McpNaming, McpNewTools, McpPiece, McpReach, McpServerConfig, McpShare,
    McpStart, McpText, McpTextError, McpUnresolved, McpUnusable, McpValues, ResolvedMcpText,
};
pub use native::{
    ChildVariables, CodeConfig, CredentialConfig, CredentialSource, NetworkConfig, ProtectConfig,
    RootConfig, SandboxConfig,
};
pub use retention::{JournalRetention, RetentionConfig};
pub use tools::{SourceConfig, ToolIndex, ToolTable};

/// The settings of a host. `Default` holds the documented defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// The default when no rule matches.
    pub mode: PermissionMode,
    /// Whether the mode `bypass` is forbidden.
    pub forbid_bypass: bool,
    /// The rules of all layers, in the order they were written.
    pub rules: Vec<Rule>,
    /// Problems in the rules themselves. Every decision includes them.
    pub notes: Vec<String>,
    /// The folder that tools work in; the caller decides if there is none.
    pub workspace: Option<PathBuf>,
    /// The folder of the journal and the kept results; the caller decides if there is none.
    pub data_dir: Option<PathBuf>,
    /// The folder of fetched modules and their environments. It is not part of any file: the caller sets it, and
    /// without it nothing is fetched.
    pub cache_dir: Option<PathBuf>,
    /// Folders beside the workspace that tools may work in.
    pub roots: Vec<RootConfig>,
    /// Paths that need an approval to change, even where writing is allowed.
    pub protect: ProtectConfig,
    /// The confinement of the processes that tools start.
    pub sandbox: SandboxConfig,
    /// The URLs that HTTP tools may reach.
    pub network: NetworkConfig,
    /// Programs that a model writes, run by `run_code`.
    pub code: CodeConfig,
    /// Tools that run a command line.
    pub commands: Vec<CommandConfig>,
    /// Programs that decide about calls or observe them, in their order.
    pub hooks: Vec<HookConfig>,
    /// Programs and policy endpoints that decide for `delegate` rules.
    pub authorities: Vec<AuthorityConfig>,
    /// The variables of the host's environment that its children may see.
    pub environment: ChildVariables,
    /// Settings of tools. Look them up in [`tool_index`](Self::tool_index), which combines all three tables.
    pub tools: ToolTable,
    /// Settings of the policy. They override `tools`, even its more exact entries.
    pub policy_tools: ToolTable,
    /// Settings of files that may only restrict. They bound the other two tables.
    pub restricted_tools: ToolTable,
    /// Settings of sources of tools.
    pub sources: BTreeMap<String, SourceConfig>,
    /// The HTTP listener.
    pub http: HttpConfig,
    /// Tokens of callers.
    pub tokens: Vec<TokenConfig>,
    /// Approvals.
    pub approvals: ApprovalsConfig,
    /// Limits of number, time and size.
    pub limits: LimitsConfig,
    /// How long the journal and kept results stay.
    pub retention: RetentionConfig,
    /// The discovery of tools.
    pub discovery: DiscoveryConfig,
    /// A2E, for agents that use that protocol.
    pub a2e: A2eConfig,
    /// A2A, for other agents and chat clients.
    pub a2a: A2aConfig,
    /// The Model Context Protocol.
    pub mcp: McpConfig,
    /// The modules of all mount plans, merged and expanded, in their order.
    pub modules: Vec<PlannedModule>,
    /// Bundles that mount plans include and that are missing, so that their plans are unknown.
    pub missing_bundles: Vec<Include>,
    /// Plugins of an A2E host file in Python. They run as modules do.
    pub plugins: Vec<PluginConfig>,
    /// The host's own tools that an A2E host file leaves in place. Without such a file, all.
    pub native_tools: NativeToolsChoice,
    /// Fetching and running modules.
    pub amplifier: AmplifierConfig,
}

/// The HTTP listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// Further names that requests may have as `Host`, with a port or for every port.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests.
    pub allowed_origins: Vec<String>,
    /// The largest request body, in bytes.
    pub body_limit: usize,
    /// How long a call waits for approval unless its caller sets a limit.
    pub patience: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8765)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            body_limit: 4 << 20,
            patience: Duration::from_secs(20),
        }
    }
}

/// A token that callers may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The name in the records of calls with this token.
    pub name: String,
    /// The role of the caller.
    pub role: PrincipalRole,
    /// The tenant of the caller.
    pub tenant: Option<String>,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// Limits of number, time and size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// The most calls that run at the same time.
    pub concurrency: usize,
    /// The most calls of one session that run at the same time.
    pub session_concurrency: usize,
    /// The most calls that wait for a slot.
    pub queue: usize,
    /// The division of limits between callers.
    pub shares: ShareRules,
    /// The most open streams.
    pub streams: usize,
    /// The most background processes.
    pub processes: usize,
    /// How long a call may run if neither the tool nor the caller sets a deadline.
    pub deadline: Duration,
    /// The longest deadline that a caller may set.
    pub deadline_ceiling: Duration,
    /// The longest text that is shown whole, in characters.
    pub inline_chars: usize,
    /// The most open sessions.
    pub sessions: usize,
    /// How long a session is kept after its last request.
    pub session_idle: Duration,
    /// The disk space for the journal, in bytes.
    pub journal: u64,
    /// The disk space for all kept results together, in bytes.
    pub artifacts: u64,
    /// The largest kept result, in bytes.
    pub artifact: u64,
    /// The largest arguments of a call, in bytes.
    pub argument_bytes: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            concurrency: 64,
            session_concurrency: 16,
            queue: 1024,
            shares: ShareRules::default(),
            streams: 1024,
            processes: 64,
            deadline: Duration::from_secs(60),
            deadline_ceiling: Duration::from_secs(600),
            inline_chars: 50_000,
            sessions: 1024,
            session_idle: Duration::from_secs(24 * 60 * 60),
            journal: 10 << 30,
            artifacts: 4 << 30,
            artifact: 2 << 30,
            argument_bytes: 4 << 20,
        }
    }
}

/// The discovery of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// Whether a deferred tool must be shown in the session before it can be called.
    pub require_shown: bool,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self {
            require_shown: true,
        }
    }
}

/// A2E, for agents that use that protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct A2eConfig {
    /// The name of the host for agents.
    pub host_id: Option<String>,
    /// Whether an agent must negotiate a capability before it can use it.
    pub require_negotiated: bool,
    /// Further folders to search for plugins and their imports.
    pub import_paths: Vec<PathBuf>,
    /// The audit file, with one line per request.
    pub audit: AuditConfig,
}

/// Whether and as which entry the host's own tools are served beside the plugins of an A2E host file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NativeToolsChoice {
    /// They are served, since no file leaves them out.
    #[default]
    Served,
    /// They are served as an entry of the file.
    Entry {
        /// The entry's name.
        name: String,
        /// Its rank among the entries with tools: the highest comes first.
        priority: i64,
        /// Whether it hides the tools of the other entries if it comes first.
        exclusive: bool,
    },
    /// The file has plugins with tools, but not the host's own.
    LeftOut,
}

/// The audit file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The path; `None`: no audit file is written.
    pub path: Option<PathBuf>,
    /// The size at which it is moved aside, in bytes.
    pub max_bytes: u64,
    /// How many older files are kept.
    pub backup_count: u32,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            path: None,
            max_bytes: 10 << 20,
            backup_count: 5,
        }
    }
}
