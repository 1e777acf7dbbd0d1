//! Builds the module supply of a configuration.

use std::path::PathBuf;

use toolpost_config::{HostConfig, ModuleInstall};
use toolpost_model::ResourceAccess;
use toolpost_modules::{ModuleFetchPolicy, ModuleSupply, SUPPLY_VARIABLES};
use toolpost_processes::{
    ChildEnvironment, HostEnvironment, NetworkSettings, PrivateTarget, UrlPrefixError,
};
use toolpost_sandbox::Launcher;

/// The module supply; `None` if the configuration has no cache.
pub fn module_supply(
    config: &HostConfig,
    launcher: Option<Launcher>,
) -> Result<Option<ModuleSupply>, UrlPrefixError> {
    let Some(cache) = config.cache_dir.clone() else {
        return Ok(None);
    };
    let host = HostEnvironment {
        variables: config.environment.variables.clone(),
        home: config.environment.home.clone(),
    };
    let written = config
        .roots
        .iter()
        .filter(|root| root.access == ResourceAccess::Write)
        .map(|root| &root.path);
    let writable: Vec<PathBuf> = config.workspace.iter().chain(written).cloned().collect();
    let mut variables = config.amplifier.variables(&config.environment);
    for name in SUPPLY_VARIABLES {
        let value = config.environment.variables.get(name);
        variables.extend(value.map(|value| (name.to_owned(), value.clone())));
    }
    let private = config
        .network
        .private
        .iter()
        .map(|url| PrivateTarget::parse(url));
    Ok(Some(ModuleSupply {
        cache,
        launcher,
        environment: ChildEnvironment::new(&host, &config.sandbox.environment, &writable),
        variables,
        fetch_variables: config.amplifier.fetch_variables(&config.environment),
        readable: config.amplifier.readable.clone(),
        network: NetworkSettings {
            private: private.collect::<Result<_, _>>()?,
            ..NetworkSettings::default()
        },
        reach: match config.amplifier.install {
            ModuleInstall::Auto => ModuleFetchPolicy::Online,
            ModuleInstall::Offline => ModuleFetchPolicy::Offline,
        },
        python: config.amplifier.python.clone(),
        required: config.sandbox.require,
    }))
}
