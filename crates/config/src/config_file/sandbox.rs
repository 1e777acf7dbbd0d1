//! `sandbox`: the confinement of the processes that tools start.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::SandboxProfile;

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// The confinement of the processes that tools start.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSection {
    /// The default profile of processes. A command under `commands` can have a profile of its own.
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// Whether to refuse processes if this machine cannot provide the complete sandbox.
    pub require: Option<LocatedValue<bool>>,
    /// Files and folders outside of the roots that processes may read, relative to this file. The system's own folders
    /// and the usual toolchains are always readable.
    pub readable: Vec<LocatedValue<PathBuf>>,
    /// Variables of the host's environment for processes, beside the harmless ones. Variables that may hold secrets or
    /// change which code is loaded are refused.
    pub environment: Vec<LocatedValue<String>>,
    /// The memory of one run, for all its processes together.
    pub memory: Option<LocatedValue<ByteSize>>,
    /// The most processes and threads of one run.
    #[schemars(range(min = 1))]
    pub processes: Option<LocatedValue<u64>>,
    /// The size of the private temporary folder of one run.
    pub tmp: Option<LocatedValue<ByteSize>>,
    /// The largest file that a process may write.
    pub file_size: Option<LocatedValue<ByteSize>>,
    /// The most open files of one process.
    #[schemars(range(min = 16))]
    pub open_files: Option<LocatedValue<u64>>,
    /// How long a background process may run. It also ends with its session, but a session may never end.
    pub lifetime: Option<LocatedValue<ConfigDuration>>,
}
