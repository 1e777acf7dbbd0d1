//! The host's side of one instance: its WASI context, its limits, and when it must stop.

use std::time::Instant;

use toolpost_model::{CallContext, TraceContext};
use wasmtime::{Engine, Store, UpdateDeadline, component::ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::{
    limits::InstanceMemoryBudget,
    output::GuestOutput,
    settings::{DirectoryAccess, WasmSettings},
};

/// The most bytes that one host call copies: a result, or one write.
pub(crate) const HANDED_OVER: usize = 16 * 1024 * 1024;
/// Handles that a guest holds at once, such as open files and pollables.
const HANDLES: usize = 4_096;
/// The most random bytes of one request.
const RANDOM: u64 = 1024 * 1024;

#[derive(Clone)]
pub(crate) struct GuestStopCondition {
    pub(crate) deadline: Instant,
    /// The call that the instance runs; `None` while the module is loaded.
    pub(crate) context: Option<CallContext>,
}

impl GuestStopCondition {
    pub(crate) fn is_canceled(&self) -> bool {
        self.context.as_ref().is_some_and(CallContext::is_canceled)
    }

    fn is_over(&self) -> bool {
        self.is_canceled() || Instant::now() >= self.deadline
    }
}

pub(crate) struct GuestContext {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) limits: InstanceMemoryBudget,
    pub(crate) watch: GuestStopCondition,
    pub(crate) output: GuestOutput,
}

impl WasiView for GuestContext {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl GuestContext {
    /// A store for one instance. Its world is empty except for the grants in the settings, the clocks, random numbers,
    /// and the trace span if the instance is for one call.
    ///
    /// The epoch callback is the only way to stop a guest that computes without calling the host. It interrupts the
    /// guest if its deadline is over or its call is canceled, and otherwise yields to the runtime: a loop in one guest
    /// must not hold a worker thread of the host for longer than a tick.
    pub(crate) fn store(
        engine: &Engine,
        settings: &WasmSettings,
        watch: GuestStopCondition,
        span: Option<&TraceContext>,
    ) -> wasmtime::Result<Store<Self>> {
        let output = GuestOutput::default();
        output.begin(watch.context.clone());
        let wasi = world(settings, &output, span)?;
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        let limits = InstanceMemoryBudget::new(settings.memory);
        let mut store = Store::new(
            engine,
            Self {
                wasi,
                table,
                limits,
                watch,
                output,
            },
        );
        store.limiter(|guest| &mut guest.limits);
        store.set_hostcall_fuel(HANDED_OVER);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            let over = store.data().watch.is_over();
            Ok(if over {
                UpdateDeadline::Interrupt
            } else {
                UpdateDeadline::Yield(1)
            })
        });
        Ok(store)
    }
}

fn world(
    settings: &WasmSettings,
    output: &GuestOutput,
    span: Option<&TraceContext>,
) -> wasmtime::Result<WasiCtx> {
    let mut world = WasiCtxBuilder::new();
    world
        .stdout(output.stdout())
        .stderr(output.stderr())
        .max_random_size(RANDOM);
    for (name, value) in &settings.environment {
        world.env(name, value);
    }
    if let Some(span) = span {
        // The component interface has no parameter for a span. Programs in any language can read it from these two
        // variables.
        let own = [
            ("TRACEPARENT", Some(span.traceparent())),
            ("TRACESTATE", span.tracestate().map(str::to_owned)),
        ];
        for (name, value) in own {
            if let Some(value) = value.filter(|_| !settings.environment.contains_key(name)) {
                world.env(name, value);
            }
        }
    }
    for grant in &settings.directories {
        let permissions = match grant.access {
            DirectoryAccess::ReadOnly => FsPerms::ReadOnly,
            DirectoryAccess::ReadWrite => FsPerms::ReadWrite,
        };
        world.preopened_dir(&grant.host, &grant.guest, permissions)?;
    }
    if settings.network {
        world
            .inherit_network()
            .allow_ip_name_lookup(true)
            .allow_tcp(true)
            .allow_udp(true);
    } else {
        world
            .allow_ip_name_lookup(false)
            .allow_tcp(false)
            .allow_udp(false);
    }
    Ok(world.build())
}
