//! One call, gathered from its records.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use toolpost_model::{Decision, Effects, HookRun, InvocationId, SessionId, Stage, ToolId, ToolResult};

use super::{moment, recorded};
use crate::record::journal::StoredRecord;

/// What the records of a call tell, the newest word first.
pub(super) struct Story {
    pub(super) id: InvocationId,
    pub(super) session: Option<SessionId>,
    pub(super) request: Option<String>,
    /// Its records, by number.
    pub(super) records: Vec<u64>,
    pub(super) call: Option<recorded::Asked>,
    pub(super) tool_id: Option<ToolId>,
    pub(super) surface: Option<String>,
    pub(super) effects: Option<Effects>,
    /// Decisions that asked a person, with their questions and times.
    pub(super) asked: Vec<(Decision, recorded::Question, Timestamp)>,
    pub(super) decision: Option<Decision>,
    pub(super) approval: Option<recorded::Approval>,
    /// The arguments in force, where they are not those the call came with.
    arguments: Option<Value>,
    pub(super) redacted: bool,
    pub(super) mutations: Vec<(recorded::Mutation, Timestamp)>,
    pub(super) hooks: Vec<(HookRun, Timestamp)>,
    pub(super) attempts: Vec<(recorded::Attempt, Timestamp)>,
    pub(super) progress: Vec<(recorded::Milestone, Timestamp)>,
    pub(super) transitions: Vec<(Stage, Timestamp)>,
    /// What it met on its way, where nothing else tells.
    pub(super) met: Option<Value>,
    pub(super) result: Option<ToolResult>,
    pub(super) last_at: Timestamp,
    /// When it was asked for.
    pub(super) created_at: Timestamp,
}

impl Story {
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
            arguments: None,
            redacted: false,
            mutations: Vec::new(),
            hooks: Vec::new(),
            attempts: Vec::new(),
            progress: Vec::new(),
            transitions: Vec::new(),
            met: None,
            result: None,
            last_at: at,
            created_at: Timestamp::from_millisecond(millis).unwrap_or(at),
        }
    }

    /// Takes in the next record.
    pub(super) fn follow(&mut self, row: &StoredRecord, way: recorded::Way) {
        let at = row.record.at;
        // Times count from the request on, or from the start of the host that took the call up again. The last stage
        // was reached just before the record was written.
        let newest = way.transitions.last().map_or(0, |(_, at_us)| *at_us);
        let since = SignedDuration::from_micros(i64::try_from(newest).unwrap_or_default());
        let begin = at.checked_sub(since).unwrap_or(at);
        self.records.push(row.seq);
        self.last_at = at;
        self.request = self.request.take().or(row.record.request.as_ref().map(|key| key.id.to_string()));
        if let Some(call) = way.call {
            self.redacted |= call.redacted;
            self.call = Some(call);
        }
        self.redacted |= way.redacted;
        self.tool_id = way.tool_id.or(self.tool_id.take());
        self.surface = way.surface.or(self.surface.take());
        self.effects = way.effects.or(self.effects.take());
        self.arguments = way.arguments.or(self.arguments.take());
        self.approval = way.approval.or(self.approval.take());
        if let (Some(question), Some(decision)) = (way.ask, &way.decision) {
            self.asked.push((decision.clone(), question, at));
        }
        self.decision = way.decision.or(self.decision.take());
        // Later records of the same life repeat what they have, with more behind it.
        newer(&mut self.mutations, way.mutations, |one| moment(begin, one.at_us));
        newer(&mut self.hooks, way.hooks, |one| moment(begin, one.at_us));
        newer(&mut self.attempts, way.attempts, |one| moment(begin, one.at_us));
        newer(&mut self.progress, way.progress, |one| moment(begin, one.at_us));
        if !way.transitions.is_empty() {
            let reached = way.transitions.into_iter();
            self.transitions = reached.map(|(stage, at_us)| (stage, moment(begin, at_us))).collect();
        }
        self.met = way.explain.or(self.met.take());
        self.result = way.result.map(|result| *result).or(self.result.take());
    }

    /// When a stage was reached last.
    pub(super) fn reached(&self, stage: Stage) -> Option<Timestamp> {
        self.transitions.iter().rev().find(|(reached, _)| *reached == stage).map(|(_, at)| *at)
    }

    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.result.as_ref().map(|_| self.last_at)
    }

    /// The tool, or the name that was asked for where there is none.
    pub(super) fn tool(&self) -> &str {
        let asked_for = self.call.as_ref().map_or("", |call| call.tool.as_str());
        self.tool_id.as_ref().map_or(asked_for, ToolId::as_str)
    }

    /// What the model sent.
    pub(super) fn model_input(&self) -> Option<&Value> {
        let call = self.call.as_ref()?;
        call.model_arguments.as_ref().or(call.arguments.as_ref())
    }

    /// What it went on with.
    pub(super) fn observable_input(&self) -> Option<&Value> {
        self.arguments.as_ref().or(self.call.as_ref().and_then(|call| call.arguments.as_ref()))
    }
}

/// Takes the newer list where it tells anything. Each record of a life holds all that came before it there.
fn newer<T>(known: &mut Vec<(T, Timestamp)>, told: Vec<T>, at: impl Fn(&T) -> Timestamp) {
    if !told.is_empty() {
        *known = told
            .into_iter()
            .map(|one| {
                let at = at(&one);
                (one, at)
            })
            .collect();
    }
}
