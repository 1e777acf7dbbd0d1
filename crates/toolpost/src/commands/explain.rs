//! `toolpost explain`: what would happen to a call, or what happened to one, and why.

use clap::Args;
use serde_json::Value;
use toolpost_model::InvocationId;

use super::journal::story;
use crate::{
    arguments,
    cli::{PlaceArgs, PolicyArgs},
    exit::Exit,
    reach::{self, Purpose},
    settings,
    terminal::{BOLD, GREEN, RED, YELLOW, printable, say, styled},
};

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// A tool, or the id of a call that was made
    what: String,
    /// Arguments of the call to be explained, as for `call`
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) async fn run(explain: ExplainArgs) -> anyhow::Result<Exit> {
    if let Ok(id) = explain.what.parse::<InvocationId>() {
        return story::show(&settings::locate(&explain.place)?, id, explain.json);
    }
    let mut host = reach::reach(&explain.place, &explain.policy, Purpose::Look).await?;
    let schema = host.schema(&explain.what).await?;
    let input = arguments::from_words(&explain.words, schema.as_ref())?.to_string();
    let explanation = host.explain(&explain.what, &input).await;
    host.close().await;
    let explanation = explanation?;
    if explain.json {
        say!("{}", serde_json::to_string_pretty(&explanation)?);
    } else {
        tell(&explanation);
    }
    Ok(if explanation["would_run"] == true { Exit::Done } else { Exit::Denied })
}

/// What each of several parts comes to: every command of a line, every path.
fn parts(explanation: &Value, line: story::Line<'_>) {
    let parts = explanation["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if parts.len() < 2 {
        return;
    }
    for part in parts {
        let text = |value: &Value| printable(value.as_str().unwrap_or_default());
        let because = text(&part["reason"]["text"]);
        line("of it", format!("{}: {} ({because})", text(&part["behavior"]), text(&part["subject"])));
    }
}

fn tell(explanation: &Value) {
    let text = |pointer: &str| explanation.pointer(pointer).and_then(Value::as_str).map(printable);
    let line = |name: &str, text: String| say!("{}  {text}", styled(BOLD, format!("{name:<9}")));
    let asks = explanation["would_ask"] == true;
    let verdict = match (&explanation["would_run"], asks) {
        (Value::Bool(true), _) => styled(GREEN, "it would run"),
        (_, true) => styled(YELLOW, "a person would be asked"),
        (_, false) => styled(RED, "it would not run"),
    };
    line("verdict", verdict);
    if let Some(id) = text("/tool_id") {
        line("tool", id);
    }
    if let Some(class) = text("/effects/class") {
        line("class", class);
    }
    if let Some(profile) = text("/effects/confined") {
        line("sandbox", profile);
    }
    for touched in explanation.pointer("/effects/uses").and_then(Value::as_array).into_iter().flatten() {
        line(
            "touches",
            format!(
                "{} ({})",
                touched["key"].as_str().map(printable).unwrap_or_default(),
                touched["access"].as_str().unwrap_or_default()
            ),
        );
    }
    if let (Some(behavior), Some(reason)) = (text("/decision/behavior"), text("/decision/reason/text")) {
        line("decision", format!("{behavior}: {reason}"));
    }
    if let Some(decision) = explanation.get("decision") {
        story::grounds(decision, &line);
    }
    parts(explanation, &line);
    if let Some(message) = text("/error/message") {
        line("because", message);
    }
    if let Some(hint) = text("/error/hint").or_else(|| text("/decision/operator_hint")) {
        line("hint", hint);
    }
}
