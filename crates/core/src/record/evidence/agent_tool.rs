//! The export in the form of the Agent Tool draft, version 0.2.0.
//!
//! Tools and surfaces are exported at their place in the journal, a call at its end. Every reference names a record of
//! the same export: `<invocation>/decision/1` is the `decision_id` of a `permission_decision`, and so on. Names of
//! people, sessions and rules are names, not references. Fields outside of the draft hold facts that the draft has no
//! field for, such as `outcome` beside `status`.

mod call;
mod events;
mod four_inputs;
mod grounds;
mod result;
mod story;
mod tools;
mod words;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use toolpost_model::InvocationId;

use super::{ExportError, inputs, moment, read};
use crate::record::{
    body::{
        CallRecordBody, DiscoveryBody, HostStartBody, RecordedLimits, SessionOpenedBody,
        VerdictBody,
    },
    journal::{RecordKind, StoredRecord},
};
use story::CallEvidence;
use tools::DeclaredToolTable;

const SCHEMA_VERSION: &str = "0.2.0";

#[derive(Default)]
pub(super) struct AgentTool {
    tools: DeclaredToolTable,
    /// Calls without an end, in the order of their begin.
    open: HashMap<InvocationId, CallEvidence>,
    order: Vec<InvocationId>,
    life: RecordingHost,
    /// Surfaces and policies that are already exported.
    told: HashSet<String>,
}

/// The host that wrote the records, if known: its start may have been removed with older records.
#[derive(Clone, Debug, Default)]
struct RecordingHost {
    /// The number of its start record.
    seq: Option<u64>,
    version: Option<String>,
    limits: Option<RecordedLimits>,
    /// Its calls have trace spans.
    traces: bool,
}

impl RecordingHost {
    fn of(row: &StoredRecord, start: &HostStartBody) -> Self {
        Self {
            seq: Some(row.seq),
            version: Some(start.version.clone()).filter(|version| !version.is_empty()),
            // A host without any slot does not exist: the limits are then missing from its record.
            limits: Some(start.limits.clone()).filter(|limits| limits.concurrency > 0),
            traces: start.traces,
        }
    }

    /// Program and version, if both are known.
    fn producer(&self) -> Option<String> {
        self.version
            .as_ref()
            .map(|version| format!("toolpost {version}"))
    }

    /// The same for events, which require a source: the program alone if its version is unknown.
    fn source(&self) -> String {
        self.producer().unwrap_or_else(|| "toolpost".to_owned())
    }
}

/// Adds a record to the lines, without fields that are null: the draft leaves out unknown fields.
fn push(lines: &mut Vec<String>, record: &str, fields: Value) {
    let Value::Object(fields) = fields else {
        return;
    };
    let mut object = Map::new();
    object.insert("record".to_owned(), record.into());
    object.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
    object.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    lines.push(Value::Object(object).to_string());
}

impl AgentTool {
    pub(super) fn take(
        &mut self,
        row: &StoredRecord,
        lines: &mut Vec<String>,
    ) -> Result<(), ExportError> {
        match row.record.kind {
            RecordKind::HostStarted => {
                let start: HostStartBody = read(row)?;
                self.life = RecordingHost::of(row, &start);
                events::host_started(row, &self.life, &start.carried, lines);
            }
            RecordKind::SessionOpened => {
                let session: SessionOpenedBody = read(row)?;
                events::session_opened(row, &session, &self.life, lines);
            }
            RecordKind::SessionClosed => events::session_closed(row, &self.life, lines),
            RecordKind::Catalog => self.tools.catalog(row, &self.life, lines)?,
            RecordKind::Surface => {
                let surface = read(row)?;
                self.tools
                    .surface(row, &surface, &self.life, &mut self.told, lines);
            }
            RecordKind::Discovered => {
                let discovered: DiscoveryBody = read(row)?;
                events::discovered(row, &discovered, &self.life, lines);
            }
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started | RecordKind::Ended => {
                self.call(row, lines)?;
            }
            RecordKind::Decided => {
                let decided: VerdictBody = read(row)?;
                events::decided(row, &decided, &self.life, lines);
            }
            RecordKind::Pruned => events::pruned(row, &self.life, lines),
        }
        Ok(())
    }

    fn call(&mut self, row: &StoredRecord, lines: &mut Vec<String>) -> Result<(), ExportError> {
        let Some(id) = row.record.invocation_id else {
            return Ok(());
        };
        let way: CallRecordBody<'static> = read(row)?;
        let story = self.open.entry(id).or_insert_with(|| {
            self.order.push(id);
            CallEvidence::new(id, row.record.session_id.clone(), row.record.at)
        });
        story.follow(row, way).map_err(ExportError::of(row))?;
        if row.record.kind == RecordKind::Ended
            && let Some(story) = self.open.remove(&id)
        {
            self.order.retain(|open| *open != id);
            self.tell(&story, lines);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, lines: &mut Vec<String>) {
        for id in std::mem::take(&mut self.order) {
            if let Some(story) = self.open.remove(&id) {
                self.tell(&story, lines);
            }
        }
    }

    fn tell(&mut self, story: &CallEvidence, lines: &mut Vec<String>) {
        let tool = story.tool_id.as_ref().and_then(|id| self.tools.get(id));
        let policy = call::scheduler_policy(story, tool, &self.life, &mut self.told, lines);
        call::invocation(story, &policy, &self.life, lines);
        grounds::mutations(story, lines);
        grounds::hooks(story, lines);
        grounds::decisions(story, lines);
        call::progress(story, lines);
        result::result(story, lines);
        events::of_call(story, &self.life, lines);
    }
}
