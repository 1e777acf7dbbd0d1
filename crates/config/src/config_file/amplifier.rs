//! `amplifier`: how the modules of mount plans are fetched and run.

use std::{collections::BTreeMap, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::{HookStanding, SandboxProfile};

use crate::{
    AmplifierCore, ByteSize, ConfigDuration, LocatedValue, ModuleInstall, ModuleIsolation,
    RootEntry, several::OneOrMany,
};

/// How the modules of mount plans are fetched and run. Which modules there are, the plans under `include` say.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AmplifierSection {
    /// Which sessions share a process of Python modules.
    pub isolation: Option<LocatedValue<ModuleIsolation>>,
    /// Which `amplifier_core` Python modules find.
    pub core: Option<LocatedValue<AmplifierCore>>,
    /// The Python that environments are made with, relative to this file. Without it: `python3` on the host's `PATH`.
    pub python: Option<LocatedValue<PathBuf>>,
    /// Whether anything may be fetched or installed when a host starts.
    pub install: Option<LocatedValue<ModuleInstall>>,
    /// What the processes of modules may do. Without it: what `sandbox.profile` says.
    pub sandbox: Option<LocatedValue<SandboxProfile>>,
    /// Variables that modules and whatever fetches them get from the host's environment, secrets among them. Only what
    /// changes which code is loaded is refused.
    pub pass: Vec<LocatedValue<String>>,
    /// Variables that only whatever fetches modules gets from the host's environment, such as `SSH_AUTH_SOCK` for
    /// repositories behind SSH. Modules never see them.
    pub fetch_pass: Vec<LocatedValue<String>>,
    /// Variables that modules get with these values.
    pub environment: BTreeMap<String, LocatedValue<String>>,
    /// Files and folders outside of the roots that modules may read, relative to this file.
    pub readable: Vec<LocatedValue<PathBuf>>,
    /// Folders outside of the roots that modules may write, relative to this file.
    pub writable: Vec<LocatedValue<PathBuf>>,
    /// What the failure of a hook module means, by module id. Without it: nothing passes where one fails.
    pub hooks: BTreeMap<String, LocatedValue<HookStanding>>,
    /// Whether modules are told of a failure as `tool:post`, too, and not as `tool:error` alone.
    pub post_on_failure: Option<LocatedValue<bool>>,
    /// How long one module may take to be imported and mounted, or to describe itself. Without it: a minute, and 30 s
    /// for a component.
    pub mount_timeout: Option<LocatedValue<ConfigDuration>>,
    /// The most that one result of a Python module may have; of a larger one a part is shown and the whole kept. Without it: 8 MiB.
    pub max_result: Option<LocatedValue<ByteSize>>,
    /// Native tools whose names the tools of a plan take, or `all`: the native tool is then not served. Without it a
    /// plan's tool of a native tool's name gets a longer one.
    pub replace_native: Option<LocatedValue<OneOrMany<String>>>,
    /// What WebAssembly components may reach, by module id. Nothing where nothing is said.
    pub wasm: BTreeMap<String, LocatedValue<WasmEntry>>,
}

/// What a component may reach.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WasmEntry {
    /// Folders that it sees.
    pub directories: Vec<LocatedValue<RootEntry>>,
    /// Whether it may open connections.
    pub network: Option<LocatedValue<bool>>,
    /// Variables that it gets.
    pub environment: BTreeMap<String, LocatedValue<String>>,
    /// Its memory.
    pub memory: Option<LocatedValue<ByteSize>>,
}
