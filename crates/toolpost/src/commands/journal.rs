//! `toolpost journal`: reads and checks the record. It reads the database directly, with or without a running host:
//! the record must be readable when the host is down.

mod export;
mod filters;
mod line;
mod prune;
pub(crate) mod replay;
mod seal;
mod search;
pub(crate) mod story;
mod tail;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Subcommand};
use toolpost_model::InvocationId;
use toolpost_store::{DataDir, DataDirError, JournalReader};

use crate::{
    cli::PlaceArgs,
    exit::CliExit,
    settings::{self, WorkspacePaths},
};

pub(super) use filters::moment;

#[derive(Args)]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand)]
enum JournalCommand {
    /// Show the newest records
    Tail(tail::TailArgs),
    /// Search calls by tool, caller, outcome, time or words, newest first
    Search(search::JournalSearchArgs),
    /// Show one call: its stages, decision, timing and result
    Show(JournalShowArgs),
    /// Export the record, or a part of it, as lines for other programs
    Export(export::ExportArgs),
    /// Check that no record was changed, removed or added, and that kept results are unchanged
    Verify(verify::VerifyArgs),
    /// Sync the record to disk and print its head, for safekeeping where the host cannot write
    Seal(seal::SealArgs),
    /// Remove the oldest records while no host runs; the rest can still be checked
    Prune(prune::JournalPruneArgs),
    /// Serve a recorded session as a host: same tools, same answers, without running any tool
    Replay(replay::ReplayArgs),
}

impl JournalArgs {
    pub(crate) fn talks_over_pipes(&self) -> bool {
        matches!(&self.command, JournalCommand::Replay(arguments) if arguments.talks_over_pipes())
    }
}

#[derive(Args)]
struct JournalShowArgs {
    /// The id of the call
    id: InvocationId,
    /// Print the records as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(arguments: &JournalArgs) -> anyhow::Result<CliExit> {
    match &arguments.command {
        JournalCommand::Tail(arguments) => tail::run(arguments),
        JournalCommand::Search(arguments) => search::run(arguments),
        JournalCommand::Export(arguments) => export::run(arguments),
        JournalCommand::Verify(arguments) => verify::run(arguments),
        JournalCommand::Seal(arguments) => seal::run(arguments),
        JournalCommand::Prune(arguments) => prune::run(arguments),
        JournalCommand::Replay(arguments) => crate::runtime()?.block_on(replay::run(arguments)),
        JournalCommand::Show(arguments) => story::show(
            &settings::locate(&arguments.place)?,
            arguments.id,
            arguments.json,
        ),
    }
}

fn open(place: &WorkspacePaths) -> anyhow::Result<JournalReader> {
    let path = journal_of(place)?;
    JournalReader::open(&path)
        .with_context(|| format!("the journal `{}` cannot be read", path.display()))
}

fn journal_of(place: &WorkspacePaths) -> anyhow::Result<PathBuf> {
    match DataDir::at(&place.data_dir) {
        Ok(data_dir) => Ok(data_dir.journal_path()),
        Err(DataDirError::Missing { .. }) => {
            anyhow::bail!(
                "nothing was recorded for `{}` yet",
                place.workspace.display()
            )
        }
        Err(error) => Err(error.into()),
    }
}

/// A journal, and the folder of its kept results.
struct JournalPaths {
    journal: PathBuf,
    blobs: PathBuf,
}

/// The record of a workspace, or a copy of one: its file, or the file's folder.
fn files(elsewhere: Option<&Path>, place: &PlaceArgs) -> anyhow::Result<JournalPaths> {
    let journal = match elsewhere {
        Some(folder) if folder.is_dir() => folder.join("journal.db"),
        Some(file) => file.to_owned(),
        None => journal_of(&settings::locate(place)?)?,
    };
    let blobs = journal.with_file_name("blobs");
    Ok(JournalPaths { journal, blobs })
}
