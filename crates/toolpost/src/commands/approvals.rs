//! `toolpost approvals`: the open questions, and answers to them through the running host.

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
    /// List the open questions; the default without a subcommand
    List(show::ApprovalListArgs),
    /// Show one question with all its details
    Show(show::ApprovalShowArgs),
    /// Allow the call: once, for the session, or with a remembered rule; with other arguments if need be
    Allow(answer::AllowArgs),
    /// Deny the call, with a reason
    Deny(answer::DenyArgs),
    /// Prompt for open questions on the terminal as they arrive
    Watch(watch::ApprovalWatchArgs),
    /// List the remembered rules
    Rules(rules::RulesArgs),
    /// Delete a remembered rule
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

/// The running host with the questions.
async fn host(place: &PlaceArgs) -> anyhow::Result<(HostClient, WorkspacePaths)> {
    let place = settings::locate(place)?;
    match reach::running(&place.data_dir).await? {
        Some((client, _)) => Ok((client, place)),
        None => anyhow::bail!(
            "no host runs on `{}`; approvals require a running host\n\
             hint: start it with `toolpost serve`; it opens unanswered questions again",
            place.workspace.display()
        ),
    }
}
