//! A host in this process with the native tools; the real binary launches their commands.

use std::{path::Path, sync::Arc};

use serde_json::Value;
use toolpost_core::{CallRequest, Host, Policy, Session};
use toolpost_model::{ModelInput, PermissionMode};
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::{ChildEnvironment, ChildSettings, HostEnvironment, Workspace};
use toolpost_sandbox::Launcher;

/// The record is in memory and no call asks, so that the tools alone are measured.
pub(crate) async fn host(folder: &Path) -> anyhow::Result<Host> {
    let workspace = Arc::new(Workspace::open(folder)?);
    let program = std::env::current_exe()?.with_file_name("toolpost");
    anyhow::ensure!(
        program.exists(),
        "`{}` is missing; `cargo xtask bench` builds it first",
        program.display()
    );
    let launcher = Launcher::new(program);
    println!(
        "sandbox: tier {:?}; control groups: {}",
        launcher.tier(),
        launcher.self_test().cgroups
    );
    let environment = ChildEnvironment::new(&HostEnvironment::default(), &[], &[folder.to_owned()]);
    let parts = NativeParts {
        launcher: Some(launcher),
        children: ChildSettings {
            environment,
            ..ChildSettings::default()
        },
        ..NativeParts::on(workspace)
    };
    let policy = Policy::in_mode(PermissionMode::Bypass);
    Ok(Host::builder()
        .policy(policy)
        .source(native_source(parts)?)
        .build()
        .await?)
}

/// A call that succeeds.
pub(crate) async fn call(
    host: &Host,
    session: &Arc<Session>,
    tool: &str,
    arguments: Value,
) -> anyhow::Result<()> {
    let request = CallRequest::new(Arc::clone(session), tool, ModelInput::value(arguments));
    let answer = host.call(request).await;
    let result = answer.result();
    anyhow::ensure!(result.outcome.is_success(), "{:?}", result.error);
    anyhow::ensure!(
        result.exit_code.unwrap_or(0) == 0,
        "{tool}: {:?}",
        result.content
    );
    Ok(())
}
