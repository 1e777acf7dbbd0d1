//! A loaded component as a hook. It lists the events that it subscribes to, and each event is sent to an instance of
//! its own.

use std::{sync::Arc, time::Instant};

use serde_json::{Map, Value, json};
use toolpost_amplifier::{
    Coordinator, HookFailure, HookHandler, HookResult, Module, MountError, MountReturn, UnfitAnswer,
};
use toolpost_model::BoxFuture;

use crate::{
    component::HookFunctions,
    guest::GuestStopCondition,
    live::{ComponentInstance, EventSubscription, InstanceTemplate},
    supervision::watched,
};

/// Events that one hook subscribes to.
const MOST_SUBSCRIPTIONS: usize = 256;
/// The longest name of an event or a handler, in bytes.
const LONGEST_NAME: usize = 200;

/// A component that observes events, ready to be mounted.
pub struct WasmHook {
    prepared: Arc<InstanceTemplate<HookFunctions>>,
    subscriptions: Vec<EventSubscription>,
}

impl WasmHook {
    /// A hook that lists no events receives all of them, as in Amplifier.
    pub(crate) fn new(
        prepared: InstanceTemplate<HookFunctions>,
        mut subscriptions: Vec<EventSubscription>,
    ) -> Result<Self, String> {
        if subscriptions.len() > MOST_SUBSCRIPTIONS {
            let count = subscriptions.len();
            return Err(format!(
                "it subscribes to {count} events, the limit is {MOST_SUBSCRIPTIONS}"
            ));
        }
        let is_long = |text: &str| text.len() > LONGEST_NAME;
        if subscriptions
            .iter()
            .any(|each| is_long(&each.event) || is_long(&each.name))
        {
            return Err(format!(
                "it subscribes with a name of more than {LONGEST_NAME} bytes"
            ));
        }
        if subscriptions.is_empty() {
            let event = "*".to_owned();
            let name = "all".to_owned();
            subscriptions.push(EventSubscription {
                event,
                priority: 0,
                name,
            });
        }
        Ok(Self {
            prepared: Arc::new(prepared),
            subscriptions,
        })
    }

    /// The events that the hook subscribes to, also as families such as `tool:*`.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.subscriptions
            .iter()
            .map(|subscription| subscription.event.as_str())
    }
}

impl Module for WasmHook {
    fn mount(
        &self,
        coordinator: Coordinator,
        _: Map<String, Value>,
    ) -> BoxFuture<'_, Result<MountReturn, MountError>> {
        for EventSubscription {
            event,
            priority,
            name,
        } in &self.subscriptions
        {
            let handler = ComponentHandler(Arc::clone(&self.prepared));
            coordinator
                .hooks()
                .register(event.as_str(), *priority, name.as_str(), handler);
        }
        Box::pin(std::future::ready(Ok(MountReturn::Nothing)))
    }
}

struct ComponentHandler(Arc<InstanceTemplate<HookFunctions>>);

impl ComponentHandler {
    async fn ask(&self, event: &str, data: &Value) -> Result<HookResult, HookFailure> {
        let prepared = &*self.0;
        let watch = GuestStopCondition {
            deadline: Instant::now() + prepared.settings.event_time,
            context: None,
        };
        let shown = json!({ "event": event, "data": data }).to_string();
        let place = watched(prepared.modules.place(), &watch, None).await;
        let Ok(Some(place)) = place else {
            return Err(HookFailure::broke(
                "too many components run at the same time",
            ));
        };
        let broke = |fault: crate::failure::InstanceFault| HookFailure::Broke(fault.told());
        let mut live = ComponentInstance::start(prepared, &watch, place, None)
            .await
            .map_err(broke)?;
        let answer = live
            .handle(prepared, shown.as_bytes(), &watch)
            .await
            .map_err(broke)?;
        let answer = answer.map_err(HookFailure::Broke)?;
        let answer: Value = serde_json::from_slice(&answer)
            .map_err(|error| UnfitAnswer(format!("it is not JSON: {error}")))?;
        Ok(HookResult::read(&answer)?)
    }
}

impl HookHandler for ComponentHandler {
    fn handle<'a>(
        &'a self,
        event: &'a str,
        data: &'a Value,
    ) -> BoxFuture<'a, Result<HookResult, HookFailure>> {
        Box::pin(self.ask(event, data))
    }
}
