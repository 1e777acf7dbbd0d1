//! `toolpost modules remove`: out of the cache, while nobody needs them.

use std::sync::Arc;

use clap::Args;
use serde_json::json;
use toolpost_amplifier::ModuleSource;
use toolpost_sources::{Fetcher, Packages};

use super::PlanArgs;
use crate::{
    exit::{Exit, UsageError},
    terminal::{printable, say},
};

#[derive(Args)]
pub(super) struct RemoveArgs {
    /// These modules, by their ids in the plans
    #[arg(value_name = "ID", conflicts_with_all = ["unused", "all"])]
    ids: Vec<String>,
    /// What none of the plans names
    #[arg(long, conflicts_with = "all")]
    unused: bool,
    /// Everything: modules, and the environments of their packages
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    plans: PlanArgs,
}

pub(super) async fn run(arguments: &RemoveArgs) -> anyhow::Result<Exit> {
    if arguments.ids.is_empty() && !arguments.unused && !arguments.all {
        return Err(UsageError("name modules, or say `--unused` or `--all`".into()).into());
    }
    let settings = arguments.plans.settings()?;
    let supply = Arc::new(settings.supply()?);
    let fetcher = Fetcher::new(supply.clone());
    let modules = &settings.config.modules;
    let mut removed = Vec::new();
    let mut environments = 0;
    if arguments.all {
        removed = fetcher.remove_unused(&[]).await?;
        environments = Packages::new(supply).remove_all().await?;
    } else if arguments.unused {
        let used: Vec<&ModuleSource> = modules.iter().filter_map(|module| module.source.as_ref()).collect();
        removed = fetcher.remove_unused(&used).await?;
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
        return Ok(Exit::Done);
    }
    for source in &removed {
        say!("removed {}", printable(source));
    }
    match (removed.is_empty(), environments) {
        (true, 0) => say!("nothing was there to remove"),
        (_, 0) => {}
        (_, some) => say!("removed {some} environments of packages"),
    }
    Ok(Exit::Done)
}
