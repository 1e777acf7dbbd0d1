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
            "there is no terminal to ask on\nhint: `toolpost approvals --json` is for programs";
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
            "questions are asked here as they come; Ctrl-C ends this"
        )
    );
    prompt::run(desk, tty, Box::new(|_| {})).await?;
    Ok(CliExit::Done)
}
