//! One record on one line, for people and for programs.

use serde::Serialize;
use serde_json::{Value, value::RawValue};
use toolpost_core::{RecordKind, StoredRecord};
use toolpost_model::{InvocationId, RequestId, SessionId};

use crate::terminal::{DIM, GREEN, RED, YELLOW, moment, printable, say, styled};

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
            body: serde_json::from_str(&row.record.body)?,
            hash: const_hex::encode(row.hash),
        })
    }
}

pub(super) fn print(row: &StoredRecord, json: bool) -> anyhow::Result<()> {
    if json {
        say!("{}", serde_json::to_string(&JournalRecordRow::of(row)?)?);
        return Ok(());
    }
    let body: Value = serde_json::from_str(&row.record.body).unwrap_or_default();
    let text = |pointer: &str| {
        body.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let what = match row.record.kind {
        RecordKind::HostStarted => format!("version {}", text("/version")),
        RecordKind::SessionOpened => format!("for {}", text("/principal")),
        RecordKind::SessionClosed => String::new(),
        RecordKind::Catalog => catalog(&body),
        RecordKind::Surface => text("/surface_id").to_owned(),
        RecordKind::Discovered => discovered(&body),
        RecordKind::Pruned => format!("up to record {}", body["up_to"]),
        RecordKind::Accepted | RecordKind::Started => named(&body),
        RecordKind::Asked => {
            let why = printable(text("/decision/reason/text"));
            format!(
                "{} {} until {}: {why}",
                named(&body),
                styled(YELLOW, "asked"),
                moment(text("/ask/expires_at"))
            )
        }
        RecordKind::Decided => {
            let allowed = text("/verdict/decision") == "allow";
            let word = if allowed {
                styled(GREEN, "allowed")
            } else {
                styled(RED, "denied")
            };
            let scope =
                Some(text("/verdict/scope")).filter(|scope| !scope.is_empty() && *scope != "once");
            let scope = scope.map(|scope| format!(" ({scope})")).unwrap_or_default();
            format!(
                "{} {word}{scope} by {}",
                named(&body),
                printable(text("/by"))
            )
        }
        RecordKind::Ended => {
            let outcome = text("/result/outcome");
            let style = if matches!(outcome, "succeeded" | "partial") {
                GREEN
            } else {
                RED
            };
            let time = body
                .pointer("/result/timings/total_us")
                .and_then(Value::as_u64)
                .unwrap_or_default();
            let why = text("/result/error/message");
            format!(
                "{} {} {:.1} ms {}",
                named(&body),
                styled(style, outcome),
                time as f64 / 1_000.0,
                printable(why)
            )
        }
    };
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

/// The deferred tools that a session was shown.
fn discovered(body: &Value) -> String {
    let tools = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let names: Vec<String> = tools.map(printable).collect();
    format!(
        "{} by {}",
        names.join(", "),
        printable(body["way"].as_str().unwrap_or_default())
    )
}

fn catalog(body: &Value) -> String {
    let tools = body["declared"].as_array().map_or(0, Vec::len);
    let missing = body["unavailable"].as_array().into_iter().flatten();
    let missing: Vec<&str> = missing
        .filter_map(|problem| problem["part"].as_str())
        .collect();
    if missing.is_empty() {
        return format!("{tools} tools");
    }
    format!(
        "{tools} tools; {} {}",
        styled(YELLOW, "not there:"),
        printable(&missing.join(", "))
    )
}

fn named(body: &Value) -> String {
    let tool = body.get("tool_id").or_else(|| body.pointer("/call/tool"));
    printable(tool.and_then(Value::as_str).unwrap_or_default())
}
