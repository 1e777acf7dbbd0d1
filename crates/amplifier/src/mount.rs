//! Mounting: what a module is, and what comes of mounting it.

use std::{future::Future, sync::Arc};

use serde_json::{Map, Value};
use toolpost_model::BoxFuture;

use crate::{Coordinator, LoadFailure, LoadReason, ModuleId, ModuleKind, Tool};

/// What brings tools and hook handlers.
///
/// A function `async fn mount(coordinator, config) -> Result<MountReturn, MountError>` is one.
pub trait Module: Send + Sync + 'static {
    /// Mounts what it has. Called once for each session.
    fn mount(
        &self,
        coordinator: Coordinator,
        config: Map<String, Value>,
    ) -> BoxFuture<'_, Result<MountReturn, MountError>>;

    /// All modules of the session are mounted.
    fn on_session_ready(&self, coordinator: Coordinator) -> BoxFuture<'_, Result<(), MountError>> {
        drop(coordinator);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl<F, Fut> Module for F
where
    F: Fn(Coordinator, Map<String, Value>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<MountReturn, MountError>> + Send + 'static,
{
    fn mount(
        &self,
        coordinator: Coordinator,
        config: Map<String, Value>,
    ) -> BoxFuture<'_, Result<MountReturn, MountError>> {
        Box::pin(self(coordinator, config))
    }
}

/// Called once, at the end of a session.
pub type MountCleanup = Box<dyn FnOnce() -> BoxFuture<'static, Result<(), MountError>> + Send>;

/// What mounting returns. Tools that it mounted itself need not be returned.
#[derive(Default)]
pub enum MountReturn {
    /// A tool, mounted or not: one that is not will be.
    Tool(Arc<dyn Tool>),
    /// What to do at the end of the session.
    Cleanup(MountCleanup),
    /// Nothing.
    #[default]
    Nothing,
}

impl MountReturn {
    /// A tool.
    pub fn tool(tool: impl Tool) -> Self {
        Self::Tool(Arc::new(tool))
    }

    /// What to do at the end of the session.
    pub fn cleanup<F, Fut>(cleanup: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), MountError>> + Send + 'static,
    {
        Self::Cleanup(Box::new(move || Box::pin(cleanup())))
    }
}

/// Why something cannot be mounted, or cleaned up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// A tool without a name.
    #[error("a tool needs a name")]
    NameRequired,
    /// Another tool has the name. Amplifier would put the second in the place of the first, and nobody would know.
    #[error("the tool name `{name}` is taken{}", .by.as_ref().map(|by| format!(" by the module `{by}`")).unwrap_or_default())]
    NameTaken {
        /// The name.
        name: String,
        /// Whose tool has it.
        by: Option<ModuleId>,
    },
    /// What the module says.
    #[error("{0}")]
    Other(String),
}

impl MountError {
    /// In the module's own words.
    pub fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }
}

/// What became of a module that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountState {
    /// It brought tools or handlers.
    Mounted,
    /// It returned nothing and brought nothing, which is its own decision.
    Declined,
}

/// Mounts one module for a session, and makes the best of what it returns: a tool that was not mounted is mounted, a
/// cleanup is kept for the end. A module that fails leaves nothing mounted. One that returns nothing and brings nothing
/// has declined.
pub async fn mount(
    coordinator: &Coordinator,
    kind: ModuleKind,
    id: &ModuleId,
    module: &dyn Module,
    config: Map<String, Value>,
) -> Result<MountState, LoadFailure> {
    let own = coordinator.for_module(id);
    let returned = module.mount(own.clone(), config).await;
    let is_nothing = matches!(returned, Ok(MountReturn::Nothing));
    let mounted = match returned {
        Ok(MountReturn::Tool(tool)) => take(&own, tool),
        Ok(MountReturn::Cleanup(cleanup)) => {
            own.keep_cleanup(cleanup);
            Ok(())
        }
        Ok(MountReturn::Nothing) => Ok(()),
        Err(error) => Err(error),
    };
    let (reason, message) = match mounted {
        Ok(()) if own.has_brought() => return Ok(MountState::Mounted),
        Ok(()) if is_nothing => {
            own.withdraw().await;
            return Ok(MountState::Declined);
        }
        Ok(()) => {
            let what = match kind {
                ModuleKind::Tool => "no tool",
                ModuleKind::Hook => "no hook handler",
            };
            (
                LoadReason::ValidationFailed,
                format!("it was mounted and brought {what}"),
            )
        }
        Err(error @ (MountError::NameRequired | MountError::NameTaken { .. })) => {
            (LoadReason::ValidationFailed, error.to_string())
        }
        Err(error @ MountError::Other(_)) => (LoadReason::Unknown, error.to_string()),
    };
    own.withdraw().await;
    Err(LoadFailure {
        module: id.clone(),
        kind,
        origin: None,
        reason,
        message,
    })
}

fn take(coordinator: &Coordinator, tool: Arc<dyn Tool>) -> Result<(), MountError> {
    match coordinator.has_mounted(&tool) {
        true => Ok(()),
        false => coordinator.mount(tool),
    }
}
