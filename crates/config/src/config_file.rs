//! The file as written. The doc comments here become the schema's descriptions and the reference, so they address
//! authors of the file.

mod a2a;
mod amplifier;
mod approvals;
mod authorities;
mod code;
mod commands;
mod hooks;
mod include;
mod mcp;
mod network;
mod retention;
mod roots;
mod sandbox;
mod tools;

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::{PermissionMode, PrincipalRole};

use crate::{ByteSize, ConfigDuration, LocatedValue, Percentage, RuleEntry};

pub use a2a::A2aSection;
pub use amplifier::{AmplifierSection, WasmEntry};
pub use approvals::ApprovalsSection;
pub use authorities::AuthorityEntry;
pub use code::CodeSection;
pub use commands::{CommandEntry, CommandOutput, ParameterEntry, ParameterType};
pub use hooks::HookEntry;
pub use include::IncludeEntry;
pub use mcp::{McpSection, McpServerEntry, McpToolsEntry, McpValue};
pub use network::{CredentialEntry, NetworkSection};
pub use retention::{JournalRetentionSection, RetentionSection};
pub use roots::{ProtectSection, RootAccess, RootEntry};
pub use sandbox::SandboxSection;
pub use tools::{ArgumentKinds, ResultKeeping, SourceEntry, SourceTrustLevel, ToolEntry};

/// `toolpost.yaml`. Every key is optional.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// The default when no rule matches.
    pub mode: Option<LocatedValue<PermissionMode>>,
    /// Whether the mode `bypass` is forbidden. A file or flag that sets it gets `default` instead.
    pub forbid_bypass: Option<LocatedValue<bool>>,
    /// The rules: one-line texts such as `ask class:write`, or tables.
    pub rules: Vec<LocatedValue<RuleEntry>>,
    /// The folder that tools work in, relative to this file. Only in a file given by `--config`; otherwise the command
    /// line decides.
    pub workspace: Option<LocatedValue<PathBuf>>,
    /// The folder of the journal and the kept results, relative to this file. It must lie outside of the workspace.
    /// Only in a file given by `--config`.
    pub data_dir: Option<LocatedValue<PathBuf>>,
    /// Folders beside the workspace that tools may work in.
    pub roots: Vec<LocatedValue<RootEntry>>,
    /// Paths that need an approval to change, even where writing is allowed.
    pub protect: ProtectSection,
    /// The confinement of the processes that tools start.
    pub sandbox: SandboxSection,
    /// The URLs that HTTP tools may reach, and their credentials.
    pub network: NetworkSection,
    /// Programs that a model writes, run by `run_code`.
    pub code: CodeSection,
    /// Tools that run a command line, by their names.
    pub commands: BTreeMap<String, LocatedValue<CommandEntry>>,
    /// Programs that decide about calls before they run, or observe them, in their order.
    pub hooks: Vec<LocatedValue<HookEntry>>,
    /// Programs and policy endpoints that decide for `delegate` rules, by their names. Only in a trusted file.
    pub authorities: BTreeMap<String, LocatedValue<AuthorityEntry>>,
    /// Settings of tools, by id (`files.write_file`), name (`write_file`) or pattern (`github.*`). If several entries
    /// match a tool, each setting comes from the most exact entry that has it.
    pub tools: BTreeMap<String, LocatedValue<ToolEntry>>,
    /// Settings of sources of tools, by their names.
    pub sources: BTreeMap<String, LocatedValue<SourceEntry>>,
    /// The HTTP listener.
    pub http: HttpSection,
    /// Named tokens of callers, by hash.
    pub tokens: Vec<LocatedValue<TokenEntry>>,
    /// Approvals, when a rule or the mode asks.
    pub approvals: ApprovalsSection,
    /// Limits of number, time and size.
    pub limits: LimitsSection,
    /// How long the journal and kept results stay.
    pub retention: RetentionSection,
    /// The discovery of tools.
    pub discovery: DiscoverySection,
    /// A2E, for agents that use that protocol.
    pub a2e: A2eSection,
    /// A2A, for other agents and chat clients.
    pub a2a: A2aSection,
    /// The Model Context Protocol.
    pub mcp: McpSection,
    /// Mount plans and bundles with tools and hooks to mount, relative to this file; `{mcp: FILE}` for lists of MCP
    /// servers. Later ones override earlier ones. Only in a trusted file.
    pub include: Vec<LocatedValue<IncludeEntry>>,
    /// How the modules of mount plans are fetched and run.
    pub amplifier: AmplifierSection,
}

/// The HTTP listener.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    /// Address and port; port 0 takes any free port.
    pub listen: Option<LocatedValue<String>>,
    /// Names that requests may have as `Host`, beside the address itself and the loopback names of this machine. A
    /// name without a port matches every port.
    pub allowed_hosts: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Origins of web pages that may send requests, as `https://host`. Requests without an `Origin` do not come from a
    /// page.
    pub allowed_origins: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// The largest request body.
    pub body_limit: Option<LocatedValue<ByteSize>>,
    /// How long a call waits for approval before its caller gets an answer, unless the caller sets `patience`. With an
    /// `Idempotency-Key` the call stays parked and runs after an approval. The wait for a free slot, the work, event
    /// streams and background calls are not limited.
    pub patience: Option<LocatedValue<ConfigDuration>>,
}

/// A token that callers may use.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The name in the records of calls with this token.
    pub name: LocatedValue<String>,
    /// The role of the caller.
    #[serde(default)]
    pub role: PrincipalRole,
    /// The tenant of the caller. Its surfaces are recorded with the scope `tenant` and this name.
    pub tenant: Option<LocatedValue<String>>,
    /// SHA-256 of the token, in 64 hex digits: `printf %s "$TOKEN" | sha256sum`. The token itself never belongs in the
    /// file.
    #[schemars(extend("pattern" = "^[0-9a-fA-F]{64}$"))]
    pub sha256: LocatedValue<String>,
}

/// Limits of number, time and size.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Calls that run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<LocatedValue<usize>>,
    /// Calls of one session that run at the same time.
    #[schemars(range(min = 1))]
    pub session_concurrency: Option<LocatedValue<usize>>,
    /// Calls that wait for a free slot; further ones are refused. One session may fill half of the queue.
    #[schemars(range(min = 1))]
    pub queue: Option<LocatedValue<usize>>,
    /// The share of one agent in slots, queue, streams and processes while other agents are active, and in `journal`
    /// and `artifacts` once these run short. A single agent borrows more; half a share always stays free for the next
    /// one.
    pub share: Option<LocatedValue<Percentage>>,
    /// The part of slots, queue, streams, processes, `journal` and `artifacts` that agents never get.
    pub operator_reserve: Option<LocatedValue<Percentage>>,
    /// Open streams at the same time: of sessions, of all calls, of tasks and of clients that wait for notifications.
    #[schemars(range(min = 1))]
    pub streams: Option<LocatedValue<usize>>,
    /// Background processes at the same time; 16 per session.
    #[schemars(range(min = 1))]
    pub processes: Option<LocatedValue<usize>>,
    /// How long a call may run if neither the tool nor the caller sets a deadline.
    pub deadline: Option<LocatedValue<ConfigDuration>>,
    /// The longest deadline that a caller may set.
    pub deadline_ceiling: Option<LocatedValue<ConfigDuration>>,
    /// The longest text that is shown whole, in characters. A longer result is shown in part and kept whole.
    #[schemars(range(min = 1))]
    pub inline_chars: Option<LocatedValue<usize>>,
    /// The most open sessions.
    #[schemars(range(min = 1))]
    pub sessions: Option<LocatedValue<usize>>,
    /// How long a session is kept after its last request.
    pub session_idle: Option<LocatedValue<ConfigDuration>>,
    /// The disk space for the journal.
    pub journal: Option<LocatedValue<ByteSize>>,
    /// The disk space for all kept results together.
    pub artifacts: Option<LocatedValue<ByteSize>>,
    /// The largest kept result.
    pub artifact: Option<LocatedValue<ByteSize>>,
    /// The largest arguments of a call.
    pub argument_bytes: Option<LocatedValue<ByteSize>>,
}

/// The discovery of tools.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySection {
    /// Whether a deferred tool must be shown in the session before it can be called.
    pub require_shown: Option<LocatedValue<bool>>,
}

/// A2E, for agents that use that protocol.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2eSection {
    /// The name of the host for agents: up to 64 printable characters.
    #[schemars(length(min = 1, max = 64))]
    pub host_id: Option<LocatedValue<String>>,
    /// Whether an agent must negotiate a capability before it can use it.
    pub require_negotiated: Option<LocatedValue<bool>>,
    /// Folders to search for plugins and their imports, beside the folder of the A2E host file. The plugins can read
    /// them.
    pub import_paths: Vec<LocatedValue<PathBuf>>,
    /// The audit file, with one line per request.
    pub audit: AuditSection,
}

/// The audit file, for other programs. The host's own record is the journal.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSection {
    /// The path, relative to this file. Its folder is created if it is missing. Without it, no audit file is written.
    pub path: Option<LocatedValue<PathBuf>>,
    /// The size at which the file is moved aside and a new one begins.
    pub max_bytes: Option<LocatedValue<ByteSize>>,
    /// How many older files are kept, as `….1`, `….2` and so on. With 0 the file is emptied instead.
    #[schemars(range(min = 0, max = 1000))]
    pub backup_count: Option<LocatedValue<u32>>,
}
