//! Tools behind gRPC services: Amplifier's `ToolService`, one tool an endpoint.
//!
//! The service is asked for its tool when the host lists tools, mounted before it is first used, and mounted again when
//! the connection is a new one, since the process behind it may be. A service that is not there when it is asked is asked
//! again in the background, longer and longer apart, and its tool appears once it answers.

mod connection;
mod declaration;
mod endpoint;
mod message;
mod outcome;
mod session;
mod sidecar;
mod status;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tonic::Code;
use toolpost_amplifier::{LoadFailure, LoadReason, ModuleId, ModuleKind, PlannedModule};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, ErrorClass, ExecutionKind, Naming, SessionScope, Source,
    SourceError, SourceFeed, SourceNotice, SourceProblem, SourceSession, ToolFailure,
};

use self::{
    connection::{Bounds, Connection, Live},
    declaration::declare,
    endpoint::Endpoint,
    message::{Empty, HealthRequest, HealthResponse, ModuleHealth, MountRequest, MountResponse, Spec, path},
    session::GrpcSession,
    sidecar::Sidecar,
    status::{shortened, wire_name},
};
use super::{resolve::ResolveError, sidecar_program};
pub use sidecar::SidecarParts;

/// How long a service may take to say what it is, to be mounted, or to tell how it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to clean up when the host ends.
const FAREWELL: Duration = Duration::from_secs(2);
/// The first pause before a service that is not there is asked again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Between attempts of one call to reach a service: a restart is often that short.
const ATTEMPTS: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// What is taken from a service, and what is sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcSettings {
    /// The largest message sent, in bytes.
    pub request_bytes: usize,
    /// The largest message taken, in bytes.
    pub response_bytes: usize,
}

impl Default for GrpcSettings {
    fn default() -> Self {
        Self { request_bytes: 4 << 20, response_bytes: 16 << 20 }
    }
}

/// How a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceHealth {
    /// It says that it serves.
    Serving,
    /// It is connected, and has no health check.
    Connected,
    /// It says that it does not serve; why, where it says.
    NotServing(String),
    /// It cannot be reached, or does not answer; why.
    Unreachable(String),
}

/// A module behind gRPC, as a source of its one tool.
pub struct GrpcModule {
    shared: Arc<Shared>,
}

struct Shared {
    module: ModuleId,
    /// What it is called in messages: `` the service `localhost:50051` ``.
    service: String,
    /// Where it comes from, as written.
    origin: String,
    config: serde_json::Map<String, Value>,
    settings: GrpcSettings,
    way: Way,
    /// The connection that was mounted last, by number.
    mounted: AtomicU64,
    mounting: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
    feed: OnceLock<SourceFeed>,
    is_watching: AtomicBool,
}

/// How the service is reached.
enum Way {
    Service(Connection),
    Program(Sidecar),
}

/// What the last look at the service showed.
#[derive(Default)]
struct Known {
    declaration: Option<Declaration>,
    /// The connection it was seen on.
    number: u64,
    problems: Vec<SourceProblem>,
}

impl GrpcModule {
    /// A module whose service is running at `endpoint`: `host:port` or `http://host:port`. Nothing is connected yet.
    pub fn service(
        module: &PlannedModule,
        endpoint: &str,
        settings: GrpcSettings,
    ) -> Result<Self, LoadFailure> {
        let origin = Some(endpoint.to_owned());
        must_be_tool(module, origin.clone())?;
        let parsed = Endpoint::parse(endpoint).map_err(|error| {
            load_failure(module, origin, LoadReason::InvalidModuleMetadata, error.to_string())
        })?;
        let service = format!("the service `{parsed}`");
        let way = Way::Service(Connection::new(parsed, Arc::default()));
        Ok(Self::new(module, service, endpoint.to_owned(), settings, way))
    }

    /// A module in the folder `root` that is a program, built from the crate `name`. Nothing is started yet.
    pub fn sidecar(
        module: &PlannedModule,
        root: &Path,
        name: &str,
        settings: GrpcSettings,
        parts: SidecarParts,
    ) -> Result<Self, LoadFailure> {
        let origin = Some(root.display().to_string());
        must_be_tool(module, origin.clone())?;
        let failed = |error: ResolveError| load_failure(module, origin, error.reason(), error.to_string());
        let program = sidecar_program(root, name).map_err(failed)?;
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let service = format!("the program `{name}`");
        let way = Way::Program(Sidecar::new(program, real_root, parts, Arc::default()));
        Ok(Self::new(module, service, root.display().to_string(), settings, way))
    }

    fn new(
        module: &PlannedModule,
        service: String,
        origin: String,
        settings: GrpcSettings,
        way: Way,
    ) -> Self {
        let shared = Shared {
            module: module.id.clone(),
            service,
            origin,
            config: module.config.clone(),
            settings,
            way,
            mounted: AtomicU64::new(0),
            mounting: tokio::sync::Mutex::default(),
            known: Mutex::default(),
            feed: OnceLock::new(),
            is_watching: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A handle to the service, for whoever gives the module to a host and still wants to ask how it is.
    pub fn handle(&self) -> GrpcHandle {
        GrpcHandle { shared: Arc::clone(&self.shared) }
    }
}

/// A service whose module is in a host's hands.
#[derive(Clone)]
pub struct GrpcHandle {
    shared: Arc<Shared>,
}

impl GrpcHandle {
    /// How the service is: by gRPC's own health check, else by the module's, else by whether it can be reached.
    pub async fn health(&self) -> ServiceHealth {
        match self.shared.reach().await {
            Ok(live) => self.shared.health(&live).await,
            Err(failure) => ServiceHealth::Unreachable(failure.message),
        }
    }

    /// Tells the service that it is no longer needed, and ends a program that this host started. A call after that
    /// begins anew.
    pub async fn close(&self) {
        self.shared.close().await;
    }
}

fn must_be_tool(module: &PlannedModule, origin: Option<String>) -> Result<(), LoadFailure> {
    match module.kind {
        ModuleKind::Tool => Ok(()),
        ModuleKind::Hook => {
            let message = "hooks behind gRPC are not supported; a hook can be a Python or a Rust module";
            Err(load_failure(module, origin, LoadReason::ValidationFailed, message.to_owned()))
        }
    }
}

fn load_failure(
    module: &PlannedModule,
    origin: Option<String>,
    reason: LoadReason,
    message: String,
) -> LoadFailure {
    LoadFailure { module: module.id.clone(), kind: module.kind, origin, reason, message }
}

impl Shared {
    fn bounds(&self, time: Duration) -> Bounds {
        let GrpcSettings { request_bytes, response_bytes } = self.settings;
        Bounds { request_bytes, response_bytes, time }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, notice: SourceNotice) {
        if let Some(feed) = self.feed.get() {
            feed.notify(notice);
        }
    }

    /// A connection, whatever it takes.
    async fn reach(&self) -> Result<Live, ToolFailure> {
        match &self.way {
            Way::Service(connection) => connection.live().await.map_err(|error| {
                ToolFailure::of(ErrorClass::DependencyUnavailable, error.to_string())
                    .code("not_sent")
                    .hint("the service must be started; it is asked again at the next call")
                    .untouched()
            }),
            Way::Program(sidecar) => sidecar.live().await,
        }
    }

    /// A connection to a service that knows its configuration.
    async fn ready(&self) -> Result<Live, ToolFailure> {
        let live = self.reach().await?;
        if self.mounted.load(Ordering::Acquire) != live.number {
            self.mount(&live).await?;
        }
        Ok(live)
    }

    /// Mounts the service behind a new connection, once.
    async fn mount(&self, live: &Live) -> Result<(), ToolFailure> {
        let _turn = self.mounting.lock().await;
        if self.mounted.load(Ordering::Acquire) == live.number {
            return Ok(());
        }
        let config = self.config.iter().map(|(key, value)| (key.clone(), spelled(value))).collect();
        let request = MountRequest { config, module_id: self.module.as_str().to_owned() };
        let answer: Result<MountResponse, _> =
            live.ask(path::MOUNT, request, self.bounds(PATIENCE), None).await;
        match answer {
            Ok(answer) if answer.success => {}
            Ok(answer) => {
                let why = shortened(&answer.error);
                let message = format!("{} refuses to be mounted: {why}", self.service);
                return Err(ToolFailure::of(ErrorClass::SetupRequired, message)
                    .code("mount_refused")
                    .untouched());
            }
            // Most services have no lifecycle: Amplifier never asks a tool for it.
            Err(error) if error.status.code() == Code::Unimplemented => {
                if !self.config.is_empty() {
                    self.tell(SourceNotice::Log(format!(
                        "{} has no `ModuleLifecycle.Mount`, so the configuration of `{}` does not reach it",
                        self.service, self.module
                    )));
                }
            }
            Err(error) => return Err(status::failure(&error, &self.service).untouched()),
        }
        self.mounted.store(live.number, Ordering::Release);
        let seen = self.known().number;
        if seen != 0 && seen != live.number {
            // The service may be another version of itself.
            self.tell(SourceNotice::ToolsChanged);
        }
        Ok(())
    }

    /// Asks the service for its tool.
    async fn look(&self) -> Result<(), SourceProblem> {
        let live = self.ready().await.map_err(|failure| self.problem(&failure))?;
        let spec: Result<Spec, _> = live.ask(path::GET_SPEC, Empty {}, self.bounds(PATIENCE), None).await;
        let spec = spec.map_err(|error| self.problem(&status::failure(&error, &self.service)))?;
        let kind = match self.way {
            Way::Service(_) => ExecutionKind::HttpApi,
            Way::Program(_) => ExecutionKind::LocalProcess,
        };
        let declared = declare(&self.module, spec, kind).map_err(|error| {
            self.problem_of(LoadReason::ValidationFailed.as_str().to_owned(), error.to_string())
        })?;
        let problem = declared.broken_schema.map(|why| {
            let message = format!("the schema of its input is broken, and any object is taken: {why}");
            self.problem_of("broken_schema".to_owned(), message)
        });
        let mut known = self.known();
        known.declaration = Some(declared.declaration);
        known.number = live.number;
        known.problems = problem.into_iter().collect();
        Ok(())
    }

    fn problem(&self, failure: &ToolFailure) -> SourceProblem {
        let code = failure.code.as_deref().unwrap_or(failure.class.as_str()).to_owned();
        let hint = failure.hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        self.problem_of(code, format!("{}{hint}", failure.message))
    }

    fn problem_of(&self, code: String, message: String) -> SourceProblem {
        let part = self.module.as_str().to_owned();
        SourceProblem { part, origin: Some(self.origin.clone()), code, message }
    }

    async fn health(&self, live: &Live) -> ServiceHealth {
        let asked: Result<HealthResponse, _> =
            live.ask(path::HEALTH, HealthRequest::default(), self.bounds(PATIENCE), None).await;
        let (status, message) = match asked {
            Ok(answer) => (answer.status, String::new()),
            Err(error) if error.status.code() == Code::Unimplemented => {
                let asked: Result<ModuleHealth, _> =
                    live.ask(path::MODULE_HEALTH, Empty {}, self.bounds(PATIENCE), None).await;
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

    fn unwell(&self, error: &connection::RpcError) -> ServiceHealth {
        let failure = status::failure(error, &self.service);
        ServiceHealth::Unreachable(format!("{}: {}", wire_name(error.status.code()), failure.message))
    }

    async fn close(&self) {
        if self.mounted.swap(0, Ordering::AcqRel) != 0
            && let Way::Service(connection) = &self.way
            && let Ok(live) = connection.live().await
        {
            self.clean_up(&live).await;
        }
        if let Way::Program(sidecar) = &self.way {
            if let Some(live) = sidecar.open_now().await {
                self.clean_up(&live).await;
            }
            sidecar.stop().await;
        }
    }

    async fn clean_up(&self, live: &Live) {
        // Whether it could or not: it is no longer needed.
        let _: Result<Empty, _> = live.ask(path::CLEANUP, Empty {}, self.bounds(FAREWELL), None).await;
    }
}

/// A value of the configuration in a map of texts: a text as it is, anything else as JSON.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Asks a service that is not there again until it is, or until nobody wants it any more.
async fn watch(shared: Weak<Shared>) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.look().await.is_ok() {
            shared.is_watching.store(false, Ordering::Release);
            shared.tell(SourceNotice::ToolsChanged);
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Source for GrpcModule {
    fn name(&self) -> &str {
        self.shared.module.as_str()
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> Naming {
        Naming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(async {
            if let Err(problem) = self.shared.look().await {
                self.shared.known().problems = vec![problem];
                if !self.shared.is_watching.swap(true, Ordering::AcqRel) {
                    tokio::spawn(watch(Arc::downgrade(&self.shared)));
                }
            }
            // A tool that was there stays listed: its calls say that the service is gone.
            Ok(self.shared.known().declaration.clone().into_iter().collect())
        })
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.shared.known().problems.clone()
    }

    fn open<'a>(&'a self, _: &'a SessionScope) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let session: Arc<dyn SourceSession> = Arc::new(GrpcSession { shared: Arc::clone(&self.shared) });
        Box::pin(std::future::ready(Ok(session)))
    }

    fn connect(&self, feed: SourceFeed) {
        let _ = self.shared.feed.set(feed);
    }
}

/// A host that ends without [`GrpcHandle::close`] still says goodbye, where there is anything left to say it with.
impl Drop for GrpcModule {
    fn drop(&mut self) {
        if self.shared.mounted.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move { shared.close().await });
        }
    }
}
