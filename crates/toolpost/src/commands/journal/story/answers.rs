//! A person's part of a call: what was asked, when and until when, and who said what to it.
//!
//! Only named fields of a record count. Arguments and results are text of agents and tools, which may hold anything, also
//! what looks like a part of a record.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use toolpost_core::{RecordKind, StoredRecord};
use toolpost_model::{ArgumentChange, InvocationId};
use toolpost_store::JournalReader;

use super::{NamedLineWriter, shortened};
use crate::{
    approving::ids,
    terminal::{moment, printable},
};

/// What a record of a call tells of questions.
#[derive(Default, Deserialize)]
#[serde(default)]
struct QuestionPart {
    ask: Option<AskedPart>,
    decision: Option<DecisionPart>,
    approval: Option<ApprovalPart>,
    /// The files that the call would run, of which only the number is told.
    programs: Vec<Value>,
}

#[derive(Deserialize)]
struct AskedPart {
    ask_id: InvocationId,
    hash: String,
    expires_at: String,
}

#[derive(Deserialize)]
struct DecisionPart {
    reason: ReasonPart,
}

#[derive(Deserialize)]
struct ReasonPart {
    text: String,
}

#[derive(Deserialize)]
struct ApprovalPart {
    ask_id: InvocationId,
    /// The answer had been kept for one call, and this is that call.
    #[serde(default)]
    spent: bool,
}

/// What the record of an answer tells.
#[derive(Deserialize)]
struct AnswerPart {
    by: String,
    verdict: VerdictPart,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    changed_fields: Vec<String>,
    #[serde(default)]
    changed_arguments: Vec<ArgumentChange>,
    #[serde(default)]
    kept_until: Option<String>,
}

#[derive(Deserialize)]
struct VerdictPart {
    decision: String,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    feedback: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

/// Tells the questions and answers of a call in their order. The answer to a question that another call raised stands
/// among that one's records.
pub(super) fn print_approvals(
    reader: &JournalReader,
    call: InvocationId,
    rows: &[StoredRecord],
    line: NamedLineWriter<'_>,
) -> anyhow::Result<()> {
    let mut elsewhere: Vec<InvocationId> = Vec::new();
    let mut is_spent = false;
    for row in rows {
        match row.record.kind {
            RecordKind::Asked => {
                let Some(part) = read::<QuestionPart>(row) else {
                    continue;
                };
                let Some(ask) = &part.ask else { continue };
                line(
                    "asked",
                    asked(row, ask, part.decision.as_ref(), part.programs.len()),
                );
                // A call that asks again does so under a new id, which is no call's.
                if ask.ask_id != call && !reader.records_of(ask.ask_id)?.is_empty() {
                    line(
                        "",
                        format!("the same was being asked for call {}", ask.ask_id),
                    );
                    elsewhere.push(ask.ask_id);
                }
            }
            RecordKind::Decided => decided(row, line),
            RecordKind::Accepted | RecordKind::Started | RecordKind::Ended => {
                let approval = read::<QuestionPart>(row).and_then(|part| part.approval);
                if let Some(kept) = approval.filter(|approval| approval.spent) {
                    // A yes that had been kept for this call: its question was another call's.
                    elsewhere.extend((kept.ask_id != call).then_some(kept.ask_id));
                    is_spent = true;
                }
            }
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::SessionClosed
            | RecordKind::Catalog
            | RecordKind::Surface
            | RecordKind::Discovered
            | RecordKind::Pruned => {}
        }
    }
    elsewhere.sort_unstable();
    elsewhere.dedup();
    for other in elsewhere {
        let rows = reader.records_of(other)?;
        rows.iter()
            .filter(|row| row.record.kind == RecordKind::Decided)
            .for_each(|row| decided(row, line));
    }
    if is_spent {
        line(
            "",
            "that answer had been kept for one call, and this was the call".to_owned(),
        );
    }
    Ok(())
}

fn read<T: DeserializeOwned>(row: &StoredRecord) -> Option<T> {
    serde_json::from_str(&row.record.body).ok()
}

fn asked(
    row: &StoredRecord,
    ask: &AskedPart,
    decision: Option<&DecisionPart>,
    files: usize,
) -> String {
    let hash = printable(&ask.hash);
    let files = match files {
        0 => String::new(),
        1 => ", with 1 file that it would run".to_owned(),
        more => format!(", with {more} files that it would run"),
    };
    format!(
        "{} as question {}, until {}: {} (call hash {}{files})",
        time(row),
        ids::short(ask.ask_id),
        moment(&ask.expires_at),
        decision
            .map(|decision| printable(&decision.reason.text))
            .unwrap_or_default(),
        hash.get(..12).unwrap_or(&hash)
    )
}

fn decided(row: &StoredRecord, line: NamedLineWriter<'_>) {
    let Some(AnswerPart {
        by,
        verdict,
        rule,
        changed_fields,
        changed_arguments,
        kept_until,
    }) = read(row)
    else {
        return;
    };
    let allowed = verdict.decision == "allow";
    let reach = match (verdict.scope.as_deref(), rule.as_deref().map(printable)) {
        (Some("session"), Some(rule)) => format!(", for the session by `{rule}`"),
        (Some("remember"), Some(rule)) => format!(", remembered as `{rule}`"),
        _ if allowed => " once".to_owned(),
        _ => String::new(),
    };
    let word = if allowed { "allowed" } else { "denied" };
    line(
        "answered",
        format!("{} by {}: {word}{reach}", time(row), printable(&by)),
    );
    if let Some(feedback) = &verdict.feedback {
        line("", format!("with the words: {}", printable(feedback)));
    }
    if !changed_fields.is_empty() {
        let changed: Vec<String> = changed_fields
            .iter()
            .map(|field| printable(field))
            .collect();
        line(
            "",
            format!("with other arguments: {} changed", changed.join(", ")),
        );
    }
    for change in &changed_arguments {
        line("", printable(&change.to_string()));
    }
    if let Some(arguments) = &verdict.arguments {
        line(
            "",
            format!("run with {}", shortened(&printable(&arguments.to_string()))),
        );
    }
    if let Some(until) = &kept_until {
        line(
            "",
            format!(
                "nobody waited any more; kept for one such call until {}",
                moment(until)
            ),
        );
    }
}

fn time(row: &StoredRecord) -> String {
    row.record.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
