//! Mounting: the trait of a module, and the results of a mount.

use std::{future::Future, sync::Arc};

use serde_json::{Map, Value};
use toolpost_model::BoxFuture;

use crate::{Coordinator, LoadFailure, LoadReason, ModuleId, ModuleKind, Tool};

/// A provider of tools and hook handlers.
///
/// A function `async fn mount(coordinator, config) -> Result<MountReturn, MountError>` is one.
pub trait Module: Send + Sync + 'static {
    /// Mounts its tools and handlers. Called once per session.
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

/// The return value of a mount. Tools that the module mounted itself need not be returned.
#[derive(Default)]
pub enum MountReturn {
    /// A tool. It is mounted unless the module has mounted it.
    Tool(Arc<dyn Tool>),
    /// A cleanup for the end of the session.
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

    /// A cleanup for the end of the session.
    pub fn cleanup<F, Fut>(cleanup: F) -> Self
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), MountError>> + Send + 'static,
    {
        Self::Cleanup(Box::new(move || Box::pin(cleanup())))
    }
}

/// The failure of a mount or a cleanup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// A tool without a name.
    #[error("a tool needs a name")]
    NameRequired,
    /// Another tool has the name. Amplifier would silently replace the first tool by the second.
    #[error("the tool name `{name}` is taken{}", .by.as_ref().map(|by| format!(" by the module `{by}`")).unwrap_or_default())]
    NameTaken {
        /// The name.
        name: String,
        /// The module of the other tool.
        by: Option<ModuleId>,
    },
    /// The module's own error.
    #[error("{0}")]
    Other(String),
}

impl MountError {
    /// The module's own error.
    pub fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }
}

/// The state of a module that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountState {
    /// It mounted tools or handlers.
    Mounted,
    /// It returned nothing and mounted nothing, by its own choice.
    Declined,
}

/// Mounts one module for a session and handles its return value: a tool that is not mounted yet is mounted, a cleanup
/// is kept for the end. A module that fails leaves nothing mounted. A module that returns nothing and mounts nothing
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
            let lack = match kind {
                ModuleKind::Tool => "no tool",
                ModuleKind::Hook => "no hook handler",
            };
            (LoadReason::ValidationFailed, format!("it mounted {lack}"))
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
