//! The cost of a call of a Python module beside the same call inside Python, and the time from a cold start to a list
//! of its tools, with the stand-in and with `amplifier-core` itself.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use toolpost_amplifier::{ModuleId, ModuleKind, ModuleSource, PlannedModule};
use toolpost_core::{CallRequest, Host, Policy, Session};
use toolpost_model::{ModelInput, PermissionMode, Principal};
use toolpost_modules::{
    BridgedModule, CoreWish, PythonModules, PythonPackage, PythonParts, PythonSettings,
};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;

use crate::rounds::{Pairs, median};

const ROUND: Duration = Duration::from_secs(1);
/// Calls inside Python for one figure.
const INSIDE: u32 = 20_000;
const STARTS: usize = 9;

/// Two tools: one that returns its input, and one that calls the first as often as its input says.
const MODULE: &str = r#"
import time

from amplifier_core import ToolResult


class Echo:
    name = "module_echo"
    description = "Gives the message back"
    input_schema = {"type": "object", "properties": {"message": {"type": "string"}}}

    async def execute(self, input):
        return ToolResult(output={"message": input["message"]})


class Inside:
    name = "inside"
    description = "Calls the other one"

    def __init__(self, echo):
        self.echo = echo

    async def execute(self, input):
        call, began = self.echo.execute, time.perf_counter()
        for _ in range(input["calls"]):
            result = await call({"message": "x"})
            result.get_serialized_output()
        return ToolResult(output={"seconds": time.perf_counter() - began})


async def mount(coordinator, config=None):
    echo = Echo()
    for tool in (echo, Inside(echo)):
        await coordinator.mount("tools", tool, name=tool.name)
"#;

pub(crate) async fn run() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let module = folder.path().join("module");
    write(&module.join("amplifier_module_bench/__init__.py"), MODULE)?;
    let peers = PathBuf::from("target/peers/bin/python");
    let mut kinds = vec![("the stand-in", CoreWish::StandIn, None)];
    match peers.exists() {
        true => kinds.push((
            "amplifier-core",
            CoreWish::Real,
            Some(std::path::absolute(peers)?),
        )),
        false => println!("amplifier-core is not installed in `target/peers`, so it is left out"),
    }
    for (name, core, python) in kinds {
        let set = Set {
            folder: folder.path().canonicalize()?,
            module: module.clone(),
            core,
            python,
        };
        set.starts(name).await?;
        set.calls(name).await?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the module that is measured is made here"
)]
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(path.parent().context("a folder")?)?;
    Ok(std::fs::write(path, text)?)
}

struct Set {
    folder: PathBuf,
    module: PathBuf,
    core: CoreWish,
    python: Option<PathBuf>,
}

impl Set {
    async fn start(&self) -> anyhow::Result<PythonModules> {
        let planned = PlannedModule {
            kind: ModuleKind::Tool,
            id: ModuleId::new("bench"),
            source: Some(ModuleSource::Path(self.module.clone())),
            config: Map::new(),
            place: "bench".to_owned(),
        };
        let package = PythonPackage::Folder {
            root: self.module.clone(),
        };
        let core = self.core;
        let python = self.python.clone();
        let modules = PythonModules::start(PythonParts {
            name: "bench".to_owned(),
            modules: vec![BridgedModule { planned, package }],
            settings: PythonSettings {
                core,
                python,
                ..PythonSettings::default()
            },
            workspace: Arc::new(Workspace::open(&self.folder)?),
            launcher: launcher()?,
            children: ChildSettings::default(),
        })
        .await;
        anyhow::ensure!(modules.failures().is_empty(), "{:?}", modules.failures());
        Ok(modules)
    }

    async fn starts(&self, name: &str) -> anyhow::Result<()> {
        // The first start also tests the machine's sandbox.
        self.start().await?;
        let mut took = Vec::new();
        for _ in 0..STARTS {
            let began = Instant::now();
            let modules = self.start().await?;
            took.push(began.elapsed().as_secs_f64() * 1e3);
            drop(modules);
        }
        println!(
            "a Python module with {name}, from nothing to its tools: {:.0} ms",
            median(&took)
        );
        Ok(())
    }

    async fn calls(&self, name: &str) -> anyhow::Result<()> {
        let modules = self.start().await?;
        let host = Host::builder()
            .policy(Policy::in_mode(PermissionMode::Bypass))
            .source(modules.source())
            .build()
            .await?;
        let session = host.default_session(&Principal::agent("bench"));
        let pairs = Pairs::take(5, || outside(&host, &session), || inside(&host, &session)).await?;
        pairs.tell(
            &format!(
                "a call of a Python module with {name}, beside the same call inside of Python"
            ),
            "µs",
        );
        Ok(())
    }
}

fn launcher() -> anyhow::Result<Launcher> {
    let program = std::env::current_exe()?.with_file_name("toolpost");
    anyhow::ensure!(
        program.exists(),
        "`{}` is missing; `cargo xtask bench` builds it first",
        program.display()
    );
    Ok(Launcher::new(program))
}

async fn call(
    host: &Host,
    session: &Arc<Session>,
    tool: &str,
    arguments: Value,
) -> anyhow::Result<Value> {
    let input = ModelInput::value(arguments);
    let answer = host
        .call(CallRequest::new(Arc::clone(session), tool, input))
        .await;
    let result = answer.result();
    anyhow::ensure!(result.outcome.is_success(), "{:?}", result.error);
    result
        .structured_content
        .clone()
        .context("structured content")
}

/// Microseconds of a call through the host.
async fn outside(host: &Host, session: &Arc<Session>) -> anyhow::Result<f64> {
    let mut calls = 0_u32;
    let began = Instant::now();
    while began.elapsed() < ROUND {
        call(host, session, "module_echo", json!({ "message": "x" })).await?;
        calls += 1;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(calls))
}

/// Microseconds of a call that never leaves Python.
async fn inside(host: &Host, session: &Arc<Session>) -> anyhow::Result<f64> {
    let told = call(host, session, "inside", json!({ "calls": INSIDE })).await?;
    let seconds = told["seconds"].as_f64().context("seconds")?;
    Ok(seconds * 1e6 / f64::from(INSIDE))
}
