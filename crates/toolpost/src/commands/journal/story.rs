//! One call, told from its records: what was asked, what was decided and why, where the time went.

mod answers;
mod grounds;

use serde::Deserialize;
use serde_json::Value;
use toolpost_core::StoredRecord;
use toolpost_model::{InvocationId, Transition};
use toolpost_store::JournalReader;

use super::{open, tail};
use crate::{
    exit::Exit,
    settings::Place,
    terminal::{BOLD, DIM, GREEN, RED, printable, say, styled},
};

pub(crate) use grounds::grounds;

/// Writes a line under a name.
pub(crate) type Line<'a> = &'a dyn Fn(&str, String);

/// How much of arguments and results is shown.
const SHOWN: usize = 400;

pub(crate) fn show(place: &Place, id: InvocationId, as_json: bool) -> anyhow::Result<Exit> {
    let reader = open(place)?;
    let rows = reader.records_of(id)?;
    if rows.is_empty() {
        anyhow::bail!(
            "no call `{id}` is on record for `{}`\nhint: `toolpost journal tail` lists the newest",
            place.workspace.display()
        );
    }
    if as_json {
        let records: Vec<tail::Row<'_>> = rows.iter().map(tail::Row::of).collect::<anyhow::Result<_>>()?;
        say!("{}", serde_json::to_string_pretty(&records)?);
    } else {
        tell(&reader, id, &rows)?;
    }
    Ok(Exit::Done)
}

fn tell(reader: &JournalReader, id: InvocationId, rows: &[StoredRecord]) -> anyhow::Result<()> {
    let bodies: Vec<Value> =
        rows.iter().filter_map(|row| serde_json::from_str(&row.record.body).ok()).collect();
    // The newest account of each part: later records know more.
    let part = |pointer: &str| {
        bodies.iter().rev().find_map(|body| body.pointer(pointer)).filter(|value| !value.is_null())
    };
    let text = |pointer: &str| part(pointer).and_then(Value::as_str).map(printable);
    let line = |name: &str, text: String| say!("{}  {text}", styled(BOLD, format!("{name:<9}")));

    line("call", id.to_string());
    line("tool", text("/tool_id").or_else(|| text("/call/tool")).unwrap_or_default());
    if let Some(arguments) = part("/call/arguments") {
        line("arguments", shortened(&printable(&arguments.to_string())));
    }
    if let Some(bytes) = part("/call/unread_bytes") {
        line("arguments", format!("{bytes} bytes that were not read, and so not kept"));
    }
    line(
        "from",
        format!(
            "{} ({}) over {}",
            text("/call/principal").unwrap_or_default(),
            text("/call/role").unwrap_or_default(),
            text("/call/face").unwrap_or_default()
        ),
    );
    if let Some(parent) = text("/call/parent") {
        line("made by", parent);
    }
    if let Some(place) = part("/call/batch") {
        grounds::batch(place, &line);
    }
    let each = |pointer: &str| part(pointer).and_then(Value::as_array).into_iter().flatten();
    answers::tell(reader, id, rows, &line)?;
    each("/hooks").for_each(|run| grounds::hook(run, &line));
    each("/mutations").for_each(|mutation| grounds::mutation("arguments", mutation, &line));
    each("/output_mutations").for_each(|mutation| grounds::mutation("result", mutation, &line));
    if let (Some(behavior), Some(reason)) = (text("/decision/behavior"), text("/decision/reason/text")) {
        let class = text("/decision/class").unwrap_or_default();
        let mode = text("/decision/mode").unwrap_or_default();
        line(
            "decision",
            format!("{behavior}: {reason} {}", styled(DIM, format!("(class {class}, mode {mode})"))),
        );
    }
    if let Some(decision) = part("/decision") {
        grounds(decision, &line);
    }
    each("/attempts").enumerate().for_each(|(place, one)| grounds::attempt(place + 1, one, &line));
    stages(part("/transitions"));
    records(rows);
    end(&part);
    Ok(())
}

fn stages(transitions: Option<&Value>) {
    let transitions =
        transitions.and_then(|value| Vec::<Transition>::deserialize(value).ok()).unwrap_or_default();
    say!("{}", styled(BOLD, "stages"));
    for (place, reached) in transitions.iter().enumerate() {
        let milliseconds = |micros: u64| micros as f64 / 1_000.0;
        let next = transitions.get(place + 1).map(|next| next.at_us.saturating_sub(reached.at_us));
        let took = next.map(|took| format!("{:>9.3} ms", milliseconds(took))).unwrap_or_default();
        let at = milliseconds(reached.at_us);
        say!("  {at:>9.3} ms  {:<15} {}", reached.stage.as_str(), styled(DIM, took));
    }
}

fn records(rows: &[StoredRecord]) {
    for row in rows {
        let at = row.record.at.strftime("%Y-%m-%d %H:%M:%S%.6fZ");
        say!(
            "{}  {:<9} {}",
            styled(BOLD, "record   "),
            row.record.kind.as_str(),
            styled(DIM, format!("#{} {at}", row.seq))
        );
    }
}

fn end<'a>(part: &dyn Fn(&str) -> Option<&'a Value>) {
    let text = |pointer: &str| part(pointer).and_then(Value::as_str).map(printable);
    let Some(outcome) = text("/result/outcome") else {
        say!(
            "{}  no end is on record: the call runs, or its host died and was not started again",
            styled(BOLD, "end      ")
        );
        return;
    };
    let style = if matches!(outcome.as_str(), "succeeded" | "partial") { GREEN } else { RED };
    let time = |name: &str| {
        part(&format!("/result/timings/{name}")).and_then(Value::as_u64).unwrap_or_default() as f64 / 1_000.0
    };
    say!(
        "{}  {} ({}) in {:.3} ms: {:.3} waiting, {:.3} in the tool",
        styled(BOLD, "end      "),
        styled(style, outcome),
        text("/result/disposition").unwrap_or_default(),
        time("total_us"),
        time("queued_us"),
        time("execute_us"),
    );
    if let Some(sandbox) = part("/result/sandbox") {
        say!("{}  {}", styled(BOLD, "sandbox  "), shortened(&confined(sandbox)));
    }
    for (name, pointer) in
        [("summary", "/result/summary"), ("error", "/result/error/message"), ("hint", "/result/error/hint")]
    {
        if let Some(text) = text(pointer) {
            say!("{}  {}", styled(BOLD, format!("{name:<9}")), shortened(&text));
        }
    }
}

fn confined(sandbox: &Value) -> String {
    let text = |name: &str| printable(sandbox[name].as_str().unwrap_or_default());
    let missing: Vec<&str> =
        sandbox["missing"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let missing = match missing.as_slice() {
        [] => String::new(),
        some => format!("; without {}", printable(&some.join(", "))),
    };
    format!("{} on tier {}, network {}{missing}", text("requested"), text("tier"), text("net"))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((place, _)) => format!("{}… ({} bytes; --json shows all)", &text[..place], text.len()),
        None => text.to_owned(),
    }
}
