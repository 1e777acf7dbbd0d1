//! `toolpost approvals watch`: prompts for questions of the running host on this terminal, as they arrive.

use clap::Args;

use super::host;
use crate::{
    approving::{desk::ApprovalDesk, prompt},
    cli::PlaceArgs,
    environment::ControllingTerminal,
    exit::{CliExit, UsageError},
    reach,
    terminal::{DIM, styled},
};

#[derive(Args)]
pub(crate) struct ApprovalWatchArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn run(arguments: &ApprovalWatchArgs) -> anyhow::Result<CliExit> {
    let Some(tty) = ControllingTerminal::open() else {
        let message =
            "there is no terminal for prompts\nhint: in programs, use `toolpost approvals --json`";
        return Err(UsageError(message.into()).into());
    };
    let (client, place) = host(&arguments.place).await?;
    let Some((listening, _)) = reach::running(&place.data_dir).await? else {
        anyhow::bail!("the host has ended");
    };
    let desk = ApprovalDesk::connect_running(client, listening).await?;
    anstream::eprintln!(
        "{}",
        styled(
            DIM,
            "questions appear here as they arrive; press Ctrl-C to stop"
        )
    );
    prompt::run(desk, tty, Box::new(|_| {})).await?;
    Ok(CliExit::Done)
}
