//! What the native tools work with: folders, the sandbox, the network, code, and what children inherit.

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

/// Paths whose change asks even where writing is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectConfig {
    /// Whether the usual ones are protected.
    pub defaults: bool,
    /// Whether `.git` is among them.
    pub git: bool,
    /// Further ones: globs from the top of each root.
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

/// What confines the processes that tools start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// What processes may do.
    pub profile: SandboxProfile,
    /// Whether to run nothing where the machine cannot give the whole sandbox.
    pub require: bool,
    /// What they may read outside of the roots, beside the system and the usual toolchains.
    pub readable: Vec<PathBuf>,
    /// Names of variables they get beside the harmless ones. Their values are in
    /// [`ChildVariables::variables`], where somebody looked them up.
    pub environment: Vec<String>,
    /// The memory of one run, in bytes.
    pub memory: u64,
    /// Processes and threads of one run.
    pub processes: u64,
    /// The private temporary folder of one run, in bytes.
    pub tmp: u64,
    /// The largest file a process may write, in bytes.
    pub file_size: u64,
    /// Files that one process may have open.
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

/// Where tools that talk HTTP may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Beginnings of URLs at private addresses that may be reached, with at least a `/` behind the host.
    pub private: Vec<String>,
    /// The largest body that is read, in bytes once it is unpacked.
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

/// A credential by reference: the value is looked up by whoever starts the host, and kept beside this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialConfig {
    /// What a request calls it.
    pub name: String,
    /// Where its value is kept.
    pub source: CredentialSource,
    /// The header it is sent in.
    pub header: String,
    /// The word before it in the header.
    pub scheme: Option<String>,
    /// Beginnings of URLs it may be sent to, with at least a `/` behind the host.
    pub urls: Vec<String>,
    /// Tools that get its value where a call names it.
    pub tools: Vec<ToolPattern>,
    /// File and line of its entry.
    pub place: String,
}

impl CredentialConfig {
    /// The header where the file names none.
    pub(crate) const HEADER: &str = "Authorization";
}

/// Where a credential's value is kept.
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
    /// Calls of tools that one run may make.
    pub calls: u32,
    /// Whether code may ask for the machine's own Python.
    pub python3: bool,
}

impl Default for CodeConfig {
    fn default() -> Self {
        // Code gets no power by this: each of its calls is decided as if the model had made it.
        Self {
            tools: vec![ToolPattern::every_id()],
            memory: 256 << 20,
            calls: 200,
            python3: true,
        }
    }
}

/// What of the host's environment its children may see. No file says this: whoever starts the host gathers it,
/// since a library reads no environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildVariables {
    /// The user's home directory, where toolchains lie.
    pub home: Option<PathBuf>,
    /// `PATH`, `LANG` and the like, where toolchains lie, and what `sandbox.environment` and commands name. A child
    /// gets a named one only by its own command or by the sandbox's list.
    pub variables: BTreeMap<String, String>,
}
