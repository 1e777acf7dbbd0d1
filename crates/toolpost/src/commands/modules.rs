//! `toolpost modules`: the modules of mount plans, and their copies on this machine.

mod fetching;
mod list;
mod remove;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use toolpost_amplifier::{ModuleId, PlannedModule};

use crate::{
    cli::{ConfineArgs, ModuleArgs, PolicyArgs, SettingsArgs},
    exit::{CliExit, UsageError},
    settings::{self, CommandSettings},
    terminal,
};

#[derive(Args)]
pub(crate) struct ModulesArgs {
    #[command(subcommand)]
    command: ModulesCommand,
}

#[derive(Subcommand)]
enum ModulesCommand {
    /// List the modules of the plans, their sources, and whether they are fetched
    List(WhichArgs),
    /// Fetch missing modules with their packages, so that a host can start without a network
    Fetch(WhichArgs),
    /// Fetch again what may have changed: branches, and packages
    Update(WhichArgs),
    /// Remove fetched modules
    Remove(remove::RemoveArgs),
}

/// The modules, and their plans.
#[derive(Args)]
struct WhichArgs {
    /// Only these modules; by default all modules of the plans
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    plans: PlanArgs,
}

/// The plans, and the cache.
#[derive(Args)]
struct PlanArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// A mount plan or bundle with the modules; may be repeated, and later ones override earlier ones
    #[arg(long, value_name = "FILE")]
    mount_plan: Vec<PathBuf>,
    /// The folder of fetched modules and their packages; by default `$XDG_CACHE_HOME/toolpost`
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Fetch from URLs with this prefix even if the address is private: `http://127.0.0.1:8080/`; may be repeated
    #[arg(long, value_name = "URL")]
    allow_private: Vec<String>,
}

pub(crate) async fn run(arguments: ModulesArgs) -> anyhow::Result<CliExit> {
    match arguments.command {
        ModulesCommand::List(arguments) => list::run(&arguments).await,
        ModulesCommand::Fetch(arguments) => {
            fetching::run(&arguments, fetching::ModuleFetchAction::Fetch).await
        }
        ModulesCommand::Update(arguments) => {
            fetching::run(&arguments, fetching::ModuleFetchAction::Update).await
        }
        ModulesCommand::Remove(arguments) => remove::run(&arguments).await,
    }
}

impl PlanArgs {
    /// The settings for these plans.
    fn resolve(&self) -> anyhow::Result<CommandSettings> {
        let confines = ConfineArgs {
            allow_private: self.allow_private.clone(),
            ..ConfineArgs::default()
        };
        let modules = ModuleArgs {
            mount_plan: self.mount_plan.clone(),
            cache_dir: self.cache_dir.clone(),
            ..ModuleArgs::default()
        };
        let policy = PolicyArgs {
            modules,
            confines,
            ..PolicyArgs::default()
        };
        settings::resolve(&self.settings, &policy)
    }

    fn settings(&self) -> anyhow::Result<CommandSettings> {
        let settings = self.resolve()?;
        settings
            .warnings()
            .chain(settings.plans.missing_warnings())
            .for_each(terminal::warn);
        Ok(settings)
    }
}

impl WhichArgs {
    /// The selected modules. Each must be in a plan.
    fn modules<'a>(
        &self,
        settings: &'a CommandSettings,
    ) -> Result<Vec<&'a PlannedModule>, UsageError> {
        let planned = &settings.config.modules;
        let unknown = self
            .ids
            .iter()
            .find(|id| planned.iter().all(|module| module.id.as_str() != **id));
        if let Some(unknown) = unknown {
            let names: Vec<&str> = planned.iter().map(|module| module.id.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(UsageError(format!(
                "no plan names the module `{unknown}`; the modules are: {names}"
            )));
        }
        let meant = |id: &ModuleId| {
            self.ids.is_empty() || self.ids.iter().any(|wanted| wanted == id.as_str())
        };
        Ok(planned.iter().filter(|module| meant(&module.id)).collect())
    }
}
