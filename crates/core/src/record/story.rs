//! A call from its records, for faces: the tool, the arguments, the caller, the times and the end. Faces do not depend
//! on the form of records.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value;
use toolpost_model::{
    Arguments, InvocationId, NativeCallId, Principal, RequestId, SessionId, Verdict,
};

use super::{
    body::{CallRecordBody, RecordBodyMember, VerdictBody},
    journal::{RecordKind, StoredRecord},
};
use crate::invocation::{ModuleEvent, RecordedResult};

/// A call from its records. All of it is redacted.
#[derive(Clone, Debug)]
pub struct CallOnRecord {
    /// The call.
    pub invocation_id: InvocationId,
    /// Its session.
    pub session_id: SessionId,
    /// The tool's name in the request.
    pub tool: String,
    /// The model input, redacted; `None` if it was not read.
    pub sent: Option<Value>,
    /// The arguments that it continues with: settings, a hook or an operator may have changed the model input.
    pub arguments: Option<Value>,
    /// The caller.
    pub principal: Principal,
    /// The face that it came through.
    pub face: String,
    /// The caller's own id of the request.
    pub request_id: Option<RequestId>,
    /// The caller's own id of the call, if its face has one beside the request's.
    pub native_call_id: Option<NativeCallId>,
    /// The caller's own correlation id.
    pub correlation_id: Option<String>,
    /// The calling call of a nested call.
    pub parent: Option<InvocationId>,
    /// When it began.
    pub began_at: Timestamp,
    /// The last approval question about it, answered or not, if it has not ended.
    pub question: Option<InvocationId>,
    /// Its end, if it has ended.
    pub end: Option<EndOnRecord>,
}

/// The end of a call from the record.
#[derive(Clone, Debug)]
pub struct EndOnRecord {
    /// The time of the end.
    pub at: Timestamp,
    /// Its answer, the same bytes as its caller got.
    pub answer: Arc<RecordedResult>,
    /// The recorded events of modules, oldest first. The record keeps some of a call's progress, status and module
    /// events, not all of them.
    pub module_events: Vec<ModuleEvent>,
}

impl CallOnRecord {
    /// Reads the records of one call, oldest first. `None` if they do not begin with its first record, or if that is
    /// unreadable.
    pub fn of(rows: &[StoredRecord]) -> Option<Self> {
        let mut rows = rows.iter().filter(|row| tells_of_its_way(row.record.kind));
        let first = rows.next()?;
        let way: CallRecordBody<'_> = first.record.read_body().ok()?;
        let end = EndOnRecord::of(first.record.at, &way);
        let call = way.call.as_ref()?;
        let since_began = match &end {
            Some(end) => end.answer.result().timings.total_us,
            None => way.transitions.last().map_or(0, |passed| passed.at_us),
        };
        let read = |part: &Option<RecordBodyMember<'_, Arguments>>| part.as_ref()?.read_as().ok();
        let arguments: Option<Value> = read(&call.arguments);
        let mut story = Self {
            invocation_id: first.record.invocation_id?,
            session_id: first.record.session_id.clone()?,
            tool: call.tool.to_string(),
            sent: read(&call.model_arguments).or_else(|| arguments.clone()),
            arguments,
            principal: call.principal(),
            face: call.face.to_string(),
            request_id: first.record.request.as_ref().map(|key| key.id.clone()),
            native_call_id: call.native_call_id.clone(),
            correlation_id: call.correlation_id.as_deref().map(str::to_owned),
            parent: call.parent,
            began_at: before(first.record.at, since_began),
            question: None,
            end,
        };
        story.question = way
            .ask
            .as_ref()
            .filter(|_| story.end.is_none())
            .map(|ask| ask.ask_id);
        for row in rows {
            let Ok(way) = row.record.read_body::<CallRecordBody<'_>>() else {
                continue;
            };
            story.go_on(row.record.at, &way);
        }
        Some(story)
    }

    fn go_on(&mut self, at: Timestamp, way: &CallRecordBody<'_>) {
        // A hook or an operator may have changed them.
        if let Some(changed) = way
            .arguments
            .as_ref()
            .and_then(|arguments| arguments.read_as().ok())
        {
            self.arguments = Some(changed);
        }
        if let Some(ask) = &way.ask {
            self.question = Some(ask.ask_id);
        }
        if let Some(end) = EndOnRecord::of(at, way) {
            self.end = Some(end);
            self.question = None;
        }
    }
}

impl EndOnRecord {
    fn of(at: Timestamp, way: &CallRecordBody<'_>) -> Option<Self> {
        let answer = RecordedResult::recorded(way.result.as_ref()?.text())?;
        let module_events = way
            .progress
            .iter()
            .filter_map(ModuleEvent::of_milestone)
            .collect();
        Some(Self {
            at,
            answer,
            module_events,
        })
    }
}

fn before(at: Timestamp, micros: u64) -> Timestamp {
    at.checked_sub(Duration::from_micros(micros)).unwrap_or(at)
}

/// The question that a record asks or answers.
pub fn question_of(row: &StoredRecord) -> Option<InvocationId> {
    match row.record.kind {
        RecordKind::Asked => row
            .record
            .read_body::<CallRecordBody<'_>>()
            .ok()?
            .ask
            .map(|ask| ask.ask_id),
        RecordKind::Decided => Some(row.record.read_body::<VerdictBody>().ok()?.ask_id),
        RecordKind::HostStarted
        | RecordKind::SessionOpened
        | RecordKind::SessionClosed
        | RecordKind::Accepted
        | RecordKind::Started
        | RecordKind::Ended
        | RecordKind::Catalog
        | RecordKind::Surface
        | RecordKind::Discovered
        | RecordKind::Pruned => None,
    }
}

/// The operator's answer, if the record contains one.
pub fn verdict_of(row: &StoredRecord) -> Option<Verdict> {
    let is_answer = row.record.kind == RecordKind::Decided;
    is_answer
        .then(|| row.record.read_body::<VerdictBody>().ok())
        .flatten()
        .map(|body| body.verdict)
}

/// Whether records of this kind describe the call's course: an answer to its question may come after its end.
pub(super) fn tells_of_its_way(kind: RecordKind) -> bool {
    match kind {
        RecordKind::Accepted | RecordKind::Asked | RecordKind::Started | RecordKind::Ended => true,
        RecordKind::HostStarted
        | RecordKind::SessionOpened
        | RecordKind::SessionClosed
        | RecordKind::Decided
        | RecordKind::Catalog
        | RecordKind::Surface
        | RecordKind::Discovered
        | RecordKind::Pruned => false,
    }
}
