//! Layer 9, for auditors: the record as lines that can be read without Toolpost.
//!
//! Each form is a projection: stored records go in, oldest first, and lines of JSON come out. Nothing is looked up
//! here; whoever reads the journal hands over what the records stand on as well (`toolpost journal export` does).

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

/// In which form records are written.
#[derive(Clone, Copy, Debug)]
pub enum ExportFormat {
    /// The records of the Agent Tool draft, version 0.2.0.
    AgentTool,
    /// The journal's own records, with their place in the chain.
    Jsonl,
    /// One line a call, in the terms of an A2E host's audit file. The protocol's own words for errors come with it.
    A2eAudit(fn(ErrorClass) -> &'static str),
}

/// Why a record cannot be written in another form.
#[derive(Debug, thiserror::Error)]
#[error("record {seq} cannot be read: {source}")]
pub struct ExportError {
    /// The record.
    pub seq: u64,
    /// What is wrong with it.
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

    /// Takes the next record and adds the lines that it completes.
    pub fn take(&mut self, row: &StoredRecord, lines: &mut Vec<String>) -> Result<(), ExportError> {
        match &mut self.0 {
            ExportWriter::AgentTool(form) => form.take(row, lines),
            ExportWriter::Jsonl => jsonl::line(row).map(|line| lines.push(line)),
            ExportWriter::Audit(form) => form.take(row, lines),
        }
    }

    /// There are no more records: what is told of calls that have no end yet.
    pub fn finish(&mut self, lines: &mut Vec<String>) {
        match &mut self.0 {
            ExportWriter::AgentTool(form) => form.finish(lines),
            ExportWriter::Jsonl | ExportWriter::Audit(_) => {}
        }
    }
}

/// What a record stands on, so that whoever selects records can add what is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StandsOn {
    /// The surface it names.
    pub surface: Option<toolpost_model::SurfaceId>,
    /// The call that made it.
    pub parent: Option<toolpost_model::InvocationId>,
    /// It tells what was asked for: it is the first record of its call.
    pub is_first: bool,
}

impl StandsOn {
    /// Of a record of a call.
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

/// A moment of a call, from its begin.
fn moment(begin: jiff::Timestamp, at_us: u64) -> jiff::Timestamp {
    let offset = jiff::SignedDuration::from_micros(i64::try_from(at_us).unwrap_or(i64::MAX));
    begin.checked_add(offset).unwrap_or(begin)
}

/// The JSON schema of one line of the journal's own form.
pub fn evidence_schema() -> Value {
    jsonl::schema()
}
