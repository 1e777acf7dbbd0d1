//! Modules that are gRPC services: running already, or started by this host.

use std::{path::Path, sync::Arc};

use toolpost_amplifier::{LoadFailure, PlannedModule};
use toolpost_config::HostConfig;
use toolpost_modules::{GrpcModule, GrpcSettings, SidecarParts};
use toolpost_processes::ChildSettings;

use super::{ModuleProcessSettings, failed, passed};

pub(super) fn running(module: &PlannedModule, endpoint: &str) -> Result<GrpcModule, LoadFailure> {
    GrpcModule::service(module, endpoint, GrpcSettings::default())
}

pub(super) fn sidecar(
    config: &HostConfig,
    module: &PlannedModule,
    root: Option<&Path>,
    name: &str,
    process: &ModuleProcessSettings,
) -> Result<GrpcModule, LoadFailure> {
    let root = root.ok_or_else(|| {
        failed(
            module,
            "the program of the module requires a folder".to_owned(),
        )
    })?;
    let amplifier = &config.amplifier;
    let mut variables = amplifier.environment.clone();
    variables.extend(passed(config));
    let children = ChildSettings {
        profile: amplifier.sandbox.unwrap_or(config.sandbox.profile),
        readable: [
            process.children.readable.clone(),
            amplifier.readable.clone(),
        ]
        .concat(),
        ..process.children.clone()
    };
    let parts = SidecarParts {
        launcher: Some(process.launcher.clone()),
        children,
        workspace: Arc::clone(&process.workspace),
        variables,
        writable: amplifier.writable.clone(),
    };
    GrpcModule::sidecar(module, root, name, GrpcSettings::default(), parts)
}
