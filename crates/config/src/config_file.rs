//! The file as written. The doc comments here become the schema's descriptions and the reference, so they
//! speak to whoever writes the file.

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

/// `toolpost.yaml`. Every key may be left out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// What happens where no rule speaks.
    pub mode: Option<LocatedValue<PermissionMode>>,
    /// Whether mode `bypass` is off limits, whoever asks for it. It is `default` then.
    pub forbid_bypass: Option<LocatedValue<bool>>,
    /// Who may do what: one-line texts such as `ask class:write`, or tables.
    pub rules: Vec<LocatedValue<RuleEntry>>,
    /// The folder the tools work in, relative to this file. Only in a file given by `--config`; without it, the command
    /// line decides.
    pub workspace: Option<LocatedValue<PathBuf>>,
    /// Where the journal and the results are kept, relative to this file. It must lie outside of the workspace. Only in
    /// a file given by `--config`.
    pub data_dir: Option<LocatedValue<PathBuf>>,
    /// Folders beside the workspace that tools may work in.
    pub roots: Vec<LocatedValue<RootEntry>>,
    /// Paths whose change asks even where writing is allowed.
    pub protect: ProtectSection,
    /// What confines the processes that tools start.
    pub sandbox: SandboxSection,
    /// Where tools that talk HTTP may go.
    pub network: NetworkSection,
    /// Programs that a model writes.
    pub code: CodeSection,
    /// Tools made of a command line, by their names.
    pub commands: BTreeMap<String, LocatedValue<CommandEntry>>,
    /// Programs that look at calls, in their order.
    pub hooks: Vec<LocatedValue<HookEntry>>,
    /// Programs and policy endpoints that rules with `delegate` hand decisions to, by their names. Only in a file that is
    /// trusted.
    pub authorities: BTreeMap<String, LocatedValue<AuthorityEntry>>,
    /// Settings of tools, by id (`files.write_file`), name (`write_file`) or pattern (`github.*`). Of several entries
    /// that fit a tool, each setting is taken from the most exact one that has it.
    pub tools: BTreeMap<String, LocatedValue<ToolEntry>>,
    /// Settings of sources of tools, by their names.
    pub sources: BTreeMap<String, LocatedValue<SourceEntry>>,
    /// The HTTP listener.
    pub http: HttpSection,
    /// Named tokens that callers may come with, by hash.
    pub tokens: Vec<LocatedValue<TokenEntry>>,
    /// Questions to people, where a rule or the mode asks.
    pub approvals: ApprovalsSection,
    /// How much at once, how long and how large.
    pub limits: LimitsSection,
    /// How long what was recorded and kept stays.
    pub retention: RetentionSection,
    /// How tools are found.
    pub discovery: DiscoverySection,
    /// Agents that speak A2E.
    pub a2e: A2eSection,
    /// Other agents and chat clients that speak A2A.
    pub a2a: A2aSection,
    /// The Model Context Protocol.
    pub mcp: McpSection,
    /// Mount plans and bundles, relative to this file, whose tools and hooks are mounted, and as `{mcp: FILE}` lists of
    /// MCP servers. A later one is laid over an earlier one. Only in a file that is trusted.
    pub include: Vec<LocatedValue<IncludeEntry>>,
    /// How the modules of mount plans are fetched and run.
    pub amplifier: AmplifierSection,
}

/// The HTTP listener.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    /// Address and port; port 0 takes any that is free.
    pub listen: Option<LocatedValue<String>>,
    /// Names a request may give as its `Host`, beside the address itself and the names of this machine's
    /// loopback. A name without a port stands for every port.
    pub allowed_hosts: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// Web pages that may call, as `https://host`. Requests without an `Origin` are not from a page.
    pub allowed_origins: Option<LocatedValue<Vec<LocatedValue<String>>>>,
    /// The largest request body.
    pub body_limit: Option<LocatedValue<ByteSize>>,
    /// How long a call waits for approval before its caller is answered, unless the caller sets `patience`. With an
    /// `Idempotency-Key` the call stays parked and runs after a yes. The wait for a free slot, the work, event streams
    /// and background calls are not limited.
    pub patience: Option<LocatedValue<ConfigDuration>>,
}

/// A token that a caller may come with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// The name that calls made with it are recorded under.
    pub name: LocatedValue<String>,
    /// What the caller is to the host.
    #[serde(default)]
    pub role: PrincipalRole,
    /// The tenant that the caller belongs to. Its surfaces are recorded with the scope `tenant` and this name.
    pub tenant: Option<LocatedValue<String>>,
    /// SHA-256 of the token, in 64 hex digits: `printf %s "$TOKEN" | sha256sum`. The token itself never
    /// stands in the file.
    #[schemars(extend("pattern" = "^[0-9a-fA-F]{64}$"))]
    pub sha256: LocatedValue<String>,
}

/// How much at once, how long and how large.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Calls that run at the same time.
    #[schemars(range(min = 1))]
    pub concurrency: Option<LocatedValue<usize>>,
    /// Calls of one session that run at the same time.
    #[schemars(range(min = 1))]
    pub session_concurrency: Option<LocatedValue<usize>>,
    /// Calls that wait for their turn; further ones are refused. One session may fill half of it.
    #[schemars(range(min = 1))]
    pub queue: Option<LocatedValue<usize>>,
    /// What one agent gets of slots, queue, streams and processes while other agents are active, and of `journal` and
    /// `artifacts` once these run short. An agent alone borrows more; half a share always stays free for the next one.
    pub share: Option<LocatedValue<Percentage>>,
    /// What agents never get of slots, queue, streams, processes, `journal` and `artifacts`.
    pub operator_reserve: Option<LocatedValue<Percentage>>,
    /// Streams open at the same time: of sessions, of all calls, of tasks and of clients that wait for news.
    #[schemars(range(min = 1))]
    pub streams: Option<LocatedValue<usize>>,
    /// Processes that run in the background at the same time; 16 of one session.
    #[schemars(range(min = 1))]
    pub processes: Option<LocatedValue<usize>>,
    /// How long a call may run where neither the tool nor the caller says.
    pub deadline: Option<LocatedValue<ConfigDuration>>,
    /// The longest deadline anybody may ask for.
    pub deadline_ceiling: Option<LocatedValue<ConfigDuration>>,
    /// The longest text of a result shown whole, in characters. Of a longer one a part is shown and the whole is kept.
    #[schemars(range(min = 1))]
    pub inline_chars: Option<LocatedValue<usize>>,
    /// Sessions open at the same time.
    #[schemars(range(min = 1))]
    pub sessions: Option<LocatedValue<usize>>,
    /// How long a session is kept after its last request.
    pub session_idle: Option<LocatedValue<ConfigDuration>>,
    /// The room the journal may take on disk.
    pub journal: Option<LocatedValue<ByteSize>>,
    /// The room that all kept results together may take on disk.
    pub artifacts: Option<LocatedValue<ByteSize>>,
    /// The largest single result that is kept.
    pub artifact: Option<LocatedValue<ByteSize>>,
    /// The largest arguments of one call.
    pub argument_bytes: Option<LocatedValue<ByteSize>>,
}

/// How tools are found.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiscoverySection {
    /// Whether a deferred tool must have been shown in the session before it is called.
    pub require_shown: Option<LocatedValue<bool>>,
}

/// Agents that speak A2E.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct A2eSection {
    /// What the host calls itself towards agents: up to 64 printable characters.
    #[schemars(length(min = 1, max = 64))]
    pub host_id: Option<LocatedValue<String>>,
    /// Whether an agent must have negotiated a capability before it can use it.
    pub require_negotiated: Option<LocatedValue<bool>>,
    /// Folders beside that of an A2E host file in which its plugins and what they import are looked for. The plugins can
    /// read them.
    pub import_paths: Vec<LocatedValue<PathBuf>>,
    /// The file with one line for each request.
    pub audit: AuditSection,
}

/// The audit file, which other programs read. The host's own record is the journal.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSection {
    /// The file, relative to this one. Its folder is made where it is missing. Without it, no audit file is written.
    pub path: Option<LocatedValue<PathBuf>>,
    /// How large the file may grow before it is moved aside and a new one begins.
    pub max_bytes: Option<LocatedValue<ByteSize>>,
    /// How many files moved aside are kept, as `….1`, `….2` and so on. With 0 the file starts over.
    #[schemars(range(min = 0, max = 1000))]
    pub backup_count: Option<LocatedValue<u32>>,
}
