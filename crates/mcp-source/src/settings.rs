//! What the operator says of one MCP server.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use globset::GlobSet;
use toolpost_model::{SandboxProfile, Secret, WireNaming};
use url::Url;

/// One MCP server, as the operator describes it.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// The source's name, for records and health, and the namespace of its tools.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Which revision of the protocol is spoken.
    pub era: McpProtocolEra,
    /// How its tools are named on the wire.
    pub naming: WireNaming,
    /// Who shares a connection.
    pub sharing: McpSharing,
    /// When it is started.
    pub start: McpStartPolicy,
    /// What becomes of definitions that were never seen before. Changed ones are always kept back.
    pub new_tools: McpNewToolPolicy,
    /// Tools that are taken, by their names there. `None`: all.
    pub allow: Option<GlobSet>,
    /// Tools that are left out, by their names there.
    pub deny: GlobSet,
    /// How long a first connection and its handshake may take.
    pub connect_timeout: Duration,
    /// The deadline of its calls, where nobody says another.
    pub call_timeout: Option<Duration>,
    /// How long it is kept without a call. `None`: until the host ends.
    pub idle_stop: Option<Duration>,
    /// The longest message that is read from it.
    pub max_message: usize,
}

impl McpServer {
    /// Whether the operator wants a tool, by its name there.
    pub(super) fn wants(&self, native: &str) -> bool {
        self.allow
            .as_ref()
            .is_none_or(|allow| allow.is_match(native))
            && !self.deny.is_match(native)
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// A program that is started in the launcher's confines and spoken with over its pipes.
    Stdio(Box<McpProgram>),
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: Url,
        /// Sent with every request: tokens among them, so no header prints itself.
        headers: BTreeMap<String, Secret>,
    },
}

/// A program that is an MCP server.
#[derive(Clone, Debug)]
pub struct McpProgram {
    /// The program: a path, or a name that is looked for on the `PATH` of children.
    pub command: String,
    /// Its arguments, as they are. No shell reads them.
    pub args: Vec<String>,
    /// Where it begins. `None`: in the workspace.
    pub directory: Option<PathBuf>,
    /// What it may do.
    pub profile: SandboxProfile,
    /// Variables with their values, on top of the harmless ones that every child gets. They may be secrets.
    pub environment: BTreeMap<String, Secret>,
    /// Further files and folders it may read.
    pub readable: Vec<PathBuf>,
    /// Folders beside the workspace that it may write.
    pub writable: Vec<PathBuf>,
    /// The only files and folders of the workspace and the other roots that it sees: absolute, without links. `None`: all.
    pub reads: Option<Vec<PathBuf>>,
}

impl McpProgram {
    /// The program and those of its arguments that are files.
    pub(super) fn named_files(&self) -> impl Iterator<Item = &Path> {
        let words = std::iter::once(&self.command)
            .chain(&self.args)
            .map(Path::new);
        words.filter(|path| path.is_absolute() && path.is_file())
    }
}

/// Which revision of the protocol is spoken with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpProtocolEra {
    /// What it answers: the stateless one first, then the one with sessions.
    #[default]
    Auto,
    /// 2026-07-28, without sessions.
    Stateless,
    /// 2025-11-25 and before, with `initialize`.
    Sessions,
}

/// Who shares a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpSharing {
    /// All sessions of the host.
    #[default]
    Host,
    /// Nobody: each session has its own.
    Session,
}

/// When a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpStartPolicy {
    /// At the first call, where its definitions are known from an earlier time; else with the host.
    #[default]
    Lazy,
    /// With the host, and again whenever it went away.
    Eager,
}

/// What becomes of definitions that were never seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpNewToolPolicy {
    /// A server that was never seen is taken as it is, since the operator named it. What it adds later is kept back.
    #[default]
    FirstUse,
    /// Everything is kept back until somebody accepted it.
    Ask,
    /// They are taken. Changed ones are still kept back.
    Take,
}
