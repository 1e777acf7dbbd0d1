//! `toolpost approvals rules` and `forget`: what a yes left behind.

use clap::Args;
use hyper::Method;
use serde_json::{Value, json};
use toolpost_core::RememberedRule;

use super::host;
use crate::{
    approving::desk::Refusal,
    cli::PlaceArgs,
    client::Client,
    exit::{Exit, UsageError},
    terminal::{BOLD, DIM, say, spelled_out, styled},
};

#[derive(Args)]
pub(crate) struct RulesArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args)]
pub(crate) struct ForgetArgs {
    /// The rule: the beginning or the end of its id
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// The digits by which a rule is shown.
const SHORT: usize = 8;

async fn remembered(client: &mut Client) -> anyhow::Result<Vec<RememberedRule>> {
    let (status, mut body) = client.json(Method::GET, "/rules", String::new()).await?;
    if !status.is_success() {
        return Err(Refusal::told(&body).into());
    }
    Ok(serde_json::from_value(body["rules"].take())?)
}

pub(super) async fn list(arguments: &RulesArgs) -> anyhow::Result<Exit> {
    let (mut client, _) = host(&arguments.place).await?;
    let rules = remembered(&mut client).await?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&json!({ "rules": rules }))?);
        return Ok(Exit::Done);
    }
    for rule in &rules {
        let whose = rule.principal.as_deref().map(|name| format!(" for {}", spelled_out(name)));
        let facts = format!(
            "by {} on {}, until {}",
            spelled_out(rule.by.as_str()),
            rule.at.strftime("%Y-%m-%d"),
            rule.expires.strftime("%Y-%m-%d %H:%M")
        );
        let line = format!("{}{}", spelled_out(&rule.rule), whose.unwrap_or_default());
        say!("{}  {line}  {}", styled(BOLD, short(&rule.id)), styled(DIM, facts));
    }
    if rules.is_empty() {
        anstream::eprintln!("{}", styled(DIM, "no answer was remembered"));
    }
    Ok(Exit::Done)
}

pub(super) async fn forget(arguments: &ForgetArgs) -> anyhow::Result<Exit> {
    let (mut client, _) = host(&arguments.place).await?;
    let rules = remembered(&mut client).await?;
    let rule = find(&rules, &arguments.id)?;
    let (status, body) = client.json(Method::DELETE, &format!("/rules/{}", rule.id), String::new()).await?;
    if !status.is_success() {
        return Err(Refusal::told(&body).into());
    }
    if arguments.json {
        say!("{}", serde_json::to_string_pretty::<Value>(&body)?);
    } else {
        say!("forgot `{}`", spelled_out(&rule.rule));
    }
    Ok(Exit::Done)
}

fn digits(id: &str) -> String {
    id.chars().filter(|&c| c != '-').collect()
}

fn short(id: &str) -> String {
    let digits = digits(id);
    let start = digits.char_indices().rev().nth(SHORT - 1).map_or(0, |(place, _)| place);
    digits[start..].to_owned()
}

fn find<'a>(rules: &'a [RememberedRule], typed: &str) -> anyhow::Result<&'a RememberedRule> {
    let wanted = digits(typed).to_ascii_lowercase();
    let fits = |rule: &&RememberedRule| {
        let id = digits(&rule.id);
        wanted.len() >= 4 && (id.starts_with(&wanted) || id.ends_with(&wanted))
    };
    let mut found = rules.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => anyhow::bail!(
            "no remembered rule is called `{typed}`\nhint: `toolpost approvals rules` lists them"
        ),
        (Some(_), Some(_)) => {
            Err(UsageError(format!("more than one rule is called `{typed}`\nhint: give more digits")).into())
        }
    }
}
