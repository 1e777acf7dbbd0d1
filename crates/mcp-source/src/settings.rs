//! The configuration of MCP servers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use globset::GlobSet;
use toolpost_model::{SandboxProfile, Secret, WireNaming};
use url::Url;

/// The configuration of one MCP server.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// The source's name, for records and health, and the namespace of its tools.
    pub name: String,
    /// How the host reaches it.
    pub transport: McpTransport,
    /// The protocol revision.
    pub era: McpProtocolEra,
    /// The form of its tools' wire names.
    pub naming: WireNaming,
    /// Which sessions share a connection.
    pub sharing: McpSharing,
    /// When the host starts it.
    pub start: McpStartPolicy,
    /// The policy for definitions that the host never saw. Changed ones are always held back.
    pub new_tools: McpNewToolPolicy,
    /// The tools to offer, by native name. `None`: all.
    pub allow: Option<GlobSet>,
    /// The tools to leave out, by native name.
    pub deny: GlobSet,
    /// The limit of a connection attempt, with its handshake.
    pub connect_timeout: Duration,
    /// The default deadline of its calls.
    pub call_timeout: Option<Duration>,
    /// How long a connection without calls stays open. `None`: until the host ends.
    pub idle_stop: Option<Duration>,
    /// The longest message that the host reads from it, in bytes.
    pub max_message: usize,
}

impl McpServer {
    /// Whether the operator's lists include a tool, by native name.
    pub(super) fn wants(&self, native: &str) -> bool {
        self.allow
            .as_ref()
            .is_none_or(|allow| allow.is_match(native))
            && !self.deny.is_match(native)
    }
}

/// How the host reaches a server.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// A program in a sandbox, reached over its pipes.
    Stdio(Box<McpProgram>),
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: Url,
        /// Headers of every request. They may hold tokens, so their values are secrets.
        headers: BTreeMap<String, Secret>,
    },
}

/// A program that serves MCP.
#[derive(Clone, Debug)]
pub struct McpProgram {
    /// The program: a path, or a name to look up on the `PATH` of children.
    pub command: String,
    /// Its arguments. No shell interprets them.
    pub args: Vec<String>,
    /// Its working directory. `None`: the workspace.
    pub directory: Option<PathBuf>,
    /// Its sandbox profile.
    pub profile: SandboxProfile,
    /// Environment variables, in addition to those of every child. Values may be secrets.
    pub environment: BTreeMap<String, Secret>,
    /// Further files and folders it may read.
    pub readable: Vec<PathBuf>,
    /// Folders beside the workspace that it may write.
    pub writable: Vec<PathBuf>,
    /// The only files and folders of the workspace and the other roots that it sees: absolute, with links resolved.
    /// `None`: it sees all of them.
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

/// The protocol revision of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpProtocolEra {
    /// The host tries the stateless revision first, then the one with sessions.
    #[default]
    Auto,
    /// 2026-07-28, without sessions.
    Stateless,
    /// 2025-11-25 and before, with `initialize`.
    Sessions,
}

/// Which sessions share a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpSharing {
    /// All sessions of the host.
    #[default]
    Host,
    /// Each session has a connection of its own.
    Session,
}

/// When the host starts a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpStartPolicy {
    /// At the first call if its definitions are known, else with the host.
    #[default]
    Lazy,
    /// With the host, and again after each lost connection.
    Eager,
}

/// The policy for definitions that the host never saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpNewToolPolicy {
    /// The definitions of a server's first listing are accepted, because the operator named the server. Later
    /// additions are held back.
    #[default]
    FirstUse,
    /// New definitions are held back until an operator accepts them.
    Ask,
    /// New definitions are accepted. Changed ones are still held back.
    Take,
}
