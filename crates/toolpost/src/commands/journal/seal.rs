//! `toolpost journal seal`: prints a head for safekeeping where the host cannot write.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use toolpost_store::JournalReader;

use super::files;
use crate::{cli::PlaceArgs, exit::CliExit, terminal::say};

#[derive(Args)]
pub(super) struct SealArgs {
    /// A journal elsewhere: the file, or its folder
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn run(arguments: &SealArgs) -> anyhow::Result<CliExit> {
    let journal = files(arguments.journal.as_deref(), &arguments.place)?.journal;
    let head = JournalReader::seal(&journal)
        .with_context(|| format!("the journal `{}` cannot be sealed", journal.display()))?;
    if arguments.json {
        say!(
            "{}",
            json!({ "head": head.to_string(), "seq": head.seq, "hash": const_hex::encode(head.hash) })
        );
    } else {
        say!("{head}");
    }
    Ok(CliExit::Done)
}
