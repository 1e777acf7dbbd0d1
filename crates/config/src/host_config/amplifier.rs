//! How modules are fetched and run.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolpost_model::{HookStanding, SandboxProfile};

use super::{ChildVariables, RootConfig};

/// How the modules of mount plans are fetched and run. The modules themselves are
/// [`HostConfig::modules`](super::HostConfig::modules).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmplifierConfig {
    /// Which modules share a process.
    pub isolation: ModuleIsolation,
    /// Which `amplifier_core` Python modules find.
    pub core: AmplifierCore,
    /// The Python that environments are made with, and that runs modules which need none. `None`: `python3` on the
    /// host's `PATH`.
    pub python: Option<PathBuf>,
    /// Whether anything may be fetched or installed.
    pub install: ModuleInstall,
    /// What the processes of modules may do. `None`: what `sandbox.profile` says.
    pub sandbox: Option<SandboxProfile>,
    /// Names of variables that modules get from the host's environment. Their values are in
    /// [`ChildVariables::variables`](super::ChildVariables::variables), where somebody looked them up.
    pub pass: Vec<String>,
    /// The same for whatever fetches modules, and for nothing else: an agent of SSH keys, say.
    pub fetch_pass: Vec<String>,
    /// Variables that modules get with these values.
    pub environment: BTreeMap<String, String>,
    /// What modules may read outside of the roots.
    pub readable: Vec<PathBuf>,
    /// Folders that modules may write outside of the roots.
    pub writable: Vec<PathBuf>,
    /// What the failure of a hook module means, by module id; `guard` where nothing is said.
    pub hooks: BTreeMap<String, HookStanding>,
    /// Whether `tool:post` is told of failures, too.
    pub post_on_failure: bool,
    /// How long one Python module may take to be imported and mounted. `None`: a minute.
    pub mount_timeout: Option<Duration>,
    /// The most that one result of a Python module may have, in bytes. `None`: 8 MiB.
    pub max_result: Option<u64>,
    /// Native tools whose names the tools of a plan take.
    pub replace_native: NativeReplacement,
    /// What components may reach, by module id. Nothing where nothing is said.
    pub wasm: BTreeMap<String, WasmConfig>,
}

/// Native tools whose names the tools of a mount plan take. Such a native tool is then not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeReplacement {
    /// Those of these names.
    Names(Vec<String>),
    /// Every one whose name a plan mounts.
    All,
}

impl Default for NativeReplacement {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl NativeReplacement {
    /// The word in a file and as a flag for every name.
    pub const ALL: &str = "all";

    /// From words as written: names, or `all` among them.
    pub(crate) fn of_words<'a>(words: impl IntoIterator<Item = &'a String>) -> Self {
        let names: Vec<String> = words.into_iter().cloned().collect();
        if names.iter().any(|name| name == Self::ALL) {
            Self::All
        } else {
            Self::Names(names)
        }
    }

    /// Whether a plan's tool of this name is served in place of the native one.
    pub fn covers(&self, name: &str) -> bool {
        match self {
            Self::Names(names) => names.iter().any(|one| one == name),
            Self::All => true,
        }
    }

    /// The names that are listed one by one.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Names(names) => names,
            Self::All => &[],
        }
    }
}

impl AmplifierConfig {
    /// The variables that modules get beside the harmless ones: those of the host's environment that `pass` names,
    /// and those with values of their own. Secrets may be among them, so they are for the modules' processes alone.
    pub fn variables(&self, host: &ChildVariables) -> BTreeMap<String, String> {
        let passed = self
            .pass
            .iter()
            .filter_map(|name| host.variables.get_key_value(name));
        let passed = passed.map(|(name, value)| (name.clone(), value.clone()));
        passed.chain(self.environment.clone()).collect()
    }

    /// The variables of the host's environment that `fetch_pass` names.
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

/// Which sessions share a process of Python modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleIsolation {
    /// One process for all sessions, with a mount for each.
    #[default]
    Shared,
    /// A process for each session.
    Process,
}

/// Which `amplifier_core` Python modules find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AmplifierCore {
    /// The real one where it is installed, and the host's stand-in elsewhere.
    #[default]
    Auto,
    /// The real one, which is installed with the modules.
    Real,
    /// The host's stand-in, also where the real one is installed.
    StandIn,
}

/// Whether anything may be fetched or installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleInstall {
    /// What is not in the cache is fetched and installed.
    #[default]
    Auto,
    /// Only what is in the cache is used.
    Offline,
}

/// A plugin of an A2E host file in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig {
    /// Its name, which is that of a module here.
    pub name: String,
    /// The capability it is part of, as the file spells it.
    pub capability: String,
    /// Of several plugins that take a message, the one with the highest comes first.
    pub priority: i64,
    /// Whether it is the only one to take a message where it comes first.
    pub exclusive: bool,
    /// The class, with the Python module it is in: `package.module.Class`.
    pub class: String,
    /// The folder that is searched for it: that of the file that names it.
    pub folder: PathBuf,
    /// That file.
    pub host_file: PathBuf,
    /// What it is set up with.
    pub settings: serde_json::Map<String, serde_json::Value>,
}

/// What a component may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WasmConfig {
    /// Folders it sees, under the names they have on this machine.
    pub directories: Vec<RootConfig>,
    /// Whether it may open connections.
    pub network: bool,
    /// Variables it gets.
    pub environment: BTreeMap<String, String>,
    /// Its memory, in bytes. `None`: what every component gets.
    pub memory: Option<u64>,
}
