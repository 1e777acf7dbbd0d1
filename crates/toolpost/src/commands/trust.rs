//! `toolpost trust`: lets the workspace's own configuration loosen as well as restrict, as long as it stays unchanged.

use anyhow::bail;
use clap::Args;
use serde_json::json;
use toolpost_config::LayerTrust;
use toolpost_model::RuleOrigin;
use toolpost_store::{DataDir, DataDirError, TrustStore};

use crate::{
    cli::{PolicyArgs, SettingsArgs},
    exit::{CliExit, UsageError},
    settings::{self, CommandSettings, PROJECT_FILE},
    terminal::{DIM, say, styled},
};

#[derive(Args)]
pub(crate) struct TrustArgs {
    /// Remove the trust
    #[arg(long, conflicts_with = "list")]
    forget: bool,
    /// List the trusted files
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) fn run(arguments: &TrustArgs) -> anyhow::Result<CliExit> {
    let settings = settings::resolve(&arguments.settings, &PolicyArgs::default())?;
    if arguments.list {
        return list(&settings, arguments.json);
    }
    let Some(project) = settings.file(RuleOrigin::Project) else {
        bail!(
            "there is no `{PROJECT_FILE}` in `{}`",
            settings.place.workspace.display()
        );
    };
    let store = open_store(&settings)?;
    if arguments.forget {
        let known = store.forget(&project.path)?;
        say!(
            "{}",
            if known {
                "trust removed: only the restrictions of the file apply now"
            } else {
                "the file was not trusted"
            }
        );
        return Ok(CliExit::Done);
    }
    if let Some(broken) = &project.broken {
        return Err(UsageError(broken.errors.clone()).into());
    }
    if let Some(errors) = &project.unreadable_plan {
        return Err(UsageError(format!(
            "a mount plan in its `include` cannot be read\n{errors}"
        ))
        .into());
    }
    if project.standing == Some(LayerTrust::Trusted) {
        say!("`{}` is trusted already", project.path.display());
        return Ok(CliExit::Done);
    }
    store.trust(&project.path, &project.digest)?;
    say!(
        "`{}` is trusted as it is now; after any change, trust it again",
        project.path.display()
    );
    for notice in settings
        .notices
        .iter()
        .filter(|notice| notice.place.starts_with(PROJECT_FILE))
    {
        say!(
            "{}",
            styled(
                DIM,
                format!("now in effect: {} ({})", notice.key, notice.place)
            )
        );
    }
    say!("a running host applies this automatically");
    Ok(CliExit::Done)
}

/// Trust may be given while a host runs, so the directory is created but not locked.
fn open_store(settings: &CommandSettings) -> anyhow::Result<TrustStore> {
    let path = &settings.place.data_dir;
    let data_dir = match DataDir::at(path) {
        Err(DataDirError::Missing { .. }) => {
            drop(DataDir::open(path)?);
            DataDir::at(path)?
        }
        found => found?,
    };
    Ok(TrustStore::open(&data_dir)?)
}

fn list(settings: &CommandSettings, as_json: bool) -> anyhow::Result<CliExit> {
    let entries = match DataDir::at(&settings.place.data_dir) {
        Ok(data_dir) => TrustStore::open(&data_dir)?.list()?,
        Err(DataDirError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if as_json {
        let rows: Vec<_> = entries
            .iter()
            .map(|entry| json!({ "path": entry.path, "sha256": const_hex::encode(entry.digest) }))
            .collect();
        say!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        for entry in &entries {
            say!(
                "{}  {}",
                entry.path.display(),
                styled(DIM, &const_hex::encode(entry.digest)[..12])
            );
        }
    }
    Ok(CliExit::Done)
}
