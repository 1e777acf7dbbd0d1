//! `toolpost journal prune`: removes the oldest records by hand, while no host runs.

use std::collections::HashSet;

use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use toolpost_core::{PruneReport, PruneRequest, Retention, RetentionExemptions, plan_prune, prune};
use toolpost_store::{DataDir, DataDirError, JournalOptions, SqliteJournal};

use super::filters::moment;
use crate::{
    cli::{PolicyArgs, SettingsArgs},
    environment,
    exit::{CliExit, UsageError},
    settings,
    terminal::{self, say, warn},
};

#[derive(Args)]
pub(super) struct JournalPruneArgs {
    /// Remove records that were written before this: an age (`90d`), a day (`2026-11-16`) or a time; by default
    /// `retention.journal` of the configuration decides
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    before: Option<Timestamp>,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) fn run(arguments: &JournalPruneArgs) -> anyhow::Result<CliExit> {
    let settings = settings::resolve(&arguments.settings, &PolicyArgs::default())?;
    let now = environment::now();
    let kept = settings.config.retention.journal;
    let retention = Retention {
        age: kept.age,
        size: kept.size,
    };
    let due = match arguments.before {
        Some(before) => PruneRequest {
            before: Some(before),
            size: None,
            why: "operator".to_owned(),
        },
        None if retention.is_any() => retention.due(now),
        None => {
            let message = "no age given\nhint: pass `--before 90d`, or set `retention.journal` in the configuration";
            return Err(UsageError(message.to_owned()).into());
        }
    };
    // Checked first, since opening a data directory would create it.
    drop(super::open(&settings.place)?);
    // The lock is required: a running host removes its oldest records itself.
    let data_dir = match DataDir::open(&settings.place.data_dir) {
        Ok(data_dir) => data_dir,
        Err(DataDirError::InUse { path, pid }) => {
            let by = pid
                .map(|pid| format!(" (process {pid})"))
                .unwrap_or_default();
            bail!(
                "a host uses `{}`{by}\nhint: stop that host first; prune needs the journal for itself",
                path.display()
            );
        }
        Err(error) => return Err(error.into()),
    };
    let options = JournalOptions {
        max_bytes: settings.config.limits.journal,
    };
    let journal = SqliteJournal::open(&data_dir.journal_path(), options)?;
    let needed = RetentionExemptions {
        now,
        session_idle: settings.config.limits.session_idle,
        sessions: HashSet::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let bar = terminal::bar(0, "removing");
    let report = if arguments.dry_run {
        runtime.block_on(plan_prune(&journal, &due, &needed))?
    } else {
        runtime.block_on(prune(&journal, &due, &needed, |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        }))?
    };
    bar.finish_and_clear();
    print_prune_report(&report, arguments);
    Ok(CliExit::Done)
}

fn print_prune_report(report: &PruneReport, arguments: &JournalPruneArgs) {
    let PruneReport {
        records,
        up_to,
        held,
    } = report;
    if arguments.json {
        let held = held
            .as_ref()
            .map(|(seq, why)| json!({ "seq": seq, "why": why.to_string() }));
        say!(
            "{}",
            json!({ "records": records, "up_to": up_to, "dry_run": arguments.dry_run, "held": held })
        );
        return;
    }
    let word = if arguments.dry_run {
        "would be removed"
    } else {
        "removed"
    };
    match records {
        0 => say!("no records to remove"),
        _ => say!("{records} records up to {up_to} {word}"),
    }
    if let Some((seq, why)) = held {
        warn(format_args!("record {seq} and later ones are kept: {why}"));
    }
}
