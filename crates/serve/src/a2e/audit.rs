//! The audit file of an A2E host: one line for each list and call, in the protocol's own terms.
//!
//! The file is a convenience for operators with tools for this format; the journal is the record.

use std::{sync::Arc, time::Instant};

use parking_lot::Mutex;
use serde::Serialize;
use toolpost_a2e::projection;
use toolpost_core::RecordedResult;
use toolpost_store::AuditWriter;

use super::conversation::A2eConversation;

/// The audit file, if one is configured and open.
#[derive(Default)]
pub(crate) struct A2eAuditFile(Mutex<Option<Arc<AuditWriter>>>);

impl A2eAuditFile {
    pub(crate) fn to(writer: Option<AuditWriter>) -> Self {
        Self(Mutex::new(writer.map(Arc::new)))
    }

    fn writer(&self) -> Option<Arc<AuditWriter>> {
        self.0.lock().clone()
    }

    pub(super) fn write(&self, line: String) {
        if let Some(writer) = self.writer() {
            writer.send(line);
        }
    }

    /// Writes the pending lines and closes the file. Later entries are dropped.
    pub(super) fn close(&self) {
        drop(self.0.lock().take());
    }
}

/// A request that is written to the file when it is answered.
pub(super) struct AuditedRequest {
    writer: Arc<AuditWriter>,
    session_id: String,
    req_id: String,
    correlation_id: String,
    input_bytes: usize,
    began: Instant,
}

#[derive(Serialize)]
struct A2eAuditLine<'a> {
    ts: f64,
    session_id: &'a str,
    req_id: &'a str,
    correlation_id: &'a str,
    success: bool,
    duration_ms: u64,
    error_code: Option<&'a str>,
    input_bytes: usize,
    output_bytes: usize,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocation_id: Option<String>,
}

impl AuditedRequest {
    /// `None` if there is no audit file.
    pub(super) fn now(
        conversation: &A2eConversation,
        req_id: String,
        correlation_id: String,
        input_bytes: usize,
    ) -> Option<Self> {
        let writer = conversation.face.settings.audit.writer()?;
        let session_id = conversation.session_id().to_string();
        let [req_id, correlation_id] =
            [req_id, correlation_id].map(|text| conversation.recordable(&text));
        Some(Self {
            writer,
            session_id,
            req_id,
            correlation_id,
            input_bytes,
            began: Instant::now(),
        })
    }

    pub(super) fn answered(
        &self,
        conversation: &A2eConversation,
        tool: &str,
        answer: &RecordedResult,
    ) {
        let result = answer.result();
        let tool = conversation.recordable(tool);
        self.write(&A2eAuditLine {
            success: result.outcome.is_success(),
            error_code: result.error_class().map(projection::error_code),
            output_bytes: answer.json().len(),
            message: "tool/call/req",
            tool: Some(&tool),
            invocation_id: Some(result.invocation_id.to_string()),
            ..self.entry()
        });
    }

    pub(super) fn listed(&self, output_bytes: usize) {
        self.write(&A2eAuditLine {
            output_bytes,
            ..self.entry()
        });
    }

    fn entry(&self) -> A2eAuditLine<'_> {
        A2eAuditLine {
            ts: crate::clock::unix_seconds(),
            session_id: &self.session_id,
            req_id: &self.req_id,
            correlation_id: &self.correlation_id,
            success: true,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            error_code: None,
            input_bytes: self.input_bytes,
            output_bytes: 0,
            message: "tool/list/req",
            tool: None,
            invocation_id: None,
        }
    }

    fn write(&self, entry: &A2eAuditLine<'_>) {
        if let Ok(line) = serde_json::to_string(entry) {
            self.writer.send(line);
        }
    }
}
