//! Modules that are WebAssembly components.

use std::path::Path;

use toolpost_amplifier::{LoadFailure, PlannedModule};
use toolpost_config::{HostConfig, WasmConfig};
use toolpost_model::ResourceAccess;
use toolpost_modules::RustModule;
use toolpost_wasm::{DirectoryAccess, DirectoryGrant, WasmModule, WasmModules, WasmSettings};

use super::failed;

/// The folder of compiled components in the cache.
const COMPILED: &str = "components";

/// The engine that all components share, created with the first one.
#[derive(Default)]
pub(super) struct ComponentEngine(Option<WasmModules>);

impl ComponentEngine {
    pub(super) async fn load(
        &mut self,
        config: &HostConfig,
        module: &PlannedModule,
        artifact: &Path,
        sha256: Option<&str>,
    ) -> Result<WasmModule, LoadFailure> {
        let engine = self.engine(config, module)?;
        engine
            .load(module, artifact, sha256, settings(config, module))
            .await
    }

    /// Loads a component with hooks. It is mounted like a module in Rust.
    pub(super) async fn load_hook(
        &mut self,
        config: &HostConfig,
        module: &PlannedModule,
        artifact: &Path,
        sha256: Option<&str>,
    ) -> Result<RustModule, LoadFailure> {
        let engine = self.engine(config, module)?;
        let hook = engine
            .load_hook(module, artifact, sha256, settings(config, module))
            .await?;
        Ok(RustModule::hook(module.id.as_str(), hook).config(module.config.clone()))
    }

    fn engine(
        &mut self,
        config: &HostConfig,
        module: &PlannedModule,
    ) -> Result<WasmModules, LoadFailure> {
        if let Some(engine) = &self.0 {
            return Ok(engine.clone());
        }
        let cache = config.cache_dir.as_ref().map(|cache| cache.join(COMPILED));
        let engine = WasmModules::new(cache.as_deref());
        let engine = engine.map_err(|error| failed(module, error.to_string()))?;
        Ok(self.0.insert(engine).clone())
    }
}

fn settings(config: &HostConfig, module: &PlannedModule) -> WasmSettings {
    let granted = config.amplifier.wasm.get(module.id.as_str());
    let settings = granted.map_or_else(WasmSettings::default, granted_settings);
    match config.amplifier.mount_timeout {
        Some(load_time) => WasmSettings {
            load_time,
            ..settings
        },
        None => settings,
    }
}

fn granted_settings(granted: &WasmConfig) -> WasmSettings {
    let directories = granted.directories.iter().map(|root| DirectoryGrant {
        host: root.path.clone(),
        guest: root.path.display().to_string(),
        access: match root.access {
            ResourceAccess::Read => DirectoryAccess::ReadOnly,
            ResourceAccess::Write => DirectoryAccess::ReadWrite,
        },
    });
    let settings = WasmSettings {
        directories: directories.collect(),
        network: granted.network,
        environment: granted.environment.clone(),
        ..WasmSettings::default()
    };
    match granted.memory {
        Some(memory) => WasmSettings { memory, ..settings },
        None => settings,
    }
}
