//! Modules in Rust, compiled into the program around the host: mounted once per session, offered as a source, and
//! registered as hooks and witnesses.

mod asking;
mod mounted;
mod sessions;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolpost_amplifier::{
    HookResult, MAX_TOOLS, Module, ModuleId, ModuleKind, ToolSpec, events, into_outcome,
};
use toolpost_core::{Hook, HookError, Witness};
use toolpost_model::{
    BoxFuture, ClassFact, Declaration, EffectClass, EffectOrigin, Provenance, SessionId,
    SessionScope, Source, SourceError, SourceFeed, SourceProblem, SourceSession, ToolCall,
    ToolFailure, ToolId, ToolOutput, WireNaming,
};

use super::{
    declared::{declare, declined, not_loaded, problem},
    hooks::{EventDesk, ModuleHooks, ModuleStandings},
    witnessing::{EventTaker, EventWitness},
};
use mounted::MountedSet;
use sessions::RustModuleMounts;

/// The default time limit of one handler.
const HANDLER_LIMIT: Duration = Duration::from_secs(5);

/// A module in Rust.
#[derive(Clone)]
pub struct RustModule {
    /// Its name.
    pub id: ModuleId,
    /// The kind of module. It decides the loss when the module fails: a tool, or a guard.
    pub kind: ModuleKind,
    /// The module to mount.
    pub module: Arc<dyn Module>,
    /// The configuration of the mount.
    pub config: Map<String, Value>,
}

impl RustModule {
    /// A module that brings tools.
    pub fn tool(id: impl Into<Arc<str>>, module: impl Module) -> Self {
        Self::new(ModuleKind::Tool, id, module)
    }

    /// A module with handlers for calls.
    pub fn hook(id: impl Into<Arc<str>>, module: impl Module) -> Self {
        Self::new(ModuleKind::Hook, id, module)
    }

    fn new(kind: ModuleKind, id: impl Into<Arc<str>>, module: impl Module) -> Self {
        Self {
            id: ModuleId::new(id),
            kind,
            module: Arc::new(module),
            config: Map::new(),
        }
    }

    /// Sets its configuration.
    #[must_use]
    pub fn config(mut self, config: Map<String, Value>) -> Self {
        self.config = config;
        self
    }
}

/// A set of modules in Rust. A handle: clones are the same set.
///
/// ```
/// use toolpost_amplifier::{Coordinator, MountError, MountReturn};
/// use toolpost_core::Host;
/// use toolpost_modules::{RustModule, RustModules};
///
/// async fn mount(
///     coordinator: Coordinator,
///     _config: serde_json::Map<String, serde_json::Value>,
/// ) -> Result<MountReturn, MountError> {
///     coordinator.register_capability("greeting", "hello".into());
///     Err(MountError::other("nothing to mount yet"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let modules = RustModules::new("rust", vec![RustModule::tool("tool-greeting", mount)]);
/// let host = modules.join(Host::builder()).build().await?;
/// assert_eq!(host.notices().len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RustModules {
    shared: Arc<RustModulesState>,
    time_limit: Option<Duration>,
    post_on_failure: bool,
}

struct RustModulesState {
    name: String,
    modules: Vec<RustModule>,
    standings: ModuleStandings,
    handler_limit: Duration,
    capabilities: Map<String, Value>,
    sessions: RustModuleMounts,
    listed: Mutex<RustToolList>,
    /// The hook modules that were mounted in any session. In a later session they may not decline: its calls would run
    /// unseen by them.
    mounted_hooks: Mutex<BTreeSet<ModuleId>>,
}

/// The result of the last listing.
#[derive(Default)]
struct RustToolList {
    names: HashMap<ToolId, String>,
    problems: Vec<SourceProblem>,
}

impl RustModules {
    /// A set of modules with a name for records, mounted in this order.
    pub fn new(name: impl Into<String>, modules: Vec<RustModule>) -> Self {
        let shared = RustModulesState {
            name: name.into(),
            modules,
            standings: ModuleStandings::default(),
            handler_limit: HANDLER_LIMIT,
            capabilities: Map::new(),
            sessions: RustModuleMounts::default(),
            listed: Mutex::default(),
            mounted_hooks: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            time_limit: None,
            post_on_failure: false,
        }
    }

    /// Sets the standing of each module's handlers. Call it before the set joins a host.
    #[must_use]
    pub fn standings(self, standings: ModuleStandings) -> Self {
        self.changed(|shared| shared.standings = standings)
    }

    /// Sets the time limits of one handler and of all handlers together. Without the latter they share the host's
    /// limit for hooks.
    #[must_use]
    pub fn time_limits(mut self, handler: Duration, all: Option<Duration>) -> Self {
        self.time_limit = all;
        self.changed(|shared| shared.handler_limit = handler)
    }

    /// Sets the capabilities of the host for modules, such as `session.working_dir`.
    #[must_use]
    pub fn capabilities(self, capabilities: Map<String, Value>) -> Self {
        self.changed(|shared| shared.capabilities = capabilities)
    }

    /// Whether `tool:post` follows failures too, as in Amplifier's own loops.
    #[must_use]
    pub fn post_on_failure(mut self, told: bool) -> Self {
        self.post_on_failure = told;
        self
    }

    /// A set that is already shared is in use, and stays as it is.
    fn changed(mut self, change: impl FnOnce(&mut RustModulesState)) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            change(shared);
        }
        self
    }

    /// Adds the set to a host: its tools, its hooks and its witness.
    pub fn join(&self, builder: toolpost_core::HostBuilder) -> toolpost_core::HostBuilder {
        builder
            .source(self.clone())
            .hooks(self.hooks())
            .witness(self.witness())
    }

    /// The hooks, in the order in which the host must run them.
    pub fn hooks(&self) -> [Arc<dyn Hook>; 2] {
        let desk: Arc<dyn EventDesk> = Arc::new(self.clone());
        ModuleHooks::new(desk)
            .time_limit(self.time_limit)
            .post_on_failure(self.post_on_failure)
            .into_hooks()
    }

    /// The witness that sends call events to the modules, and cleans up ended sessions.
    pub fn witness(&self) -> Arc<dyn Witness> {
        Arc::new(EventWitness::new(Arc::new(self.clone())))
    }

    /// Cleans up the unused mount, and waits until every ended session is cleaned up. Call it at the end of the
    /// program, after the shutdown of the host. Returns the problems of the cleanup.
    pub async fn finish(&self) -> Vec<String> {
        self.shared.sessions.finish().await
    }

    /// The mount of a session. It is made in a task of its own, so that a dropped caller does not leave half of it
    /// behind.
    async fn set_of(&self, session: &SessionId) -> Result<Arc<MountedSet>, SourceError> {
        let shared = Arc::clone(&self.shared);
        let session = session.clone();
        let made = tokio::spawn(async move { shared.sessions.of(&session, &shared).await }).await;
        made.map_err(|error| SourceError {
            origin: self.shared.name.clone(),
            reason: error.to_string(),
        })
    }
}

impl Source for RustModules {
    fn name(&self) -> &str {
        &self.shared.name
    }

    /// The module is compiled into the program, so a tool's class is as trusted as the program itself.
    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn provenance(&self) -> Provenance {
        Provenance::CompiledIn
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(async move {
            let set = self.shared.sessions.first(&self.shared).await;
            let (declarations, listed) = list(&set);
            *self.shared.listed.lock() = listed;
            Ok(declarations)
        })
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.shared.listed.lock().problems.clone()
    }

    fn connect(&self, feed: SourceFeed) {
        self.shared.sessions.connect(feed);
    }

    fn open<'a>(
        &'a self,
        scope: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(async move {
            let set = self.set_of(&scope.session_id).await?;
            let session = scope.session_id.clone();
            Ok(Arc::new(RustModuleSession {
                modules: self.clone(),
                set,
                session,
            }) as Arc<dyn SourceSession>)
        })
    }
}

/// The tools of a set, for the catalog.
fn list(set: &MountedSet) -> (Vec<Declaration>, RustToolList) {
    let mut declarations = Vec::new();
    let mut listed = RustToolList::default();
    listed
        .problems
        .extend(set.failures().iter().map(not_loaded));
    listed.problems.extend(
        set.declined()
            .iter()
            .map(|(module, _)| declined(module, None, None)),
    );
    let mut counts: HashMap<ModuleId, usize> = HashMap::new();
    for (name, module, tool) in set.coordinator().tools() {
        let Some(module) = module else { continue };
        let count = counts.entry(module.clone()).or_default();
        *count += 1;
        if *count > MAX_TOOLS {
            if *count == MAX_TOOLS + 1 {
                let message =
                    format!("it mounts more than {MAX_TOOLS} tools; the others are not offered");
                listed
                    .problems
                    .push(problem(&module, "too_many_tools", message));
            }
            continue;
        }
        // Calls use the mounted name.
        let spec = ToolSpec {
            name,
            ..tool.spec()
        };
        let mut declaration = match declare(&module, &spec) {
            Ok((declaration, problems)) => {
                listed.problems.extend(problems);
                declaration
            }
            Err(problem) => {
                listed.problems.push(problem);
                continue;
            }
        };
        match tool.class() {
            EffectClass::Unknown => {}
            class => declaration.interface.safety.class = ClassFact::Always(class),
        }
        if let Some(other) = listed.names.get(&declaration.tool_id) {
            let message = format!(
                "its tools `{other}` and `{}` have the same id; the second is not offered",
                spec.name
            );
            listed
                .problems
                .push(problem(&module, "name_taken", message));
            continue;
        }
        listed.names.insert(declaration.tool_id.clone(), spec.name);
        declarations.push(declaration);
    }
    (declarations, listed)
}

/// The set, opened for a session.
struct RustModuleSession {
    modules: RustModules,
    set: Arc<MountedSet>,
    session: SessionId,
}

impl SourceSession for RustModuleSession {
    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let name = self.modules.shared.listed.lock().names.get(tool).cloned();
        let found = name
            .as_deref()
            .and_then(|name| self.set.coordinator().tool(name));
        Box::pin(async move {
            let Some(found) = found else {
                let message = format!("`{tool}` is not mounted in this session");
                return Err(ToolFailure::new(message).untouched());
            };
            let input = call.input.arguments().value().clone();
            match found.execute_in(input, call.context).await {
                Ok(result) => into_outcome(result),
                Err(error) => Err(error.into_failure()),
            }
        })
    }

    fn close(&self) {
        self.modules.shared.sessions.close(&self.session);
    }
}

impl EventDesk for RustModules {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn concerns(&self, event: &str) -> bool {
        let has_hooks = || {
            self.shared
                .modules
                .iter()
                .any(|module| module.kind == ModuleKind::Hook)
        };
        let lacks_hooks = || has_hooks() && self.shared.sessions.lacks_hooks();
        self.shared.sessions.concerns(event) || (event == events::TOOL_PRE && lacks_hooks())
    }

    fn ask<'a>(
        &'a self,
        session: &'a SessionScope,
        event: &'static str,
        data: Value,
    ) -> BoxFuture<'a, Result<HookResult, HookError>> {
        Box::pin(async move {
            let set = self.set_of(&session.session_id).await;
            let set = set.map_err(|error| HookError(error.to_string()))?;
            Ok(asking::ask(
                &set,
                event,
                data,
                &self.shared.standings,
                self.shared.handler_limit,
            )
            .await)
        })
    }
}

impl EventTaker for RustModules {
    fn concerns(&self, event: &str) -> bool {
        self.shared.sessions.concerns(event)
    }

    fn tell(&self, session: &SessionId, event: &'static str, data: Value) {
        if let Some(set) = self.shared.sessions.known(session) {
            set.tell(event, data);
        }
    }

    fn session_closed(&self, session: &SessionId) {
        self.shared.sessions.close(session);
    }
}
