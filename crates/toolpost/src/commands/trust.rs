//! `toolpost trust`: lets the workspace's own configuration loosen as well as restrict, as long as it stays unchanged.

use anyhow::bail;
use clap::Args;
use serde_json::json;
use toolpost_config::{ConfigNotice, LayerTrust};
use toolpost_model::RuleOrigin;
use toolpost_serve::applies_while_running;
use toolpost_store::{DataDir, DataDirError, TrustStore};

use crate::{
    cli::{PolicyArgs, SettingsArgs},
    exit::{CliExit, UsageError},
    settings::{self, CommandSettings, PROJECT_FILE},
    terminal::{DIM, say, styled, warn},
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
    let refused = |error: &anyhow::Error| {
        let path = project.path.display();
        UsageError(format!(
            "`{path}` was not trusted, because a host would reject it\n{error:#}"
        ))
    };
    let trusted = settings::resolve_as_trusted(&arguments.settings, &PolicyArgs::default())
        .map_err(|error| refused(&error))?;
    // The digest of the text that was checked, in case the file changed in between.
    let checked = trusted.file(RuleOrigin::Project).unwrap_or(project);
    store.trust(&checked.path, &checked.digest)?;
    say!(
        "`{}` is trusted as it is now; after any change, trust it again",
        project.path.display()
    );
    print_effects(&settings, &trusted);
    Ok(CliExit::Done)
}

/// The settings that trust puts in effect, and the time at which a running host applies them.
fn print_effects(settings: &CommandSettings, trusted: &CommandSettings) {
    let still_ignored = project_notices(trusted).collect::<Vec<_>>();
    let (at_once, after_restart): (Vec<_>, Vec<_>) = project_notices(settings)
        .filter(|notice| {
            let same =
                |other: &&ConfigNotice| (&other.key, &other.place) == (&notice.key, &notice.place);
            !still_ignored.iter().any(same)
        })
        .partition(|notice| applies_while_running(&notice.key));
    let line = |when: &str, notice: &ConfigNotice| {
        let text = format!("{when}: {} ({})", notice.key, notice.place);
        say!("{}", styled(DIM, text));
    };
    for notice in &at_once {
        line("now in effect", notice);
    }
    if !at_once.is_empty() || after_restart.is_empty() {
        say!("a running host applies this automatically");
    }
    for notice in &after_restart {
        line("in effect after a restart of a running host", notice);
    }
    for notice in still_ignored {
        warn(notice);
    }
}

fn project_notices(settings: &CommandSettings) -> impl Iterator<Item = &ConfigNotice> {
    settings
        .notices
        .iter()
        .filter(|notice| notice.place.starts_with(PROJECT_FILE))
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
