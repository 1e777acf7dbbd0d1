//! `toolpost explain`: the expected or recorded course of a call, with the reasons.

mod layers;

use clap::Args;
use toolpost_model::InvocationId;

use super::journal::story;
use crate::{
    arguments,
    cli::{PolicyArgs, SettingsArgs},
    exit::CliExit,
    reach::{self, HostPurpose},
    settings,
    terminal::say,
};

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// A tool, or the id of a recorded call
    what: String,
    /// Arguments of the call to explain, as for `call`
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) async fn run(explain: ExplainArgs) -> anyhow::Result<CliExit> {
    if let Ok(id) = explain.what.parse::<InvocationId>() {
        return story::show(
            &settings::locate(&explain.settings.place)?,
            id,
            explain.json,
        );
    }
    let mut host = reach::reach(&explain.settings, &explain.policy, HostPurpose::Look).await?;
    let schema = host.schema(&explain.what).await?;
    let input = arguments::from_words(&explain.words, schema.as_ref())?.to_string();
    let explanation = host.explain(&explain.what, &input).await;
    host.close().await;
    let explanation = explanation?;
    if explain.json {
        say!("{}", serde_json::to_string_pretty(&explanation)?);
    } else {
        layers::print_explanation(&explanation);
    }
    Ok(if explanation["would_run"] == true {
        CliExit::Done
    } else {
        CliExit::Denied
    })
}
