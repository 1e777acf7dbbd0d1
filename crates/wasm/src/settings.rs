//! What the operator lets a component have. Nothing, unless it is said here.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Memory of a component where the operator says nothing.
const MEMORY: u64 = 64 * 1024 * 1024;
/// Time to be loaded in, where nobody sets another.
const LOAD_TIME: Duration = Duration::from_secs(30);
/// Time for one event.
const EVENT_TIME: Duration = Duration::from_secs(5);

/// What a component may reach, and how it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmSettings {
    /// Folders it sees. None: it has no files at all.
    pub directories: Vec<DirectoryGrant>,
    /// Whether it may open connections and look up names.
    pub network: bool,
    /// Variables it gets.
    pub environment: BTreeMap<String, String>,
    /// The most memory of one instance, in bytes: all its linear memories together.
    pub memory: u64,
    /// How long it may think about its configuration and its tools when it is loaded.
    pub load_time: Duration,
    /// How long a hook may take for one event.
    pub event_time: Duration,
    /// How long an instance lives. `None`: as the component says, else one call.
    pub instances: Option<InstanceUse>,
}

impl Default for WasmSettings {
    fn default() -> Self {
        Self {
            directories: Vec::new(),
            network: false,
            environment: BTreeMap::new(),
            memory: MEMORY,
            load_time: LOAD_TIME,
            event_time: EVENT_TIME,
            instances: None,
        }
    }
}

/// A folder that a component sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryGrant {
    /// Where it is.
    pub host: PathBuf,
    /// What the component calls it.
    pub guest: String,
    /// What the component may do in it.
    pub access: DirectoryAccess,
}

/// What a component may do in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryAccess {
    /// Look.
    ReadOnly,
    /// Look, write and delete.
    ReadWrite,
}

/// How long an instance lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceUse {
    /// One call: nothing that a call leaves behind is there for the next one.
    PerCall,
    /// One session: a session's calls find what earlier ones left, one call after another. Another session never does.
    PerSession,
}
