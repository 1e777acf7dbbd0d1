//! The export in the form of an A2E host's audit file.
//!
//! The live file counts the bytes of messages; the record has the arguments and the result, so this counts those.

use std::collections::HashMap;

use serde_json::json;
use toolpost_model::{ErrorClass, InvocationId};

use super::{ExportError, read};
use crate::record::{
    body::{CallRecordBody, RecordedCallRequest, RecordedResultFields},
    journal::{RecordKind, StoredRecord},
};

pub(super) struct AuditExport {
    error_code: fn(ErrorClass) -> &'static str,
    /// Calls without an end yet.
    open: HashMap<InvocationId, AuditOpenCall>,
}

struct AuditOpenCall {
    request: String,
    call: RecordedCallRequest<'static>,
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
        let body: CallRecordBody<'_> = read(row)?;
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
        let ended: RecordedResultFields = result.read_as().map_err(ExportError::of(row))?;
        let error = ended.error_class().map_err(ExportError::of(row))?;
        let timings = ended.timings().map_err(ExportError::of(row))?;
        let arguments = begun.call.arguments.as_ref().map(|part| part.text().len());
        let line = json!({
            "record": "a2e_audit",
            "ts": record.at.as_microsecond() as f64 / 1e6,
            "session_id": record.session_id.as_ref().map_or("", |session| session.as_str()),
            "req_id": begun.request,
            "correlation_id": begun.call.correlation_id.unwrap_or_default(),
            "success": ended.outcome.is_success(),
            "duration_ms": timings.total_us / 1_000,
            "error_code": error.map(self.error_code),
            "input_bytes": arguments.or(begun.call.unread_bytes).unwrap_or_default(),
            "output_bytes": result.text().len(),
            "message": "tool/call/req",
            "tool": begun.call.tool,
            "invocation_id": id,
        });
        lines.push(line.to_string());
        Ok(())
    }
}
