//! `toolpost call NAME key=value…`: one call from the command line.

pub(super) mod connected;

use std::path::PathBuf;

use clap::Args;
use toolpost_model::{
    ApprovalStatus, ErrorClass, EventBody, InvocationId, ResultContent, ToolResult,
};

use super::journal::story;
use crate::{
    approving::ids,
    arguments,
    cli::{PolicyArgs, SettingsArgs},
    environment,
    exit::{CallInterruptedError, CliExit, UsageError},
    reach::{self, CallTimes, HostPurpose, ReachedHost},
    terminal::{LiveCallDisplay, RED, YELLOW, print_text, printable, say, styled},
};

/// A day: the host's own ceiling is far below.
const LONGEST_TIMEOUT: f64 = 86_400.0;

#[derive(Args)]
pub(crate) struct CallArgs {
    /// The tool, by name or id
    tool: String,
    /// Arguments: `key=value` in the type of the schema, `key:=JSON` as JSON
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// Print the whole result as JSON; with a value, also take the arguments from it: `-` for standard input,
    /// `@FILE` for a file, or the object itself
    #[arg(long, value_name = "INPUT", num_args = 0..=1, default_missing_value = "")]
    json: Option<String>,
    /// Stop the call after this many seconds of work. With a running host, also limit the wait for approval or a free
    /// slot to that time, unless `--patience` is given
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// With a running host, wait at most this many seconds for approval or a free slot. The question stays open: after
    /// an approval, the same command runs the call
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["connect", "no_prompt"])]
    patience: Option<f64>,
    /// Call on another A2E host: its address, or the command that starts it and uses standard input and output
    #[arg(long, value_name = "URL|COMMAND")]
    connect: Option<String>,
    /// A file with the token for `--connect`; by default TOOLPOST_TOKEN
    #[arg(long, value_name = "FILE", requires = "connect")]
    token_file: Option<PathBuf>,
    /// Call in a session of the running host, as its owner: the session's page and its agent see the call
    #[arg(long, value_name = "ID", conflicts_with = "connect")]
    session: Option<String>,
    /// Do not wait for approval. With a running host, a call that needs it ends as `approval_pending` and its question
    /// stays open; otherwise it is denied
    #[arg(long)]
    no_prompt: bool,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) async fn run(mut call: CallArgs) -> anyhow::Result<CliExit> {
    let as_json = call.json.is_some();
    let input = json_input(call.json.take(), &mut call.words)?;
    for (flag, given) in [("--timeout", call.timeout), ("--patience", call.patience)] {
        if given.is_some_and(|seconds| !(seconds > 0.0 && seconds <= LONGEST_TIMEOUT)) {
            return Err(UsageError(format!(
                "`{flag}` must be more than 0 seconds and at most a day"
            ))
            .into());
        }
    }
    // Mistakes that are visible without the tool are reported before modules are fetched and processes started.
    match &input {
        Some(_) if !call.words.is_empty() => return Err(both_kinds()),
        Some(_) => {}
        None => drop(arguments::from_words(&call.words, None)?),
    }
    if let Some(to) = call.connect.take() {
        if !call.policy.is_empty() || call.settings.is_given() {
            let message = "the other host has its own workspace, record and rules\nhint: leave `--connect` out, or those flags";
            return Err(UsageError(message.into()).into());
        }
        return connected::run(&to, &call, input, as_json).await;
    }
    let purpose = if call.no_prompt {
        HostPurpose::CallUnasked
    } else {
        HostPurpose::Call
    };
    let mut host = reach::reach(&call.settings, &call.policy, purpose).await?;
    if let Some(session) = &call.session {
        host.select_session(session)?;
    }
    let outcome = tokio::select! {
        outcome = run_on(&mut host, &call, input) => outcome,
        // The record should show that the call was stopped, not that its host vanished.
        _ = tokio::signal::ctrl_c() => Err(CallInterruptedError.into()),
    };
    host.close().await;
    let (result, json) = outcome?;
    if as_json {
        print_text(format_args!("{json}\n"));
    } else {
        print(&result);
    }
    if let Some(ask_id) = pending_question(&result) {
        anstream::eprintln!("{}", how_to_answer(ask_id));
    }
    Ok(result.outcome.into())
}

/// The parser reads `--json path=x` as a flag with a value, but it means a flag followed by an argument.
fn json_input(given: Option<String>, words: &mut Vec<String>) -> anyhow::Result<Option<String>> {
    match given {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) if text == "-" => Ok(Some(environment::read_arguments("-")?)),
        Some(text) if text.starts_with('@') => Ok(Some(environment::read_arguments(&text[1..])?)),
        Some(text) if text.starts_with(['{', '[']) => Ok(Some(text)),
        Some(text) if text.contains('=') => {
            words.insert(0, text);
            Ok(None)
        }
        Some(text) => Err(UsageError(format!(
            "`{text}` is neither `-`, `@FILE` nor a JSON object"
        ))
        .into()),
    }
}

async fn run_on(
    host: &mut ReachedHost,
    call: &CallArgs,
    input: Option<String>,
) -> anyhow::Result<(ToolResult, String)> {
    // An operator who names a deferred tool has seen it. This request also returns the schema of the arguments.
    let schema = host.schema(&call.tool).await?;
    let text = match input {
        Some(text) => text,
        None => arguments::from_words(&call.words, schema.as_ref())?.to_string(),
    };
    let patience = if call.no_prompt {
        Some(0.0)
    } else {
        call.patience
    };
    let times = CallTimes {
        timeout: call.timeout,
        patience,
    };
    let live = LiveCallDisplay::begin(&call.tool, times.longest_wait());
    let asking = host.spawn_prompt(&live);
    let outcome = host
        .call(&call.tool, &text, times, |event| match event {
            // The prompt on this terminal, or the result, reports it.
            EventBody::Approval(ApprovalStatus::Pending { .. })
                if asking.is_some() || call.no_prompt => {}
            event => live.show(&event),
        })
        .await;
    live.end();
    outcome
}

/// The open question of a call that was not waited for.
fn pending_question(result: &ToolResult) -> Option<InvocationId> {
    let error = result
        .error
        .as_ref()
        .filter(|error| error.class == ErrorClass::ApprovalPending)?;
    error
        .details
        .as_ref()?
        .get("ask_id")?
        .as_str()?
        .parse()
        .ok()
}

fn how_to_answer(ask_id: InvocationId) -> String {
    let id = ids::short(ask_id);
    format!(
        "the call needs an operator's approval: answer question {id} with `toolpost approvals allow {id}` or \
         `toolpost approvals deny {id}`, then run the same command again"
    )
}

fn both_kinds() -> anyhow::Error {
    UsageError("arguments come either as `key=value` or as JSON, not both".into()).into()
}

/// Prints the content on stdout, everything else on stderr.
fn print(result: &ToolResult) {
    for piece in &result.content {
        match (piece, piece.reading(), piece.encoded()) {
            (_, Some(text), _) if text.ends_with('\n') => {
                print_text(format_args!("{}", shown(&text)));
            }
            (_, Some(text), _) => print_text(format_args!("{}\n", shown(&text))),
            (
                ResultContent::Binary {
                    media_type, size, ..
                },
                ..,
            ) => {
                say!("[{media_type}, {size} bytes; --json shows the head]");
            }
            (_, None, Some((data, media_type))) => {
                say!(
                    "[{media_type}, {} characters of base64; --json shows them]",
                    data.len()
                );
            }
            (_, None, None) => {}
        }
    }
    if let (true, Some(value)) = (result.content.is_empty(), &result.structured_content) {
        say!(
            "{}",
            serde_json::to_string_pretty(value).unwrap_or_default()
        );
    }
    for line in aside(result) {
        anstream::eprintln!("{line}");
    }
}

/// The remarks beside the content: facts that it does not show, and the reason if it is missing.
fn aside(result: &ToolResult) -> Vec<String> {
    let warning = styled(YELLOW, "warning:");
    let remarks = result.remarks();
    let mut lines: Vec<String> = remarks
        .iter()
        .map(|remark| format!("{warning} {}", printable(remark)))
        .collect();
    match &result.error {
        Some(error) => {
            lines.push(format!(
                "{} {}",
                styled(RED, format!("{}:", error.class)),
                printable(&error.message)
            ));
            lines.extend(
                error
                    .hint
                    .as_deref()
                    .map(|hint| format!("hint: {}", printable(hint))),
            );
            lines.push(format!("retry: {}", story::retry(error)));
            lines.push(format!("more: toolpost explain {}", result.invocation_id));
        }
        None => {
            let summary = result
                .summary
                .as_deref()
                .filter(|_| result.content.is_empty());
            lines.extend(summary.map(printable));
        }
    }
    lines
}

/// Text made harmless for a terminal; a pipe gets the bytes unchanged.
fn shown(text: &str) -> std::borrow::Cow<'_, str> {
    use std::io::IsTerminal as _;
    if std::io::stdout().is_terminal() {
        printable(text).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use toolpost_testkit::every_end;

    use super::aside;

    #[test]
    fn no_two_kinds_of_end_look_the_same_on_a_terminal() {
        let mut seen: Vec<(Vec<String>, &str)> = Vec::new();
        for (name, result) in every_end() {
            let id = result.invocation_id.to_string();
            let clean = |line: String| line.replace(&id, "ID").replace(&id.replace('-', ""), "ID");
            let lines: Vec<String> = aside(&result).into_iter().map(clean).collect();
            if let Some((_, other)) = seen.iter().find(|(other, _)| *other == lines) {
                panic!("`{name}` looks like `{other}`: {lines:?}");
            }
            assert_eq!(lines.is_empty(), name == "whole", "{name}: {lines:?}");
            seen.push((lines, name));
        }
    }
}
