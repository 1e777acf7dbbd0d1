//! The handlers of a session's modules, and asking them one after another.

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

/// Looks at events.
///
/// A function `async fn handle(event: String, data: Value) -> Result<HookResult, HookFailure>` is one.
pub trait HookHandler: Send + Sync + 'static {
    /// Looks at one.
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

/// How a handler failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookFailure {
    /// It broke, or did not answer in time. What that means is decided by its standing.
    #[error("{0}")]
    Broke(String),
    /// It answered nonsense. That is never let pass: it may have wanted to say no.
    #[error(transparent)]
    Unfit(#[from] UnfitAnswer),
}

impl HookFailure {
    /// It broke.
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

/// A handler among the others.
#[derive(Clone)]
pub struct RegisteredHandler {
    id: u64,
    subscription: String,
    priority: i32,
    name: String,
    module: Option<ModuleId>,
    handler: Arc<dyn HookHandler>,
}

/// Takes a handler out again. Without it the handler stays for the session.
pub struct HookRegistration {
    shared: Arc<HookRegistryState>,
    id: u64,
}

impl HookRegistration {
    /// Takes it out.
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

    /// Adds a handler for an event, for a family such as `tool:*`, or for all of them, `*`. Those with the lower priority
    /// number are asked first, and of two with the same one the one that was added first.
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

    /// The handlers that an event concerns, in the order in which they are asked.
    pub fn handlers(&self, event: &str) -> Vec<RegisteredHandler> {
        let handlers = self.shared.handlers.lock();
        handlers
            .iter()
            .filter(|handler| events::matches(&handler.subscription, event))
            .cloned()
            .collect()
    }

    /// Whether an event concerns anybody.
    pub fn concerns(&self, event: &str) -> bool {
        self.shared
            .handlers
            .lock()
            .iter()
            .any(|handler| events::matches(&handler.subscription, event))
    }

    /// Tells an event to whom it concerns, and gathers what they say. For events that modules emit themselves: a handler
    /// that breaks is passed over, as it is in Amplifier, and one that answers nonsense denies. No handler has a time
    /// limit here; whoever asks about a call sets one.
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
    /// The name it was registered under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module it belongs to.
    pub fn module(&self) -> Option<&ModuleId> {
        self.module.as_ref()
    }

    /// Asks it. The time it may take is its caller's business.
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
