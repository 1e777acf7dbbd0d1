//! The engine of a host: compiles components, allocates instances, and limits how many are alive at once.

use std::{
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::Path,
    sync::Arc,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig,
    component::{Component, InstancePre, Linker},
};

use crate::{
    disk::CompiledComponentCache,
    guest::GuestContext,
    limits::{CORE_INSTANCES, MEMORIES, TABLE_ENTRIES, TABLES},
    ticker::{EpochTicker, EpochTicking},
};

/// Instances that run a call, over all modules. Further calls wait.
const CALLS: u32 = 128;
/// Instances that sessions keep.
const KEPT: u32 = 128;
/// Slots of the pool. Most components have one memory, and at most some dozen core instances.
const SLOTS: u32 = CALLS + KEPT;
/// The native stack of a guest. WebAssembly may use half of it; the other half is left for the host functions that the
/// guest calls, which run on the same stack.
const STACK: usize = 2 * 1024 * 1024;

/// The components of one host, with one engine, one cache and one limit on instances.
#[derive(Clone)]
pub struct WasmModules(Arc<WasmEngineState>);

struct WasmEngineState {
    engine: Engine,
    linker: Linker<GuestContext>,
    ticker: EpochTicker,
    cache: Option<CompiledComponentCache>,
    calls: Arc<Semaphore>,
    kept: Arc<Semaphore>,
}

impl fmt::Debug for WasmModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmModules")
            .field("cached", &self.0.cache.is_some())
            .finish_non_exhaustive()
    }
}

/// An engine that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum WasmError {
    /// The engine does not start.
    #[error("the engine for components does not start: {0}")]
    Engine(String),
    /// The thread that stops guests does not start.
    #[error("the thread that supervises components does not start")]
    Thread(#[from] io::Error),
    /// The cache cannot be used.
    #[error("the cache of compiled components cannot be used")]
    Cache(#[source] io::Error),
}

impl WasmModules {
    /// Starts an engine that stores compiled components in the folder `cache`. With `None` it compiles at every start.
    pub fn new(cache: Option<&Path>) -> Result<Self, WasmError> {
        // The pool reserves a large address space. Where the system refuses that, instances are allocated one by one.
        let engine = Engine::new(&pooled()).or_else(|_| Engine::new(&one_by_one()));
        Self::on(
            engine.map_err(|error| WasmError::Engine(format!("{error:#}")))?,
            cache,
        )
    }

    fn on(engine: Engine, cache: Option<&Path>) -> Result<Self, WasmError> {
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)
            .map_err(|error| WasmError::Engine(format!("{error:#}")))?;
        let ticker = EpochTicker::start(&engine)?;
        let cache = cache
            .map(CompiledComponentCache::open)
            .transpose()
            .map_err(WasmError::Cache)?;
        let places = |count: u32| Arc::new(Semaphore::new(count as usize));
        let calls = places(CALLS);
        let kept = places(KEPT);
        Ok(Self(Arc::new(WasmEngineState {
            engine,
            linker,
            ticker,
            cache,
            calls,
            kept,
        })))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn ticking(&self) -> EpochTicking {
        self.0.ticker.run()
    }

    /// A permit for one call; waits until there is one.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.calls).acquire_owned().await.ok()
    }

    /// A permit for an instance that a session keeps, if one is free.
    pub(crate) fn kept_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.kept).try_acquire_owned().ok()
    }

    pub(crate) fn link(
        &self,
        component: &Component,
    ) -> wasmtime::Result<InstancePre<GuestContext>> {
        self.0.linker.instantiate_pre(component)
    }

    /// Compiles a component, or loads it from the cache. `digest` is the digest of the bytes.
    pub(crate) fn compile(&self, bytes: &[u8], digest: &str) -> wasmtime::Result<Component> {
        let Some(cache) = &self.0.cache else {
            return Component::from_binary(self.engine(), bytes);
        };
        let mut compatible = DefaultHasher::new();
        self.engine()
            .precompile_compatibility_hash()
            .hash(&mut compatible);
        let family = format!("{digest}-");
        let name = format!("{family}{:016x}", compatible.finish());
        if let Some(component) = cache.get(&name).and_then(|code| self.take_up(&code)) {
            return Ok(component);
        }
        let component = Component::from_binary(self.engine(), bytes)?;
        // If the cache cannot be written, the next start compiles again; the component is usable all the same.
        if let Ok(code) = component.serialize() {
            let _ = cache.put(&family, &name, &code);
        }
        Ok(component)
    }

    #[expect(unsafe_code, reason = "compiled code is taken up from the cache")]
    fn take_up(&self, code: &[u8]) -> Option<Component> {
        // SAFETY: the bytes must come from `Component::serialize`. `CompiledComponentCache::get` returns only content
        // that `CompiledComponentCache::put` stored under this key, unchanged, and `compile` is the only caller of
        // `put`, with the output of `serialize`. The bytes are in memory, so they cannot change after the check. An
        // engine of another version or configuration uses another name in the cache, and `deserialize` refuses such
        // code itself.
        unsafe { Component::deserialize(self.engine(), code) }.ok()
    }
}

/// Allocates slots once and reuses them, so that an instance costs microseconds.
fn pooled() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(SLOTS)
        .total_core_instances(SLOTS * 16)
        .total_memories(SLOTS)
        .total_tables(SLOTS * 2)
        .total_stacks(SLOTS)
        .max_core_instances_per_component(CORE_INSTANCES as u32)
        .max_memories_per_component(MEMORIES as u32)
        .max_tables_per_component(TABLES as u32)
        .max_component_instance_size(4 * 1024 * 1024)
        .max_core_instance_size(4 * 1024 * 1024)
        .table_elements(TABLE_ENTRIES);
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Reserves little address space ahead of use.
fn one_by_one() -> Config {
    let mut config = common();
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    config
        .memory_reservation(16 * 1024 * 1024)
        .memory_guard_size(64 * 1024);
    config
}

fn common() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .async_stack_size(STACK)
        .max_wasm_stack(STACK / 2);
    config
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Map;
    use toolpost_amplifier::{ModuleId, ModuleKind, PlannedModule};
    use wasmtime::Engine;

    use super::{WasmModules, one_by_one};
    use crate::settings::WasmSettings;

    async fn loads(modules: &WasmModules, path: &Path) {
        let planned = PlannedModule {
            kind: ModuleKind::Tool,
            id: ModuleId::new("tool-echo"),
            source: None,
            config: Map::new(),
            place: "a test".to_owned(),
        };
        let module = modules
            .load(&planned, path, None, WasmSettings::default())
            .await
            .unwrap();
        assert_eq!(module.declarations()[0].tool_id.as_str(), "tool-echo.echo");
    }

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a component is loaded from a file"
    )]
    async fn instances_can_be_made_without_a_pool_and_share_no_code_with_pooled_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("echo.wasm");
        let text = include_str!("../tests/fixtures/echo.wat");
        std::fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
        let cache = folder.path().join("cache");
        let single = WasmModules::on(Engine::new(&one_by_one()).unwrap(), Some(&cache)).unwrap();
        loads(&single, &path).await;
        // Code that was compiled for one layout of memory is wrong in the other.
        loads(&WasmModules::new(Some(&cache)).unwrap(), &path).await;
        loads(&single, &path).await;
    }
}
