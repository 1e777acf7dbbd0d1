//! Fetching and running modules.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolpost_model::{HookStanding, SandboxProfile};

use super::{ChildVariables, RootConfig};

/// Fetching and running the modules of mount plans. The modules themselves are in
/// [`HostConfig::modules`](super::HostConfig::modules).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmplifierConfig {
    /// The sharing of processes between sessions.
    pub isolation: ModuleIsolation,
    /// The `amplifier_core` of Python modules.
    pub core: AmplifierCore,
    /// The Python for environments, and for modules that need none. `None`: `python3` on the host's `PATH`.
    pub python: Option<PathBuf>,
    /// Whether a starting host may fetch or install anything.
    pub install: ModuleInstall,
    /// The sandbox profile of the modules' processes. `None`: `sandbox.profile`.
    pub sandbox: Option<SandboxProfile>,
    /// Names of variables of the host's environment for modules. Their values are in
    /// [`ChildVariables::variables`](super::ChildVariables::variables) after the caller has looked them up.
    pub pass: Vec<String>,
    /// The same for the programs that fetch modules, and for nothing else: an agent of SSH keys, for example.
    pub fetch_pass: Vec<String>,
    /// Variables with fixed values for modules.
    pub environment: BTreeMap<String, String>,
    /// Paths outside of the roots that modules may read.
    pub readable: Vec<PathBuf>,
    /// Folders that modules may write outside of the roots.
    pub writable: Vec<PathBuf>,
    /// The standing of each hook module when it fails, by module id; `guard` by default.
    pub hooks: BTreeMap<String, HookStanding>,
    /// Whether `tool:post` follows failures too.
    pub post_on_failure: bool,
    /// The time limit for importing and mounting one Python module. `None`: a minute.
    pub mount_timeout: Option<Duration>,
    /// The largest result of a Python module, in bytes. `None`: 8 MiB.
    pub max_result: Option<u64>,
    /// Native tools that are replaced by a plan's tools of the same name.
    pub replace_native: NativeReplacement,
    /// The reach of components, by module id. By default they reach nothing.
    pub wasm: BTreeMap<String, WasmConfig>,
}

/// Native tools that are replaced by a mount plan's tools of the same name. Such a native tool is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeReplacement {
    /// The tools with these names.
    Names(Vec<String>),
    /// Every native tool with a name that a plan mounts.
    All,
}

impl Default for NativeReplacement {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl NativeReplacement {
    /// The word for all names, in a file and as a flag.
    pub const ALL: &str = "all";

    /// From the words of a file or flag: names, or `all` among them.
    pub(crate) fn of_words<'a>(words: impl IntoIterator<Item = &'a String>) -> Self {
        let names: Vec<String> = words.into_iter().cloned().collect();
        if names.iter().any(|name| name == Self::ALL) {
            Self::All
        } else {
            Self::Names(names)
        }
    }

    /// Whether a plan's tool of this name replaces the native one.
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Self::Names(names) => names.iter().any(|one| one == name),
            Self::All => true,
        }
    }

    /// The explicit names.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Names(names) => names,
            Self::All => &[],
        }
    }
}

impl AmplifierConfig {
    /// The variables of modules beside the harmless ones: those of the host's environment in `pass`, and those with
    /// fixed values. They may be secrets, so they are for the modules' processes alone.
    pub fn variables(&self, host: &ChildVariables) -> BTreeMap<String, String> {
        let passed = self
            .pass
            .iter()
            .filter_map(|name| host.variables.get_key_value(name));
        let passed = passed.map(|(name, value)| (name.clone(), value.clone()));
        passed.chain(self.environment.clone()).collect()
    }

    /// The variables of the host's environment in `fetch_pass`.
    pub fn fetch_variables(&self, host: &ChildVariables) -> BTreeMap<String, String> {
        let passed = self
            .fetch_pass
            .iter()
            .filter_map(|name| host.variables.get_key_value(name));
        passed
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// The sharing of Python processes between sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleIsolation {
    /// One process for all sessions, with a mount for each.
    #[default]
    Shared,
    /// A process for each session.
    Process,
}

/// The `amplifier_core` of Python modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AmplifierCore {
    /// The real one if it is installed, otherwise the host's stand-in.
    #[default]
    Auto,
    /// The real one, which is installed with the modules.
    Real,
    /// The host's stand-in, even if the real one is installed.
    StandIn,
}

/// Whether a starting host may fetch or install anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleInstall {
    /// Missing modules and packages are fetched and installed.
    #[default]
    Auto,
    /// Only the cache is used.
    Offline,
}

/// A plugin of an A2E host file in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig {
    /// Its name, which is also its module id.
    pub name: String,
    /// Its capability, as the file spells it.
    pub capability: String,
    /// Its rank among the plugins for a message: the highest comes first.
    pub priority: i64,
    /// Whether it keeps a message from other plugins if it comes first.
    pub exclusive: bool,
    /// The class, with the Python module it is in: `package.module.Class`.
    pub class: String,
    /// The folder that is searched for it: the folder of the host file.
    pub folder: PathBuf,
    /// The host file.
    pub host_file: PathBuf,
    /// Its settings.
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// The reach of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WasmConfig {
    /// Folders that it can access, by their real paths.
    pub directories: Vec<RootConfig>,
    /// Whether it may open connections.
    pub network: bool,
    /// Variables it gets.
    pub environment: BTreeMap<String, String>,
    /// Its memory, in bytes. `None`: the default of all components.
    pub memory: Option<u64>,
}
