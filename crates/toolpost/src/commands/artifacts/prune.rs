//! `toolpost artifacts prune`: frees space by hand, while no host runs.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use toolpost_store::{BlobFiles, DataDir, DataDirError};

use crate::{
    cli::{PolicyArgs, SettingsArgs},
    commands::journal::moment,
    environment,
    exit::CliExit,
    settings,
    terminal::say,
};

#[derive(Args)]
pub(super) struct ArtifactPruneArgs {
    /// Remove artifacts that were last written before this: an age (`7d`), a day (`2026-11-16`) or a time; by default
    /// `retention.artifacts` of the configuration decides
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    before: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) fn run(arguments: &ArtifactPruneArgs) -> anyhow::Result<CliExit> {
    let settings = settings::resolve(&arguments.settings, &PolicyArgs::default())?;
    let age = match arguments.before {
        // A time in the future is after all artifacts, so all of them go.
        Some(before) => {
            Duration::try_from(environment::now().duration_since(before)).unwrap_or_default()
        }
        None => settings.config.retention.artifacts,
    };
    // Checked first, since opening a data directory would create it.
    drop(super::ArtifactReader::open(&settings.place)?);
    // The lock is required: a running host counts its artifacts in memory, and would miss the removal.
    let data_dir = match DataDir::open(&settings.place.data_dir) {
        Ok(data_dir) => data_dir,
        Err(DataDirError::InUse { path, pid }) => {
            let by = pid
                .map(|pid| format!(" (process {pid})"))
                .unwrap_or_default();
            bail!(
                "a host uses `{}`{by}\nhint: stop it, prune, and start it again; or restart it with a shorter \
                 `retention.artifacts` or a larger `limits.artifacts`",
                path.display()
            );
        }
        Err(error) => return Err(error.into()),
    };
    let removed = BlobFiles::at(&data_dir).remove_older(age)?;
    if arguments.json {
        say!(
            "{}",
            json!({ "removed": removed.files, "bytes": removed.bytes })
        );
    } else if removed.files == 0 {
        say!("no kept results are that old");
    } else {
        say!(
            "{} kept results removed, {}",
            removed.files,
            indicatif::HumanBytes(removed.bytes)
        );
    }
    Ok(CliExit::Done)
}
