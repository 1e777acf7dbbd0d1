//! Python modules of Amplifier, unmodified, and Python tool plugins of A2E: one source over a set of them.
//!
//! A bridge process, started by the launcher, imports the modules and mounts them once a session; the host tells it
//! what to call. How they talk is in [`protocol`]; the Python side lies in `python/bridge`.
//!
//! | file | what it knows |
//! |---|---|
//! | `set.rs` | the processes and the sessions of a set |
//! | `seat.rs` | one session's mount, made anew where its process is gone |
//! | `mounting.rs` | how a mount is made, and which modules are left out of it |
//! | `process.rs` | one process: how it is started, talked with, and told of by its end |
//! | `call.rs` | one call, and how it is stopped |
//! | `hooks.rs` | handlers of modules as hooks of the host |
//! | `plugin.rs` | plugins of an A2E host file: their messages as calls |
//! | `listing.rs` | what was mounted, as declarations and problems |

mod call;
mod files;
mod hooks;
mod listing;
mod mounting;
mod plugin;
mod plugin_code;
mod process;
mod protocol;
mod seat;
mod set;
mod settings;
mod source;

use std::sync::Arc;

use serde_json::Value;
use toolpost_amplifier::LoadFailure;
use toolpost_core::Hook;
use toolpost_model::ToolFailure;

use super::witnessing::{EventTaker, EventWitness};

pub use plugin::{
    LoadedPlugin, MessageStanding, PluginPort, allowed_message_patterns, message_standing,
};
pub use settings::{
    BridgedModule, CoreInUse, PluginHost, ProcessIsolation, PythonPackage, PythonParts,
    PythonSettings,
};
pub use source::PythonSource;

/// A set of Python modules, mounted. Cheap to clone; the processes end with the last clone.
///
/// ```ignore
/// let modules = PythonModules::start(parts).await;
/// let builder = builder.source(modules.source()).hooks(modules.hooks());
/// ```
#[derive(Clone)]
pub struct PythonModules {
    set: Arc<set::ModuleSet>,
}

impl PythonModules {
    /// Starts the process and mounts every module once. A module that cannot be mounted does not keep the others from
    /// it; [`failures`](Self::failures) names it. The mount is handed to the first session that comes.
    pub async fn start(parts: PythonParts) -> Self {
        Self {
            set: set::ModuleSet::start(parts).await,
        }
    }

    /// The modules' tools, for the catalog.
    pub fn source(&self) -> PythonSource {
        PythonSource::new(Arc::clone(&self.set))
    }

    /// The modules' hooks, in the order they are to be added to a host. None where no module has handlers.
    pub fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        hooks::hooks(&self.set)
    }

    /// Which `amplifier_core` is in use. `None`: no process could be started.
    pub fn core(&self) -> Option<CoreInUse> {
        self.set.core()
    }

    /// The modules that are not there, and why.
    pub fn failures(&self) -> Vec<LoadFailure> {
        self.set.failures()
    }

    /// The plugins of an A2E host file that are loaded, in the order of the file.
    pub fn plugins(&self) -> Vec<LoadedPlugin> {
        self.set.listing().plugins.clone()
    }

    /// Takes the place where plugins' messages and audit entries go that belong to no request.
    pub fn set_plugin_port(&self, port: Arc<dyn PluginPort>) {
        self.set.set_plugin_port(port);
    }

    /// Asks the bridge something about the mount that `start` made, for a validator.
    pub async fn inspect(&self, request: &Value) -> Result<Value, ToolFailure> {
        self.set.inspect(request).await
    }

    /// Tells the modules' handlers what happens to calls beside the events that hooks are asked about, and ends sessions
    /// that only hooks know; for [`HostBuilder::witness`](toolpost_core::HostBuilder::witness).
    pub fn witness(&self) -> EventWitness {
        EventWitness::new(Arc::clone(&self.set) as Arc<dyn EventTaker>)
    }
}
