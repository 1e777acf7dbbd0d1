//! `toolpost journal verify`: checks the record for changes.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use jiff::SignedDuration;
use serde_json::json;
use toolpost_config::RetentionConfig;
use toolpost_store::{
    ArtifactsPlace, JournalReader, SealedHead, VerifyConclusion, VerifyOptions, VerifyReport,
    VerifyStep,
};

use super::files;
use crate::{
    cli::{PolicyArgs, SettingsArgs},
    environment,
    exit::CliExit,
    settings,
    terminal::{self, GREEN, RED, YELLOW, counted, say, styled, warn},
};

/// Checks every record: the chain, its gaps, the index of calls, and the kept results that records name. The chain has
/// no key: with write access to the file, an attacker can cut off its end or rewrite it from some record on, and the
/// rest is still a valid chain. Only a head that was kept elsewhere reveals that; see `journal seal`.
#[derive(Args)]
pub(super) struct VerifyArgs {
    /// A head from `journal seal` or an earlier check: only this reveals records that were cut off or rewritten at the
    /// end
    #[arg(long, value_name = "SEQ:HASH")]
    head: Option<SealedHead>,
    /// A journal elsewhere: the file, or its folder
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Do not check the kept results
    #[arg(long)]
    no_artifacts: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(super) fn run(arguments: &VerifyArgs) -> anyhow::Result<CliExit> {
    let files = files(arguments.journal.as_deref(), &arguments.settings.place)?;
    let reader = JournalReader::open(&files.journal)
        .with_context(|| format!("the journal `{}` cannot be read", files.journal.display()))?;
    // A copy of the file alone is checked without the kept results.
    let is_alone = arguments.journal.is_some() && !files.blobs.is_dir();
    if is_alone && !arguments.no_artifacts {
        warn(format_args!(
            "kept results were not checked: there is no folder `{}`",
            terminal::spelled_out(&files.blobs.display().to_string())
        ));
    }
    let wants_artifacts = !arguments.no_artifacts && !is_alone;
    let artifacts = wants_artifacts
        .then(|| artifacts_place(arguments, files.blobs))
        .transpose()?;
    let options = VerifyOptions {
        head: arguments.head.clone(),
        artifacts,
    };
    let bar = terminal::bar(reader.last_seq()?, "checking");
    let report = reader.verify_with(&options, |step| {
        let (VerifyStep::Records(done, total) | VerifyStep::Artifacts(done, total)) = step;
        if matches!(step, VerifyStep::Artifacts(..)) {
            bar.set_message("hashing");
        }
        bar.set_length(total);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    if arguments.json {
        print_verify_json(&report, wants_artifacts)?;
    } else {
        print_verify_report(&report);
    }
    Ok(match report.verdict() {
        VerifyConclusion::Clean => CliExit::Done,
        VerifyConclusion::CannotTell | VerifyConclusion::Broken => CliExit::Failed,
    })
}

/// The configuration holds the retention of artifacts. A broken configuration must not prevent the check of the
/// record, so the default applies then.
fn artifacts_place(arguments: &VerifyArgs, folder: PathBuf) -> anyhow::Result<ArtifactsPlace> {
    let settings = settings::resolve(&arguments.settings, &PolicyArgs::default()).ok();
    let retention = settings.map_or_else(RetentionConfig::default, |settings| {
        settings.config.retention
    });
    let kept_for = SignedDuration::try_from(retention.artifacts)?;
    Ok(ArtifactsPlace {
        folder,
        kept_since: environment::now().checked_sub(kept_for)?,
    })
}

fn problems(report: &VerifyReport) -> impl Iterator<Item = String> {
    report.problems.iter().map(|problem| match problem.seq {
        0 => format!("the file: {}", problem.what),
        seq => format!("record {seq}: {}", problem.what),
    })
}

fn print_verify_json(report: &VerifyReport, with_artifacts: bool) -> anyhow::Result<()> {
    let open: Vec<String> = report
        .open_invocations
        .iter()
        .map(ToString::to_string)
        .collect();
    let artifacts = report.artifacts;
    let report = json!({
        "clean": report.is_clean(), "records": report.records, "invocations": report.invocations,
        "first": report.first, "last": report.last, "head": report.head.to_string(),
        "removed_up_to": report.removed_up_to,
        "removed_head": report.removed_head.as_ref().map(ToString::to_string), "open_invocations": open, "first_bad": report.first_bad(),
        "artifacts": {
            "checked": with_artifacts, "named": artifacts.named, "intact": artifacts.intact, "expired": artifacts.expired,
            "bytes": artifacts.bytes,
        },
        "problems": problems(report).collect::<Vec<_>>(), "problems_left_out": report.problems_left_out,
    });
    say!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}

fn print_verify_report(report: &VerifyReport) {
    for problem in problems(report) {
        say!("{} {problem}", styled(RED, "broken:"));
    }
    if report.problems_left_out > 0 {
        say!(
            "{} {} more",
            styled(RED, "broken:"),
            report.problems_left_out
        );
    }
    if let Some(head) = &report.removed_head {
        let why = match head.seq {
            Some(_) => "the sealed record was removed by retention".to_owned(),
            None => format!(
                "the sealed record may be one of those up to {} that were removed by retention",
                report.removed_up_to
            ),
        };
        say!(
            "{} {why}, so `{head}` cannot be checked",
            styled(YELLOW, "unverified:")
        );
    }
    let verdict = match report.verdict() {
        VerifyConclusion::Clean => styled(GREEN, "clean"),
        VerifyConclusion::CannotTell => styled(YELLOW, "the remaining records are intact"),
        VerifyConclusion::Broken => styled(RED, "the record was tampered with or damaged"),
    };
    let records = counted(report.records, "record");
    let calls = counted(report.invocations, "call");
    let open = report.open_invocations.len();
    say!("{verdict}: {records} of {calls}, {open} open");
    if report.removed_up_to > 0 && report.removal_is_sound {
        say!(
            "records up to {} were removed by retention or `journal prune`",
            report.removed_up_to
        );
    } else if report.removed_up_to > 0 {
        say!("records up to {} are missing", report.removed_up_to);
    }
    let artifacts = report.artifacts;
    if artifacts.named > 0 {
        say!(
            "kept results: {} named, {} intact, {} expired",
            artifacts.named,
            artifacts.intact,
            artifacts.expired
        );
    }
    say!("head {}", report.head);
}
