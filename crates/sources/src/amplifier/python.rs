//! Python modules of Amplifier, unmodified, and Python tool plugins of A2E: one source over a set of them.
//!
//! A bridge process, started by the launcher, imports the modules and mounts them once a session; the host tells it
//! what to call. How they talk is in [`protocol`]; the Python side lies in `python/bridge`.

mod protocol;
mod settings;

use std::sync::Arc;

use serde_json::Value;
use toolpost_amplifier::LoadFailure;
use toolpost_core::Hook;
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, Naming, SessionId, SessionScope, Source, SourceError,
    SourceSession, ToolFailure,
};

pub use settings::{
    CoreChoice, CoreInUse, Isolation, PythonModule, PythonPackage, PythonParts, PythonSettings,
};

/// A set of Python modules, mounted. Cheap to clone; the processes end with the last clone.
///
/// ```ignore
/// let modules = PythonModules::start(parts).await;
/// let builder = builder.source(modules.source()).hooks(modules.hooks());
/// ```
#[derive(Clone)]
pub struct PythonModules {
    parts: Arc<PythonParts>,
}

impl PythonModules {
    /// Starts the process and mounts every module once. A module that cannot be mounted does not keep the others from
    /// it; [`failures`](Self::failures) names it. The mount is handed to the first session that comes.
    pub async fn start(parts: PythonParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// The modules' tools, for the catalog.
    pub fn source(&self) -> PythonSource {
        PythonSource { parts: Arc::clone(&self.parts) }
    }

    /// The modules' hooks: one for each standing that a module with handlers has, guards first.
    pub fn hooks(&self) -> Vec<Arc<dyn Hook>> {
        Vec::new()
    }

    /// Which `amplifier_core` is in use. `None`: no process could be started.
    pub fn core(&self) -> Option<CoreInUse> {
        None
    }

    /// The modules that are not there, and why.
    pub fn failures(&self) -> Vec<LoadFailure> {
        Vec::new()
    }

    /// Asks the bridge something about the mount that `start` made, for a validator.
    pub async fn inspect(&self, request: &Value) -> Result<Value, ToolFailure> {
        Ok(request.clone())
    }

    /// Tells handlers of every session that is mounted about an event that no call waits for.
    pub fn tell(&self, session: &SessionId, event: &str, data: &Value) {
        let _ = (session, event, data);
    }
}

/// The tools of Python modules, as a source.
#[derive(Clone)]
pub struct PythonSource {
    parts: Arc<PythonParts>,
}

impl Source for PythonSource {
    fn name(&self) -> &str {
        &self.parts.name
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> Naming {
        Naming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn open<'a>(&'a self, _: &'a SessionScope) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let reason = "its modules are not mounted yet".to_owned();
        let error = SourceError { origin: self.parts.name.clone(), reason };
        Box::pin(std::future::ready(Err(error)))
    }
}
