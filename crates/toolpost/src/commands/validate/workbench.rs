//! The module under validation in a host of its own: mounted once, inspected, and called like any other module.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use toolpost_amplifier::{ModuleKind, ModuleSource, PlannedModule};
use toolpost_config::HostConfig;
use toolpost_core::{CallHandle, CallRequest, Session};
use toolpost_model::{
    Declaration, Event, ModelInput, PermissionMode, Principal, SourceProblem, ToolId,
};
use toolpost_modules::PythonModules;
use toolpost_serve::{HostParts, OpenedHost, load_modules, open_host};

use crate::{environment, terminal::ProgressSteps};

use super::{
    found::ModuleCandidate,
    unchecked::{RemovedSchemas, SchemalessSource},
};

/// How long running work may continue after the validation.
const GRACE: Duration = Duration::from_secs(2);
/// The size of the buffer for events of a call.
const EVENT_BUFFER: usize = 1024;

/// The options of the module's mount.
pub(super) struct ModuleMountOptions {
    pub(super) config: Map<String, Value>,
    pub(super) python: Option<PathBuf>,
}

/// A host with one module.
pub(super) struct ModuleWorkbench {
    opened: OpenedHost,
    session: Arc<Session>,
    principal: Principal,
    schemas: RemovedSchemas,
    python: Option<PythonModules>,
    module: String,
    /// The workspace, which is removed with the workbench.
    _scratch: TempDir,
}

/// A running call.
pub(super) struct WorkbenchCall {
    pub(super) handle: CallHandle,
    pub(super) events: mpsc::Receiver<Event>,
}

impl ModuleWorkbench {
    /// Opens it in an empty folder, without a network, with a record in memory.
    pub(super) async fn open(
        found: &ModuleCandidate,
        order: ModuleMountOptions,
    ) -> anyhow::Result<Self> {
        let scratch = environment::create_temporary_data_dir()?;
        let mut config = HostConfig {
            workspace: Some(environment::workspace(Some(scratch.path()))?),
            cache_dir: environment::cache_dir(None),
            mode: PermissionMode::Bypass,
            modules: vec![planned(found, order.config)],
            ..HostConfig::default()
        };
        config.amplifier.python = order.python;
        config.environment = environment::child_variables(&config);
        let program = environment::this_program();
        let loaded = load_modules(&config, program.as_deref(), ProgressSteps::of_modules()).await?;
        let schemas = RemovedSchemas::default();
        let mut parts = HostParts::default();
        for source in loaded.sources {
            parts.source(SchemalessSource::new(source, schemas.clone()));
        }
        config.modules.clear();
        // The host's own tools are left out.
        config.workspace = None;
        let opened = open_host(&config, parts).await?;
        let principal = Principal::operator("local");
        let session = opened.host.default_session(&principal);
        let module = found.id.to_string();
        Ok(Self {
            opened,
            session,
            principal,
            schemas,
            python: loaded.python,
            module,
            _scratch: scratch,
        })
    }

    /// The tools of the module.
    pub(super) fn declarations(&self) -> Vec<Declaration> {
        let catalog = self.opened.host.catalog();
        catalog
            .entries()
            .iter()
            .map(|entry| entry.declaration().clone())
            .collect()
    }

    /// The problems of the module.
    pub(super) fn problems(&self) -> Vec<SourceProblem> {
        self.opened.host.catalog().unavailable().to_vec()
    }

    /// The original schema of a tool.
    pub(super) fn schema_of(&self, tool: &ToolId) -> Option<Arc<Value>> {
        self.schemas.of(tool)
    }

    /// The bridge's inspection of the module, which also starts to record the values that its tools return. `None`: it
    /// is not in Python. `Err`: the process did not start.
    pub(super) async fn inspect(&self) -> Option<Result<Value, String>> {
        let python = self.python.as_ref()?;
        let request = json!({ "module": self.module, "observe": true });
        let seen = python.inspect(&request).await;
        Some(seen.map_err(|failure| match self.problems().first() {
            Some(problem) => problem.message.clone(),
            None => failure.message,
        }))
    }

    /// The kinds of values that a tool's `execute` has returned so far. `None`: they could not be observed.
    pub(super) async fn observed(&self, tool: &str) -> Option<Vec<String>> {
        #[derive(Deserialize)]
        struct Seen {
            returned: Map<String, Value>,
        }
        let seen = self.inspect_module().await?;
        let seen: Seen = serde_json::from_value(seen["observed"][tool].clone()).ok()?;
        Some(seen.returned.into_iter().map(|(kind, _)| kind).collect())
    }

    /// The `amplifier_core` of a Python module, to follow its description.
    pub(super) fn core(&self) -> Option<String> {
        let core = self.python.as_ref()?.core()?;
        let which = if core.real {
            "amplifier-core"
        } else {
            "a stand-in for amplifier-core"
        };
        Some(format!(", with {which} {}", core.version))
    }

    /// Whether the module runs in a bridge process that can be inspected.
    pub(super) fn is_in_process(&self) -> bool {
        self.python.is_some()
    }

    /// The process of the module. A new one shows that the old one had to be ended.
    pub(super) async fn process(&self) -> Option<String> {
        Some(self.inspect_module().await?["process"].as_str()?.to_owned())
    }

    async fn inspect_module(&self) -> Option<Value> {
        self.python
            .as_ref()?
            .inspect(&json!({ "module": self.module }))
            .await
            .ok()
    }

    /// Starts a call in the workbench's session.
    pub(super) async fn start(
        &self,
        tool: &str,
        arguments: &Value,
        limit: Duration,
    ) -> WorkbenchCall {
        let (sender, events) = mpsc::channel(EVENT_BUFFER);
        let input = ModelInput::value(arguments.clone());
        let mut request = CallRequest::new(Arc::clone(&self.session), tool, input)
            .record_face("cli")
            .notify(Arc::new(sender));
        request.times.timeout = Some(limit);
        WorkbenchCall {
            handle: self.opened.host.start(request).await,
            events,
        }
    }

    pub(super) fn cancel(&self, call: &WorkbenchCall) {
        self.opened
            .host
            .cancel(call.handle.invocation_id(), &self.principal);
    }

    pub(super) async fn close(self) {
        self.opened.host.shutdown(GRACE).await;
    }
}

fn planned(found: &ModuleCandidate, config: Map<String, Value>) -> PlannedModule {
    PlannedModule {
        kind: ModuleKind::Tool,
        id: found.id.clone(),
        source: Some(ModuleSource::Path(found.path.clone())),
        config,
        place: "the command line".to_owned(),
    }
}
