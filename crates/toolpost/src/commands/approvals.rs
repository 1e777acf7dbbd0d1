//! `toolpost approvals`: what waits for a person's answer, and the answer, which goes through the running host.

mod answer;
mod rules;
mod show;
mod watch;

use clap::{Args, Subcommand};

use crate::{
    cli::PlaceArgs,
    client::HostClient,
    exit::CliExit,
    reach,
    settings::{self, WorkspacePaths},
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    command: Option<ApprovalsCommand>,
    #[command(flatten)]
    list: show::ApprovalListArgs,
}

#[derive(Subcommand)]
enum ApprovalsCommand {
    /// List the questions that wait for an answer; the same as no command
    List(show::ApprovalListArgs),
    /// One question with everything there is to know before answering it
    Show(show::ApprovalShowArgs),
    /// Say yes: this once, for the session, or remembered; with other arguments if need be
    Allow(answer::AllowArgs),
    /// Say no, and why
    Deny(answer::DenyArgs),
    /// Answer questions on the terminal as they come
    Watch(watch::ApprovalWatchArgs),
    /// List the rules that answers left behind
    Rules(rules::RulesArgs),
    /// Take a remembered rule back
    Forget(rules::ForgetArgs),
}

pub(crate) async fn run(arguments: ApprovalsArgs) -> anyhow::Result<CliExit> {
    match arguments.command {
        None => show::list(&arguments.list).await,
        Some(ApprovalsCommand::List(list)) => show::list(&list).await,
        Some(ApprovalsCommand::Show(show)) => show::show(&show).await,
        Some(ApprovalsCommand::Allow(allow)) => answer::allow(allow).await,
        Some(ApprovalsCommand::Deny(deny)) => answer::deny(deny).await,
        Some(ApprovalsCommand::Watch(watch)) => watch::run(&watch).await,
        Some(ApprovalsCommand::Rules(rules)) => rules::list(&rules).await,
        Some(ApprovalsCommand::Forget(forget)) => rules::forget(&forget).await,
    }
}

/// The host that the questions wait at.
async fn host(place: &PlaceArgs) -> anyhow::Result<(HostClient, WorkspacePaths)> {
    let place = settings::locate(place)?;
    match reach::running(&place.data_dir).await? {
        Some((client, _)) => Ok((client, place)),
        None => anyhow::bail!(
            "no host runs on `{}`, and questions are answered through one\n\
             hint: start it with `toolpost serve`; what waited for an answer waits again then",
            place.workspace.display()
        ),
    }
}
