//! Runs cargo and other programs for the chores.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::ChoreVerdict;

/// The cargo that started this program, so that `cargo +nightly xtask …` stays on that toolchain.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root).args(args);
    // `cargo run` sets variables that describe this package. Some build scripts run again when those change, and a
    // cargo on the command line would then rebuild half of the dependencies after every chore, and the chore after it.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// Runs `command` with its output on the terminal.
pub(crate) fn verdict(command: &mut Command) -> anyhow::Result<ChoreVerdict> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", command.get_program().display()))?;
    Ok(ChoreVerdict::pass_if(status.success()))
}

/// Runs `command` and returns its stdout. Its stderr goes to the terminal.
pub(crate) fn stdout_of(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let program = command.get_program().display().to_string();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{program}`"))?;
    let args: Vec<_> = command
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .collect();
    ensure!(
        output.status.success(),
        "`{program} {}` failed: {}",
        args.join(" "),
        output.status
    );
    Ok(output.stdout)
}

/// Whether `command` can be run, tested with its `--version`.
pub(crate) fn answers(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

pub(crate) fn metadata(root: &Path, args: &[&str]) -> anyhow::Result<Value> {
    let json = stdout_of(cargo(root, &["metadata", "--format-version", "1"]).args(args))?;
    serde_json::from_slice(&json).context("cannot read the output of `cargo metadata`")
}

/// A list in cargo's JSON; a missing one is empty.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A string in cargo's JSON; a missing one or `null` is empty.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
