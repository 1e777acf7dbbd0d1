//! Starts a process from an interpreter and a list of modules.

use std::{
    os::unix::net::UnixStream as StdStream,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt as _,
    net::UnixStream,
    sync::{mpsc, watch},
    time::timeout,
};
use toolpost_model::{ResourceAccess, ToolFailure};
use toolpost_processes::{ChildProcessSpec, Children, variable_pairs};
use toolpost_sandbox::{Confines, SandboxRoot, StderrTarget, Stdin};

use super::{
    super::{
        BridgedModule, PythonPackage, PythonSettings,
        files::{BOOT, files},
        plugin::PluginOutlet,
        plugin_code::PluginSight,
        protocol::{Boot, ModuleOrder},
    },
    BridgeProcess, BridgeRequestRegistry,
    ears::{self, BridgeNotice, BridgeOutputReader},
};

/// Tried first: a shim that chooses between versions costs more than the start.
const USUAL_PLACE: &str = "/usr/bin/python3";
/// How long an interpreter may take until it is ready. Importing the real `amplifier_core` is part of it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most output of one call that becomes events.
const OUTPUT_BYTES: usize = 1 << 20;
/// Each module of each session has a thread, and modules start processes.
const PROCESSES: u64 = 2048;

/// The parts that every process of a module set shares.
pub(in super::super) struct BridgeProcessTemplate {
    pub(in super::super) children: Children,
    pub(in super::super) modules: Vec<BridgedModule>,
    pub(in super::super) settings: PythonSettings,
    /// The outlet for the messages of plugins.
    pub(in super::super) outlet: Arc<PluginOutlet>,
}

/// Why there is no process.
#[derive(Clone, Debug)]
pub(in super::super) struct NotStarted(pub(in super::super) ToolFailure);

impl From<ToolFailure> for NotStarted {
    fn from(failure: ToolFailure) -> Self {
        Self(failure)
    }
}

impl From<std::io::Error> for NotStarted {
    fn from(error: std::io::Error) -> Self {
        Self(ToolFailure::from(error).untouched())
    }
}

impl BridgeProcessTemplate {
    /// Starts a process. `told` receives the notices that belong to no single call.
    pub(in super::super) async fn start(
        &self,
        told: mpsc::UnboundedSender<BridgeNotice>,
    ) -> Result<Arc<BridgeProcess>, NotStarted> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let process = self
            .children
            .start(ChildProcessSpec {
                // Isolated, and without `site` until the channel is safe: see `boot.py`.
                argv: [
                    self.python().as_os_str(),
                    "-I".as_ref(),
                    "-S".as_ref(),
                    "-c".as_ref(),
                    BOOT.as_ref(),
                ]
                .map(Into::into)
                .to_vec(),
                environment: self.environment()?,
                directory: self.children.workspace().path().to_owned(),
                stdin: Stdin::Socket(theirs.into()),
                stderr: StderrTarget::Piped,
                confines: self.confines(),
            })
            .await?;
        let applied = process.applied().clone();
        let (reading, mut writing) = UnixStream::from_std(ours)?.into_split();
        let (orders, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let boot = self.boot();
        tokio::spawn(async move {
            if writing.write_all(&boot).await.is_err() {
                return;
            }
            while let Some(line) = lines.recv().await {
                if writing.write_all(&line).await.is_err() {
                    return;
                }
            }
        });
        let (end, ending) = mpsc::unbounded_channel();
        let (ended, gone) = watch::channel(None);
        let desk = Arc::new(BridgeRequestRegistry::default());
        let longest = self.settings.result_bytes.saturating_add(1 << 20);
        let ears = BridgeOutputReader {
            desk: Arc::clone(&desk),
            orders: orders.downgrade(),
            told,
            outlet: Arc::clone(&self.outlet),
            longest,
            lines: AtomicUsize::new(0),
        };
        let (ready, first) = tokio::sync::oneshot::channel();
        tokio::spawn(ears::keep(process, reading, ears, ready, ending, ended));
        let core = match timeout(PATIENCE, first).await {
            Ok(Ok(ready)) => ready.map_err(refused)?,
            Ok(Err(_)) => {
                let mut gone = gone;
                let gone = gone
                    .wait_for(Option::is_some)
                    .await
                    .ok()
                    .and_then(|gone| gone.clone());
                let told = gone.map_or_else(String::new, |gone| gone.told());
                return Err(refused(told));
            }
            Err(_) => {
                return Err(refused(format!(
                    "Python did not start within {} s",
                    PATIENCE.as_secs()
                )));
            }
        };
        Ok(Arc::new(BridgeProcess {
            core,
            applied,
            desk,
            orders,
            end,
            gone,
            proven: Arc::default(),
        }))
    }

    fn boot(&self) -> Vec<u8> {
        let orders = self.modules.iter().map(|module| ModuleOrder {
            id: module.planned.id.as_str(),
            kind: module.planned.kind,
            package: &module.package,
            config: &module.planned.config,
        });
        let boot = Boot {
            files: files(),
            core: self.settings.core,
            modules: orders.collect(),
            plugins: &self.settings.plugin_host,
            result_bytes: self.settings.result_bytes,
            kept_bytes: self.settings.kept_bytes,
            later_paths: &self.settings.later_paths,
            output_bytes: OUTPUT_BYTES,
            parent_adopts: true,
        };
        let mut line = serde_json::to_vec(&boot).unwrap_or_default();
        line.push(b'\n');
        line
    }

    fn python(&self) -> PathBuf {
        let usual = || {
            if Path::new(USUAL_PLACE).exists() {
                USUAL_PLACE
            } else {
                "python3"
            }
        };
        self.settings
            .python
            .clone()
            .unwrap_or_else(|| PathBuf::from(usual()))
    }

    fn environment(&self) -> Result<Vec<(std::ffi::OsString, std::ffi::OsString)>, ToolFailure> {
        let own = variable_pairs(&self.settings.environment);
        let mut all = self.children.settings().environment.with(own)?;
        let passed = self.settings.passed.iter();
        all.retain(|(name, _)| !self.settings.passed.contains_key(&*name.to_string_lossy()));
        all.extend(passed.map(|(name, value)| (name.into(), value.into())));
        Ok(all)
    }

    /// The confines of the process: the operator's profile, with the modules' own folders readable.
    fn confines(&self) -> Confines {
        let settings = &self.settings;
        let mut confines = self.children.operators_confines(settings.profile);
        confines.readable.extend_from_slice(&settings.readable);
        // Python lists the folders of its path to find packages.
        confines.listable.extend_from_slice(&settings.later_paths);
        for module in &self.modules {
            match &module.package {
                PythonPackage::Folder { root } => confines.readable.push(root.clone()),
                PythonPackage::Plugin {
                    root: Some(root),
                    host_file,
                    ..
                } => {
                    let sight = PluginSight::of(root, host_file.as_deref(), &module.planned.config);
                    confines.readable.extend(sight.readable);
                    confines.listable.extend(sight.listable);
                    // Roots are real paths.
                    let hidden = host_file
                        .iter()
                        .flat_map(|file| [Some(file.clone()), file.canonicalize().ok()]);
                    confines.masked.extend(hidden.flatten());
                }
                PythonPackage::Plugin { root: None, .. } | PythonPackage::Installed { .. } => {}
            }
        }
        confines
            .readable
            .extend(settings.python.iter().flat_map(|python| homes_of(python)));
        let own = settings.writable.iter().map(|path| SandboxRoot {
            path: path.clone(),
            access: ResourceAccess::Write,
        });
        confines.roots.extend(own);
        confines.limits.processes = confines.limits.processes.max(PROCESSES);
        confines
    }
}

/// The folders of an interpreter: its environment, and the installation behind it.
fn homes_of(python: &Path) -> Vec<PathBuf> {
    let home = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let real = python.canonicalize().ok();
    [home(python), real.as_deref().and_then(home)]
        .into_iter()
        .flatten()
        .filter(|path| path.components().count() > 2)
        .collect()
}

fn refused(message: String) -> NotStarted {
    let failure = ToolFailure::of(toolpost_model::ErrorClass::SetupRequired, message);
    NotStarted(failure.code("python_not_started").untouched())
}
