//! `toolpost modules fetch` and `update`: fetches modules into the cache, and their packages into an environment.

use std::sync::Arc;

use serde_json::json;
use toolpost_amplifier::{LoadFailure, ModuleSource, ModuleTransport, PlannedModule};
use toolpost_config::AmplifierCore;
use toolpost_modules::{
    CoreWish, FetchedModule, Fetcher, FolderSharing, ModuleFetchPolicy, ModuleSetupProgress,
    ModuleSupply, PackageEnvironments, PythonModule, resolve,
};

use super::{WhichArgs, list::ModuleListRow};
use crate::{
    exit::CliExit,
    settings::{self, CommandSettings},
    terminal::{self, DIM, ProgressSteps, RED, printable, say, styled},
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ModuleFetchAction {
    Fetch,
    Update,
}

pub(super) async fn run(arguments: &WhichArgs, work: ModuleFetchAction) -> anyhow::Result<CliExit> {
    let resolve = || arguments.plans.resolve();
    let (settings, all_bundles) = match work {
        // With explicit modules, only those are updated, not the bundles around them.
        ModuleFetchAction::Update if arguments.ids.is_empty() => {
            settings::updated_bundles(resolve).await?
        }
        ModuleFetchAction::Fetch | ModuleFetchAction::Update => {
            (settings::fetched_bundles(resolve).await?, true)
        }
    };
    settings
        .warnings()
        .chain(settings.plans.missing_warnings())
        .for_each(terminal::warn);
    // `offline` keeps hosts from fetching on their own. This command is an explicit request.
    let supply = Arc::new(ModuleSupply {
        reach: ModuleFetchPolicy::Online,
        ..settings.supply()?
    });
    let mut failures = Vec::new();
    let modules = arguments.modules(&settings)?;
    let fetcher = Fetcher::new(Arc::clone(&supply));
    let mut lines = Vec::new();
    let mut here = Vec::new();
    for module in modules {
        let fetched = get(&fetcher, module, work).await;
        here.extend(
            fetched
                .as_ref()
                .ok()
                .map(|fetched| (module, fetched.clone())),
        );
        lines.push(ModuleListRow::of(module, fetched.map(Some)));
    }
    let installed = install(&settings, &supply, &here, work, &mut failures).await?;
    if arguments.json {
        let told = json!({ "modules": lines, "packages": installed, "failures": failures });
        say!("{}", serde_json::to_string_pretty(&told)?);
    } else {
        lines.iter().for_each(ModuleListRow::print);
        if !installed.is_empty() {
            say!(
                "{}",
                styled(
                    DIM,
                    format!("packages: {}", printable(&installed.join(", ")))
                )
            );
        }
        for failure in &failures {
            say!(
                "{} {}",
                styled(RED, "failed"),
                printable(&failure.to_string())
            );
        }
    }
    let failed = !all_bundles
        || !failures.is_empty()
        || !settings.plans.missing.is_empty()
        || lines.iter().any(ModuleListRow::is_broken);
    Ok(if failed {
        CliExit::Failed
    } else {
        CliExit::Done
    })
}

async fn get(
    fetcher: &Fetcher,
    module: &PlannedModule,
    work: ModuleFetchAction,
) -> Result<FetchedModule, LoadFailure> {
    let steps = ProgressSteps::begin(module.id.as_str());
    let mut show = |progress: ModuleSetupProgress| steps.show(&progress);
    let fetched = match work {
        ModuleFetchAction::Fetch => fetcher.fetch(module, &mut show).await,
        ModuleFetchAction::Update => fetcher.update(module, &mut show).await,
    };
    drop(steps);
    fetched
}

/// Installs the packages of the Python modules. Returns the packages of the environment.
async fn install(
    settings: &CommandSettings,
    supply: &Arc<ModuleSupply>,
    here: &[(&PlannedModule, FetchedModule)],
    work: ModuleFetchAction,
    failures: &mut Vec<LoadFailure>,
) -> anyhow::Result<Vec<String>> {
    let python: Vec<PythonModule> = here
        .iter()
        .filter_map(|(module, fetched)| python(module, fetched))
        .collect();
    if python.is_empty() {
        return Ok(Vec::new());
    }
    let core = core(settings);
    let steps = ProgressSteps::begin("packages");
    let mut show = |progress: ModuleSetupProgress| steps.show(&progress);
    let packages = PackageEnvironments::new(Arc::clone(supply));
    let prepared = match work {
        ModuleFetchAction::Fetch => packages.fetch(&python, core, &mut show).await,
        ModuleFetchAction::Update => packages.update(&python, core, &mut show).await,
    };
    drop(steps);
    let prepared = prepared?;
    failures.extend(prepared.failures);
    Ok(prepared.environment.packages)
}

pub(super) fn core(settings: &CommandSettings) -> CoreWish {
    match settings.config.amplifier.core {
        AmplifierCore::Auto => CoreWish::Auto,
        AmplifierCore::Real => CoreWish::Real,
        AmplifierCore::StandIn => CoreWish::StandIn,
    }
}

/// The module in the form for Python environments, if it is a Python module.
pub(super) fn python(module: &PlannedModule, fetched: &FetchedModule) -> Option<PythonModule> {
    let root = match &fetched.root {
        None => None,
        Some(root) => match resolve(module, root).ok()? {
            resolved if resolved.transport == ModuleTransport::Python => Some(resolved.root),
            _ => return None,
        },
    };
    let package = match (&root, &module.source) {
        (None, Some(ModuleSource::Package(name))) => Some(name.clone()),
        (Some(_), _) | (None, _) => None,
    };
    Some(PythonModule {
        id: module.id.clone(),
        kind: module.kind,
        root,
        package,
        sharing: FolderSharing::OwnFolder,
    })
}
