//! What stands behind one instance: its view of the world, its limits, and who may stop it.

use std::time::Instant;

use toolpost_model::{CallContext, TraceContext};
use wasmtime::{Engine, Store, UpdateDeadline, component::ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::{
    limits::InstanceMemoryBudget,
    output::GuestOutput,
    settings::{DirectoryAccess, WasmSettings},
};

/// Bytes that one call hands over: a result, or one write.
pub(crate) const HANDED_OVER: usize = 16 * 1024 * 1024;
/// Things of the host's that a guest holds at once, such as open files and things it waits for.
const HANDLES: usize = 4_096;
/// Random bytes asked for at once.
const RANDOM: u64 = 1024 * 1024;

/// When a guest has to stop.
#[derive(Clone)]
pub(crate) struct GuestStopCondition {
    pub(crate) deadline: Instant,
    /// The call it works for; none while the module is loaded.
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

/// The host's side of one instance.
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
    /// A store for one instance. Its world is empty but for what the settings grant, the clocks, random numbers, and the
    /// span of the one call that it is for.
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
        // The interface of components has no place for a span. Programs in any language read it from these two.
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
