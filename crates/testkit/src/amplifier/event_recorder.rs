//! A handler that keeps all events.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolpost_amplifier::{HookFailure, HookHandler, HookRegistry, HookResult};
use toolpost_model::BoxFuture;

/// A handler that lets every event pass and keeps it. Clones share their events.
#[derive(Clone, Debug, Default)]
pub struct EventRecorder(Arc<Mutex<Vec<(String, Value)>>>);

impl EventRecorder {
    /// Subscribes to every event of a registry, after the other handlers.
    pub fn listen(&self, hooks: &HookRegistry) {
        hooks.register("*", i32::MAX, "event-recorder", self.clone());
    }

    /// All events, in order.
    pub fn events(&self) -> Vec<(String, Value)> {
        self.0.lock().clone()
    }

    /// The names of all events, in order.
    pub fn names(&self) -> Vec<String> {
        self.0
            .lock()
            .iter()
            .map(|(event, _)| event.clone())
            .collect()
    }

    /// The data of one kind of event, in order.
    pub fn of(&self, event: &str) -> Vec<Value> {
        self.0
            .lock()
            .iter()
            .filter(|(name, _)| name == event)
            .map(|(_, data)| data.clone())
            .collect()
    }

    /// Drops all events.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

impl HookHandler for EventRecorder {
    fn handle<'a>(
        &'a self,
        event: &'a str,
        data: &'a Value,
    ) -> BoxFuture<'a, Result<HookResult, HookFailure>> {
        self.0.lock().push((event.to_owned(), data.clone()));
        Box::pin(std::future::ready(Ok(HookResult::proceed())))
    }
}
