//! Tools behind gRPC services: Amplifier's `ToolService`, one tool per endpoint.
//!
//! The host asks the service for its tool when it lists tools, mounts it before its first use, and mounts it again on
//! each new connection, since the process behind it may be a new one. An unreachable service is polled in the
//! background with growing pauses, and its tool appears once it answers.

mod connection;
mod declaration;
mod endpoint;
mod message;
mod outcome;
mod remote;
mod session;
mod sidecar;
mod status;

use std::{path::Path, sync::Arc};

use toolpost_amplifier::{LoadFailure, LoadReason, ModuleKind, PlannedModule};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, Provenance, SessionScope, Source, SourceError,
    SourceFeed, SourceProblem, SourceSession, WireNaming,
};

use self::{
    connection::GrpcChannel,
    endpoint::GrpcEndpoint,
    remote::{GrpcService, GrpcServiceRoute},
    session::GrpcSession,
    sidecar::GrpcSidecar,
};
use super::resolve::{ResolveError, sidecar_program};
pub use sidecar::SidecarParts;

/// Limits and metadata for the calls of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcSettings {
    /// The largest request message, in bytes.
    pub request_bytes: usize,
    /// The largest response message, in bytes.
    pub response_bytes: usize,
}

impl Default for GrpcSettings {
    fn default() -> Self {
        Self {
            request_bytes: 4 << 20,
            response_bytes: 16 << 20,
        }
    }
}

/// The health of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceHealth {
    /// The service reports that it serves.
    Serving,
    /// It is connected, and has no health check.
    Connected,
    /// The service reports that it does not serve, with the reason if it gives one.
    NotServing(String),
    /// It cannot be reached or does not answer, with the reason.
    Unreachable(String),
}

/// A module behind gRPC, as a source of its one tool.
pub struct GrpcModule {
    service: Arc<GrpcService>,
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
        let parsed = GrpcEndpoint::parse(endpoint).map_err(|error| {
            load_failure(
                module,
                origin,
                LoadReason::InvalidModuleMetadata,
                error.to_string(),
            )
        })?;
        let label = format!("the service `{parsed}`");
        let way = GrpcServiceRoute::Service(GrpcChannel::new(parsed, Arc::default()));
        Ok(Self {
            service: Arc::new(GrpcService::new(
                module,
                label,
                endpoint.to_owned(),
                settings,
                way,
            )),
        })
    }

    /// A module in the folder `root` that is a program, built from the crate `name`. The program is not started yet.
    pub fn sidecar(
        module: &PlannedModule,
        root: &Path,
        name: &str,
        settings: GrpcSettings,
        parts: SidecarParts,
    ) -> Result<Self, LoadFailure> {
        let origin = Some(root.display().to_string());
        must_be_tool(module, origin.clone())?;
        let failed =
            |error: ResolveError| load_failure(module, origin, error.reason(), error.to_string());
        let program = sidecar_program(root, name).map_err(failed)?;
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let label = format!("the program `{name}`");
        let way =
            GrpcServiceRoute::Program(GrpcSidecar::new(program, real_root, parts, Arc::default()));
        let origin = root.display().to_string();
        Ok(Self {
            service: Arc::new(GrpcService::new(module, label, origin, settings, way)),
        })
    }

    /// A handle for the health of the service after the module was given to a host.
    pub fn handle(&self) -> GrpcHandle {
        GrpcHandle {
            service: Arc::clone(&self.service),
        }
    }
}

/// A handle to a service that a host runs.
#[derive(Clone)]
pub struct GrpcHandle {
    service: Arc<GrpcService>,
}

impl GrpcHandle {
    /// The health of the service: by gRPC's own health check, else by the module's, else by a connection attempt.
    pub async fn health(&self) -> ServiceHealth {
        match self.service.reach().await {
            Ok(live) => self.service.health(&live).await,
            Err(failure) => ServiceHealth::Unreachable(failure.message),
        }
    }

    /// As [`Source::close`], for callers that need the service no longer while its host goes on. A later call mounts
    /// it again.
    pub async fn close(&self) {
        self.service.close().await;
    }
}

fn must_be_tool(module: &PlannedModule, origin: Option<String>) -> Result<(), LoadFailure> {
    match module.kind {
        ModuleKind::Tool => Ok(()),
        ModuleKind::Hook => {
            let message =
                "hooks over gRPC are not supported; a hook can be a Python or a Rust module";
            Err(load_failure(
                module,
                origin,
                LoadReason::ValidationFailed,
                message.to_owned(),
            ))
        }
    }
}

fn load_failure(
    module: &PlannedModule,
    origin: Option<String>,
    reason: LoadReason,
    message: String,
) -> LoadFailure {
    LoadFailure {
        module: module.id.clone(),
        kind: module.kind,
        origin,
        reason,
        message,
    }
}

impl Source for GrpcModule {
    fn name(&self) -> &str {
        self.service.module.as_str()
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn provenance(&self) -> Provenance {
        Provenance::MountPlan
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(async { Ok(self.service.tool().await.into_iter().collect()) })
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.service.problems()
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let session: Arc<dyn SourceSession> = Arc::new(GrpcSession {
            service: Arc::clone(&self.service),
        });
        Box::pin(std::future::ready(Ok(session)))
    }

    fn connect(&self, feed: SourceFeed) {
        self.service.listen(feed);
    }

    /// Cleans the service up, and ends a program that this host started.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.service.close())
    }
}

/// A host that ends without a shutdown still sends the cleanup request if its runtime is alive.
impl Drop for GrpcModule {
    fn drop(&mut self) {
        if !self.service.is_mounted() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let service = Arc::clone(&self.service);
            runtime.spawn(async move { service.close().await });
        }
    }
}
