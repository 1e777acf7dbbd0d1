//! `toolpost modules remove`: removes modules from the cache while no host uses them.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use serde_json::json;
use toolpost_amplifier::ModuleSource;
use toolpost_modules::{
    Fetcher, ModuleFetchPolicy, ModuleSupply, PackageEnvironments, PythonModule,
};

use super::{PlanArgs, fetching};
use crate::{
    exit::{CliExit, UsageError},
    settings::CommandSettings,
    terminal::{printable, say},
};

#[derive(Args)]
pub(super) struct RemoveArgs {
    /// These modules, by their ids in the plans
    #[arg(value_name = "ID", conflicts_with_all = ["unused", "all"])]
    ids: Vec<String>,
    /// Remove everything that no plan names or needs
    #[arg(long, conflicts_with = "all")]
    unused: bool,
    /// Remove everything: modules, and the environments of their packages
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    plans: PlanArgs,
}

pub(super) async fn run(arguments: &RemoveArgs) -> anyhow::Result<CliExit> {
    if arguments.ids.is_empty() && !arguments.unused && !arguments.all {
        return Err(UsageError("name modules, or pass `--unused` or `--all`".into()).into());
    }
    let settings = arguments.plans.settings()?;
    let supply = Arc::new(settings.supply()?);
    let fetcher = Fetcher::new(supply.clone());
    let modules = &settings.config.modules;
    let mut removed = Vec::new();
    let mut environments = 0;
    if arguments.all {
        removed = fetcher.remove_unused(&[]).await?;
        environments = PackageEnvironments::new(Arc::clone(&supply))
            .remove_but(&[])
            .await?;
    } else if arguments.unused {
        if let Some(missing) = settings.plans.missing.first() {
            bail!(
                "`{}` is not fetched, so the modules that it uses are unknown\nhint: toolpost modules fetch",
                missing.source
            );
        }
        let bundles = settings.plans.bundles.iter().map(|include| &include.source);
        let used = modules
            .iter()
            .filter_map(|module| module.source.as_ref())
            .chain(bundles);
        environments = unused_environments(&settings, &fetcher, &supply).await?;
        removed = fetcher
            .remove_unused(&used.collect::<Vec<&ModuleSource>>())
            .await?;
    }
    for id in &arguments.ids {
        let Some(module) = modules.iter().find(|module| module.id.as_str() == id) else {
            return Err(UsageError(format!("no plan names the module `{id}`")).into());
        };
        if let Some(source) = &module.source
            && fetcher.remove(source).await?
        {
            removed.push(source.to_string());
        }
    }
    if arguments.json {
        let told = json!({ "removed": removed, "environments": environments });
        say!("{}", serde_json::to_string_pretty(&told)?);
        return Ok(CliExit::Done);
    }
    for source in &removed {
        say!("removed {}", printable(source));
    }
    match (removed.is_empty(), environments) {
        (true, 0) => say!("nothing to remove"),
        (_, 0) => {}
        (_, some) => say!("removed {some} environments of packages"),
    }
    Ok(CliExit::Done)
}

/// Removes the environments of packages that no module of the plans needs. Returns how many there were.
async fn unused_environments(
    settings: &CommandSettings,
    fetcher: &Fetcher,
    supply: &ModuleSupply,
) -> anyhow::Result<usize> {
    let mut needing: Vec<PythonModule> = Vec::new();
    for module in &settings.config.modules {
        let here = fetcher.look(module).await.ok().flatten();
        needing.extend(here.and_then(|fetched| fetching::python(module, &fetched)));
    }
    // The check for packages in use must not install any.
    let packages = PackageEnvironments::new(Arc::new(ModuleSupply {
        reach: ModuleFetchPolicy::Offline,
        ..supply.clone()
    }));
    let used = match needing.is_empty() {
        true => None,
        false => {
            packages
                .prepare(&needing, fetching::core(settings), &mut |_| ())
                .await?
                .environment
                .key
        }
    };
    Ok(packages
        .remove_but(&used.into_iter().collect::<Vec<_>>())
        .await?)
}
