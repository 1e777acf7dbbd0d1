//! `toolpost artifacts`: reads kept results directly from the data directory, with or without a running host, and
//! removes them while none runs.

mod get;
mod list;
mod prune;

use anyhow::Context;
use clap::{Args, Subcommand};
use toolpost_core::{CallRecordBody, RecordKind, RecordedResultFields, StoredRecord};
use toolpost_model::{ArtifactRef, ToolId};
use toolpost_store::{BlobFiles, DataDir, DataDirError, JournalReader};

use crate::{exit::CliExit, settings::WorkspacePaths};

#[derive(Args)]
pub(crate) struct ArtifactsArgs {
    #[command(subcommand)]
    command: ArtifactsCommand,
}

#[derive(Subcommand)]
enum ArtifactsCommand {
    /// Write a kept result to standard output or to a file
    Get(get::GetArgs),
    /// List the newest kept results
    List(list::ArtifactListArgs),
    /// Remove the oldest kept results while no host runs
    Prune(prune::ArtifactPruneArgs),
}

pub(crate) fn run(arguments: &ArtifactsArgs) -> anyhow::Result<CliExit> {
    match &arguments.command {
        ArtifactsCommand::Get(arguments) => get::run(arguments),
        ArtifactsCommand::List(arguments) => list::run(arguments),
        ArtifactsCommand::Prune(arguments) => prune::run(arguments),
    }
}

/// The records and the files of one data directory.
struct ArtifactReader {
    journal: JournalReader,
    files: BlobFiles,
}

impl ArtifactReader {
    fn open(place: &WorkspacePaths) -> anyhow::Result<Self> {
        let data_dir = match DataDir::at(&place.data_dir) {
            Ok(data_dir) => data_dir,
            Err(DataDirError::Missing { .. }) => {
                anyhow::bail!(
                    "nothing was recorded for `{}` yet",
                    place.workspace.display()
                )
            }
            Err(error) => return Err(error.into()),
        };
        let path = data_dir.journal_path();
        let journal = JournalReader::open(&path)
            .with_context(|| format!("the journal `{}` cannot be read", path.display()))?;
        Ok(Self {
            journal,
            files: BlobFiles::at(&data_dir),
        })
    }
}

/// The artifacts in the last record of a call, and the tool of the call.
fn kept_by(row: &StoredRecord) -> Option<(Option<ToolId>, Vec<ArtifactRef>)> {
    if row.record.kind != RecordKind::Ended {
        return None;
    }
    let body: CallRecordBody<'_> = row.record.read_body().ok()?;
    let head: RecordedResultFields = body.result?.read_as().ok()?;
    let artifacts = head.artifacts().ok().filter(|list| !list.is_empty())?;
    let tool = body.tool_id.and_then(|id| id.read().ok());
    Some((tool, artifacts))
}
