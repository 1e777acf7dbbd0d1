//! `toolpost approvals rules` and `forget`: the remembered rules. They also work without a running host, on the file
//! that it would read.

use clap::Args;
use hyper::Method;
use serde_json::json;
use toolpost_core::{RememberedRule, RuleStore as _};
use toolpost_store::{DataDir, DataDirError, RulesFile};

use crate::{
    approving::desk::VerdictRefusal,
    cli::PlaceArgs,
    client::HostClient,
    environment,
    exit::{CliExit, UsageError},
    reach, settings,
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

/// The digits of a rule's id that are shown.
const SHORT: usize = 8;

/// The keeper of the rules: the running host, or the file that it would read.
enum RuleKeeper {
    Host(HostClient),
    File(RulesFile),
}

impl RuleKeeper {
    async fn find(place: &PlaceArgs) -> anyhow::Result<Option<Self>> {
        let place = settings::locate(place)?;
        if let Some((client, _)) = reach::running(&place.data_dir).await? {
            return Ok(Some(Self::Host(client)));
        }
        match DataDir::at(&place.data_dir) {
            Ok(data_dir) => Ok(Some(Self::File(RulesFile::new(&data_dir)))),
            Err(DataDirError::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The rules that are still in force.
    async fn rules(&mut self) -> anyhow::Result<Vec<RememberedRule>> {
        match self {
            Self::Host(client) => remembered(client).await,
            Self::File(file) => {
                let mut rules = file.load()?;
                rules.retain(|rule| rule.expires > environment::now());
                Ok(rules)
            }
        }
    }

    async fn forget(&mut self, rule: &RememberedRule) -> anyhow::Result<()> {
        match self {
            Self::Host(client) => {
                let path = format!("/rules/{}", rule.id);
                let (status, body) = client.json(Method::DELETE, &path, String::new()).await?;
                if status.is_success() {
                    Ok(())
                } else {
                    Err(VerdictRefusal::from_error_body(&body).into())
                }
            }
            Self::File(file) => {
                file.forget(&rule.id)?;
                Ok(())
            }
        }
    }
}

async fn remembered(client: &mut HostClient) -> anyhow::Result<Vec<RememberedRule>> {
    let (status, mut body) = client.json(Method::GET, "/rules", String::new()).await?;
    if !status.is_success() {
        return Err(VerdictRefusal::from_error_body(&body).into());
    }
    Ok(serde_json::from_value(body["rules"].take())?)
}

pub(super) async fn list(arguments: &RulesArgs) -> anyhow::Result<CliExit> {
    let rules = match RuleKeeper::find(&arguments.place).await? {
        Some(mut keeper) => keeper.rules().await?,
        None => Vec::new(),
    };
    if arguments.json {
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "rules": rules }))?
        );
        return Ok(CliExit::Done);
    }
    for rule in &rules {
        let owner = rule
            .principal
            .as_deref()
            .map(|name| format!(" for {}", spelled_out(name)));
        let bound = rule.definition.as_deref().map(|digest| {
            let digest: String = digest.chars().take(SHORT).collect();
            format!(", as defined then ({})", spelled_out(&digest))
        });
        let facts = format!(
            "by {} on {}{}, until {}",
            spelled_out(rule.by.as_str()),
            rule.at.strftime("%Y-%m-%d"),
            bound.unwrap_or_default(),
            rule.expires.strftime("%Y-%m-%d %H:%M")
        );
        let line = format!("{}{}", spelled_out(&rule.rule), owner.unwrap_or_default());
        say!(
            "{}  {line}  {}",
            styled(BOLD, short(&rule.id)),
            styled(DIM, facts)
        );
    }
    if rules.is_empty() {
        anstream::eprintln!("{}", styled(DIM, "no remembered rules"));
    }
    Ok(CliExit::Done)
}

pub(super) async fn forget(arguments: &ForgetArgs) -> anyhow::Result<CliExit> {
    let mut keeper = RuleKeeper::find(&arguments.place).await?;
    let rules = match &mut keeper {
        Some(keeper) => keeper.rules().await?,
        None => Vec::new(),
    };
    let rule = find(&rules, &arguments.id)?;
    if let Some(keeper) = &mut keeper {
        keeper.forget(rule).await?;
    }
    if arguments.json {
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "forgotten": rule.id }))?
        );
    } else {
        say!("forgot `{}`", spelled_out(&rule.rule));
    }
    Ok(CliExit::Done)
}

fn digits(id: &str) -> String {
    id.chars().filter(|&c| c != '-').collect()
}

fn short(id: &str) -> String {
    let digits = digits(id);
    let start = digits
        .char_indices()
        .rev()
        .nth(SHORT - 1)
        .map_or(0, |(place, _)| place);
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
            "no remembered rule has the id `{typed}`\nhint: list them with `toolpost approvals rules`"
        ),
        (Some(_), Some(_)) => Err(UsageError(format!(
            "`{typed}` matches more than one rule\nhint: give more digits"
        ))
        .into()),
    }
}
