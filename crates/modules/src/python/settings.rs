//! The parts of a set of Python modules, and the operator's settings for them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use toolpost_amplifier::{LoadFailure, ModuleId, PlannedModule};
use toolpost_model::{HookStanding, SandboxProfile};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;

use crate::CoreWish;

/// The parts of a set of Python modules.
pub struct PythonParts {
    /// The source's name, for records and health.
    pub name: String,
    /// The modules, in the order they are mounted in.
    pub modules: Vec<BridgedModule>,
    /// The operator's settings.
    pub settings: PythonSettings,
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// The launcher of the process.
    pub launcher: Launcher,
    /// The settings of every child process of the host.
    pub children: ChildSettings,
}

/// A module with the place of its code.
#[derive(Clone, Debug)]
pub struct BridgedModule {
    /// As the plan names it.
    pub planned: PlannedModule,
    /// Its code.
    pub package: PythonPackage,
}

/// The place of a module's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "package")]
pub enum PythonPackage {
    /// A folder that is or contains the package, or a single file.
    Folder {
        /// The folder or file.
        root: PathBuf,
    },
    /// It is installed in the interpreter's environment: found by its entry point, or else by its usual import name.
    Installed {
        /// The name of the distribution, if it is not the module's id.
        name: Option<String>,
    },
    /// A plugin of an A2E host file.
    Plugin {
        /// The class, with the Python module it is in: `package.module.Class`.
        class: String,
        /// Its capability, as the file spells it.
        capability: String,
        /// Its rank among the plugins for a message: the highest comes first.
        priority: i64,
        /// Whether it keeps a message from other plugins if it comes first.
        exclusive: bool,
        /// Further folders to search for its imports.
        import_paths: Vec<PathBuf>,
        /// The folder that is searched for it first. A process may read only code in it and the paths in the plugin's
        /// metadata.
        root: Option<PathBuf>,
        /// The host's file that names it, which no plugin may read.
        #[serde(skip)]
        host_file: Option<PathBuf>,
    },
}

/// The host facts for plugins of an A2E host file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginHost {
    /// The host's name.
    pub host_id: String,
    /// The most concurrent requests of a session.
    pub max_workers: usize,
    /// Whether plugins get an audit log.
    pub audit: bool,
}

impl Default for PluginHost {
    fn default() -> Self {
        Self {
            host_id: "toolpost".to_owned(),
            max_workers: 16,
            audit: false,
        }
    }
}

/// The operator's settings for Python modules.
#[derive(Clone, Debug)]
pub struct PythonSettings {
    /// The host facts for plugins of an A2E host file.
    pub plugin_host: PluginHost,
    /// The sharing of processes between sessions.
    pub isolation: ProcessIsolation,
    /// The `amplifier_core` of the modules.
    pub core: CoreWish,
    /// The interpreter. `None`: the system's own.
    pub python: Option<PathBuf>,
    /// The sandbox profile of the process.
    pub profile: SandboxProfile,
    /// Further files and folders that it may read, such as the environment of its packages. The modules' own folders
    /// are included anyway.
    pub readable: Vec<PathBuf>,
    /// Folders beside the workspace that it may write.
    pub writable: Vec<PathBuf>,
    /// Variables beside those that every child gets.
    pub environment: BTreeMap<String, String>,
    /// Credentials and other variables by name that the operator passes explicitly, with their values. Unlike
    /// `environment`, these may look like credentials.
    pub passed: BTreeMap<String, String>,
    /// The standing of each module's hooks when they fail. Modules without an entry are guards before a call, and
    /// ordinary hooks after it.
    pub standings: BTreeMap<ModuleId, HookStanding>,
    /// Whether `tool:post` follows failures too, as in Amplifier's own loops.
    pub post_on_failure: bool,
    /// Other modules of the plan that failed to load. Handlers of `module:load_failed` get them.
    pub unloaded: Vec<LoadFailure>,
    /// How long one module may take to be imported and mounted.
    pub mount_limit: Duration,
    /// How long one handler of an event may take. `None`: five seconds.
    pub hook_limit: Option<Duration>,
    /// The largest result, in bytes of JSON. A larger one is shown in part and kept whole as an artifact.
    pub result_bytes: usize,
    /// The most that is kept of such a result, in bytes. The rest is lost, and the result is marked so.
    pub kept_bytes: usize,
    /// Folders for the end of `sys.path`: packages outside of the interpreter's own environment.
    pub later_paths: Vec<PathBuf>,
}

impl Default for PythonSettings {
    fn default() -> Self {
        Self {
            plugin_host: PluginHost::default(),
            isolation: ProcessIsolation::default(),
            core: CoreWish::default(),
            python: None,
            profile: SandboxProfile::WorkspaceWrite,
            readable: Vec::new(),
            writable: Vec::new(),
            environment: BTreeMap::new(),
            passed: BTreeMap::new(),
            standings: BTreeMap::new(),
            post_on_failure: false,
            unloaded: Vec::new(),
            mount_limit: Duration::from_secs(60),
            hook_limit: None,
            result_bytes: 8 << 20,
            kept_bytes: 64 << 20,
            later_paths: Vec::new(),
        }
    }
}

/// The sharing of processes between sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessIsolation {
    /// All sessions have mounts of their own in one process.
    #[default]
    Shared,
    /// Each session has a process of its own.
    Process,
}

/// The `amplifier_core` of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInUse {
    /// Whether it is the real one.
    pub real: bool,
    /// Its version; for the stand-in, the version that it imitates.
    pub version: String,
    /// The version of the interpreter.
    pub python: String,
}
