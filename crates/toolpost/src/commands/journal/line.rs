//! One record on one line, for people and for programs.

use serde::{Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use toolpost_core::{
    CallRecordBody, CatalogBody, DiscoveryBody, HostStartBody, PrunedBody, Record, RecordKind,
    RestatableHead, SessionOpenedBody, StoredRecord, VerdictBody,
};
use toolpost_model::{
    ApprovalScope, InvocationId, Outcome, RequestId, SessionId, ToolResult, Verdict,
};

use super::story;
use crate::terminal::{DIM, GREEN, RED, YELLOW, counted, moment, printable, say, styled};

/// A record as JSON, its body unchanged.
#[derive(Serialize)]
pub(super) struct JournalRecordRow<'a> {
    seq: u64,
    kind: &'static str,
    at: jiff::Timestamp,
    invocation_id: Option<InvocationId>,
    session_id: Option<&'a SessionId>,
    request_id: Option<&'a RequestId>,
    body: &'a RawValue,
    hash: String,
}

impl<'a> JournalRecordRow<'a> {
    pub(super) fn of(row: &'a StoredRecord) -> anyhow::Result<Self> {
        Ok(Self {
            seq: row.seq,
            kind: row.record.kind.as_str(),
            at: row.record.at,
            invocation_id: row.record.invocation_id,
            session_id: row.record.session_id.as_ref(),
            request_id: row.record.request.as_ref().map(|request| &request.id),
            body: row.record.read_body()?,
            hash: const_hex::encode(row.hash),
        })
    }
}

pub(super) fn print(row: &StoredRecord, json: bool) -> anyhow::Result<()> {
    if json {
        say!("{}", serde_json::to_string(&JournalRecordRow::of(row)?)?);
        return Ok(());
    }
    let what = describe(&row.record).unwrap_or_default();
    let id = row
        .record
        .invocation_id
        .map(|id| id.to_string())
        .unwrap_or_default();
    let at = row.record.at.strftime("%Y-%m-%d %H:%M:%S");
    say!(
        "{} {at} {:<14} {} {}",
        styled(DIM, format!("{:>6}", row.seq)),
        row.record.kind.as_str(),
        styled(DIM, id),
        what.trim()
    );
    Ok(())
}

/// A record in a few words. `None`: its body cannot be read.
fn describe(record: &Record) -> Option<String> {
    Some(match record.kind {
        RecordKind::HostStarted => {
            let body: HostStartBody = record.read_body().ok()?;
            format!("version {}", printable(&body.version))
        }
        RecordKind::SessionOpened => {
            let body: SessionOpenedBody = record.read_body().ok()?;
            format!("for {}", printable(body.principal.as_str()))
        }
        RecordKind::SessionClosed => String::new(),
        RecordKind::Catalog => describe_catalog(&record.read_body().ok()?),
        RecordKind::Surface => {
            let body: RestatableHead = record.read_body().ok()?;
            printable(&body.surface_id)
        }
        RecordKind::Discovered => {
            let body: DiscoveryBody = record.read_body().ok()?;
            let names: Vec<String> = body.tools.iter().map(|id| printable(id.as_str())).collect();
            format!("{} by {}", names.join(", "), story::word(&body.way))
        }
        RecordKind::Pruned => {
            let body: PrunedBody = record.read_body().ok()?;
            format!("up to record {}", body.up_to)
        }
        RecordKind::Accepted | RecordKind::Started => story::tool_of(&record.read_body().ok()?),
        RecordKind::Asked => {
            let body: CallRecordBody<'_> = record.read_body().ok()?;
            let why = body
                .decision
                .as_ref()
                .map(|one| printable(&one.reason.text));
            let until = body.ask.map(|ask| moment(&ask.expires_at.to_string()));
            format!(
                "{} {} until {}: {}",
                story::tool_of(&body),
                styled(YELLOW, "asked"),
                until.unwrap_or_default(),
                why.unwrap_or_default()
            )
        }
        RecordKind::Decided => {
            let body: VerdictBody = record.read_body().ok()?;
            let (word, scope) = match &body.verdict {
                Verdict::Allow { scope, .. } => (styled(GREEN, "allowed"), *scope),
                Verdict::Deny { .. } => (styled(RED, "denied"), ApprovalScope::Once),
            };
            let scope = match scope {
                ApprovalScope::Once => String::new(),
                scope => format!(" ({})", story::word(&scope)),
            };
            let tool = printable(&body.tool_id);
            format!("{tool} {word}{scope} by {}", printable(body.by.as_str()))
        }
        RecordKind::Ended => describe_end(record)?,
    })
}

fn describe_end(record: &Record) -> Option<String> {
    let body: CallRecordBody<'_> = record.read_body().ok()?;
    let result: ToolResult = body.result.as_ref()?.read().ok()?;
    let style = match result.outcome {
        Outcome::Succeeded | Outcome::Partial => GREEN,
        Outcome::Failed
        | Outcome::Denied
        | Outcome::Rejected
        | Outcome::Canceled
        | Outcome::TimedOut
        | Outcome::Unknown => RED,
    };
    let why = result.error.map(|error| printable(&error.message));
    Some(format!(
        "{} {} {:.1} ms {}",
        story::tool_of(&body),
        styled(style, result.outcome.as_str()),
        result.timings.total_us as f64 / 1_000.0,
        why.unwrap_or_default()
    ))
}

fn describe_catalog(body: &CatalogBody<Vec<IgnoredAny>>) -> String {
    let tools = counted(body.declared.len(), "tool");
    let missing: Vec<&str> = body
        .unavailable
        .iter()
        .map(|problem| problem.part.as_str())
        .collect();
    if missing.is_empty() {
        return tools;
    }
    format!(
        "{tools}; {} {}",
        styled(YELLOW, "missing:"),
        printable(&missing.join(", "))
    )
}
