//! `toolpost tools`: what can be called here.

use clap::Args;
use serde_json::Value;
use toolpost_core::ToolFilter;
use toolpost_model::SourceProblem;

use crate::{
    cli::{PlaceArgs, PolicyArgs},
    exit::Exit,
    reach::{self, Purpose, Reached},
    terminal::{self, DIM, printable, say, styled},
};

#[derive(Args)]
pub(crate) struct ToolsArgs {
    /// Search words; without any, everything is listed
    query: Vec<String>,
    /// Only tools of this kind, such as `file`
    #[arg(long)]
    kind: Option<String>,
    /// Only tools that have this tag; may be repeated, and all must fit
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Deferred tools too
    #[arg(long)]
    deferred: bool,
    /// Also what is hidden, and why
    #[arg(long)]
    hidden: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Print the list as model providers and protocols take it: toolpost, openai, anthropic, gemini, mcp, a2e
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Print JSON; the same as `--format toolpost`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) async fn run(arguments: ToolsArgs) -> anyhow::Result<Exit> {
    let mut host = reach::reach(&arguments.place, &arguments.policy, Purpose::Look).await?;
    let is_running = matches!(host, Reached::Running(_));
    let filter = ToolFilter {
        query: arguments.query.join(" "),
        kind: arguments.kind,
        tags: arguments.tags,
        include_deferred: arguments.deferred,
        limit: arguments.limit,
    };
    let format = arguments.format.as_deref().unwrap_or("toolpost");
    let listed = host.list(&filter, format, arguments.hidden).await;
    host.close().await;
    let listed = listed?;
    let list = listed.get("tools").unwrap_or(&listed);
    let unavailable = listed["unavailable"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = list.as_array().is_some_and(|tools| !tools.is_empty());
    if arguments.json || arguments.format.is_some() {
        say!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(status(found, unavailable));
    }
    print(&listed);
    // A host of our own has told its notices when it was made.
    if is_running {
        unavailable.iter().map(unavailable_line).for_each(terminal::warn);
    }
    if !found {
        anstream::eprintln!(
            "nothing found{}",
            if arguments.deferred { "" } else { "; deferred tools are searched with `--deferred`" }
        );
    }
    Ok(status(found, unavailable))
}

fn status(found: bool, unavailable: &[Value]) -> Exit {
    match (found, unavailable) {
        (_, [_, ..]) => Exit::Incomplete,
        (true, []) => Exit::Done,
        (false, []) => Exit::Failed,
    }
}

/// What is not there, and why.
pub(super) fn unavailable_line(missing: &Value) -> String {
    match serde_json::from_value::<SourceProblem>(missing.clone()) {
        Ok(problem) => problem.to_string(),
        Err(_) => missing.to_string(),
    }
}

fn print(listed: &Value) {
    let text = |value: &Value| printable(value.as_str().unwrap_or_default());
    let tools = listed["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let widest = tools.iter().map(|tool| text(&tool["name"]).chars().count()).max().unwrap_or_default();
    for tool in tools {
        let description = text(&tool["description"]);
        let first = description.lines().next().unwrap_or_default();
        let mark = if tool["deferred"] == true { " (deferred)" } else { "" };
        say!("{:<widest$}  {:<8} {first}{mark}", text(&tool["name"]), text(&tool["class"]));
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
