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

/// What a host runs with. `Default` holds the documented defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// What happens where no rule speaks.
    pub mode: PermissionMode,
    /// Whether mode `bypass` is off limits.
    pub forbid_bypass: bool,
    /// The rules of all layers, in the order they were written.
    pub rules: Vec<Rule>,
    /// What is wrong with the rules themselves. Every decision says so.
    pub notes: Vec<String>,
    /// The folder the tools work in; the caller decides where there is none.
    pub workspace: Option<PathBuf>,
    /// Where the journal and the results are kept; the caller decides where there is none.
    pub data_dir: Option<PathBuf>,
    /// Where fetched modules and their environments are kept. No file says this: whoever starts the host does, and
    /// without it nothing is fetched.
    pub cache_dir: Option<PathBuf>,
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
    /// Programs and policy endpoints that rules delegate decisions to.
    pub authorities: Vec<AuthorityConfig>,
    /// What of the host's environment its children may see.
    pub environment: ChildVariables,
    /// Settings of tools. Ask [`tool_index`](Self::tool_index), which knows all three tables.
    pub tools: ToolTable,
    /// What the policy sets: it counts before `tools`, however exact those are.
    pub policy_tools: ToolTable,
    /// What files set that may only restrict: it bounds the other two.
    pub restricted_tools: ToolTable,
    /// Settings of sources of tools.
    pub sources: BTreeMap<String, SourceConfig>,
    /// The HTTP listener.
    pub http: HttpConfig,
    /// Tokens that callers may come with.
    pub tokens: Vec<TokenConfig>,
    /// Questions to people.
    pub approvals: ApprovalsConfig,
    /// How much at once, how long and how large.
    pub limits: LimitsConfig,
    /// How long what was recorded and kept stays.
    pub retention: RetentionConfig,
    /// How tools are found.
    pub discovery: DiscoveryConfig,
    /// Agents that speak A2E.
    pub a2e: A2eConfig,
    /// Other agents and chat clients that speak A2A.
    pub a2a: A2aConfig,
    /// The Model Context Protocol.
    pub mcp: McpConfig,
    /// The modules of all mount plans, merged and expanded, in their order.
    pub modules: Vec<PlannedModule>,
    /// Bundles that mount plans build on and that are not here, so that nobody knows what they plan.
    pub missing_bundles: Vec<Include>,
    /// Plugins of an A2E host file in Python. They run as modules do.
    pub plugins: Vec<PluginConfig>,
    /// Which of the host's own tools an A2E host file leaves. Without such a file, all.
    pub native_tools: NativeToolsChoice,
    /// How modules are fetched and run.
    pub amplifier: AmplifierConfig,
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
    /// How long a call waits for approval where its caller sets no limit.
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

/// A token that a caller may come with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The name that calls made with it are recorded under.
    pub name: String,
    /// What the caller is to the host.
    pub role: PrincipalRole,
    /// The tenant that the caller belongs to.
    pub tenant: Option<String>,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// How much at once, how long and how large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Calls that run at the same time.
    pub concurrency: usize,
    /// Calls of one session that run at the same time.
    pub session_concurrency: usize,
    /// Calls that wait for their turn.
    pub queue: usize,
    /// How callers divide limits.
    pub shares: ShareRules,
    /// Streams open at the same time.
    pub streams: usize,
    /// Processes that run in the background at the same time.
    pub processes: usize,
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
    /// The room that all kept results together may take on disk, in bytes.
    pub artifacts: u64,
    /// The largest single result that is kept, in bytes.
    pub artifact: u64,
    /// The largest arguments of one call, in bytes.
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

/// How tools are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// Whether a deferred tool must have been shown in the session before it is called.
    pub require_shown: bool,
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        Self {
            require_shown: true,
        }
    }
}

/// Agents that speak A2E.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct A2eConfig {
    /// What the host calls itself towards agents.
    pub host_id: Option<String>,
    /// Whether an agent must have negotiated a capability before it can use it.
    pub require_negotiated: bool,
    /// Further folders in which plugins and what they import are looked for.
    pub import_paths: Vec<PathBuf>,
    /// The file with one line for each request.
    pub audit: AuditConfig,
}

/// Whether the host's own tools are served beside the plugins of an A2E host file, and as which entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NativeToolsChoice {
    /// They are served, as no file says otherwise.
    #[default]
    Served,
    /// They are served as an entry of the file.
    Entry {
        /// The entry's name.
        name: String,
        /// Of several entries with tools, the one with the highest comes first.
        priority: i64,
        /// Whether it hides the tools of the other entries where it comes first.
        exclusive: bool,
    },
    /// The file names plugins that bring tools, and not the host's own.
    LeftOut,
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
        Self {
            path: None,
            max_bytes: 10 << 20,
            backup_count: 5,
        }
    }
}
