//! One instance: its start, its configuration, its tools, and its calls.

use tokio::sync::OwnedSemaphorePermit;
use toolpost_model::TraceContext;
use wasmtime::{
    Store,
    component::{ComponentType, Instance, InstancePre, Lift},
};

use crate::{
    component::{ComponentOffer, HookFunctions, ToolExports},
    engine::WasmModules,
    failure::InstanceFault,
    guest::{GuestContext, GuestStopCondition},
    settings::WasmSettings,
    supervision::watched,
};

type WitBytes = (Vec<u8>,);
type ExecuteReturn = (Result<Vec<u8>, String>,);

/// Everything that an instance of this module is made from.
pub(crate) struct InstanceTemplate<F = ToolExports> {
    pub(crate) modules: WasmModules,
    pub(crate) pre: InstancePre<GuestContext>,
    pub(crate) offer: ComponentOffer<F>,
    pub(crate) settings: WasmSettings,
    /// The configuration as JSON. `None`: the component takes none.
    pub(crate) config: Option<Vec<u8>>,
}

/// An event that a hook subscribes to.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(crate) struct EventSubscription {
    pub(crate) event: String,
    pub(crate) priority: i32,
    pub(crate) name: String,
}

pub(crate) struct ComponentInstance {
    store: Store<GuestContext>,
    instance: Instance,
    /// Released when the instance is dropped.
    _place: OwnedSemaphorePermit,
}

impl ComponentInstance {
    /// Creates an instance and configures it. `span` is the span of the call, if the instance is for one call only.
    pub(crate) async fn start<F>(
        prepared: &InstanceTemplate<F>,
        watch: &GuestStopCondition,
        place: OwnedSemaphorePermit,
        span: Option<&TraceContext>,
    ) -> Result<Self, InstanceFault> {
        let engine = prepared.modules.engine();
        let mut store = GuestContext::store(engine, &prepared.settings, watch.clone(), span)
            .map_err(InstanceFault::outside)?;
        let output = store.data().output.clone();
        let _ticking = prepared.modules.ticking();
        let made = watched(
            prepared.pre.instantiate_async(&mut store),
            watch,
            Some(&output),
        )
        .await?;
        let instance = match made {
            Ok(instance) => instance,
            Err(error) => return Err(InstanceFault::inside(&error, &mut store)),
        };
        let mut live = Self {
            store,
            instance,
            _place: place,
        };
        if let (Some(at), Some(config)) = (&prepared.offer.configure, &prepared.config) {
            let configure = instance
                .get_typed_func::<(&[u8],), (Result<(), String>,)>(&mut live.store, at)
                .map_err(|error| InstanceFault::Misfit {
                    function: "configure",
                    error,
                })?;
            let work = configure.call_async(&mut live.store, (config.as_slice(),));
            let answered = watched(work, watch, Some(&output)).await?;
            live.heard(answered)?
                .0
                .map_err(InstanceFault::Configuration)?;
        }
        Ok(live)
    }

    /// The component's specs as JSON: one spec or a list.
    pub(crate) async fn specs(
        &mut self,
        prepared: &InstanceTemplate,
        watch: &GuestStopCondition,
    ) -> Result<Vec<u8>, InstanceFault> {
        let (at, function) = match &prepared.offer.functions {
            ToolExports::One { get_spec, .. } => (get_spec, "get-spec"),
            ToolExports::Several { get_specs, .. } => (get_specs, "get-specs"),
        };
        let specs = self
            .instance
            .get_typed_func::<(), WitBytes>(&mut self.store, at);
        let specs = specs.map_err(|error| InstanceFault::Misfit { function, error })?;
        let _ticking = prepared.modules.ticking();
        let output = self.store.data().output.clone();
        let answered = watched(specs.call_async(&mut self.store, ()), watch, Some(&output)).await?;
        Ok(self.heard(answered)?.0)
    }

    /// Checks the types of the functions that calls will use.
    pub(crate) fn check(&mut self, prepared: &InstanceTemplate) -> Result<(), InstanceFault> {
        let (function, checked) = match &prepared.offer.functions {
            ToolExports::One { execute, .. } => {
                let found = self
                    .instance
                    .get_typed_func::<(&[u8],), ExecuteReturn>(&mut self.store, execute);
                ("execute", found.map(|_| ()))
            }
            ToolExports::Several { execute_tool, .. } => {
                let found = self
                    .instance
                    .get_typed_func::<(&str, &[u8]), ExecuteReturn>(&mut self.store, execute_tool);
                ("execute-tool", found.map(|_| ()))
            }
        };
        checked.map_err(|error| InstanceFault::Misfit { function, error })
    }

    /// Prepares an instance of earlier calls for a new call.
    pub(crate) fn renew(&mut self, watch: &GuestStopCondition) {
        let guest = self.store.data_mut();
        guest.watch = watch.clone();
        guest.limits.take_refused();
        guest.output.begin(watch.context.clone());
        self.store.set_epoch_deadline(1);
    }

    /// Runs a tool. After a fault the instance must not be used again.
    pub(crate) async fn run(
        &mut self,
        prepared: &InstanceTemplate,
        tool: &str,
        input: &[u8],
        watch: &GuestStopCondition,
    ) -> Result<Result<Vec<u8>, String>, InstanceFault> {
        let _ticking = prepared.modules.ticking();
        let output = self.store.data().output.clone();
        let answered = match &prepared.offer.functions {
            ToolExports::One { execute, .. } => {
                let run = self
                    .instance
                    .get_typed_func::<(&[u8],), ExecuteReturn>(&mut self.store, execute);
                let run = run.map_err(|error| InstanceFault::Misfit {
                    function: "execute",
                    error,
                })?;
                watched(
                    run.call_async(&mut self.store, (input,)),
                    watch,
                    Some(&output),
                )
                .await?
            }
            ToolExports::Several { execute_tool, .. } => {
                let run = self
                    .instance
                    .get_typed_func::<(&str, &[u8]), ExecuteReturn>(&mut self.store, execute_tool);
                let run = run.map_err(|error| InstanceFault::Misfit {
                    function: "execute-tool",
                    error,
                })?;
                watched(
                    run.call_async(&mut self.store, (tool, input)),
                    watch,
                    Some(&output),
                )
                .await?
            }
        };
        let answer = self.heard(answered)?.0;
        output.finish();
        Ok(answer)
    }

    /// The events that a hook with this configuration subscribes to.
    pub(crate) async fn subscriptions(
        &mut self,
        prepared: &InstanceTemplate<HookFunctions>,
        config: &[u8],
        watch: &GuestStopCondition,
    ) -> Result<Vec<EventSubscription>, InstanceFault> {
        let HookFunctions {
            handle,
            get_subscriptions,
        } = &prepared.offer.functions;
        let checked = self
            .instance
            .get_typed_func::<(&[u8],), ExecuteReturn>(&mut self.store, handle);
        checked.map_err(|error| InstanceFault::Misfit {
            function: "handle",
            error,
        })?;
        let asked = self
            .instance
            .get_typed_func::<(&[u8],), (Vec<EventSubscription>,)>(
                &mut self.store,
                get_subscriptions,
            )
            .map_err(|error| InstanceFault::Misfit {
                function: "get-subscriptions",
                error,
            })?;
        let _ticking = prepared.modules.ticking();
        let output = self.store.data().output.clone();
        let answered = watched(
            asked.call_async(&mut self.store, (config,)),
            watch,
            Some(&output),
        )
        .await?;
        Ok(self.heard(answered)?.0)
    }

    /// Sends an event to a hook.
    pub(crate) async fn handle(
        &mut self,
        prepared: &InstanceTemplate<HookFunctions>,
        event: &[u8],
        watch: &GuestStopCondition,
    ) -> Result<Result<Vec<u8>, String>, InstanceFault> {
        let at = &prepared.offer.functions.handle;
        let handle = self
            .instance
            .get_typed_func::<(&[u8],), ExecuteReturn>(&mut self.store, at);
        let handle = handle.map_err(|error| InstanceFault::Misfit {
            function: "handle",
            error,
        })?;
        let _ticking = prepared.modules.ticking();
        let output = self.store.data().output.clone();
        let answered = watched(
            handle.call_async(&mut self.store, (event,)),
            watch,
            Some(&output),
        )
        .await?;
        Ok(self.heard(answered)?.0)
    }

    fn heard<T>(&mut self, answered: wasmtime::Result<T>) -> Result<T, InstanceFault> {
        answered.map_err(|error| InstanceFault::inside(&error, &mut self.store))
    }
}
