//! `toolpost call --connect`: the same call on any A2E host, ours or another's.

use std::{path::Path, time::Duration};

use anyhow::Context;
use serde_json::Value;
use toolpost_a2e::{
    CallError, CallEvent, CallOptions, Client, ConnectOptions, HostTransport, ListOptions,
    StderrSink, StdioCommand, ToolApi, ToolResult,
};
use toolpost_model::{ArtifactRef, Disposition, EventBody, LogLevel, Outcome, ToolProgress};

use super::{super::journal::story, CallArgs, shown};
use crate::{
    arguments, environment,
    exit::{CliExit, HostLost, UsageError},
    terminal::{LiveCallDisplay, RED, YELLOW, print_text, printable, say, styled},
};

/// How long a host may take to finish after the call.
pub(crate) const GOODBYE: Duration = Duration::from_secs(2);

pub(super) async fn run(
    to: &str,
    call: &CallArgs,
    input: Option<String>,
    as_json: bool,
) -> anyhow::Result<CliExit> {
    let client = connect(to, call.token_file.as_deref()).await?;
    let outcome = run_call(&ToolApi::new(&client), call, input).await;
    client.close_within(GOODBYE).await;
    let result = outcome?;
    if as_json {
        print_text(format_args!("{}\n", serde_json::to_string(&result)?));
    } else {
        print(&result);
    }
    Ok(exit(&result))
}

/// A client of the host at an address, or of a host that a command starts.
pub(crate) async fn connect(to: &str, token_file: Option<&Path>) -> anyhow::Result<Client> {
    let mut options = ConnectOptions::new("toolpost-call");
    if let Some(token) = environment::given_token(token_file)? {
        options = options.token(token);
    }
    Ok(Client::connect(transport(to)?, options).await?)
}

fn transport(to: &str) -> anyhow::Result<HostTransport> {
    if to.starts_with("http://") || to.starts_with("https://") {
        return Ok(HostTransport::http(to));
    }
    let words = shlex::split(to).filter(|words| !words.is_empty());
    let Some((program, rest)) = words.as_deref().and_then(<[String]>::split_first) else {
        return Err(UsageError(format!("`{to}` is neither an address nor a command")).into());
    };
    Ok(HostTransport::Stdio(
        StdioCommand::new(program)
            .args(rest)
            .stderr(StderrSink::Inherit),
    ))
}

async fn run_call(
    api: &ToolApi,
    call: &CallArgs,
    input: Option<String>,
) -> anyhow::Result<ToolResult> {
    let schema = schema(api, &call.tool).await?;
    let arguments = match input {
        Some(text) => serde_json::from_str(&text).context("the arguments are not JSON")?,
        None => arguments::from_words(&call.words, schema.as_ref())?,
    };
    let mut options = CallOptions::new(&call.tool, arguments).streaming();
    if let Some(seconds) = call.timeout {
        options = options.timeout(Duration::from_secs_f64(seconds));
    }
    let live = LiveCallDisplay::begin(&call.tool, None);
    let ended = follow(api, options, &live).await;
    live.end();
    match ended {
        Err(CallError::HostGone(_) | CallError::SessionLost) => Err(HostLost.into()),
        ended => Ok(ended?),
    }
}

async fn follow(
    api: &ToolApi,
    options: CallOptions,
    live: &LiveCallDisplay,
) -> Result<ToolResult, CallError> {
    let mut running = api.start(options).await?;
    while let Some(event) = running.next_event().await {
        if let CallEvent::Event(event) = event {
            live.show(&read(&event.kind, &event.data.into()));
        }
    }
    running.result().await
}

/// The schema of the tool's arguments. The request includes deferred tools, since an operator who names one has seen
/// it.
async fn schema(api: &ToolApi, tool: &str) -> anyhow::Result<Option<Value>> {
    let all = ListOptions {
        include_deferred: true,
        ..ListOptions::default()
    };
    let tools = api.list(&all).await?;
    Ok(tools
        .iter()
        .find(|known| known.name == tool)
        .map(|known| known.schema().into_owned()))
}

/// Converts an event of the protocol for the terminal.
fn read(kind: &str, data: &Value) -> EventBody {
    let message = data["message"].as_str().unwrap_or_default().to_owned();
    match kind {
        "progress" => EventBody::Progress(ToolProgress {
            message,
            percent: data["pct"].as_f64(),
            done: data["done"].as_u64(),
            total: data["total"].as_u64(),
        }),
        "log" => EventBody::Log {
            level: LogLevel::Info,
            message,
        },
        "artifact" => EventBody::Status {
            message: format!("artifact {}", data["name"].as_str().unwrap_or("")),
        },
        _ => EventBody::Status { message },
    }
}

fn print(result: &ToolResult) {
    match &result.data {
        Some(Value::Object(parts)) if parts.get("text").is_some_and(Value::is_string) => {
            let text = parts["text"].as_str().unwrap_or_default();
            let end = if text.ends_with('\n') { "" } else { "\n" };
            print_text(format_args!("{}{end}", shown(text)));
        }
        Some(Value::String(text)) => print_text(format_args!("{}\n", shown(text))),
        Some(value) => say!(
            "{}",
            serde_json::to_string_pretty(value).unwrap_or_default()
        ),
        None => {}
    }
    for line in aside(result) {
        anstream::eprintln!("{line}");
    }
    if let (None, Some(Value::String(summary))) = (&result.data, &result.summary) {
        anstream::eprintln!("{}", printable(summary));
    }
}

/// The remarks beside the data.
fn aside(result: &ToolResult) -> Vec<String> {
    let warning = styled(YELLOW, "warning:");
    let mut lines: Vec<String> = remarks(result)
        .iter()
        .map(|remark| format!("{warning} {}", printable(remark)))
        .collect();
    if let Some(error) = &result.error {
        let class = result.error_class.map(|class| class.as_str());
        let code = class
            .or(result.error_code.as_deref())
            .unwrap_or("tool_error");
        lines.push(format!(
            "{} {}",
            styled(RED, format!("{code}:")),
            printable(error)
        ));
    }
    if let Some(retry) = &result.retry {
        lines.push(format!("retry: {}", story::guidance(retry)));
    }
    lines
}

/// Facts that the data does not show. Hosts other than Toolpost send fewer of them.
fn remarks(result: &ToolResult) -> Vec<String> {
    let mut remarks = Vec::new();
    if result.outcome == Some(Outcome::Partial) {
        remarks.push("partial: only part of the work was done".to_owned());
    }
    match result.disposition {
        Some(Disposition::Empty) => {
            remarks.push("empty: the tool succeeded without output".to_owned());
        }
        Some(Disposition::RefOnly) => remarks.push("kept, and not shown".to_owned()),
        Some(Disposition::Redacted) => {
            remarks.push("redacted: the content is neither shown nor kept".to_owned());
        }
        Some(Disposition::Dropped) => {
            remarks.push("dropped: content that is not shown here is lost".to_owned());
        }
        Some(Disposition::Inline | Disposition::Preview | Disposition::Synthetic) | None => {}
    }
    if result.truncated {
        remarks.push("only a part is shown".to_owned());
    }
    let kept =
        |one: &ArtifactRef| format!("`{}` is kept as {} ({} bytes)", one.name, one.id, one.size);
    remarks.extend(result.artifacts.iter().map(kept));
    if !result.redactions.is_empty() {
        let kinds: Vec<&str> = result.redactions.0.keys().map(String::as_str).collect();
        remarks.push(format!("secrets were taken out: {}", kinds.join(", ")));
    }
    remarks
}

fn exit(result: &ToolResult) -> CliExit {
    match (result.outcome, result.success, result.error_code.as_deref()) {
        (Some(outcome), _, _) => outcome.into(),
        (None, true, _) => CliExit::Done,
        (None, false, Some("tool_denied")) => Outcome::Denied.into(),
        (None, false, Some("timeout")) => Outcome::TimedOut.into(),
        (None, false, _) => CliExit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use toolpost_a2e::projection::CallResponseView;
    use toolpost_testkit::every_end;

    use super::aside;

    #[test]
    fn no_two_kinds_of_end_of_another_host_look_the_same_on_a_terminal() {
        let mut seen: Vec<(Vec<String>, &str)> = Vec::new();
        for (name, result) in every_end() {
            let id = result.invocation_id.to_string().replace('-', "");
            let answer = CallResponseView::of("r", "tool", &result, &[], usize::MAX).to_message();
            let lines: Vec<String> = aside(&answer.data)
                .into_iter()
                .map(|line| line.replace(&id, "ID"))
                .collect();
            if let Some((_, other)) = seen.iter().find(|(other, _)| *other == lines) {
                panic!("`{name}` looks like `{other}`: {lines:?}");
            }
            seen.push((lines, name));
        }
    }
}
