//! The grants and limits of a component. The defaults grant nothing.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Default limit of an instance's memory.
const MEMORY: u64 = 64 * 1024 * 1024;
/// Default time for loading.
const LOAD_TIME: Duration = Duration::from_secs(30);
/// Default time for one event.
const EVENT_TIME: Duration = Duration::from_secs(5);

/// The grants of a component, and how its instances are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WasmSettings {
    /// The folders that it sees. Without any it has no files.
    pub directories: Vec<DirectoryGrant>,
    /// Whether it may open connections and look up names.
    pub network: bool,
    /// The environment variables of its instances.
    pub environment: BTreeMap<String, String>,
    /// The most memory of one instance in bytes, over all its linear memories.
    pub memory: u64,
    /// How long loading may take: its configuration and its tools.
    pub load_time: Duration,
    /// How long a hook may take for one event.
    pub event_time: Duration,
    /// The lifetime of an instance. With `None` the component decides; its default is one call.
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
    /// The folder's path on the host.
    pub host: PathBuf,
    /// The folder's path in the component.
    pub guest: String,
    /// The access that the component gets.
    pub access: DirectoryAccess,
}

/// The access of a component to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryAccess {
    /// Read only.
    ReadOnly,
    /// Read, write and delete.
    ReadWrite,
}

/// The lifetime of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceUse {
    /// One call: a call leaves no state for the next one.
    PerCall,
    /// One session: its calls run one after another and share the state. Other sessions do not see it.
    PerSession,
}
