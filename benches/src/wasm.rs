//! The cost of a component's call beside the same call on the bare engine, the growth after ten thousand of them, and
//! the time that the cache of compiled code saves at a start.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::{Map, json};
use toolpost_amplifier::{ModuleId, ModuleKind, PlannedModule};
use toolpost_core::{CallRequest, Host, HostBuilder, Policy};
use toolpost_model::{ModelInput, PermissionMode, Principal};
use toolpost_store::{JournalOptions, SqliteJournal};
use toolpost_wasm::{InstanceUse, WasmModule, WasmModules, WasmSettings};
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, StoreLimits,
    StoreLimitsBuilder,
    component::{Component, ComponentExportIndex, InstancePre, Linker, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::{children::memory_of, rounds::Pairs};

const ECHO: &str = include_str!("../../crates/wasm/tests/fixtures/echo.wat");
const ARGUMENTS: &str = r#"{"message":"x"}"#;
const ROUND: Duration = Duration::from_secs(1);
/// Calls before the first sample of memory, and between the samples.
const WARM_UP: u32 = 1_000;
const CALLS: u32 = 10_000;

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("echo.wasm");
    write(&path, &wat::parse_str(ECHO)?)?;
    let floor = Arc::new(Floor::new(&path)?);
    let modules = WasmModules::new(None)?;

    let fresh = host(load(&modules, &path, WasmSettings::default()).await?).await?;
    let pairs = Pairs::take(
        7,
        || spawned(calls(fresh.clone())),
        || spawned(raw(Arc::clone(&floor))),
    )
    .await?;
    pairs.tell(
        "a call of a component, beside one on the bare engine, a fresh instance each",
        "µs",
    );

    let kept = WasmSettings {
        instances: Some(InstanceUse::PerSession),
        ..WasmSettings::default()
    };
    let kept = host(load(&modules, &path, kept).await?).await?;
    let pairs = Pairs::take(
        3,
        || spawned(calls(kept.clone())),
        || spawned(raw(Arc::clone(&floor))),
    )
    .await?;
    pairs.tell("the same on an instance that the session keeps", "µs");

    // On a journal on disk: one in memory would grow with every call.
    let journal = SqliteJournal::open(
        &folder.path().join("journal.db"),
        JournalOptions {
            max_bytes: 64 << 30,
        },
    )?;
    let module = load(&modules, &path, WasmSettings::default()).await?;
    let recorded = builder(module).journal(Arc::new(journal)).build().await?;
    many(&recorded, WARM_UP).await?;
    let before = memory_of(std::process::id())?;
    many(&recorded, CALLS).await?;
    let after = memory_of(std::process::id())?;
    println!("{CALLS} calls: {before:.1} MB resident before, {after:.1} MB after");
    start(&path).await
}

/// The time until a component's tools are listed: compiled, and from the cache.
pub(crate) async fn start(path: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut times = Vec::new();
    for _ in 0..2 {
        let modules = WasmModules::new(Some(folder.path()))?;
        let began = Instant::now();
        load(
            &modules,
            path,
            WasmSettings {
                memory: 256 << 20,
                ..WasmSettings::default()
            },
        )
        .await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let name = path.file_name().unwrap_or_default().display();
    println!(
        "{name}: loaded in {:.1} ms, from the cache in {:.1} ms",
        times[0], times[1]
    );
    Ok(())
}

async fn load(
    modules: &WasmModules,
    path: &Path,
    settings: WasmSettings,
) -> anyhow::Result<WasmModule> {
    let planned = PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new("bench"),
        source: None,
        config: Map::new(),
        place: "the benchmark".to_owned(),
    };
    Ok(modules.load(&planned, path, None, settings).await?)
}

/// A host with its journal in memory, so that the call is measured and not the disk.
async fn host(module: WasmModule) -> anyhow::Result<Host> {
    Ok(builder(module).build().await?)
}

fn builder(module: WasmModule) -> HostBuilder {
    Host::builder()
        .policy(Policy::in_mode(PermissionMode::Bypass))
        .source(module)
}

async fn call(host: &Host) -> anyhow::Result<()> {
    let session = host.default_session(&Principal::agent("bench"));
    let request = CallRequest::new(session, "echo", ModelInput::text(ARGUMENTS));
    let answer = host.call(request).await;
    let result = answer.result();
    anyhow::ensure!(
        result.structured_content == Some(json!({ "message": "x" })),
        "{:?}",
        result.error
    );
    Ok(())
}

async fn many(host: &Host, count: u32) -> anyhow::Result<()> {
    for _ in 0..count {
        call(host).await?;
    }
    Ok(())
}

/// Runs in a task of the runtime, as a server's calls do.
async fn spawned(
    work: impl Future<Output = anyhow::Result<f64>> + Send + 'static,
) -> anyhow::Result<f64> {
    tokio::spawn(work).await?
}

async fn calls(host: Host) -> anyhow::Result<f64> {
    let mut count = 0_u32;
    let began = Instant::now();
    while began.elapsed() < ROUND {
        call(&host).await?;
        count += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

async fn raw(floor: Arc<Floor>) -> anyhow::Result<f64> {
    let mut count = 0_u32;
    let began = Instant::now();
    while began.elapsed() < ROUND {
        let answer = floor.call().await?;
        anyhow::ensure!(answer.ends_with(b"}}"), "an answer");
        count += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

/// The bare engine with the same configuration, and the checks of a careful embedder around a call.
struct Floor {
    engine: Engine,
    pre: InstancePre<Guest>,
    execute: ComponentExportIndex,
}

struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl Floor {
    fn new(path: &Path) -> anyhow::Result<Self> {
        let engine = Engine::new(&config()).map_err(bare)?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).map_err(bare)?;
        let component = Component::from_file(&engine, path).map_err(bare)?;
        let pre = linker.instantiate_pre(&component).map_err(bare)?;
        let interface = component.get_export_index(None, "amplifier:modules/tool@1.0.0");
        let execute =
            component.get_export_index(Some(&interface.context("the interface")?), "execute");
        Ok(Self {
            engine,
            pre,
            execute: execute.context("the function")?,
        })
    }

    async fn call(&self) -> anyhow::Result<Vec<u8>> {
        let guest = Guest {
            wasi: WasiCtxBuilder::new().build(),
            table: ResourceTable::new(),
            limits: StoreLimitsBuilder::new().memory_size(64 << 20).build(),
        };
        let mut store = Store::new(&self.engine, guest);
        store.limiter(|guest| &mut guest.limits);
        store.set_epoch_deadline(u64::MAX / 2);
        let instance = self.pre.instantiate_async(&mut store).await.map_err(bare)?;
        let execute = instance
            .get_typed_func::<(&[u8],), (Result<Vec<u8>, String>,)>(&mut store, self.execute)
            .map_err(bare)?;
        let (answer,) = execute
            .call_async(&mut store, (ARGUMENTS.as_bytes(),))
            .await
            .map_err(bare)?;
        answer.map_err(anyhow::Error::msg)
    }
}

fn config() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(256)
        .total_core_instances(256 * 16)
        .total_memories(256)
        .total_tables(512)
        .total_stacks(256)
        .max_component_instance_size(4 << 20)
        .max_core_instance_size(4 << 20)
        .table_elements(100_000);
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .async_stack_size(2 << 20)
        .max_wasm_stack(1 << 20);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// The engine's errors are of a type of its own.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn bare(error: wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a component is loaded from a file"
)]
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    Ok(std::fs::write(path, bytes)?)
}
