//! Loads the modules of mount plans: fetches them, detects their kind, and makes sources and hooks of them. A module
//! that is not available is reported, and the others serve.

mod bundles;
#[cfg(feature = "wasm")]
mod component;
#[cfg(feature = "grpc")]
mod grpc;

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolpost_amplifier::{
    LoadFailure, LoadReason, ModuleId, ModuleKind, ModuleSource, ModuleTransport, PlannedModule,
};
use toolpost_config::{
    AmplifierCore, HostConfig, ModuleIsolation, NativeToolsChoice, PluginConfig, is_reserved_name,
};
use toolpost_core::{Hook, Witness};
use toolpost_model::{HookStanding, Source};
use toolpost_modules::{
    BridgedModule, CoreWish, Fetcher, FolderSharing, ModuleSetupProgress, ModuleStandings,
    ModuleSupply, PackageEnvironments, PluginHost, PreparedEnvironment, ProcessIsolation,
    PythonModule, PythonModules, PythonPackage, PythonParts, PythonSettings, RustModule,
    RustModules, UnloadedModules, resolve,
};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;
use toolpost_store::DataDir;

use super::{
    native::{self, NativeError},
    supply::module_supply,
};

use bundles::missing_bundles;

/// The source name of plan modules, in records and under `sources`.
const NAME: &str = "amplifier";
/// The source name of components with hooks.
const COMPONENT_HOOKS: &str = "amplifier-components";
/// The source name of modules that are not available.
const UNLOADED: &str = "amplifier-unloaded";

/// The reason why no module of a configuration can be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// There is no workspace for the modules.
    #[error("the configuration names modules, which require a workspace, and this host has none")]
    NoWorkspace,
    /// There is no cache for fetched modules.
    #[error(
        "the configuration names modules, and this host has no cache folder for fetched modules"
    )]
    NoCache,
    /// There is no launcher that can start modules.
    #[error(
        "the configuration names modules, and this host has no launcher to start processes with"
    )]
    NoLauncher,
    /// The workspace cannot be opened for them.
    #[error(transparent)]
    Native(#[from] NativeError),
}

/// A callback for the progress of each module.
pub type ModuleSetupListener = Box<dyn FnMut(&ModuleId, ModuleSetupProgress) + Send>;

/// The inputs of modules besides the configuration.
#[derive(Default)]
pub struct ModulesHandover {
    /// Called while modules are fetched and their packages are installed.
    pub progress: Option<ModuleSetupListener>,
}

/// The loaded modules of a configuration.
#[derive(Default)]
pub struct LoadedModules {
    /// The tools of the modules, and reports on modules that are not available.
    pub sources: Vec<Arc<dyn Source>>,
    /// The hooks of the modules.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Witnesses that pass call events to the modules' handlers.
    pub witnesses: Vec<Arc<dyn Witness>>,
    /// The process of the Python modules, for inspection.
    pub python: Option<PythonModules>,
}

/// Loads the modules of a configuration without a host. [`open_host`](super::open_host) does this itself; this function
/// is for programs that put something between the modules and their host.
///
/// # Errors
///
/// If the configuration has no workspace, or `program` is not a launcher.
pub async fn load_modules(
    config: &HostConfig,
    program: Option<&Path>,
    handover: ModulesHandover,
) -> Result<LoadedModules, ModulesError> {
    modules(config, None, program, (Vec::new(), handover)).await
}

/// Loads the modules of a configuration in their order. The processes of modules cannot change `own_files`, because
/// those files define the permissions.
pub(super) async fn modules(
    config: &HostConfig,
    data_dir: Option<&DataDir>,
    program: Option<&Path>,
    (own_files, handover): (Vec<PathBuf>, ModulesHandover),
) -> Result<LoadedModules, ModulesError> {
    if config.modules.is_empty() && config.plugins.is_empty() {
        let missing = missing_bundles(config);
        if missing.is_empty() {
            return Ok(LoadedModules::default());
        }
        let unloaded = UnloadedModules::new(UNLOADED, missing);
        let hooks = unloaded.hooks(&standings(config));
        return Ok(LoadedModules {
            sources: vec![Arc::new(unloaded)],
            hooks,
            ..LoadedModules::default()
        });
    }
    let root = config.workspace.as_ref().ok_or(ModulesError::NoWorkspace)?;
    let launcher = Launcher::new(program.ok_or(ModulesError::NoLauncher)?.to_owned());
    let workspace = Arc::new(native::workspace(config, root, own_files)?);
    let children = native::children(config, &workspace, data_dir);
    let supply = module_supply(config, Some(launcher.clone())).map_err(NativeError::from)?;
    let supply = Arc::new(supply.ok_or(ModulesError::NoCache)?);
    let mut progress = handover.progress.unwrap_or_else(|| Box::new(|_, _| {}));
    let process = ModuleProcessSettings {
        launcher,
        workspace,
        children,
    };
    let mut loading = ModuleLoader::new(config, process);
    let fetcher = Fetcher::new(Arc::clone(&supply));
    for module in &config.modules {
        if let Some(refused) = refuse_reserved_name(module) {
            loading.failures.push(refused);
            continue;
        }
        let mut told = |step| progress(&module.id, step);
        let loaded = match ready(module, &fetcher, &mut told).await {
            Ok(ready) => {
                if let ModuleTransport::Wasm { artifact, .. } = &ready.transport {
                    // The first compilation of a large component takes a while.
                    told(ModuleSetupProgress::Step(format!(
                        "compiling {}",
                        artifact.display()
                    )));
                }
                loading.take(module, ready).await
            }
            Err(failure) => Err(failure),
        };
        loading.failures.extend(loaded.err());
    }
    let served = served_plugins(config);
    loading
        .python
        .extend(served.iter().map(|served| plugin(config, served)));
    loading.start_python(&supply, &mut *progress).await;
    Ok(loading.finish())
}

struct ModuleCodeLocation {
    /// `None`: the module is a package of the Python environment.
    root: Option<PathBuf>,
    transport: ModuleTransport,
}

async fn ready(
    module: &PlannedModule,
    fetcher: &Fetcher,
    progress: &mut (dyn FnMut(ModuleSetupProgress) + Send),
) -> Result<ModuleCodeLocation, LoadFailure> {
    match fetcher.fetch(module, progress).await?.root {
        // The package index contains only Python modules.
        None => Ok(ModuleCodeLocation {
            root: None,
            transport: ModuleTransport::Python,
        }),
        Some(root) => {
            let resolved = resolve(module, &root)?;
            for note in &resolved.notes {
                tracing::info!(module = module.id.as_str(), "{note}");
            }
            Ok(ModuleCodeLocation {
                root: Some(resolved.root),
                transport: resolved.transport,
            })
        }
    }
}

struct ModuleProcessSettings {
    launcher: Launcher,
    workspace: Arc<Workspace>,
    children: ChildSettings,
}

struct ModuleLoader<'a> {
    config: &'a HostConfig,
    process: ModuleProcessSettings,
    #[cfg(feature = "wasm")]
    components: component::ComponentEngine,
    modules: LoadedModules,
    /// Python modules share a process, so they start together.
    python: Vec<BridgedModule>,
    component_hooks: Vec<RustModule>,
    failures: Vec<LoadFailure>,
}

impl<'a> ModuleLoader<'a> {
    fn new(config: &'a HostConfig, process: ModuleProcessSettings) -> Self {
        Self {
            config,
            process,
            #[cfg(feature = "wasm")]
            components: component::ComponentEngine::default(),
            modules: LoadedModules::default(),
            python: Vec::new(),
            component_hooks: Vec::new(),
            failures: missing_bundles(config),
        }
    }

    async fn take(
        &mut self,
        module: &PlannedModule,
        ready: ModuleCodeLocation,
    ) -> Result<(), LoadFailure> {
        match ready.transport {
            ModuleTransport::Python => self.python.push(python_module(module, ready.root)),
            #[cfg(feature = "wasm")]
            ModuleTransport::Wasm { artifact, sha256 } => {
                let config = self.config;
                let sha256 = sha256.as_deref();
                match module.kind {
                    ModuleKind::Tool => {
                        let source = self
                            .components
                            .load(config, module, &artifact, sha256)
                            .await?;
                        self.modules.sources.push(Arc::new(source));
                    }
                    ModuleKind::Hook => {
                        let hook = self
                            .components
                            .load_hook(config, module, &artifact, sha256)
                            .await?;
                        self.component_hooks.push(hook);
                    }
                }
            }
            #[cfg(not(feature = "wasm"))]
            ModuleTransport::Wasm { .. } => {
                return Err(not_built_in(module, "a WebAssembly component", "wasm"));
            }
            #[cfg(feature = "grpc")]
            ModuleTransport::Grpc { endpoint } => {
                self.modules
                    .sources
                    .push(Arc::new(grpc::running(module, &endpoint)?));
            }
            #[cfg(feature = "grpc")]
            ModuleTransport::Rust { name } => {
                let source = grpc::sidecar(
                    self.config,
                    module,
                    ready.root.as_deref(),
                    &name,
                    &self.process,
                )?;
                self.modules.sources.push(Arc::new(source));
            }
            #[cfg(not(feature = "grpc"))]
            ModuleTransport::Grpc { .. } | ModuleTransport::Rust { .. } => {
                return Err(not_built_in(module, "served over gRPC", "grpc"));
            }
        }
        Ok(())
    }

    /// Installs the packages of the Python modules and starts their process.
    async fn start_python(
        &mut self,
        supply: &Arc<ModuleSupply>,
        progress: &mut (dyn FnMut(&ModuleId, ModuleSetupProgress) + Send),
    ) {
        let Some(first) = self.python.first().map(|module| module.planned.id.clone()) else {
            return;
        };
        let amplifier = &self.config.amplifier;
        let core = match amplifier.core {
            AmplifierCore::Auto => CoreWish::Auto,
            AmplifierCore::Real => CoreWish::Real,
            AmplifierCore::StandIn => CoreWish::StandIn,
        };
        let wanted: Vec<PythonModule> = self.python.iter().map(packaged).collect();
        let packages = PackageEnvironments::new(Arc::clone(supply));
        let prepared = packages
            .prepare(&wanted, core, &mut |step| progress(&first, step))
            .await;
        let PreparedEnvironment {
            environment,
            failures,
        } = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let lost = std::mem::take(&mut self.python);
                self.failures.extend(
                    lost.iter()
                        .map(|module| failed(&module.planned, error.to_string())),
                );
                return;
            }
        };
        self.python.retain(|module| {
            failures
                .iter()
                .all(|failure| failure.module != module.planned.id)
        });
        self.failures.extend(failures);
        if self.python.is_empty() {
            return;
        }
        let usual = PythonSettings::default();
        let largest_result = amplifier
            .max_result
            .and_then(|bytes| usize::try_from(bytes).ok());
        let result_bytes = largest_result.unwrap_or(usual.result_bytes);
        let settings = PythonSettings {
            plugin_host: PluginHost {
                host_id: self
                    .config
                    .a2e
                    .host_id
                    .clone()
                    .unwrap_or_else(|| "toolpost".to_owned()),
                max_workers: self.config.limits.session_concurrency,
                audit: self.config.a2e.audit.path.is_some(),
            },
            isolation: match amplifier.isolation {
                ModuleIsolation::Shared => ProcessIsolation::Shared,
                ModuleIsolation::Process => ProcessIsolation::Process,
            },
            core,
            python: Some(environment.python),
            profile: amplifier.sandbox.unwrap_or(self.config.sandbox.profile),
            readable: [
                amplifier.readable.clone(),
                self.config.a2e.import_paths.clone(),
                environment.readable,
            ]
            .concat(),
            writable: amplifier.writable.clone(),
            environment: amplifier.environment.clone(),
            passed: passed(self.config),
            standings: standings(self.config),
            post_on_failure: amplifier.post_on_failure,
            unloaded: self.failures.clone(),
            mount_limit: amplifier.mount_timeout.unwrap_or(usual.mount_limit),
            result_bytes,
            kept_bytes: usual.kept_bytes.max(result_bytes),
            later_paths: environment.later_paths,
            ..usual
        };
        let ModuleProcessSettings {
            launcher,
            workspace,
            children,
        } = &self.process;
        let parts = PythonParts {
            name: NAME.to_owned(),
            modules: std::mem::take(&mut self.python),
            settings,
            workspace: Arc::clone(workspace),
            launcher: launcher.clone(),
            children: children.clone(),
        };
        let set = PythonModules::start(parts).await;
        self.modules.sources.push(Arc::new(set.source()));
        self.modules.hooks.extend(set.hooks());
        self.modules.witnesses.push(Arc::new(set.witness()));
        self.modules.python = Some(set);
    }

    /// Adds the reports on modules that are not available.
    fn finish(mut self) -> LoadedModules {
        if !self.component_hooks.is_empty() {
            let hooks = std::mem::take(&mut self.component_hooks);
            let set = RustModules::new(COMPONENT_HOOKS, hooks)
                .standings(ModuleStandings::new(standings(self.config)))
                .post_on_failure(self.config.amplifier.post_on_failure);
            self.modules.hooks.extend(set.hooks());
            self.modules.witnesses.push(set.witness());
            self.modules.sources.push(Arc::new(set));
        }
        let unloaded = UnloadedModules::new(UNLOADED, self.failures);
        let mut hooks = unloaded.hooks(&standings(self.config));
        hooks.append(&mut self.modules.hooks);
        self.modules.sources.push(Arc::new(unloaded));
        LoadedModules {
            hooks,
            ..self.modules
        }
    }
}

/// The plugins that are served. Among plugins with tools, an exclusive one hides those after it.
fn served_plugins(config: &HostConfig) -> Vec<&PluginConfig> {
    let brings_tools = |plugin: &PluginConfig| plugin.capability == super::TOOLS_CAPABILITY;
    let own = match &config.native_tools {
        NativeToolsChoice::Entry {
            priority,
            exclusive: true,
            ..
        } => Some(*priority),
        NativeToolsChoice::Entry { .. }
        | NativeToolsChoice::Served
        | NativeToolsChoice::LeftOut => None,
    };
    let tools = config.plugins.iter().filter(|plugin| brings_tools(plugin));
    // At equal priority, the first entry of the file comes first.
    let first =
        tools.max_by(|one, other| one.priority.cmp(&other.priority).then(Ordering::Greater));
    let is_hidden = |plugin: &PluginConfig| {
        let by_own = own.is_some_and(|priority| priority >= plugin.priority);
        let by_first = first.is_some_and(|first| first.exclusive && first.name != plugin.name);
        brings_tools(plugin) && (by_own || by_first)
    };
    config
        .plugins
        .iter()
        .filter(|plugin| !is_hidden(plugin))
        .collect()
}

/// A plugin of an A2E host file as a planned module.
fn plugin(config: &HostConfig, plugin: &PluginConfig) -> BridgedModule {
    let planned = PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new(plugin.name.as_str()),
        source: None,
        config: plugin.settings.clone(),
        place: format!("plugins.{}", plugin.name),
    };
    let package = PythonPackage::Plugin {
        class: plugin.class.clone(),
        capability: plugin.capability.clone(),
        priority: plugin.priority,
        exclusive: plugin.exclusive,
        import_paths: config.a2e.import_paths.clone(),
        root: Some(plugin.folder.clone()),
        host_file: Some(plugin.host_file.clone()),
    };
    BridgedModule { planned, package }
}

fn python_module(module: &PlannedModule, root: Option<PathBuf>) -> BridgedModule {
    let package = match (root, &module.source) {
        (Some(root), _) => PythonPackage::Folder { root },
        (None, Some(ModuleSource::Package(name))) => PythonPackage::Installed {
            name: Some(name.clone()),
        },
        (None, _) => PythonPackage::Installed { name: None },
    };
    BridgedModule {
        planned: module.clone(),
        package,
    }
}

fn packaged(module: &BridgedModule) -> PythonModule {
    let (root, package, sharing) = match &module.package {
        PythonPackage::Folder { root } => (Some(root.clone()), None, FolderSharing::OwnFolder),
        PythonPackage::Installed { name } => (None, name.clone(), FolderSharing::OwnFolder),
        PythonPackage::Plugin { root, .. } => (root.clone(), None, FolderSharing::BesideHostFile),
    };
    PythonModule {
        id: module.planned.id.clone(),
        kind: module.planned.kind,
        root,
        package,
        sharing,
    }
}

fn failed(module: &PlannedModule, message: String) -> LoadFailure {
    let id = module.id.clone();
    let kind = module.kind;
    let origin = module.source.as_ref().map(ToString::to_string);
    LoadFailure {
        module: id,
        kind,
        origin,
        reason: LoadReason::Unknown,
        message,
    }
}

/// Refuses a module with a reserved name. The ids of its tools would begin with that name, so rules about the host's
/// own tools would apply to them.
fn refuse_reserved_name(module: &PlannedModule) -> Option<LoadFailure> {
    let name = module.id.as_str();
    let message = format!(
        "`{name}` is reserved for the host's own tools, so their rules would apply to this module\n\
         hint: give the module another id in {}, such as `tool-{name}`",
        module.place
    );
    let reason = LoadReason::InvalidModuleMetadata;
    is_reserved_name(name).then(|| LoadFailure {
        reason,
        ..failed(module, message)
    })
}

/// The failure of a module whose kind this binary does not support.
#[cfg(not(all(feature = "wasm", feature = "grpc")))]
fn not_built_in(module: &PlannedModule, what: &str, feature: &str) -> LoadFailure {
    let message = format!(
        "it is {what}, which this binary does not support\n\
         hint: build it with `--features {feature}`"
    );
    failed(module, message)
}

/// The variables that modules get from the host's environment.
fn passed(config: &HostConfig) -> BTreeMap<String, String> {
    let named = &config.environment.variables;
    let passed = config
        .amplifier
        .pass
        .iter()
        .filter_map(|name| named.get_key_value(name));
    passed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn standings(config: &HostConfig) -> BTreeMap<ModuleId, HookStanding> {
    let named = config.amplifier.hooks.iter();
    named
        .map(|(module, standing)| (ModuleId::new(module.as_str()), *standing))
        .collect()
}
