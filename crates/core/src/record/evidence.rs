//! Layer 9, exports: the record as lines that auditors can read without Toolpost.
//!
//! Each form is a projection: stored records go in, oldest first, and lines of JSON come out. The projection looks
//! nothing up; its caller also passes the records that the selected ones refer to, as `toolpost journal export` does.

mod agent_tool;
mod audit;
mod inputs;
mod jsonl;

use serde_json::Value;
use toolpost_model::ErrorClass;

use super::{body::CallRecordHead, journal::StoredRecord};
use agent_tool::AgentTool;
use audit::AuditExport;
pub use inputs::{InputChange, InputTrail};

/// The form of an export.
#[derive(Clone, Copy, Debug)]
pub enum ExportFormat {
    /// The records of the Agent Tool draft, version 0.2.0.
    AgentTool,
    /// The journal's own records, with their place in the chain.
    Jsonl,
    /// One line a call, in the form of an A2E host's audit file. The function gives the protocol's names of errors.
    A2eAudit(fn(ErrorClass) -> &'static str),
}

/// Why a record cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("record {seq} cannot be read: {source}")]
pub struct ExportError {
    /// The record.
    pub seq: u64,
    /// The fault of the record.
    source: serde_json::Error,
}

impl ExportError {
    fn of(row: &StoredRecord) -> impl FnOnce(serde_json::Error) -> Self {
        let seq = row.seq;
        move |source| Self { seq, source }
    }
}

/// Turns records into lines.
pub struct Export(ExportWriter);

enum ExportWriter {
    AgentTool(Box<AgentTool>),
    Jsonl,
    Audit(AuditExport),
}

impl Export {
    /// Begins an export.
    pub fn new(format: ExportFormat) -> Self {
        Self(match format {
            ExportFormat::AgentTool => ExportWriter::AgentTool(Box::default()),
            ExportFormat::Jsonl => ExportWriter::Jsonl,
            ExportFormat::A2eAudit(error_code) => ExportWriter::Audit(AuditExport::new(error_code)),
        })
    }

    /// Adds the next record, and the lines that it completes.
    pub fn take(&mut self, row: &StoredRecord, lines: &mut Vec<String>) -> Result<(), ExportError> {
        match &mut self.0 {
            ExportWriter::AgentTool(form) => form.take(row, lines),
            ExportWriter::Jsonl => jsonl::line(row).map(|line| lines.push(line)),
            ExportWriter::Audit(form) => form.take(row, lines),
        }
    }

    /// Ends the export with the lines of calls that have no end yet.
    pub fn finish(&mut self, lines: &mut Vec<String>) {
        match &mut self.0 {
            ExportWriter::AgentTool(form) => form.finish(lines),
            ExportWriter::Jsonl | ExportWriter::Audit(_) => {}
        }
    }
}

/// The references of a record, so that a selection of records can be completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandsOn {
    /// The surface that it names.
    pub surface: Option<toolpost_model::SurfaceId>,
    /// The calling call of a nested call.
    pub parent: Option<toolpost_model::InvocationId>,
    /// It is the first record of its call, with the request.
    pub is_first: bool,
}

impl StandsOn {
    /// The references of a call's record.
    pub fn of(row: &StoredRecord) -> Result<Self, ExportError> {
        let head: CallRecordHead<'_> = read(row)?;
        let is_first = head.call.is_some();
        Ok(Self {
            surface: head.surface,
            parent: head.call.and_then(|call| call.parent),
            is_first,
        })
    }
}

fn read<'a, T: serde::Deserialize<'a>>(row: &'a StoredRecord) -> Result<T, ExportError> {
    row.record.read_body().map_err(ExportError::of(row))
}

/// A time of a call, counted from its begin.
fn moment(begin: jiff::Timestamp, at_us: u64) -> jiff::Timestamp {
    let offset = jiff::SignedDuration::from_micros(i64::try_from(at_us).unwrap_or(i64::MAX));
    begin.checked_add(offset).unwrap_or(begin)
}

/// The JSON schema of one line of the journal's own form.
pub fn evidence_schema() -> Value {
    jsonl::schema()
}
