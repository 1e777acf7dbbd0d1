//! A person's part of a call: what was asked, when and until when, and who said what to it.

use serde_json::Value;
use toolpost_core::{RecordKind, StoredRecord};
use toolpost_model::InvocationId;
use toolpost_store::JournalReader;

use super::{Line, shortened};
use crate::{
    approving::ids,
    terminal::{moment, printable},
};

/// Tells the questions and answers of a call in their order. The answer to a question that another call raised stands
/// among that one's records.
pub(super) fn tell(
    reader: &JournalReader,
    call: InvocationId,
    rows: &[StoredRecord],
    line: Line<'_>,
) -> anyhow::Result<()> {
    let mut elsewhere: Vec<InvocationId> = Vec::new();
    for row in rows {
        let Ok(body) = serde_json::from_str::<Value>(&row.record.body) else { continue };
        match row.record.kind {
            RecordKind::Asked => {
                line("asked", asked(row, &body));
                if let Some(other) = id(&body, "/ask/ask_id").filter(|ask_id| *ask_id != call) {
                    line("", format!("the same was being asked for call {other}"));
                    elsewhere.push(other);
                }
            }
            RecordKind::Decided => decided(row, &body, line),
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::SessionClosed
            | RecordKind::Accepted
            | RecordKind::Started
            | RecordKind::Ended
            | RecordKind::Catalog
            | RecordKind::Surface
            | RecordKind::Pruned => {
                // A yes that had been kept for this call: its question was another call's.
                let kept = body.pointer("/approval/spent").is_some_and(|spent| spent == true);
                elsewhere.extend(id(&body, "/approval/ask_id").filter(|ask_id| kept && *ask_id != call));
            }
        }
    }
    elsewhere.sort_unstable();
    elsewhere.dedup();
    for other in elsewhere {
        for row in reader.records_of(other)? {
            let Ok(body) = serde_json::from_str::<Value>(&row.record.body) else { continue };
            if row.record.kind == RecordKind::Decided {
                decided(&row, &body, line);
            }
        }
    }
    if rows.iter().any(|row| row.record.body.contains("\"spent\":true")) {
        line("", "that answer had been kept for one call, and this was the call".to_owned());
    }
    Ok(())
}

fn id(body: &Value, pointer: &str) -> Option<InvocationId> {
    body.pointer(pointer)?.as_str()?.parse().ok()
}

fn asked(row: &StoredRecord, body: &Value) -> String {
    let text = |pointer: &str| printable(body.pointer(pointer).and_then(Value::as_str).unwrap_or_default());
    let question = id(body, "/ask/ask_id").map(ids::short).unwrap_or_default();
    let hash = text("/ask/hash");
    format!(
        "{} as question {question}, until {}: {} (call hash {})",
        time(row),
        moment(&text("/ask/expires_at")),
        text("/decision/reason/text"),
        hash.get(..12).unwrap_or(&hash)
    )
}

fn decided(row: &StoredRecord, body: &Value, line: Line<'_>) {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(printable);
    let by = text("/by").unwrap_or_default();
    let allowed = text("/verdict/decision").as_deref() == Some("allow");
    let reach = match (text("/verdict/scope").as_deref(), text("/rule")) {
        (Some("session"), Some(rule)) => format!(", for the session by `{rule}`"),
        (Some("remember"), Some(rule)) => format!(", remembered as `{rule}`"),
        _ if allowed => " once".to_owned(),
        _ => String::new(),
    };
    let word = if allowed { "allowed" } else { "denied" };
    line("answered", format!("{} by {by}: {word}{reach}", time(row)));
    if let Some(feedback) = text("/verdict/feedback") {
        line("", format!("with the words: {feedback}"));
    }
    let changed: Vec<String> = body["changed_fields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(printable)
        .collect();
    if !changed.is_empty() {
        line("", format!("with other arguments: {} changed", changed.join(", ")));
    }
    if let Some(arguments) = body.pointer("/verdict/arguments") {
        line("", format!("run with {}", shortened(&printable(&arguments.to_string()))));
    }
    if let Some(until) = text("/kept_until") {
        line("", format!("nobody waited any more; kept for one such call until {}", moment(&until)));
    }
}

fn time(row: &StoredRecord) -> String {
    row.record.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
