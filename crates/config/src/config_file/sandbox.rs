//! `sandbox`: what confines the processes that tools start.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::SandboxProfile;

use crate::{ByteSize, ConfigDuration, LocatedValue};

/// What confines the processes that tools start.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSection {
    /// What processes may do. A command under `commands` can have a profile of its own.
    pub profile: Option<LocatedValue<SandboxProfile>>,
    /// Whether to run nothing where this machine cannot give the whole sandbox.
    pub require: Option<LocatedValue<bool>>,
    /// Files and folders outside of the roots that processes may read, relative to this file. The system's own
    /// folders and the usual toolchains are readable anyway.
    pub readable: Vec<LocatedValue<PathBuf>>,
    /// Variables that processes get from the host's environment, beside the harmless ones. Those that could hold
    /// secrets or change which code is loaded are refused.
    pub environment: Vec<LocatedValue<String>>,
    /// The memory of one run, all its processes together.
    pub memory: Option<LocatedValue<ByteSize>>,
    /// Processes and threads of one run.
    #[schemars(range(min = 1))]
    pub processes: Option<LocatedValue<u64>>,
    /// The room in the private temporary folder of one run.
    pub tmp: Option<LocatedValue<ByteSize>>,
    /// The largest file a process may write.
    pub file_size: Option<LocatedValue<ByteSize>>,
    /// Files that one process may have open.
    #[schemars(range(min = 16))]
    pub open_files: Option<LocatedValue<u64>>,
    /// How long a process may run in the background. It ends with its session too, but a session need not end.
    pub lifetime: Option<LocatedValue<ConfigDuration>>,
}
