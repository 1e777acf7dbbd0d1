//! `toolpost tools`: the tools that can be called here.

mod accept;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolpost_a2e::{ListOptions, ToolApi};
use toolpost_core::{SourceReport, ToolFilter};
use toolpost_model::{SourceProblem, SourceState};

use super::call::connected;
use crate::{
    cli::{PolicyArgs, SettingsArgs},
    exit::{CliExit, UsageError},
    reach::{self, HostPurpose},
    terminal::{self, DIM, printable, say, styled},
};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    command: Option<ToolsCommand>,
    #[command(flatten)]
    list: ToolListArgs,
}

#[derive(Subcommand)]
enum ToolsCommand {
    /// Show definitions that are held back because they are new or changed, and accept them
    Accept(Box<accept::AcceptArgs>),
}

#[derive(Args)]
struct ToolListArgs {
    /// Search words; by default all tools are listed
    query: Vec<String>,
    /// Only tools of this kind, such as `file`
    #[arg(long)]
    kind: Option<String>,
    /// Only tools with this tag; may be repeated, and all must match
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Include deferred tools
    #[arg(long)]
    deferred: bool,
    /// Also list hidden tools, with the reason
    #[arg(long)]
    hidden: bool,
    /// The most tools to list
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Print the list in the format of a provider or protocol: toolpost, openai, anthropic, gemini, mcp, a2e
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Print JSON; the same as `--format toolpost`
    #[arg(long)]
    json: bool,
    /// List the tools of another A2E host: its address, or the command that starts it and uses standard input and
    /// output
    #[arg(long, value_name = "URL|COMMAND", conflicts_with_all = ["hidden", "format"])]
    connect: Option<String>,
    /// A file with the token for `--connect`; by default TOOLPOST_TOKEN
    #[arg(long, value_name = "FILE", requires = "connect")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) async fn run(arguments: ToolsArgs) -> anyhow::Result<CliExit> {
    match arguments.command {
        None => list(arguments.list).await,
        Some(ToolsCommand::Accept(accept)) => accept::run(*accept).await,
    }
}

async fn list(arguments: ToolListArgs) -> anyhow::Result<CliExit> {
    if let Some(to) = &arguments.connect {
        if !arguments.policy.is_empty() || arguments.settings.is_given() {
            let message = "the other host has its own workspace, record and rules\nhint: leave `--connect` out, or those flags";
            return Err(UsageError(message.into()).into());
        }
        return list_elsewhere(to, &arguments).await;
    }
    let mut host = reach::reach(&arguments.settings, &arguments.policy, HostPurpose::Look).await?;
    let is_running = host.is_running();
    let filter = ToolFilter {
        query: arguments.query.join(" "),
        kind: arguments.kind,
        tags: arguments.tags,
        include_deferred: arguments.deferred,
        limit: arguments.limit,
    };
    let format = arguments.format.as_deref().unwrap_or("toolpost");
    let listed = host.list(&filter, format, arguments.hidden).await;
    let unwell = match host.sources().await {
        Ok(sources) => sources.into_iter().filter(is_unwell).collect(),
        // A running host may be older than this program.
        Err(_) => Vec::new(),
    };
    host.close().await;
    let mut listed = listed?;
    if let Some(listed) = listed
        .as_object_mut()
        .filter(|_| !unwell.is_empty() && format == "toolpost")
    {
        listed.insert("sources".to_owned(), json!(unwell));
    }
    let list = listed.get("tools").unwrap_or(&listed);
    let unavailable = listed["unavailable"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let found = list.as_array().is_some_and(|tools| !tools.is_empty());
    if arguments.json || arguments.format.is_some() {
        say!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(status(found, unavailable));
    }
    print(&listed);
    // A host of this process has printed its notices when it was built.
    if is_running {
        unavailable
            .iter()
            .map(unavailable_line)
            .for_each(terminal::warn);
        let notices = listed["notices"].as_array().into_iter().flatten();
        notices
            .filter_map(Value::as_str)
            .map(printable)
            .for_each(terminal::warn);
    }
    unwell
        .iter()
        .flat_map(|report| health_lines(report, unavailable))
        .for_each(terminal::warn);
    if !found {
        anstream::eprintln!(
            "no tools found{}",
            if arguments.deferred {
                ""
            } else {
                "; `--deferred` includes deferred tools"
            }
        );
    }
    Ok(status(found, unavailable))
}

/// The tools of another host, as the protocol lists them.
async fn list_elsewhere(to: &str, arguments: &ToolListArgs) -> anyhow::Result<CliExit> {
    let client = connected::connect(to, arguments.token_file.as_deref()).await?;
    let options = ListOptions {
        query: arguments.query.join(" "),
        kind: arguments.kind.clone().unwrap_or_default(),
        tags: arguments.tags.clone(),
        include_deferred: arguments.deferred,
        ..ListOptions::default()
    };
    let listed = ToolApi::new(&client).list(&options).await;
    client.close_within(connected::GOODBYE).await;
    let listed = listed?;
    let tools: Vec<_> = listed
        .iter()
        .take(arguments.limit.unwrap_or(usize::MAX))
        .collect();
    if arguments.json {
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({ "tools": tools }))?
        );
    } else {
        for tool in &tools {
            say!(
                "{:<24} {}",
                printable(&tool.name),
                printable(first_line(&tool.description))
            );
        }
    }
    Ok(status(!tools.is_empty(), &[]))
}

/// Whether the operator should see the state of a source.
fn is_unwell(report: &SourceReport) -> bool {
    report.health.state == SourceState::Failing || !report.health.quarantined.is_empty()
}

/// The problems of a source, and its tools that are held back. Problems in the list of missing parts are not repeated.
fn health_lines(report: &SourceReport, unavailable: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    let told = unavailable
        .iter()
        .any(|missing| missing["part"] == report.name.as_str());
    if report.health.state == SourceState::Failing && !told {
        let message = report
            .health
            .message
            .as_deref()
            .unwrap_or("it cannot be reached");
        lines.push(format!(
            "`{}` is failing: {}",
            report.name,
            printable(message)
        ));
    }
    let kept = &report.health.quarantined;
    if !kept.is_empty() {
        let shown: Vec<String> = kept
            .iter()
            .take(5)
            .map(|kept| format!("{} ({})", kept.tool, printable(&kept.change)))
            .collect();
        let more = if kept.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        lines.push(format!(
            "definitions of `{}` are held back until you accept them: {}{more}\nhint: toolpost tools accept {}",
            report.name,
            shown.join(", "),
            report.name
        ));
    }
    lines
}

fn status(found: bool, unavailable: &[Value]) -> CliExit {
    match (found, unavailable.iter().all(is_declined)) {
        (_, false) => CliExit::Incomplete,
        (true, true) => CliExit::Done,
        (false, true) => CliExit::Failed,
    }
}

/// Whether a module declined, which is no error.
pub(super) fn is_declined(missing: &Value) -> bool {
    missing["code"] == SourceProblem::DECLINED
}

/// A missing part, with the reason.
pub(super) fn unavailable_line(missing: &Value) -> String {
    match serde_json::from_value::<SourceProblem>(missing.clone()) {
        Ok(problem) => problem.to_string(),
        Err(_) => missing.to_string(),
    }
}

/// The first line of a description with text. Descriptions in Python often begin with a line break.
fn first_line(description: &str) -> &str {
    description
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

fn print(listed: &Value) {
    let text = |value: &Value| printable(value.as_str().unwrap_or_default());
    let tools = listed["tools"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let widest = tools
        .iter()
        .map(|tool| text(&tool["name"]).chars().count())
        .max()
        .unwrap_or_default();
    for tool in tools {
        let description = text(&tool["description"]);
        let first = first_line(&description);
        let mark = if tool["deferred"] == true {
            " (deferred)"
        } else {
            ""
        };
        say!(
            "{:<widest$}  {:<8} {first}{mark}",
            text(&tool["name"]),
            text(&tool["class"])
        );
    }
    for hidden in listed["hidden"].as_array().into_iter().flatten() {
        let line = format!(
            "{} is hidden ({}): {}",
            text(&hidden["name"]),
            text(&hidden["reason"]),
            text(&hidden["explanation"])
        );
        say!("{}", styled(DIM, line));
    }
}
