//! Python modules of Amplifier, unmodified, and Python tool plugins of A2E: one source over a set of them.
//!
//! A bridge process, started by the launcher, imports the modules and mounts them once per session; the host sends it
//! the calls. Their protocol is in [`protocol`]; the Python side is in `python/bridge`.
//!
//! | file | contents |
//! |---|---|
//! | `set.rs` | the processes and the sessions of a set |
//! | `seat.rs` | one session's mount, made anew after its process ended |
//! | `mounting.rs` | mounting, and leaving out modules that fail |
//! | `process.rs` | one process: its start, its messages, its end |
//! | `call.rs` | one call, and its cancellation |
//! | `hooks.rs` | handlers of modules as hooks of the host |
//! | `plugin.rs` | plugins of an A2E host file: their messages as calls |
//! | `listing.rs` | the mounted modules as declarations and problems |

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
    /// Starts the process and mounts every module once. A module that fails does not affect the others;
    /// [`failures`](Self::failures) names it. The first session takes over this mount.
    pub async fn start(parts: PythonParts) -> Self {
        Self {
            set: set::ModuleSet::start(parts).await,
        }
    }

    /// The modules' tools, for the catalog.
    pub fn source(&self) -> PythonSource {
        PythonSource::new(Arc::clone(&self.set))
    }

    /// The modules' hooks, in the order in which the host must run them. Empty if no module has handlers.
    pub fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        hooks::hooks(&self.set)
    }

    /// The `amplifier_core` in use. `None`: no process could be started.
    pub fn core(&self) -> Option<CoreInUse> {
        self.set.core()
    }

    /// The modules that failed to load, with the reasons.
    pub fn failures(&self) -> Vec<LoadFailure> {
        self.set.failures()
    }

    /// The plugins of an A2E host file that are loaded, in the order of the file.
    pub fn plugins(&self) -> Vec<LoadedPlugin> {
        self.set.listing().plugins.clone()
    }

    /// Sets the port for the plugins' own messages and audit entries.
    pub fn set_plugin_port(&self, port: Arc<dyn PluginPort>) {
        self.set.set_plugin_port(port);
    }

    /// Requests a report about the mount that `start` made, for a validator.
    pub async fn inspect(&self, request: &Value) -> Result<Value, ToolFailure> {
        self.set.inspect(request).await
    }

    /// The witness that sends call events to the modules' handlers, except the events that hooks already get, and ends
    /// sessions that only hooks have used; for [`HostBuilder::witness`](toolpost_core::HostBuilder::witness).
    pub fn witness(&self) -> EventWitness {
        EventWitness::new(Arc::clone(&self.set) as Arc<dyn EventTaker>)
    }
}
