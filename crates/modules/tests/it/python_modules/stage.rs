//! A host with Python modules.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::sync::mpsc;
use toolpost_amplifier::{ModuleId, ModuleKind, ModuleSource, PlannedModule};
use toolpost_core::{EventListener, HostBuilder, HostLimits, Session};
use toolpost_model::{
    Event, EventBody, ModelInput, Principal, SandboxTier, SurfaceRequest, ToolResult,
};
use toolpost_modules::{
    BridgedModule, CoreWish, PythonModules, PythonPackage, PythonParts, PythonSettings,
};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

/// A host, the modules in it, and the folder they work in.
pub(crate) struct Stage {
    pub(crate) test: TestHost,
    pub(crate) modules: PythonModules,
    pub(crate) folder: TempDir,
}

/// Which `amplifier_core` a test runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    StandIn,
    Real,
}

pub(crate) const BOTH: [Core; 2] = [Core::StandIn, Core::Real];

impl Core {
    fn settings(self) -> PythonSettings {
        match self {
            Self::StandIn => PythonSettings {
                core: CoreWish::StandIn,
                ..PythonSettings::default()
            },
            Self::Real => {
                let python = root().join("target/peers/bin/python");
                assert!(
                    python.exists(),
                    "hint: `cargo xtask test` installs `amplifier-core` there"
                );
                let python = Some(python);
                PythonSettings {
                    core: CoreWish::Real,
                    python,
                    ..PythonSettings::default()
                }
            }
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned()
}

/// The launcher that lies beside the tests.
pub(crate) fn launcher(tier: SandboxTier) -> Launcher {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("toolpost-launch");
    assert!(
        program.exists(),
        "hint: cargo build -p toolpost-sandbox --bin toolpost-launch"
    );
    Launcher::with_tier_at_most(program, tier)
}

pub(crate) fn folder_of(module: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/modules")
        .join(module)
}

/// A module of this folder.
pub(crate) fn module(id: &str) -> BridgedModule {
    module_at(id, folder_of(id))
}

pub(crate) fn module_at(id: &str, root: PathBuf) -> BridgedModule {
    let kind = if id.starts_with("hooks-") {
        ModuleKind::Hook
    } else {
        ModuleKind::Tool
    };
    BridgedModule {
        planned: PlannedModule {
            kind,
            id: ModuleId::new(id),
            source: Some(ModuleSource::Path(root.clone())),
            config: Map::new(),
            place: "plan.yaml: tools[0]".to_owned(),
        },
        package: PythonPackage::Folder { root },
    }
}

/// What a test wants otherwise than usual.
pub(crate) struct Wanted {
    pub(crate) modules: Vec<BridgedModule>,
    pub(crate) settings: PythonSettings,
    pub(crate) limits: HostLimits,
    pub(crate) tier: SandboxTier,
    pub(crate) host: Box<dyn FnOnce(HostBuilder) -> HostBuilder>,
}

impl Wanted {
    pub(crate) fn new(core: Core, modules: &[&str]) -> Self {
        Self {
            modules: modules.iter().map(|id| module(id)).collect(),
            settings: core.settings(),
            limits: HostLimits::default(),
            tier: SandboxTier::A,
            host: Box::new(|builder| builder),
        }
    }

    pub(crate) fn set(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The modules alone, which work in `folder`.
    pub(crate) fn parts(&mut self, folder: &TempDir) -> PythonParts {
        let path = folder.path().canonicalize().unwrap();
        PythonParts {
            name: "modules".to_owned(),
            modules: std::mem::take(&mut self.modules),
            settings: std::mem::take(&mut self.settings),
            workspace: Arc::new(Workspace::open(&path).unwrap()),
            launcher: launcher(self.tier),
            children: ChildSettings::default(),
        }
    }

    pub(crate) async fn start(mut self) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let parts = self.parts(&folder);
        // Without hooks nobody has to be told of calls.
        let hears = parts
            .modules
            .iter()
            .any(|module| module.planned.kind == ModuleKind::Hook);
        let modules = PythonModules::start(parts).await;
        let source = modules.source();
        let hooks = modules.hooks();
        let witness = hears.then(|| Arc::new(modules.witness()));
        let limits = self.limits;
        let change = self.host;
        let test = TestHost::build(|builder| {
            let builder = builder.source(source).hooks(hooks).limits(limits);
            change(match witness {
                Some(witness) => builder.witness(witness),
                None => builder,
            })
        })
        .await;
        Stage {
            test,
            modules,
            folder,
        }
    }
}

impl Stage {
    pub(crate) async fn new(core: Core, modules: &[&str]) -> Self {
        Wanted::new(core, modules).start().await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.test.call(tool, arguments).await
    }

    /// A session of its own.
    pub(crate) async fn session(&self, who: &str) -> Arc<Session> {
        let opened = self
            .test
            .host
            .open_session(Principal::agent(who), SurfaceRequest::default())
            .await;
        opened.unwrap()
    }

    pub(crate) async fn call_in(
        &self,
        session: &Arc<Session>,
        tool: &str,
        arguments: Value,
    ) -> ToolResult {
        let request = toolpost_core::CallRequest::new(
            Arc::clone(session),
            tool,
            ModelInput::value(arguments),
        );
        self.test.host.call(request).await.result().clone()
    }

    /// The result, and the events on the way to it.
    pub(crate) async fn watched(
        &self,
        tool: &str,
        arguments: Value,
    ) -> (ToolResult, Vec<EventBody>) {
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut request = self.test.request(tool, arguments);
        request.delivery.listener = Some(Arc::new(Ear(sender)));
        let result = self.test.host.call(request).await.result().clone();
        let mut heard = Vec::new();
        while let Ok(event) = events.try_recv() {
            heard.push(event.body);
        }
        (result, heard)
    }

    /// Calls with a deadline.
    pub(crate) async fn call_within(
        &self,
        tool: &str,
        arguments: Value,
        within: Duration,
    ) -> ToolResult {
        let mut request = self.test.request(tool, arguments);
        request.times.timeout = Some(within);
        self.test.host.call(request).await.result().clone()
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        let surface = self.test.host.surface(&self.test.session);
        surface
            .all()
            .map(|(entry, _)| entry.name().to_owned())
            .collect()
    }
}

struct Ear(mpsc::UnboundedSender<Event>);

impl EventListener for Ear {
    fn hear(&self, event: Event) -> toolpost_core::EventDelivery {
        let _ = self.0.send(event);
        toolpost_core::EventDelivery::Taken
    }
}

/// Everything that was printed, as events tell it.
pub(crate) fn printed(events: &[EventBody]) -> String {
    let text = |event: &EventBody| match event {
        EventBody::Output(chunk) => Some(chunk.text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Every line that was logged or said.
pub(crate) fn logged(events: &[EventBody]) -> Vec<String> {
    let text = |event: &EventBody| match event {
        EventBody::Log { message, .. } | EventBody::Status { message } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Processes of this machine whose command line has these words.
pub(crate) fn processes(words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().parse::<u32>().is_ok() {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(words) {
                found.push(format!("{}: {line}", name.to_string_lossy()));
            }
        }
    }
    found
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let given_up = tokio::time::Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(tokio::time::Instant::now() < given_up, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
