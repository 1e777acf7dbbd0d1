//! The settings of native tools: folders, the sandbox, the network, code, and the variables of child processes.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use toolpost_model::{ResourceAccess, SandboxProfile, ToolPattern};

/// A folder beside the workspace that tools may work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootConfig {
    /// The folder.
    pub path: PathBuf,
    /// Whether it may be changed.
    pub access: ResourceAccess,
}

/// Paths that need an approval to change, even where writing is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectConfig {
    /// Whether the usual paths are protected.
    pub defaults: bool,
    /// Whether `.git` is protected.
    pub git: bool,
    /// Further protected paths: globs from the top of each root.
    pub paths: Vec<String>,
}

impl Default for ProtectConfig {
    fn default() -> Self {
        Self {
            defaults: true,
            git: true,
            paths: Vec::new(),
        }
    }
}

/// The confinement of the processes that tools start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The default profile of processes.
    pub profile: SandboxProfile,
    /// Whether to refuse processes if the machine cannot provide the complete sandbox.
    pub require: bool,
    /// Paths outside of the roots that they may read, beside the system and the usual toolchains.
    pub readable: Vec<PathBuf>,
    /// Names of variables that they get beside the harmless ones. Their values are in [`ChildVariables::variables`]
    /// after the caller has looked them up.
    pub environment: Vec<String>,
    /// The memory of one run, in bytes.
    pub memory: u64,
    /// The most processes and threads of one run.
    pub processes: u64,
    /// The size of the private temporary folder of one run, in bytes.
    pub tmp: u64,
    /// The largest file a process may write, in bytes.
    pub file_size: u64,
    /// The most open files of one process.
    pub open_files: u64,
    /// How long a process may run in the background.
    pub lifetime: Duration,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            profile: SandboxProfile::WorkspaceWrite,
            require: false,
            readable: Vec::new(),
            environment: Vec::new(),
            memory: 2 << 30,
            processes: 256,
            tmp: 512 << 20,
            file_size: 1 << 30,
            open_files: 1024,
            lifetime: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// The URLs that HTTP tools may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// URL prefixes at private addresses that may be reached, with at least a `/` after the host.
    pub private: Vec<String>,
    /// The largest response body, in bytes after decompression.
    pub max_body: u64,
    /// Credentials that a request may name.
    pub credentials: Vec<CredentialConfig>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            private: Vec::new(),
            max_body: 5 << 20,
            credentials: Vec::new(),
        }
    }
}

/// A credential by reference: the caller looks up the value and keeps it beside this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialConfig {
    /// The name in requests.
    pub name: String,
    /// The place of its value.
    pub source: CredentialSource,
    /// The header of the credential.
    pub header: String,
    /// The scheme before it in the header.
    pub scheme: Option<String>,
    /// URL prefixes that it may be sent to, with at least a `/` after the host.
    pub urls: Vec<String>,
    /// Tools that get its value if a call names it.
    pub tools: Vec<ToolPattern>,
    /// File and line of its entry.
    pub place: String,
}

impl CredentialConfig {
    /// The default header.
    pub(crate) const HEADER: &str = "Authorization";
}

/// The place of a credential's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In a file of its own.
    File(PathBuf),
    /// In a variable of the host's environment.
    Variable(String),
}

/// Programs that a model writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeConfig {
    /// Tools that code may call: outside tools by id, the host's own also by name.
    pub tools: Vec<ToolPattern>,
    /// The memory of the embedded interpreter, in bytes.
    pub memory: u64,
    /// The most tool calls of one run.
    pub calls: u32,
    /// Whether code may use the machine's own Python.
    pub python3: bool,
}

impl Default for CodeConfig {
    fn default() -> Self {
        // This grants nothing: each call of code is decided as if the model had made it.
        Self {
            tools: vec![ToolPattern::every_id()],
            memory: 256 << 20,
            calls: 200,
            python3: true,
        }
    }
}

/// The variables of the host's environment that its children may see. They are not part of any file: the caller
/// gathers them, since a library reads no environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildVariables {
    /// The user's home directory, where toolchains lie.
    pub home: Option<PathBuf>,
    /// `PATH`, `LANG` and the like, the paths of toolchains, and the variables in `sandbox.environment` and in
    /// commands. A child gets a configured variable only through its own command or the sandbox's list.
    pub variables: BTreeMap<String, String>,
}
