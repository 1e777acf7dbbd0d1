//! Calls in the terms of an A2E host's audit file, from the record.
//!
//! The live file counts the bytes of messages; the record has the arguments and the result, so these are counted.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{json, value::RawValue};
use toolpost_model::{ErrorClass, InvocationId, Outcome};

use super::ExportError;
use crate::record::journal::{RecordKind, StoredRecord};

pub(super) struct AuditExport {
    error_code: fn(ErrorClass) -> &'static str,
    /// Calls that have no end yet.
    open: HashMap<InvocationId, AuditOpenCall>,
}

struct AuditOpenCall {
    request: String,
    call: AuditCallRequest,
}

#[derive(Deserialize)]
struct AuditRecordBody<'a> {
    #[serde(default)]
    call: Option<AuditCallRequest>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AuditCallRequest {
    tool: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    unread_bytes: Option<usize>,
    #[serde(default)]
    correlation_id: Option<String>,
}

#[derive(Deserialize)]
struct AuditResult {
    outcome: Outcome,
    #[serde(default)]
    error: Option<AuditResultError>,
    timings: toolpost_model::Timings,
}

#[derive(Deserialize)]
struct AuditResultError {
    class: ErrorClass,
}

impl AuditExport {
    pub(super) fn new(error_code: fn(ErrorClass) -> &'static str) -> Self {
        Self {
            error_code,
            open: HashMap::new(),
        }
    }

    pub(super) fn take(
        &mut self,
        row: &StoredRecord,
        lines: &mut Vec<String>,
    ) -> Result<(), ExportError> {
        let record = &row.record;
        let Some(id) = record
            .invocation_id
            .filter(|_| record.kind != RecordKind::Decided)
        else {
            return Ok(());
        };
        let body: AuditRecordBody<'_> =
            serde_json::from_str(&record.body).map_err(ExportError::of(row))?;
        if let Some(call) = body.call {
            let request = record
                .request
                .as_ref()
                .map_or_else(String::new, |request| request.id.to_string());
            self.open.insert(id, AuditOpenCall { request, call });
        }
        let Some(result) = body.result else {
            return Ok(());
        };
        let Some(begun) = self.open.remove(&id) else {
            return Ok(());
        };
        let ended: AuditResult =
            serde_json::from_str(result.get()).map_err(ExportError::of(row))?;
        let arguments = begun.call.arguments.as_ref().map(|text| text.get().len());
        let line = json!({
            "record": "a2e_audit",
            "ts": record.at.as_microsecond() as f64 / 1e6,
            "session_id": record.session_id.as_ref().map_or("", |session| session.as_str()),
            "req_id": begun.request,
            "correlation_id": begun.call.correlation_id.unwrap_or_default(),
            "success": ended.outcome.is_success(),
            "duration_ms": ended.timings.total_us / 1_000,
            "error_code": ended.error.map(|error| (self.error_code)(error.class)),
            "input_bytes": arguments.or(begun.call.unread_bytes).unwrap_or_default(),
            "output_bytes": result.get().len(),
            "message": "tool/call/req",
            "tool": begun.call.tool,
            "invocation_id": id,
        });
        lines.push(line.to_string());
        Ok(())
    }
}
