//! One call, gathered from its records.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolpost_model::{
    Decision, Effects, HookRun, InvocationId, SessionId, Stage, SurfaceId, ToolId, ToolResult,
};

use super::{
    inputs::{self, AtMicros, InputTrail},
    moment,
};
use crate::{
    hooks::InputMutation,
    invocation::Milestone,
    record::{
        body::{
            ApprovalBody, CallRecordBody, RecordBodyMember, RecordedCallRequest, RecordedQuestion,
        },
        journal::{RecordKind, StoredRecord},
    },
};

/// The state of a call from its records, the newest value of each member.
pub(super) struct CallEvidence {
    pub(super) id: InvocationId,
    pub(super) session: Option<SessionId>,
    pub(super) request: Option<String>,
    /// Its records, by number.
    pub(super) records: Vec<u64>,
    pub(super) call: Option<RecordedCallRequest<'static>>,
    pub(super) tool_id: Option<ToolId>,
    pub(super) surface: Option<SurfaceId>,
    pub(super) effects: Option<Effects>,
    pub(super) asked: Vec<AskingDecision>,
    pub(super) decision: Option<Decision>,
    pub(super) approval: Option<ApprovalBody>,
    pub(super) inputs: InputTrail,
    /// A record states that it started, perhaps under an earlier host.
    is_started: bool,
    pub(super) redacted: bool,
    pub(super) hooks: Vec<(HookRun, Timestamp)>,
    pub(super) progress: Vec<(Milestone, Timestamp)>,
    pub(super) transitions: Vec<(Stage, Timestamp)>,
    /// Circumstances that no other member holds.
    pub(super) met: Option<Value>,
    pub(super) result: Option<ToolResult>,
    pub(super) last_at: Timestamp,
    /// The time of the request.
    pub(super) created_at: Timestamp,
}

pub(super) struct AskingDecision {
    pub(super) decision: Decision,
    pub(super) question: RecordedQuestion,
    pub(super) at: Timestamp,
    /// The number of changes before the arguments that it was made on.
    pub(super) changes: usize,
}

impl CallEvidence {
    pub(super) fn new(id: InvocationId, session: Option<SessionId>, at: Timestamp) -> Self {
        let millis = i64::try_from(id.unix_millis()).unwrap_or_default();
        Self {
            id,
            session,
            request: None,
            records: Vec::new(),
            call: None,
            tool_id: None,
            surface: None,
            effects: None,
            asked: Vec::new(),
            decision: None,
            approval: None,
            inputs: InputTrail::default(),
            is_started: false,
            redacted: false,
            hooks: Vec::new(),
            progress: Vec::new(),
            transitions: Vec::new(),
            met: None,
            result: None,
            last_at: at,
            created_at: Timestamp::from_millisecond(millis).unwrap_or(at),
        }
    }

    /// Adds the next record.
    pub(super) fn follow(
        &mut self,
        row: &StoredRecord,
        way: CallRecordBody<'static>,
    ) -> serde_json::Result<()> {
        // All members are read before any is stored, so that an unreadable record changes nothing.
        let tool_id = read(way.tool_id.as_ref())?;
        let effects = read(way.effects.as_ref())?;
        let hooks = read(way.hooks.as_ref())?.unwrap_or_default();
        let met: Option<Value> = way
            .explain
            .as_ref()
            .map(RecordBodyMember::read_as)
            .transpose()?;
        let result = read(way.result.as_ref())?;
        let at = row.record.at;
        let begin = way.begin(at);
        self.inputs.follow(&way, begin)?;
        self.is_started |= row.record.kind == RecordKind::Started;
        self.records.push(row.seq);
        self.last_at = at;
        self.request =
            self.request
                .take()
                .or(row.record.request.as_ref().map(|key| key.id.to_string()));
        if let Some(call) = way.call {
            self.redacted |= call.redacted;
            self.call = Some(call);
        }
        self.redacted |= way.redacted;
        self.tool_id = tool_id.or(self.tool_id.take());
        self.surface = way.surface.or(self.surface.take());
        self.effects = effects.or(self.effects.take());
        self.approval = way.approval.or(self.approval.take());
        if let (Some(question), Some(decision)) = (way.ask, &way.decision) {
            let changes = self.inputs.changes.len();
            self.asked.push(AskingDecision {
                decision: decision.clone().into_owned(),
                question,
                at,
                changes,
            });
        }
        self.decision = way.decision.map(Cow::into_owned).or(self.decision.take());
        inputs::extend(&mut self.hooks, hooks, begin, |run| {
            (run.at_us, run.name.clone())
        });
        inputs::extend(&mut self.progress, way.progress, begin, |milestone| {
            (milestone.seq, milestone.at_us)
        });
        if !way.transitions.is_empty() {
            let reached = way.transitions.iter();
            self.transitions = reached
                .map(|passed| (passed.stage, moment(begin, passed.at_us)))
                .collect();
        }
        self.met = met.or(self.met.take());
        self.result = result.or(self.result.take());
        Ok(())
    }

    /// The last time that a stage was reached.
    pub(super) fn reached(&self, stage: Stage) -> Option<Timestamp> {
        self.transitions
            .iter()
            .rev()
            .find(|(reached, _)| *reached == stage)
            .map(|(_, at)| *at)
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.result.as_ref().map(|_| self.last_at)
    }

    /// The tool's id, or the requested name if no tool was found.
    pub(super) fn tool(&self) -> &str {
        let asked_for = self.call.as_ref().map_or("", |call| &*call.tool);
        self.tool_id.as_ref().map_or(asked_for, ToolId::as_str)
    }

    pub(super) fn has_run(&self) -> bool {
        self.is_started || self.reached(Stage::Execute).is_some()
    }
}

/// Reads a member that a record may lack.
fn read<T: ?Sized + ToOwned<Owned: DeserializeOwned>>(
    part: Option<&RecordBodyMember<'_, T>>,
) -> serde_json::Result<Option<T::Owned>> {
    part.map(RecordBodyMember::read).transpose()
}

impl AtMicros for HookRun {
    fn at_us(&self) -> u64 {
        self.at_us
    }
}

impl AtMicros for InputMutation {
    fn at_us(&self) -> u64 {
        self.at_us
    }
}

impl AtMicros for Milestone {
    fn at_us(&self) -> u64 {
        self.at_us
    }
}
