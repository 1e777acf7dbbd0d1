//! The handlers of a session's modules, run one after another.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::Value;
use toolpost_model::{BoxFuture, HookStanding};

use super::{
    answer::{HookResult, UnfitAnswer},
    gathering::HookResultCollector,
};
use crate::{ModuleId, events};

/// A handler of events.
///
/// A function `async fn handle(event: String, data: Value) -> Result<HookResult, HookFailure>` is one.
pub trait HookHandler: Send + Sync + 'static {
    /// Handles an event.
    fn handle<'a>(
        &'a self,
        event: &'a str,
        data: &'a Value,
    ) -> BoxFuture<'a, Result<HookResult, HookFailure>>;
}

impl<F, Fut> HookHandler for F
where
    F: Fn(String, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<HookResult, HookFailure>> + Send + 'static,
{
    fn handle<'a>(
        &'a self,
        event: &'a str,
        data: &'a Value,
    ) -> BoxFuture<'a, Result<HookResult, HookFailure>> {
        Box::pin(self(event.to_owned(), data.clone()))
    }
}

/// The failure of a handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookFailure {
    /// The handler failed or timed out. Its standing decides the consequence.
    #[error("{0}")]
    Broke(String),
    /// The answer was malformed. It never passes, since it may have been meant as a denial.
    #[error(transparent)]
    Unfit(#[from] UnfitAnswer),
}

impl HookFailure {
    /// A failure with a message.
    pub fn broke(message: impl Into<String>) -> Self {
        Self::Broke(message.into())
    }
}

/// The handlers of a session's modules. A handle: clones are the same registry.
#[derive(Clone, Default)]
pub struct HookRegistry {
    shared: Arc<HookRegistryState>,
    module: Option<ModuleId>,
}

#[derive(Default)]
struct HookRegistryState {
    handlers: Mutex<Vec<RegisteredHandler>>,
    next: AtomicU64,
}

/// A registered handler.
#[derive(Clone)]
pub struct RegisteredHandler {
    id: u64,
    subscription: String,
    priority: i32,
    name: String,
    module: Option<ModuleId>,
    handler: Arc<dyn HookHandler>,
}

/// Removes a handler. If it is dropped, the handler stays for the session.
pub struct HookRegistration {
    shared: Arc<HookRegistryState>,
    id: u64,
}

impl HookRegistration {
    /// Removes the handler.
    pub fn unregister(self) {
        self.shared
            .handlers
            .lock()
            .retain(|handler| handler.id != self.id);
    }
}

impl HookRegistry {
    pub(crate) fn for_module(&self, module: &ModuleId) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            module: Some(module.clone()),
        }
    }

    /// Adds a handler for an event, for a family such as `tool:*`, or for all of them, `*`. Handlers run in the order
    /// of their priority numbers, and with the same number in the order of registration.
    pub fn register(
        &self,
        subscription: impl Into<String>,
        priority: i32,
        name: impl Into<String>,
        handler: impl HookHandler,
    ) -> HookRegistration {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let handler = RegisteredHandler {
            id,
            subscription: subscription.into(),
            priority,
            name: name.into(),
            module: self.module.clone(),
            handler: Arc::new(handler),
        };
        let mut handlers = self.shared.handlers.lock();
        let place = handlers.partition_point(|earlier| earlier.priority <= priority);
        handlers.insert(place, handler);
        drop(handlers);
        HookRegistration {
            shared: Arc::clone(&self.shared),
            id,
        }
    }

    /// The handlers for an event, in the order in which they run.
    pub fn handlers(&self, event: &str) -> Vec<RegisteredHandler> {
        let handlers = self.shared.handlers.lock();
        handlers
            .iter()
            .filter(|handler| events::matches(&handler.subscription, event))
            .cloned()
            .collect()
    }

    /// Whether an event has a handler.
    pub fn concerns(&self, event: &str) -> bool {
        self.shared
            .handlers
            .lock()
            .iter()
            .any(|handler| events::matches(&handler.subscription, event))
    }

    /// Sends an event to its handlers and combines their answers. For events that modules emit themselves: a handler
    /// that fails is skipped, as in Amplifier, and a malformed answer denies. Handlers have no time limit here;
    /// callers that ask about a call set one.
    pub async fn emit(&self, event: &str, data: Value) -> HookResult {
        let mut gathering = HookResultCollector::new(data);
        for handler in self.handlers(event) {
            match handler.ask(event, gathering.data()).await {
                Ok(answer) => gathering.heed(&handler.name, answer, event),
                Err(failure @ HookFailure::Broke(_)) => {
                    gathering.fail(&handler.name, HookStanding::Observer, &failure);
                }
                Err(failure @ HookFailure::Unfit(_)) => {
                    gathering.fail(&handler.name, HookStanding::Guard, &failure);
                }
            }
            if gathering.is_denied() {
                break;
            }
        }
        gathering.finish()
    }

    pub(crate) fn has_own(&self) -> bool {
        self.shared
            .handlers
            .lock()
            .iter()
            .any(|handler| handler.module == self.module)
    }

    pub(crate) fn withdraw(&self) {
        self.shared
            .handlers
            .lock()
            .retain(|handler| handler.module != self.module);
    }
}

impl RegisteredHandler {
    /// The name of its registration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module it belongs to.
    pub fn module(&self) -> Option<&ModuleId> {
        self.module.as_ref()
    }

    /// Runs it. The caller enforces the time limit.
    pub async fn ask(&self, event: &str, data: &Value) -> Result<HookResult, HookFailure> {
        self.handler.handle(event, data).await
    }
}

impl fmt::Debug for RegisteredHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("name", &self.name)
            .field("subscription", &self.subscription)
            .field("priority", &self.priority)
            .field("module", &self.module)
            .finish_non_exhaustive()
    }
}
