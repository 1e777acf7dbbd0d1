//! MCP servers as used.

mod text;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolpost_model::SandboxProfile;

pub use text::{McpPiece, McpText, McpTextError, McpUnresolved, McpValues, ResolvedMcpText};

/// The Model Context Protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpConfig {
    /// How long a call over MCP waits for an approval before its caller is told to come again.
    pub approval_wait: Duration,
    /// The servers, in the order of their names. Those that are disabled are left out.
    pub servers: Vec<McpServerConfig>,
    /// Servers that a file names and that cannot be had as they are named there.
    pub unusable: Vec<McpUnusable>,
}

impl Default for McpConfig {
    fn default() -> Self {
        // Clients give up after a minute, so the word comes well before that.
        Self {
            approval_wait: Duration::from_secs(30),
            servers: Vec::new(),
            unusable: Vec::new(),
        }
    }
}

impl McpConfig {
    /// Every text in which a reference may stand.
    pub fn texts(&self) -> impl Iterator<Item = &McpText> {
        self.servers.iter().flat_map(|server| server.reach.texts())
    }
}

/// A server that cannot be had as a file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpUnusable {
    /// Its name.
    pub name: String,
    /// File and line of its entry.
    pub place: String,
    /// Why not, and what would help.
    pub reason: String,
}

/// One server, checked and with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The name that its tools' ids begin with.
    pub name: String,
    /// How it is reached.
    pub reach: McpReach,
    /// Whether the host does not start without it.
    pub required: bool,
    /// Which revision of the protocol is spoken.
    pub era: McpEra,
    /// How its tools are named towards agents.
    pub naming: McpNaming,
    /// Who shares one connection or process.
    pub share: McpShare,
    /// When it is started.
    pub start: McpStart,
    /// What becomes of definitions that were never seen before.
    pub new_tools: McpNewTools,
    /// Tools that are taken, by their names there. `None`: all.
    pub allow: Option<Vec<String>>,
    /// Tools that are left out.
    pub deny: Vec<String>,
    /// How long a call may run. `None`: what `limits` says.
    pub timeout: Option<Duration>,
    /// How long a first connection and its handshake may take.
    pub connect_timeout: Duration,
    /// How long it is kept without a call. `None`: until the host ends.
    pub idle_stop: Option<Duration>,
    /// The longest message that is read from it, in bytes.
    pub max_message: u64,
    /// What its process may do. `None`: what `sandbox.profile` says.
    pub sandbox: Option<SandboxProfile>,
    /// Names of variables that it gets from the host's environment.
    pub pass: Vec<String>,
    /// What its process may read outside of the roots.
    pub readable: Vec<PathBuf>,
    /// Folders that its process may write outside of the roots.
    pub writable: Vec<PathBuf>,
    /// The only files and folders of the roots that its process sees. `None`: all.
    pub reads: Option<Vec<PathBuf>>,
    /// The files among its program and arguments that were written relative to the configuration.
    pub files: Vec<PathBuf>,
    /// File and line of the entry that says how it is reached.
    pub place: String,
}

impl McpServerConfig {
    /// Servers that are fetched at their first start take a while.
    pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
    /// Room for pictures and long lists.
    pub(crate) const MAX_MESSAGE: u64 = 16 << 20;
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpReach {
    /// A program that is started.
    Program {
        /// The program.
        command: McpText,
        /// Its arguments.
        args: Vec<McpText>,
        /// Where it begins, relative to `folder`. `None`: in the workspace.
        cwd: Option<McpText>,
        /// The folder of the file that names it.
        folder: PathBuf,
        /// Variables with values of their own.
        env: BTreeMap<String, McpText>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: McpText,
        /// Headers that every request carries.
        headers: BTreeMap<String, McpText>,
    },
}

impl McpReach {
    fn texts(&self) -> Vec<&McpText> {
        match self {
            Self::Program {
                command,
                args,
                cwd,
                folder: _,
                env,
            } => std::iter::once(command)
                .chain(args)
                .chain(cwd)
                .chain(env.values())
                .collect(),
            Self::Http { url, headers } => std::iter::once(url).chain(headers.values()).collect(),
        }
    }
}

/// Which revision of the protocol is spoken with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum McpEra {
    /// What it answers: the one without sessions first, then the one with them.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 2025-11-25 and before, with sessions.
    #[serde(rename = "2025-11-25")]
    Sessions,
    /// 2026-07-28, without sessions.
    #[serde(rename = "2026-07-28")]
    Stateless,
}

/// How the tools of a server are named towards agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpNaming {
    /// As `server__tool`.
    #[default]
    Namespaced,
    /// By their own names.
    Bare,
}

/// Who shares one connection to a server, or its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpShare {
    /// All sessions of the host.
    #[default]
    Host,
    /// Nobody: each session has its own.
    Session,
}

/// When a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpStart {
    /// At the first call, where its definitions are known from an earlier time; else with the host.
    #[default]
    Lazy,
    /// With the host, and again whenever it went away.
    Eager,
}

/// What becomes of definitions that were never seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McpNewTools {
    /// A server that was never seen is taken as it is, since you named it. What it adds later is kept back.
    #[default]
    FirstUse,
    /// Everything is kept back until somebody accepted it.
    Ask,
    /// They are taken. Changed ones are still kept back.
    Take,
}
