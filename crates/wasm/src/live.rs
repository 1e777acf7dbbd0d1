//! One instance: made, configured, asked for its tools, and called.

use tokio::sync::OwnedSemaphorePermit;
use toolpost_model::TraceContext;
use wasmtime::{
    Store,
    component::{ComponentType, Instance, InstancePre, Lift},
};

use crate::{
    component::{HookFunctions, Offer, Tools},
    engine::WasmModules,
    failure::Fault,
    guest::{Guest, Watch},
    settings::WasmSettings,
    supervision::watched,
};

type Bytes = (Vec<u8>,);
type Answer = (Result<Vec<u8>, String>,);

/// All that is needed to make instances of a module with these functions.
pub(crate) struct Prepared<F = Tools> {
    pub(crate) modules: WasmModules,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) offer: Offer<F>,
    pub(crate) settings: WasmSettings,
    /// The configuration as JSON. `None`: the component takes none.
    pub(crate) config: Option<Vec<u8>>,
}

/// An event that a hook wants to look at.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(crate) struct EventSubscription {
    pub(crate) event: String,
    pub(crate) priority: i32,
    pub(crate) name: String,
}

/// An instance with its store.
pub(crate) struct Live {
    store: Store<Guest>,
    instance: Instance,
    /// Given back when the instance is gone.
    _place: OwnedSemaphorePermit,
}

impl Live {
    /// Makes an instance and configures it. `span`: of the call, where it is the only one that the instance is for.
    pub(crate) async fn start<F>(
        prepared: &Prepared<F>,
        watch: &Watch,
        place: OwnedSemaphorePermit,
        span: Option<&TraceContext>,
    ) -> Result<Self, Fault> {
        let engine = prepared.modules.engine();
        let mut store = Guest::store(engine, &prepared.settings, watch.clone(), span)
            .map_err(Fault::outside)?;
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
            Err(error) => return Err(Fault::inside(&error, &mut store)),
        };
        let mut live = Self {
            store,
            instance,
            _place: place,
        };
        if let (Some(at), Some(config)) = (&prepared.offer.configure, &prepared.config) {
            let configure = instance
                .get_typed_func::<(&[u8],), (Result<(), String>,)>(&mut live.store, at)
                .map_err(|error| Fault::Misfit {
                    function: "configure",
                    error,
                })?;
            let work = configure.call_async(&mut live.store, (config.as_slice(),));
            let answered = watched(work, watch, Some(&output)).await?;
            live.heard(answered)?.0.map_err(Fault::Configuration)?;
        }
        Ok(live)
    }

    /// What the component says of its tools: JSON, one spec or a list of them.
    pub(crate) async fn specs(
        &mut self,
        prepared: &Prepared,
        watch: &Watch,
    ) -> Result<Vec<u8>, Fault> {
        let (at, function) = match &prepared.offer.functions {
            Tools::One { get_spec, .. } => (get_spec, "get-spec"),
            Tools::Several { get_specs, .. } => (get_specs, "get-specs"),
        };
        let specs = self
            .instance
            .get_typed_func::<(), Bytes>(&mut self.store, at);
        let specs = specs.map_err(|error| Fault::Misfit { function, error })?;
        let _ticking = prepared.modules.ticking();
        let output = self.store.data().output.clone();
        let answered = watched(specs.call_async(&mut self.store, ()), watch, Some(&output)).await?;
        Ok(self.heard(answered)?.0)
    }

    /// Whether the functions that calls will need have the right types.
    pub(crate) fn check(&mut self, prepared: &Prepared) -> Result<(), Fault> {
        let (function, checked) = match &prepared.offer.functions {
            Tools::One { execute, .. } => {
                let found = self
                    .instance
                    .get_typed_func::<(&[u8],), Answer>(&mut self.store, execute);
                ("execute", found.map(|_| ()))
            }
            Tools::Several { execute_tool, .. } => {
                let found = self
                    .instance
                    .get_typed_func::<(&str, &[u8]), Answer>(&mut self.store, execute_tool);
                ("execute-tool", found.map(|_| ()))
            }
        };
        checked.map_err(|error| Fault::Misfit { function, error })
    }

    /// A new call begins on an instance that lived through earlier ones.
    pub(crate) fn renew(&mut self, watch: &Watch) {
        let guest = self.store.data_mut();
        guest.watch = watch.clone();
        guest.limits.take_refused();
        guest.output.begin(watch.context.clone());
        self.store.set_epoch_deadline(1);
    }

    /// Runs a tool. Whatever the answer, the instance may be used again only where there is no fault.
    pub(crate) async fn run(
        &mut self,
        prepared: &Prepared,
        tool: &str,
        input: &[u8],
        watch: &Watch,
    ) -> Result<Result<Vec<u8>, String>, Fault> {
        let _ticking = prepared.modules.ticking();
        let output = self.store.data().output.clone();
        let answered = match &prepared.offer.functions {
            Tools::One { execute, .. } => {
                let run = self
                    .instance
                    .get_typed_func::<(&[u8],), Answer>(&mut self.store, execute);
                let run = run.map_err(|error| Fault::Misfit {
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
            Tools::Several { execute_tool, .. } => {
                let run = self
                    .instance
                    .get_typed_func::<(&str, &[u8]), Answer>(&mut self.store, execute_tool);
                let run = run.map_err(|error| Fault::Misfit {
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

    /// The events that a hook wants to look at, with its configuration.
    pub(crate) async fn subscriptions(
        &mut self,
        prepared: &Prepared<HookFunctions>,
        config: &[u8],
        watch: &Watch,
    ) -> Result<Vec<EventSubscription>, Fault> {
        let HookFunctions {
            handle,
            get_subscriptions,
        } = &prepared.offer.functions;
        let checked = self
            .instance
            .get_typed_func::<(&[u8],), Answer>(&mut self.store, handle);
        checked.map_err(|error| Fault::Misfit {
            function: "handle",
            error,
        })?;
        let asked = self
            .instance
            .get_typed_func::<(&[u8],), (Vec<EventSubscription>,)>(
                &mut self.store,
                get_subscriptions,
            )
            .map_err(|error| Fault::Misfit {
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

    /// Shows a hook an event.
    pub(crate) async fn handle(
        &mut self,
        prepared: &Prepared<HookFunctions>,
        event: &[u8],
        watch: &Watch,
    ) -> Result<Result<Vec<u8>, String>, Fault> {
        let at = &prepared.offer.functions.handle;
        let handle = self
            .instance
            .get_typed_func::<(&[u8],), Answer>(&mut self.store, at);
        let handle = handle.map_err(|error| Fault::Misfit {
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

    fn heard<T>(&mut self, answered: wasmtime::Result<T>) -> Result<T, Fault> {
        answered.map_err(|error| Fault::inside(&error, &mut self.store))
    }
}
