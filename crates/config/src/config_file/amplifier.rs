//! `amplifier`: how the modules of mount plans are fetched and run.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::{HookStanding, SandboxProfile};

use crate::{
    AmplifierCore, ByteSize, ConfigDuration, LocatedValue, ModuleInstall, ModuleIsolation,
    RootEntry, several::OneOrMany,
};

/// Fetching and running the modules of mount plans. The plans under `include` list the modules.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AmplifierSection {
    /// The sharing of Python processes between sessions.
    pub isolation: Option<LocatedValue<ModuleIsolation>>,
    /// The `amplifier_core` of Python modules.
    pub core: Option<LocatedValue<AmplifierCore>>,
    /// The Python for the modules' environments, relative to this file. Without it: `python3` on the host's `PATH`.
    pub python: Option<LocatedValue<PathBuf>>,
    /// Whether a starting host may fetch or install anything.
    pub install: Option<LocatedValue<ModuleInstall>>,
    /// The sandbox profile of the modules' processes. Without it: `sandbox.profile`.
    pub sandbox: Option<LocatedValue<SandboxProfile>>,
    /// Variables of the host's environment for modules and the programs that fetch them, including secrets. Only
    /// variables that change which code is loaded are refused.
    pub pass: Vec<LocatedValue<String>>,
    /// Variables of the host's environment for the programs that fetch modules, such as `SSH_AUTH_SOCK` for
    /// repositories behind SSH. Modules never get them.
    pub fetch_pass: Vec<LocatedValue<String>>,
    /// Variables with fixed values for modules.
    pub environment: BTreeMap<String, LocatedValue<String>>,
    /// Files and folders outside of the roots that modules may read, relative to this file.
    pub readable: Vec<LocatedValue<PathBuf>>,
    /// Folders outside of the roots that modules may write, relative to this file.
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// The consequence of a hook module's failure, by module id. Without it, the failure of a hook before a call
    /// denies the call.
    pub hooks: BTreeMap<String, LocatedValue<HookStanding>>,
    /// Whether modules get a failure as `tool:post` too, and not only as `tool:error`.
    pub post_on_failure: Option<LocatedValue<bool>>,
    /// The time limit for importing and mounting one module, or for its description of itself. Without it: a minute,
    /// and 30 s for a component.
    pub mount_timeout: Option<LocatedValue<ConfigDuration>>,
    /// The largest result of a Python module; a larger one is shown in part and kept whole. Without it: 8 MiB.
    pub max_result: Option<LocatedValue<ByteSize>>,
    /// Native tools that are replaced by a plan's tools of the same name, or `all`; the native tool is then not
    /// served. Without it, the plan's tool gets a longer name.
    pub replace_native: Option<LocatedValue<OneOrMany<String>>>,
    /// The reach of WebAssembly components, by module id. By default they reach nothing.
    pub wasm: BTreeMap<String, LocatedValue<WasmEntry>>,
}

/// The reach of a component.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WasmEntry {
    /// Folders that it can access.
    pub directories: Vec<LocatedValue<RootEntry>>,
    /// Whether it may open network connections.
    pub network: Option<LocatedValue<bool>>,
    /// Variables of its environment.
    pub environment: BTreeMap<String, LocatedValue<String>>,
    /// The size of its memory.
    pub memory: Option<LocatedValue<ByteSize>>,
}
