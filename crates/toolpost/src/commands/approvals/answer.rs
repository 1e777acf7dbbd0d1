//! `toolpost approvals allow` and `deny`.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use toolpost_config::ConfigDuration;
use toolpost_model::{ApprovalScope, PermissionRequest, Verdict};

use super::host;
use crate::{
    approving::{
        desk::{self, ApprovalDesk},
        editing::{self, ArgumentEditOutcome, changes},
        ids,
        receipt::saved_rules,
    },
    cli::PlaceArgs,
    environment::{self, ControllingTerminal},
    exit::{CliExit, UsageError},
    terminal::{moment, say, spelled_out},
};

#[derive(Args)]
pub(crate) struct AllowArgs {
    /// The question: the beginning or the end of its id
    id: String,
    /// Also allow similar calls until the session or the host ends
    #[arg(long, conflicts_with_all = ["remember", "source_reads", "edit"])]
    session: bool,
    /// Also allow similar calls in this workspace from now on
    #[arg(long, conflicts_with_all = ["source_reads", "edit"])]
    remember: bool,
    /// Also allow the tools of its server that the question marks as only reading, as they are defined now
    #[arg(long, conflicts_with_all = ["rule", "edit"])]
    source_reads: bool,
    /// How long a remembered rule is valid, such as 12h or 30d
    #[arg(long = "for", value_name = "TIME", value_parser = days_or_less)]
    valid_for: Option<Duration>,
    /// A suggested rule, by its number or text; by default the first
    #[arg(long, value_name = "NUMBER|TEXT")]
    rule: Option<String>,
    /// Edit the arguments in $VISUAL or $EDITOR first
    #[arg(long, conflicts_with = "arguments")]
    edit: bool,
    /// Run it with these arguments: a JSON object, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args)]
pub(crate) struct DenyArgs {
    /// The question: the beginning or the end of its id
    id: String,
    /// The reason, or an alternative for the agent; the agent reads it
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn allow(arguments: AllowArgs) -> anyhow::Result<CliExit> {
    if arguments.rule.is_some() && !arguments.session && !arguments.remember {
        let message =
            "`--rule` requires `--session` or `--remember`: a one-time approval creates no rule";
        return Err(UsageError(message.into()).into());
    }
    if arguments.valid_for.is_some() && !arguments.remember && !arguments.source_reads {
        let message =
            "`--for` requires `--remember` or `--source-reads`: no other answer is remembered";
        return Err(UsageError(message.into()).into());
    }
    let (mut client, place) = host(&arguments.place).await?;
    let questions = desk::list(&mut client).await?;
    let question = ids::find(&questions, &arguments.id)?;
    if arguments.edit {
        // The desk's second connection reports changes, which an edit does not need.
        let listening = crate::reach::running(&place.data_dir)
            .await?
            .map(|(client, _)| client);
        let Some(listening) = listening else {
            anyhow::bail!("the host has ended")
        };
        let mut desk = ApprovalDesk::connect_running(client, listening).await?;
        let mut tty = ControllingTerminal::open();
        return match editing::edit(&mut desk, tty.as_mut(), question).await? {
            ArgumentEditOutcome::Allowed(decided) => print_decision(
                &decided,
                question,
                "with the edited arguments",
                arguments.json,
            ),
            ArgumentEditOutcome::Kept => {
                anstream::eprintln!(
                    "no changes; question {} stays open",
                    ids::short(question.ask_id)
                );
                Ok(CliExit::Failed)
            }
        };
    }
    let scope = match (
        arguments.session,
        arguments.remember,
        arguments.source_reads,
    ) {
        (true, _, _) => ApprovalScope::Session,
        (_, true, _) => ApprovalScope::Remember,
        (_, _, true) => ApprovalScope::SourceReads,
        (false, false, false) => ApprovalScope::Once,
    };
    let verdict = Verdict::Allow {
        scope,
        rule: arguments
            .rule
            .as_deref()
            .map(|rule| chosen(question, rule))
            .transpose()?,
        valid_for_seconds: arguments.valid_for.map(|time| time.as_secs()),
        arguments: arguments
            .arguments
            .as_deref()
            .map(parse_arguments)
            .transpose()?,
    };
    let decided = desk::decide(&mut client, question.ask_id, &verdict).await?;
    print_decision(&decided, question, "", arguments.json)
}

pub(super) async fn deny(arguments: DenyArgs) -> anyhow::Result<CliExit> {
    let (mut client, _) = host(&arguments.place).await?;
    let questions = desk::list(&mut client).await?;
    let question = ids::find(&questions, &arguments.id)?;
    let verdict = Verdict::Deny {
        feedback: arguments.feedback,
    };
    let decided = desk::decide(&mut client, question.ask_id, &verdict).await?;
    print_decision(&decided, question, "", arguments.json)
}

/// A suggested rule by its number, from 1, or by its text.
fn chosen(question: &PermissionRequest, rule: &str) -> anyhow::Result<String> {
    let rules = &question.suggestions;
    let by_number = rule
        .parse::<usize>()
        .ok()
        .and_then(|number| rules.get(number.checked_sub(1)?));
    by_number
        .or_else(|| rules.iter().find(|known| *known == rule))
        .cloned()
        .ok_or_else(|| {
            let offered = match rules.as_slice() {
                [] => {
                    "no rule can be offered for this call; it can only be allowed once".to_owned()
                }
                some => format!("choose one of\n  {}", some.join("\n  ")),
            };
            UsageError(format!("`{rule}` is not a suggested rule\nhint: {offered}")).into()
        })
}

fn parse_arguments(text: &str) -> anyhow::Result<Value> {
    let text = match text.strip_prefix('@') {
        Some(file) => environment::read_arguments(file)?,
        None if text == "-" => environment::read_arguments("-")?,
        None => text.to_owned(),
    };
    serde_json::from_str(&text)
        .map_err(|error| UsageError(format!("the arguments are not JSON: {error}")).into())
}

fn print_decision(
    decided: &Value,
    question: &PermissionRequest,
    how: &str,
    as_json: bool,
) -> anyhow::Result<CliExit> {
    if as_json {
        say!("{}", serde_json::to_string_pretty(decided)?);
        return Ok(CliExit::Done);
    }
    let how = if how.is_empty() {
        String::new()
    } else {
        format!(", {how}")
    };
    say!(
        "{} ({}): {}{how}",
        ids::short(question.ask_id),
        spelled_out(&question.summary),
        describe_decision(decided)
    );
    for rule in saved_rules(decided) {
        say!("  remembered {rule}");
    }
    for change in changes(decided) {
        say!("  {change}");
    }
    Ok(CliExit::Done)
}

/// The outcome of the question, in a few words.
fn describe_decision(decided: &Value) -> String {
    let decided = &decided["decided"];
    let text = |name: &str| decided[name].as_str().map(spelled_out);
    let kept = match text("kept_until") {
        Some(until) => {
            format!(
                "; no call waits now, so the answer is kept for one identical call until {}",
                moment(&until)
            )
        }
        None => String::new(),
    };
    let what = match (&decided["allowed"], text("rule"), &decided["remembered"]) {
        (Value::Bool(false), _, _) => "denied".to_owned(),
        (_, None, _) => "allowed once".to_owned(),
        (_, Some(rule), Value::Null) => format!("allowed, and for the session by `{rule}`"),
        (_, Some(rule), remembered) => {
            let until = moment(remembered["expires"].as_str().unwrap_or_default());
            format!("allowed, and remembered as `{rule}` until {until}")
        }
    };
    format!("{what}{kept}")
}

/// `30d`, or a duration of the configuration.
fn days_or_less(text: &str) -> Result<Duration, String> {
    if let Some(days) = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<u32>().ok())
    {
        return Ok(Duration::from_secs(u64::from(days) * 86_400));
    }
    text.parse::<ConfigDuration>()
        .map(Into::into)
        .map_err(|_| format!("`{text}` is not a duration such as 12h or 30d"))
}
