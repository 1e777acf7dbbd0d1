//! Bundles of plans from elsewhere, fetched before the settings are complete.

use std::sync::Arc;

use toolpost_amplifier::{Include, ModuleId, ModuleKind, ModuleSource, PlannedModule};
use toolpost_config::ModuleInstall;
use toolpost_modules::{Fetcher, ModuleFetchPolicy, ModuleSetupProgress, ModuleSupply};

use super::CommandSettings;
use crate::terminal::{self, ProgressSteps};

/// Bundles can include bundles, so they are fetched in rounds.
const MOST_ROUNDS: usize = 8;

/// The settings of a host, with the bundles of its plans fetched if that is permitted.
pub(crate) async fn with_bundles(
    resolve: impl Fn() -> anyhow::Result<CommandSettings>,
) -> anyhow::Result<CommandSettings> {
    let settings = resolve()?;
    match settings.config.amplifier.install {
        ModuleInstall::Offline => Ok(settings),
        ModuleInstall::Auto if settings.plans.missing.is_empty() => Ok(settings),
        ModuleInstall::Auto => fetched_bundles(resolve).await,
    }
}

/// The same after fetching missing bundles. A failure is reported, and the bundle stays missing.
pub(crate) async fn fetched_bundles(
    resolve: impl Fn() -> anyhow::Result<CommandSettings>,
) -> anyhow::Result<CommandSettings> {
    let mut settings = resolve()?;
    for _ in 0..MOST_ROUNDS {
        // A bundle with an unsupported source cannot be fetched; the host reports it.
        let is_fetchable =
            |include: &&Include| !matches!(include.source, ModuleSource::Unspoken { .. });
        let missing: Vec<&Include> = settings.plans.missing.iter().filter(is_fetchable).collect();
        if missing.is_empty() {
            break;
        }
        let supply = ModuleSupply {
            reach: ModuleFetchPolicy::Online,
            ..settings.supply()?
        };
        let fetcher = Fetcher::new(Arc::new(supply));
        let mut fetched = 0;
        for include in missing {
            let steps = ProgressSteps::begin("bundle");
            let mut show = |progress: ModuleSetupProgress| steps.show(&progress);
            match fetcher.fetch(&as_module(include), &mut show).await {
                Ok(_) => fetched += 1,
                Err(failure) => terminal::warn(format!("{}: {}", include.place, failure.message)),
            }
        }
        if fetched == 0 {
            break;
        }
        settings = resolve()?;
    }
    Ok(settings)
}

/// The same after fetching every bundle again: its source may have moved, or the copy in the cache may have been
/// changed. Returns whether all succeeded; if one fails, its copy here stays.
pub(crate) async fn updated_bundles(
    resolve: impl Fn() -> anyhow::Result<CommandSettings>,
) -> anyhow::Result<(CommandSettings, bool)> {
    let mut settings = resolve()?;
    let mut asked: Vec<ModuleSource> = Vec::new();
    let mut all = true;
    for _ in 0..MOST_ROUNDS {
        let new = settings
            .plans
            .bundles
            .iter()
            .filter(|include| !asked.contains(&include.source));
        let new: Vec<Include> = new.cloned().collect();
        if new.is_empty() {
            break;
        }
        let supply = ModuleSupply {
            reach: ModuleFetchPolicy::Online,
            ..settings.supply()?
        };
        let fetcher = Fetcher::new(Arc::new(supply));
        for include in new {
            let steps = ProgressSteps::begin("bundle");
            let mut show = |progress: ModuleSetupProgress| steps.show(&progress);
            if let Err(failure) = fetcher.update(&as_module(&include), &mut show).await {
                terminal::warn(format!("{}: {}", include.place, failure.message));
                all = false;
            }
            asked.push(include.source);
        }
        settings = resolve()?;
    }
    Ok((settings, all))
}

/// A bundle is fetched like a module.
fn as_module(include: &Include) -> PlannedModule {
    PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new("bundle"),
        source: Some(include.source.clone()),
        config: serde_json::Map::new(),
        place: include.place.clone(),
    }
}
