//! What a set of Python modules is made of, and what the operator says of it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use toolpost_amplifier::{LoadFailure, ModuleId, PlannedModule};
use toolpost_model::{HookStanding, SandboxProfile};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;

use crate::CoreWish;

/// What a set of Python modules is made of.
pub struct PythonParts {
    /// The source's name, for records and health.
    pub name: String,
    /// The modules, in the order they are mounted in.
    pub modules: Vec<BridgedModule>,
    /// What the operator says of them.
    pub settings: PythonSettings,
    /// Where they work.
    pub workspace: Arc<Workspace>,
    /// Starts their process.
    pub launcher: Launcher,
    /// What every child of the host is started with.
    pub children: ChildSettings,
}

/// One module, and where its code is.
#[derive(Clone, Debug)]
pub struct BridgedModule {
    /// As the plan names it.
    pub planned: PlannedModule,
    /// Its code.
    pub package: PythonPackage,
}

/// Where the code of a module is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "package")]
pub enum PythonPackage {
    /// A folder that is the package, or has it in it; or a single file.
    Folder {
        /// The folder or file.
        root: PathBuf,
    },
    /// It is installed in the interpreter's environment: found by its entry point, then by its usual import name.
    Installed {
        /// The name of the distribution, where it is not the module's id.
        name: Option<String>,
    },
    /// A plugin of an A2E host file.
    Plugin {
        /// The class, with the Python module it is in: `package.module.Class`.
        class: String,
        /// The capability it is part of, as the file spells it.
        capability: String,
        /// Of several plugins that take a message, the one with the highest comes first.
        priority: i64,
        /// Whether it is the only one to take a message where it comes first.
        exclusive: bool,
        /// Further folders that its imports are looked for in.
        import_paths: Vec<PathBuf>,
        /// The folder that is searched for it first. Of what is in it, a process may read code and what the plugin's
        /// metadata names.
        root: Option<PathBuf>,
        /// The host's file that names it, which no plugin may read.
        #[serde(skip)]
        host_file: Option<PathBuf>,
    },
}

/// What plugins of an A2E host file are told of their host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginHost {
    /// The host's name.
    pub host_id: String,
    /// How many requests of a session are handled at once.
    pub max_workers: usize,
    /// Whether plugins get an audit log to write to.
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

/// What the operator says of Python modules.
#[derive(Clone, Debug)]
pub struct PythonSettings {
    /// What plugins of an A2E host file are told of their host.
    pub plugin_host: PluginHost,
    /// Who shares a process.
    pub isolation: ProcessIsolation,
    /// Which `amplifier_core` modules import.
    pub core: CoreWish,
    /// The interpreter. `None`: the system's own.
    pub python: Option<PathBuf>,
    /// What the process may do.
    pub profile: SandboxProfile,
    /// Further files and folders it may read, such as the environment its packages are installed in. The folders of
    /// modules need not be named.
    pub readable: Vec<PathBuf>,
    /// Folders beside the workspace that it may write.
    pub writable: Vec<PathBuf>,
    /// Variables beside those that every child gets.
    pub environment: BTreeMap<String, String>,
    /// Credentials and other variables by name that the operator passes on purpose, with their values. Unlike
    /// `environment`, these may look like credentials.
    pub passed: BTreeMap<String, String>,
    /// What a failing hook of a module means. Modules that are not named here are guards before a call, and ordinary
    /// hooks after it.
    pub standings: BTreeMap<ModuleId, HookStanding>,
    /// Whether `tool:post` is told after failures too, as Amplifier's own loops do.
    pub post_on_failure: bool,
    /// Other modules of the plan that are not there. Handlers of `module:load_failed` are told of them.
    pub unloaded: Vec<LoadFailure>,
    /// How long one module may take to be imported and mounted.
    pub mount_limit: Duration,
    /// How long one handler of an event may take. `None`: five seconds.
    pub hook_limit: Option<Duration>,
    /// The most that one result may have, in bytes of JSON. Of a larger one a part is shown, and the whole is kept as an
    /// artifact.
    pub result_bytes: usize,
    /// The most that is kept of such a result, in bytes. What is over it is lost, and the result says so.
    pub kept_bytes: usize,
    /// Folders for the end of `sys.path`: packages that lie beside the interpreter's own environment.
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

/// Who shares a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessIsolation {
    /// All sessions: each has mounts of its own in the one process.
    #[default]
    Shared,
    /// Nobody: each session has a process.
    Process,
}

/// Which `amplifier_core` a bridge found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreInUse {
    /// Whether it is the real one.
    pub real: bool,
    /// Its version; of the stand-in, the version whose behaviour it has.
    pub version: String,
    /// The version of the interpreter.
    pub python: String,
}
