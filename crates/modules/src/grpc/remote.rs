//! One service, shared by its module and all sessions: its connection, mount, declaration, health and cleanup.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tonic::Code;
use toolpost_amplifier::{ModuleId, PlannedModule};
use toolpost_model::{
    Declaration, ErrorClass, ExecutionKind, SourceFeed, SourceNotice, SourceProblem, ToolFailure,
};

use super::{
    GrpcSettings, ServiceHealth,
    connection::{GrpcCallBounds, GrpcChannel, GrpcConnection, RpcError},
    declaration::declare,
    message::{
        GrpcEmptyMessage, GrpcToolSpec, HealthRequest, HealthResponse, ModuleHealth, MountRequest,
        MountResponse, path,
    },
    sidecar::GrpcSidecar,
    status::{self, shortened, wire_name},
};

/// The time limit for a service to describe its tool, to be mounted, or to report its health.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit of the cleanup when the host ends.
const FAREWELL: Duration = Duration::from_secs(2);
/// The first and the longest pause between polls of an unreachable service.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct GrpcService {
    pub(super) module: ModuleId,
    /// The name of the service in messages: `` the service `localhost:50051` ``.
    pub(super) label: String,
    /// Its source as written in the plan.
    origin: String,
    config: Map<String, Value>,
    pub(super) settings: GrpcSettings,
    pub(super) way: GrpcServiceRoute,
    /// The connection that was mounted last, by number.
    mounted: AtomicU64,
    mounting: tokio::sync::Mutex<()>,
    known: Mutex<GrpcServiceSnapshot>,
    feed: OnceLock<SourceFeed>,
    is_watching: AtomicBool,
}

/// The way to reach the service.
pub(super) enum GrpcServiceRoute {
    Service(GrpcChannel),
    Program(GrpcSidecar),
}

/// The result of the last look at the service.
#[derive(Default)]
struct GrpcServiceSnapshot {
    declaration: Option<Declaration>,
    /// The connection of the look.
    number: u64,
    problems: Vec<SourceProblem>,
}

impl GrpcService {
    pub(super) fn new(
        module: &PlannedModule,
        label: String,
        origin: String,
        settings: GrpcSettings,
        way: GrpcServiceRoute,
    ) -> Self {
        Self {
            module: module.id.clone(),
            label,
            origin,
            config: module.config.clone(),
            settings,
            way,
            mounted: AtomicU64::new(0),
            mounting: tokio::sync::Mutex::default(),
            known: Mutex::default(),
            feed: OnceLock::new(),
            is_watching: AtomicBool::new(false),
        }
    }

    /// Connects the feed to the host.
    pub(super) fn listen(&self, feed: SourceFeed) {
        let _ = self.feed.set(feed);
    }

    /// Whether the service was mounted by this host.
    pub(super) fn is_mounted(&self) -> bool {
        self.mounted.load(Ordering::Acquire) != 0
    }

    /// The last known declaration of the tool. If the service is unreachable, the host watches for it; a tool that was
    /// there before stays listed, and its calls report that the service is gone.
    pub(super) async fn tool(self: &Arc<Self>) -> Option<Declaration> {
        if let Err(problem) = self.look().await {
            self.known.lock().problems = vec![problem];
            if !self.is_watching.swap(true, Ordering::AcqRel) {
                tokio::spawn(watch(Arc::downgrade(self)));
            }
        }
        self.known.lock().declaration.clone()
    }

    pub(super) fn problems(&self) -> Vec<SourceProblem> {
        self.known.lock().problems.clone()
    }

    pub(super) fn bounds(&self, time: Duration) -> GrpcCallBounds {
        let GrpcSettings {
            request_bytes,
            response_bytes,
        } = self.settings;
        GrpcCallBounds {
            request_bytes,
            response_bytes,
            time,
        }
    }

    fn tell(&self, notice: SourceNotice) {
        if let Some(feed) = self.feed.get() {
            feed.notify(notice);
        }
    }

    /// A connection, after starting the program if the service is one.
    pub(super) async fn reach(&self) -> Result<GrpcConnection, ToolFailure> {
        match &self.way {
            GrpcServiceRoute::Service(connection) => connection.live().await.map_err(|error| {
                ToolFailure::of(ErrorClass::DependencyUnavailable, error.to_string())
                    .code("not_sent")
                    .hint("start the service; the tool is available again once it answers")
                    .untouched()
            }),
            GrpcServiceRoute::Program(sidecar) => sidecar.live().await,
        }
    }

    /// Converts a failed request into a failure for its caller. A connection that refused the request gets no further
    /// one.
    pub(super) async fn failed(&self, error: &RpcError, live: &GrpcConnection) -> ToolFailure {
        match &self.way {
            _ if !error.unsent => {}
            GrpcServiceRoute::Service(connection) => connection.forget(live),
            GrpcServiceRoute::Program(sidecar) => sidecar.forget(live).await,
        }
        status::failure(error, &self.label)
    }

    /// A connection to a service that is mounted with its configuration.
    pub(super) async fn ready(&self) -> Result<GrpcConnection, ToolFailure> {
        let live = self.reach().await?;
        if self.mounted.load(Ordering::Acquire) != live.number {
            self.mount(&live).await?;
        }
        Ok(live)
    }

    /// Mounts the service on a new connection, once.
    async fn mount(&self, live: &GrpcConnection) -> Result<(), ToolFailure> {
        let _turn = self.mounting.lock().await;
        if self.mounted.load(Ordering::Acquire) == live.number {
            return Ok(());
        }
        let config = self
            .config
            .iter()
            .map(|(key, value)| (key.clone(), spelled(value)))
            .collect();
        let request = MountRequest {
            config,
            module_id: self.module.as_str().to_owned(),
        };
        let answer: Result<MountResponse, _> = live
            .ask(path::MOUNT, request, self.bounds(PATIENCE), None)
            .await;
        match answer {
            Ok(answer) if answer.success => {}
            Ok(answer) => {
                let why = shortened(&answer.error);
                let message = format!("{} refused the mount: {why}", self.label);
                return Err(ToolFailure::of(ErrorClass::SetupRequired, message)
                    .code("mount_refused")
                    .untouched());
            }
            // Most services have no lifecycle methods: Amplifier never calls them on a tool.
            Err(error) if error.status.code() == Code::Unimplemented => {
                if !self.config.is_empty() {
                    self.tell(SourceNotice::Log(format!(
                        "{} has no `ModuleLifecycle.Mount`, so the configuration of `{}` is ignored",
                        self.label, self.module
                    )));
                }
            }
            Err(error) => return Err(self.failed(&error, live).await.untouched()),
        }
        self.mounted.store(live.number, Ordering::Release);
        let seen = self.known.lock().number;
        if seen != 0 && seen != live.number {
            // The process behind the new connection may be another version of the service.
            self.tell(SourceNotice::ToolsChanged);
        }
        Ok(())
    }

    /// Asks the service for its tool.
    async fn look(&self) -> Result<(), SourceProblem> {
        let live = self
            .ready()
            .await
            .map_err(|failure| self.problem(&failure))?;
        let spec: Result<GrpcToolSpec, _> = live
            .ask(
                path::GET_SPEC,
                GrpcEmptyMessage {},
                self.bounds(PATIENCE),
                None,
            )
            .await;
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => return Err(self.problem(&self.failed(&error, &live).await)),
        };
        let kind = match self.way {
            GrpcServiceRoute::Service(_) => ExecutionKind::HttpApi,
            GrpcServiceRoute::Program(_) => ExecutionKind::LocalProcess,
        };
        let here = |problem| SourceProblem {
            origin: Some(self.origin.clone()),
            ..problem
        };
        let (declaration, problems) = declare(&self.module, spec, kind).map_err(here)?;
        let mut known = self.known.lock();
        known.declaration = Some(declaration);
        known.number = live.number;
        known.problems = problems.into_iter().map(here).collect();
        Ok(())
    }

    fn problem(&self, failure: &ToolFailure) -> SourceProblem {
        let code = failure
            .code
            .as_deref()
            .unwrap_or(failure.class.as_str())
            .to_owned();
        let hint = failure
            .hint
            .as_ref()
            .map(|hint| format!("\nhint: {hint}"))
            .unwrap_or_default();
        let message = format!("{}{hint}", failure.message);
        let part = self.module.as_str().to_owned();
        SourceProblem {
            part,
            origin: Some(self.origin.clone()),
            code,
            message,
        }
    }

    pub(super) async fn health(&self, live: &GrpcConnection) -> ServiceHealth {
        let asked: Result<HealthResponse, _> = live
            .ask(
                path::HEALTH,
                HealthRequest::default(),
                self.bounds(PATIENCE),
                None,
            )
            .await;
        let (status, message) = match asked {
            Ok(answer) => (answer.status, String::new()),
            Err(error) if error.status.code() == Code::Unimplemented => {
                let asked: Result<ModuleHealth, _> = live
                    .ask(
                        path::MODULE_HEALTH,
                        GrpcEmptyMessage {},
                        self.bounds(PATIENCE),
                        None,
                    )
                    .await;
                match asked {
                    Ok(answer) => (answer.status, shortened(&answer.message)),
                    Err(error) if error.status.code() == Code::Unimplemented => {
                        return ServiceHealth::Connected;
                    }
                    Err(error) => return self.unwell(&error),
                }
            }
            Err(error) => return self.unwell(&error),
        };
        match status {
            1 => ServiceHealth::Serving,
            2 => ServiceHealth::NotServing(message),
            _ if live.is_open() => ServiceHealth::Connected,
            _ => ServiceHealth::Unreachable(message),
        }
    }

    fn unwell(&self, error: &RpcError) -> ServiceHealth {
        let failure = status::failure(error, &self.label);
        ServiceHealth::Unreachable(format!(
            "{}: {}",
            wire_name(error.status.code()),
            failure.message
        ))
    }

    pub(super) async fn close(&self) {
        if self.mounted.swap(0, Ordering::AcqRel) != 0
            && let GrpcServiceRoute::Service(connection) = &self.way
            && let Ok(live) = connection.live().await
        {
            self.clean_up(&live).await;
        }
        if let GrpcServiceRoute::Program(sidecar) = &self.way {
            if let Some(live) = sidecar.open_now().await {
                self.clean_up(&live).await;
            }
            sidecar.stop().await;
        }
    }

    async fn clean_up(&self, live: &GrpcConnection) {
        // The result does not matter: the service is no longer needed.
        let _: Result<GrpcEmptyMessage, _> = live
            .ask(
                path::CLEANUP,
                GrpcEmptyMessage {},
                self.bounds(FAREWELL),
                None,
            )
            .await;
    }
}

/// A configuration value as text: a string as it is, any other value as JSON.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Polls an unreachable service until it answers or until its module is dropped.
async fn watch(service: Weak<GrpcService>) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let Some(service) = service.upgrade() else {
            return;
        };
        if service.look().await.is_ok() {
            service.is_watching.store(false, Ordering::Release);
            service.tell(SourceNotice::ToolsChanged);
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
