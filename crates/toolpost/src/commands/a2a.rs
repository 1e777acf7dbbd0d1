//! `toolpost a2a`: tool events of other agents, without a host.

mod lines;
mod normalize;

use clap::{Args, Subcommand};

use crate::exit::CliExit;

#[derive(Args)]
pub(crate) struct A2aArgs {
    #[command(subcommand)]
    command: A2aCommand,
}

#[derive(Subcommand)]
enum A2aCommand {
    /// Merge tool events of any vocabulary into one part per call
    Normalize(normalize::NormalizeArgs),
}

pub(crate) fn run(arguments: &A2aArgs) -> anyhow::Result<CliExit> {
    match &arguments.command {
        A2aCommand::Normalize(arguments) => normalize::run(arguments),
    }
}
