//! The shared state of one session's modules: mounting, and the lookup of tools and capabilities.

mod cancellation;
mod contributions;

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    fmt,
    future::Future,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolpost_model::SessionId;

pub use cancellation::{CancelSwitch, ModuleCancellation};
use contributions::ContributionTable;

use crate::{HookRegistry, ModuleId, MountCleanup, MountError, Tool};

/// The coordinator that the modules of one session are mounted with. A handle: clones are the same coordinator.
///
/// ```
/// use serde_json::{Map, json};
/// use toolpost_amplifier::Coordinator;
///
/// let (coordinator, _switch) = Coordinator::new(Map::new());
/// coordinator.register_capability("workspace.name", json!("atelier"));
/// assert_eq!(coordinator.capability("workspace.name"), Some(json!("atelier")));
/// assert!(coordinator.tool_names().is_empty());
/// ```
#[derive(Clone)]
pub struct Coordinator {
    shared: Arc<CoordinatorState>,
    /// The owner of everything that is mounted through this handle.
    module: Option<ModuleId>,
    hooks: HookRegistry,
}

struct CoordinatorState {
    session: OnceLock<SessionId>,
    plan: Map<String, Value>,
    tools: Mutex<Vec<MountedTool>>,
    history: Mutex<VecDeque<MountChange>>,
    capabilities: Mutex<BTreeMap<String, RegisteredCapability>>,
    contributions: ContributionTable,
    state: Mutex<Map<String, Value>>,
    cleanups: Mutex<Vec<(Option<ModuleId>, MountCleanup)>>,
    cancellation: ModuleCancellation,
}

/// The most changes in the history.
const MAX_HISTORY: usize = 1_024;

/// A mount or a removal of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountChange {
    /// It was mounted.
    Mounted {
        /// Under this name.
        name: String,
        /// By this module.
        module: Option<ModuleId>,
    },
    /// It was removed.
    Unmounted {
        /// Its former name.
        name: String,
    },
}

struct MountedTool {
    name: String,
    tool: Arc<dyn Tool>,
    module: Option<ModuleId>,
}

#[derive(Clone)]
enum RegisteredCapability {
    Value(Value),
    Object(Arc<dyn Any + Send + Sync>),
}

impl Coordinator {
    /// A coordinator with nothing mounted, and its cancel switch. `plan` is the session's configuration for modules to
    /// read.
    pub fn new(plan: Map<String, Value>) -> (Self, CancelSwitch) {
        let (switch, cancellation) = CancelSwitch::new();
        let shared = CoordinatorState {
            session: OnceLock::new(),
            plan,
            tools: Mutex::default(),
            history: Mutex::default(),
            capabilities: Mutex::default(),
            contributions: ContributionTable::default(),
            state: Mutex::default(),
            cleanups: Mutex::default(),
            cancellation,
        };
        (
            Self {
                shared: Arc::new(shared),
                module: None,
                hooks: HookRegistry::default(),
            },
            switch,
        )
    }

    /// The same coordinator for one module, which owns everything that is mounted through it.
    #[must_use]
    pub fn for_module(&self, module: &ModuleId) -> Self {
        let hooks = self.hooks.for_module(module);
        Self {
            shared: Arc::clone(&self.shared),
            module: Some(module.clone()),
            hooks,
        }
    }

    /// Assigns the session. Only the first call counts.
    pub fn adopt(&self, session: SessionId) {
        let _ = self.shared.session.set(session);
    }

    /// The session. `None` while modules are mounted to list their tools, before the first session.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.shared.session.get()
    }

    /// The session's configuration, as the modules' plan.
    pub fn config(&self) -> &Map<String, Value> {
        &self.shared.plan
    }

    /// Mounts a tool under its own name.
    pub fn mount(&self, tool: Arc<dyn Tool>) -> Result<(), MountError> {
        let name = tool.name().to_owned();
        self.mount_as(name, tool)
    }

    /// Mounts a tool under a name, which its calls use.
    pub fn mount_as(&self, name: impl Into<String>, tool: Arc<dyn Tool>) -> Result<(), MountError> {
        let name = name.into();
        if name.trim().is_empty() {
            return Err(MountError::NameRequired);
        }
        let mut tools = self.shared.tools.lock();
        if let Some(holder) = tools.iter().find(|mounted| mounted.name == name) {
            return Err(MountError::NameTaken {
                name,
                by: holder.module.clone(),
            });
        }
        self.note(MountChange::Mounted {
            name: name.clone(),
            module: self.module.clone(),
        });
        tools.push(MountedTool {
            name,
            tool,
            module: self.module.clone(),
        });
        Ok(())
    }

    /// Removes a tool and returns it.
    pub fn unmount(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.shared.tools.lock();
        let place = tools.iter().position(|mounted| mounted.name == name)?;
        self.note(MountChange::Unmounted {
            name: name.to_owned(),
        });
        Some(tools.remove(place).tool)
    }

    fn note(&self, change: MountChange) {
        let mut history = self.shared.history.lock();
        if history.len() == MAX_HISTORY {
            history.pop_front();
        }
        history.push_back(change);
    }

    /// The latest mounts and removals, oldest first, up to a limit.
    pub fn history(&self) -> Vec<MountChange> {
        self.shared.history.lock().iter().cloned().collect()
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tools = self.shared.tools.lock();
        tools
            .iter()
            .find(|mounted| mounted.name == name)
            .map(|mounted| Arc::clone(&mounted.tool))
    }

    /// The names of all tools, in the order of their mounts.
    pub fn tool_names(&self) -> Vec<String> {
        self.shared
            .tools
            .lock()
            .iter()
            .map(|mounted| mounted.name.clone())
            .collect()
    }

    /// All tools with their names and modules, in the order of their mounts.
    pub fn tools(&self) -> Vec<(String, Option<ModuleId>, Arc<dyn Tool>)> {
        let each = |mounted: &MountedTool| {
            (
                mounted.name.clone(),
                mounted.module.clone(),
                Arc::clone(&mounted.tool),
            )
        };
        self.shared.tools.lock().iter().map(each).collect()
    }

    /// The hooks.
    pub fn hooks(&self) -> &HookRegistry {
        &self.hooks
    }

    /// Offers a value to the other modules.
    pub fn register_capability(&self, name: impl Into<String>, value: Value) {
        self.shared
            .capabilities
            .lock()
            .insert(name.into(), RegisteredCapability::Value(value));
    }

    /// A value that a module or the host offers, such as `session.working_dir`.
    pub fn capability(&self, name: &str) -> Option<Value> {
        match self.shared.capabilities.lock().get(name)? {
            RegisteredCapability::Value(value) => Some(value.clone()),
            RegisteredCapability::Object(_) => None,
        }
    }

    /// Offers any other object to the other modules, as Python modules do with functions and objects.
    pub fn provide<T: Any + Send + Sync>(&self, name: impl Into<String>, object: Arc<T>) {
        self.shared
            .capabilities
            .lock()
            .insert(name.into(), RegisteredCapability::Object(object));
    }

    /// The object that another module [provides](Self::provide), if it is of this type.
    pub fn provided<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        match self.shared.capabilities.lock().get(name)? {
            RegisteredCapability::Object(object) => Arc::clone(object).downcast().ok(),
            RegisteredCapability::Value(_) => None,
        }
    }

    /// Contributes to a channel, such as `observability.events`, whenever it is collected.
    pub fn register_contributor<F, Fut>(
        &self,
        channel: impl Into<String>,
        name: impl Into<String>,
        callback: F,
    ) where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, MountError>> + Send + 'static,
    {
        self.shared
            .contributions
            .add(channel.into(), name.into(), callback);
    }

    /// Declares the events that the module will emit: a contribution to `observability.events`.
    pub fn register_events(&self, name: impl Into<String>, events: &[&str]) {
        let events: Value = events.iter().map(|event| Value::from(*event)).collect();
        self.register_contributor("observability.events", name, move || {
            std::future::ready(Ok(events.clone()))
        });
    }

    /// All contributions to a channel, in the order of registration. Contributors without a contribution are left out.
    /// Failed ones are left out too, with a message in the second list.
    pub async fn collect_contributions(&self, channel: &str) -> (Vec<Value>, Vec<String>) {
        self.shared.contributions.collect(channel).await
    }

    /// The channels that have contributors.
    pub fn channels(&self) -> Vec<String> {
        self.shared.contributions.channels()
    }

    /// Reads and changes the state that the modules of the session share.
    pub fn session_state<T>(&self, with: impl FnOnce(&mut Map<String, Value>) -> T) -> T {
        with(&mut self.shared.state.lock())
    }

    /// Registers a cleanup for the end of the session.
    pub fn register_cleanup<F, Fut>(&self, cleanup: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), MountError>> + Send + 'static,
    {
        self.keep_cleanup(Box::new(move || Box::pin(cleanup())));
    }

    pub(crate) fn keep_cleanup(&self, cleanup: MountCleanup) {
        self.shared
            .cleanups
            .lock()
            .push((self.module.clone(), cleanup));
    }

    /// Runs the cleanups, the latest first. A failure stops none of the others; all failures are returned.
    pub async fn cleanup(&self) -> Vec<MountError> {
        let mut failures = Vec::new();
        while let Some(cleaned) = self.clean_next().await {
            failures.extend(cleaned.err());
        }
        failures
    }

    /// One step of [`cleanup`](Self::cleanup), for callers that guard each step. `None`: nothing is left.
    pub async fn clean_next(&self) -> Option<Result<(), MountError>> {
        // A statement of its own, so that the lock is released before the cleanup runs: a cleanup may register another
        // one, and the lock is not reentrant.
        let last = self.shared.cleanups.lock().pop();
        let (_, cleanup) = last?;
        Some(cleanup().await)
    }

    /// The cancellation of the session. Modules can only observe it.
    pub fn cancellation(&self) -> &ModuleCancellation {
        &self.shared.cancellation
    }

    /// Whether a tool is mounted under any name.
    pub(crate) fn has_mounted(&self, tool: &Arc<dyn Tool>) -> bool {
        let same =
            |mounted: &MountedTool| Arc::ptr_eq(&mounted.tool, tool) || mounted.name == tool.name();
        self.shared
            .tools
            .lock()
            .iter()
            .any(|mounted| same(mounted) && mounted.module == self.module)
    }

    /// Whether the module of this handle has mounted a tool or a hook handler.
    pub(crate) fn has_brought(&self) -> bool {
        let has_tool = self
            .shared
            .tools
            .lock()
            .iter()
            .any(|mounted| mounted.module == self.module);
        has_tool || self.hooks.has_own()
    }

    /// Removes everything that the module of this handle mounted, and runs its cleanups, after it failed.
    pub async fn withdraw(&self) {
        self.shared
            .tools
            .lock()
            .retain(|mounted| mounted.module != self.module);
        self.hooks.withdraw();
        loop {
            let own = {
                let mut cleanups = self.shared.cleanups.lock();
                let place = cleanups
                    .iter()
                    .rposition(|(module, _)| *module == self.module);
                place.map(|place| cleanups.remove(place).1)
            };
            let Some(cleanup) = own else { return };
            // The module's first failure is the one to report.
            let _ = cleanup().await;
        }
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator")
            .field("session", &self.session_id())
            .field("tools", &self.tool_names())
            .finish_non_exhaustive()
    }
}
