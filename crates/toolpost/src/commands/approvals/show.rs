//! `toolpost approvals list` and `show`.

use clap::Args;
use serde_json::json;

use super::host;
use crate::{
    approving::{
        desk, ids,
        question::{QuestionDetailLevel, card, row},
    },
    cli::PlaceArgs,
    environment,
    exit::CliExit,
    terminal::{DIM, say, styled},
};

#[derive(Args)]
pub(crate) struct ApprovalListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args)]
pub(crate) struct ApprovalShowArgs {
    /// The question: the beginning or the end of its id
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn list(arguments: &ApprovalListArgs) -> anyhow::Result<CliExit> {
    let (mut client, _) = host(&arguments.place).await?;
    let questions = desk::list(&mut client).await?;
    if arguments.json {
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "approvals": questions }))?
        );
        return Ok(CliExit::Done);
    }
    let now = environment::now();
    for question in &questions {
        say!("{}", row(question, now));
    }
    let talk = match questions.as_slice() {
        [] => "no open questions".to_owned(),
        [first, ..] => {
            let id = ids::short(first.ask_id);
            format!(
                "see `toolpost approvals show {id}`; answer with `… allow {id}` or `… deny {id}`"
            )
        }
    };
    anstream::eprintln!("{}", styled(DIM, talk));
    Ok(CliExit::Done)
}

pub(super) async fn show(arguments: &ApprovalShowArgs) -> anyhow::Result<CliExit> {
    let (mut client, _) = host(&arguments.place).await?;
    let questions = desk::list(&mut client).await?;
    let question = ids::find(&questions, &arguments.id)?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(question)?);
        return Ok(CliExit::Done);
    }
    say!(
        "{}",
        card(question, environment::now(), QuestionDetailLevel::Whole).trim_end()
    );
    Ok(CliExit::Done)
}
