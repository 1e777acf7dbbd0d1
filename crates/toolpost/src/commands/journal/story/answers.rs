//! The approvals of a call: the question, its time limit, and the answers with their authors.
//!
//! Only named members of a record count. Arguments and results are text of agents and tools, which can imitate any
//! part of a record.

use toolpost_core::{CallRecordBody, RecordKind, RecordedQuestion, StoredRecord, VerdictBody};
use toolpost_model::{ApprovalScope, InvocationId, Verdict};
use toolpost_store::JournalReader;

use super::{NamedLineWriter, shortened};
use crate::{
    approving::ids,
    terminal::{moment, printable},
};

/// Prints the questions and answers of a call in their order. The answer to a question that another call raised is
/// among the records of that call.
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
                let Some(body) = call_body(row) else { continue };
                let Some(ask) = body.ask else { continue };
                line("asked", describe_question(row, &ask, &body));
                // A call that asks again uses a new id, which is not the id of a call.
                if ask.ask_id != call && !reader.records_of(ask.ask_id)?.is_empty() {
                    line(
                        "",
                        format!("the same question was already open for call {}", ask.ask_id),
                    );
                    elsewhere.push(ask.ask_id);
                }
            }
            RecordKind::Decided => print_verdict(row, line),
            RecordKind::Accepted | RecordKind::Started | RecordKind::Ended => {
                let approval = call_body(row).and_then(|body| body.approval);
                if let Some(kept) = approval.filter(|approval| approval.spent) {
                    // A grant that was kept for this call: its question belonged to another call.
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
            .for_each(|row| print_verdict(row, line));
    }
    if is_spent {
        line(
            "",
            "that answer was kept for one call and is used up by this one".to_owned(),
        );
    }
    Ok(())
}

fn call_body(row: &StoredRecord) -> Option<CallRecordBody<'static>> {
    row.record.read_body().ok()
}

fn describe_question(
    row: &StoredRecord,
    ask: &RecordedQuestion,
    body: &CallRecordBody<'_>,
) -> String {
    let files = match body.programs.len() {
        0 => String::new(),
        1 => ", with 1 file that it would run".to_owned(),
        more => format!(", with {more} files that it would run"),
    };
    let reason = body.decision.as_ref();
    let reason = reason.map(|decision| printable(&decision.reason.text));
    format!(
        "{} as question {}, until {}: {} (call hash {:.12}{files})",
        time(row),
        ids::short(ask.ask_id),
        moment(&ask.expires_at.to_string()),
        reason.unwrap_or_default(),
        ask.hash.to_string()
    )
}

fn print_verdict(row: &StoredRecord, line: NamedLineWriter<'_>) {
    let Ok(body) = row.record.read_body::<VerdictBody>() else {
        return;
    };
    let answer = match &body.verdict {
        Verdict::Allow { scope, .. } => match (scope, body.rule.as_deref().map(printable)) {
            (ApprovalScope::Session, Some(rule)) => {
                format!("allowed, for the session by `{rule}`")
            }
            (ApprovalScope::Remember, Some(rule)) => format!("allowed, remembered as `{rule}`"),
            (ApprovalScope::SourceReads, _) => match body.source_rules.len() {
                1 => "allowed once, and 1 tool of its source remembered".to_owned(),
                count => format!("allowed once, and {count} tools of its source remembered"),
            },
            (ApprovalScope::Once | ApprovalScope::Session | ApprovalScope::Remember, _) => {
                "allowed once".to_owned()
            }
        },
        Verdict::Deny { .. } => "denied".to_owned(),
    };
    line(
        "answered",
        format!("{} by {}: {answer}", time(row), printable(body.by.as_str())),
    );
    for rule in &body.source_rules {
        line("", format!("remembered: {}", printable(rule)));
    }
    if let Verdict::Deny {
        feedback: Some(feedback),
    } = &body.verdict
    {
        line("", format!("feedback: {}", printable(feedback)));
    }
    if !body.changed_fields.is_empty() {
        let changed: Vec<String> = body
            .changed_fields
            .iter()
            .map(|field| printable(field))
            .collect();
        line("", format!("arguments changed: {}", changed.join(", ")));
    }
    for change in &body.changed_arguments {
        line("", printable(&change.to_string()));
    }
    if let Verdict::Allow {
        arguments: Some(arguments),
        ..
    } = &body.verdict
    {
        line(
            "",
            format!("run with {}", shortened(&printable(&arguments.to_string()))),
        );
    }
    if let Some(until) = body.kept_until {
        line(
            "",
            format!(
                "no call waited; kept for one identical call until {}",
                moment(&until.to_string())
            ),
        );
    }
}

fn time(row: &StoredRecord) -> String {
    row.record.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
