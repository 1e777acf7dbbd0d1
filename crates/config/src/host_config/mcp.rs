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
    /// How long a call over MCP waits for an approval before its caller is asked to retry later.
    pub approval_wait: Duration,
    /// The enabled servers, sorted by name.
    pub servers: Vec<McpServerConfig>,
    /// Servers with entries that cannot be used.
    pub unusable: Vec<McpUnusable>,
}

impl Default for McpConfig {
    fn default() -> Self {
        // Clients give up after about a minute, so the answer must come well before that.
        Self {
            approval_wait: Duration::from_secs(30),
            servers: Vec::new(),
            unusable: Vec::new(),
        }
    }
}

impl McpConfig {
    /// Every text that may contain a reference.
    pub fn texts(&self) -> impl Iterator<Item = &McpText> {
        self.servers.iter().flat_map(|server| server.reach.texts())
    }
}

/// A server with an entry that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpUnusable {
    /// Its name.
    pub name: String,
    /// File and line of its entry.
    pub place: String,
    /// The reason, and a hint.
    pub reason: String,
}

/// A server, checked and with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The namespace of its tools' ids.
    pub name: String,
    /// The way to reach it.
    pub reach: McpReach,
    /// Whether the host refuses to start without it.
    pub required: bool,
    /// The revision of the protocol.
    pub era: McpEra,
    /// The names of its tools for agents.
    pub naming: McpNaming,
    /// The sharing of one connection or process between sessions.
    pub share: McpShare,
    /// When it is started.
    pub start: McpStart,
    /// The treatment of new tool definitions.
    pub new_tools: McpNewTools,
    /// The offered tools, by their names there. `None`: all.
    pub allow: Option<Vec<String>>,
    /// Tools that are left out.
    pub deny: Vec<String>,
    /// How long a call may run. `None`: the deadline of `limits`.
    pub timeout: Option<Duration>,
    /// The time limit of the first connection and its handshake.
    pub connect_timeout: Duration,
    /// How long an unused server keeps running. `None`: until the host ends.
    pub idle_stop: Option<Duration>,
    /// The longest message that the host accepts, in bytes.
    pub max_message: u64,
    /// The sandbox profile of its process. `None`: `sandbox.profile`.
    pub sandbox: Option<SandboxProfile>,
    /// Names of variables of the host's environment for the server.
    pub pass: Vec<String>,
    /// Paths outside of the roots that its process may read.
    pub readable: Vec<PathBuf>,
    /// Folders outside of the roots that its process may write.
    pub writable: Vec<PathBuf>,
    /// The only files and folders of the roots that its process can read. `None`: all.
    pub reads: Option<Vec<PathBuf>>,
    /// The files among its program and arguments with paths relative to the configuration.
    pub files: Vec<PathBuf>,
    /// File and line of the entry with its `command` or `url`.
    pub place: String,
}

impl McpServerConfig {
    /// Servers that are downloaded at their first start take a while.
    pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
    /// Room for pictures and long lists.
    pub(crate) const MAX_MESSAGE: u64 = 16 << 20;
}

/// The way to reach a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpReach {
    /// A program to start.
    Program {
        /// The program.
        command: McpText,
        /// Its arguments.
        args: Vec<McpText>,
        /// The folder that it starts in, relative to `folder`. `None`: the workspace.
        cwd: Option<McpText>,
        /// The folder of the file with its entry.
        folder: PathBuf,
        /// Variables with fixed values.
        env: BTreeMap<String, McpText>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: McpText,
        /// Headers of every request.
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

/// The revision of the protocol with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum McpEra {
    /// The revision that the server answers: the one without sessions is tried first, then the one with them.
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

/// The names of a server's tools for agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpNaming {
    /// `server__tool`.
    #[default]
    Namespaced,
    /// Their own names.
    Bare,
}

/// The sharing of one connection to a server, or its process, between sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpShare {
    /// All sessions of the host.
    #[default]
    Host,
    /// Each session has a connection or process of its own.
    Session,
}

/// When a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpStart {
    /// At the first call, if its definitions are known from an earlier run; otherwise with the host.
    #[default]
    Lazy,
    /// With the host, and again after it stopped.
    Eager,
}

/// The treatment of new tool definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McpNewTools {
    /// The definitions of a new server are accepted, since you named the server. Later additions are held back until
    /// you accept them.
    #[default]
    FirstUse,
    /// All are held back until you accept them.
    Ask,
    /// All are accepted. Changed ones are still held back.
    Take,
}
