//! `toolpost journal`: read and check the record. Reads the database directly, beside a running host or
//! without one: a reader needs no host, and the record must be readable when the host is not.

mod export;
pub(crate) mod story;
mod tail;
mod verify;

use anyhow::Context;
use clap::{Args, Subcommand};
use toolpost_model::InvocationId;
use toolpost_store::{DataDir, DataDirError, JournalReader};

use crate::{
    cli::PlaceArgs,
    exit::Exit,
    settings::{self, Place},
};

#[derive(Args)]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Subcommand)]
enum JournalCommand {
    /// The newest records
    Tail(tail::TailArgs),
    /// One call: its stages, decision, timing and result
    Show(ShowArgs),
    /// The record as lines for other programs: all of it, a session, a time, a call
    Export(export::ExportArgs),
    /// Check that no record was changed, removed or added, and that every call has at most one end
    Verify(verify::VerifyArgs),
}

#[derive(Args)]
struct ShowArgs {
    /// The call
    id: InvocationId,
    /// Print the records as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) fn run(arguments: &JournalArgs) -> anyhow::Result<Exit> {
    match &arguments.command {
        JournalCommand::Tail(arguments) => tail::run(arguments),
        JournalCommand::Export(arguments) => export::run(arguments),
        JournalCommand::Verify(arguments) => verify::run(arguments),
        JournalCommand::Show(arguments) => {
            story::show(&settings::locate(&arguments.place)?, arguments.id, arguments.json)
        }
    }
}

fn open(place: &Place) -> anyhow::Result<JournalReader> {
    let data_dir = match DataDir::at(&place.data_dir) {
        Ok(data_dir) => data_dir,
        Err(DataDirError::Missing { .. }) => {
            anyhow::bail!("nothing was recorded for `{}` yet", place.workspace.display())
        }
        Err(error) => return Err(error.into()),
    };
    let path = data_dir.journal_path();
    JournalReader::open(&path).with_context(|| format!("the journal `{}` cannot be read", path.display()))
}
