//! `toolpost validate`: checks that a module fulfils the contract.
//!
//! First come the checks from outside. Then the module is mounted once, in a host of its own: an empty folder as
//! workspace, no network, a record in memory. Its mounted tools are inspected, and then they are really called.

mod behaviour;
mod check;
mod entry_point;
mod found;
mod probes;
mod report;
mod structure;
mod unchecked;
mod workbench;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use crate::{
    environment,
    exit::{CliExit, UsageError},
    terminal::say,
};

use report::{ValidationCheck, ValidationReport};
use workbench::{ModuleMountOptions, ModuleWorkbench};

#[derive(Args)]
pub(crate) struct ValidateArgs {
    /// The module: its folder, its Python package, a `.py` file or a `.wasm` component
    path: PathBuf,
    /// The expected type
    #[arg(long = "type", value_name = "TYPE", default_value = "tool")]
    module_type: ValidatedType,
    /// The configuration to mount it with, a JSON object
    #[arg(long, value_name = "JSON")]
    mount_config: Option<String>,
    /// Only inspect the module, without calling its tools
    #[arg(long)]
    no_calls: bool,
    /// The Python for the module
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ValidatedType {
    /// It provides tools
    Tool,
}

pub(crate) async fn run(arguments: ValidateArgs) -> anyhow::Result<CliExit> {
    let ValidatedType::Tool = arguments.module_type;
    let config = mount_config(arguments.mount_config.as_deref())?;
    let path = environment::module_path(&arguments.path)?;
    let order = ModuleMountOptions {
        config,
        python: arguments.python,
    };
    let checks = examine(&path, order, arguments.no_calls).await?;
    let report = ValidationReport::new(path.display().to_string(), checks);
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        report.print();
    }
    Ok(if report.is_passed() {
        CliExit::Done
    } else {
        CliExit::Failed
    })
}

fn mount_config(text: Option<&str>) -> anyhow::Result<Map<String, Value>> {
    let Some(text) = text else {
        return Ok(Map::new());
    };
    serde_json::from_str(text)
        .context("`--mount-config` is not a JSON object")
        .map_err(|error| UsageError(format!("{error:#}")).into())
}

async fn examine(
    path: &std::path::Path,
    order: ModuleMountOptions,
    no_calls: bool,
) -> anyhow::Result<Vec<ValidationCheck>> {
    let (mut checks, found) = found::find(path);
    let Some(found) = found else {
        return Ok(checks);
    };
    let bench = ModuleWorkbench::open(&found, order).await?;
    let tools = structure::examine(&found, &bench, &mut checks).await;
    if !no_calls {
        for tool in &tools {
            checks.extend(behaviour::try_out(&bench, tool).await);
        }
    }
    bench.close().await;
    Ok(checks)
}
