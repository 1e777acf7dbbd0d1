//! The call events of modules beside the three that hooks answer: one projection of the host's lifecycle, for modules
//! in every language.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use toolpost_amplifier::{
    ToolSpec,
    events::{self, ApprovalStep, CallFacts},
    of_result,
};
use toolpost_core::{CancelReason, Witness, WitnessedCall, WitnessedEnd};
use toolpost_model::{
    ApprovalStatus, ErrorClass, Event, EventBody, Outcome, ResourceAccess, ResourceUse, SessionId,
};

/// Takes events for the handlers of a session's modules.
pub trait EventTaker: Send + Sync + 'static {
    /// Whether an event has a handler, so that it is worth building.
    fn concerns(&self, event: &str) -> bool;

    /// Takes an event. Never waits; an event that finds no room is dropped.
    fn tell(&self, session: &SessionId, event: &'static str, data: Value);

    /// Ends a session.
    fn session_closed(&self, session: &SessionId);
}

/// Sends modules the call events `artifact:*`, `approval:*`, `policy:violation`, `cancel:*`, and `tool:error` of calls
/// that find no tool.
pub struct EventWitness(Arc<dyn EventTaker>);

impl EventWitness {
    /// A witness for [`HostBuilder::witness`](toolpost_core::HostBuilder::witness).
    pub fn new(taker: Arc<dyn EventTaker>) -> Self {
        Self(taker)
    }

    fn tell(
        &self,
        call: &WitnessedCall,
        event: &'static str,
        at: Timestamp,
        data: impl Fn(&CallFacts<'_>) -> Value,
    ) {
        if !self.0.concerns(event) {
            return;
        }
        let own_id = call.invocation_id.to_string();
        let parent = call.parent.map(|parent| parent.to_string());
        let facts = CallFacts {
            tool_name: mount_name(call),
            tool_input: &Value::Null,
            tool_call_id: call
                .request_id
                .as_ref()
                .map_or(own_id.as_str(), |id| id.as_str()),
            parallel_group_id: call.batch_id.as_deref(),
            session_id: call.session_id.as_str(),
            parent_id: parent.as_deref(),
            timestamp: at,
        };
        self.0.tell(&call.session_id, event, data(&facts));
    }

    fn approval(&self, call: &WitnessedCall, step: ApprovalStep, at: Timestamp) {
        let question = format!("may `{}` be called?", mount_name(call));
        self.tell(call, step.event(), at, |facts| {
            events::approval(facts, &question)
        });
    }

    /// Reports a path that a successful call used, as far as it was known before the call.
    fn artifact(&self, call: &WitnessedCall, used: &ResourceUse, at: Timestamp) {
        let Some(path) = used.key.as_str().strip_prefix("path:") else {
            return;
        };
        match used.access {
            ResourceAccess::Read => {
                self.tell(call, events::ARTIFACT_READ, at, |facts| {
                    events::artifact(facts, path, None)
                });
            }
            ResourceAccess::Write => {
                self.tell(call, events::ARTIFACT_WRITE, at, |facts| {
                    events::artifact(facts, path, None)
                });
            }
        }
    }
}

/// The tool's name in the plan. A call that found no tool has only the requested name.
fn mount_name(call: &WitnessedCall) -> &str {
    call.declaration()
        .map_or(&call.tool, |declaration| ToolSpec::native_name(declaration))
}

impl Witness for EventWitness {
    fn hear(&self, call: &WitnessedCall, event: &Event) {
        match &event.body {
            EventBody::Approval(ApprovalStatus::Pending { .. }) => {
                self.approval(call, ApprovalStep::Required, event.at);
            }
            EventBody::Approval(ApprovalStatus::Granted { .. }) => {
                self.approval(call, ApprovalStep::Granted, event.at);
            }
            EventBody::Kept(kept) => self.tell(call, events::ARTIFACT_WRITE, event.at, |facts| {
                events::artifact(facts, &kept.name, Some(kept.size))
            }),
            EventBody::Stage { .. }
            | EventBody::Progress(_)
            | EventBody::Status { .. }
            | EventBody::Log { .. }
            | EventBody::Artifact { .. }
            | EventBody::Output(_)
            | EventBody::Custom { .. }
            | EventBody::Message { .. } => {}
        }
    }

    fn canceled(&self, call: &WitnessedCall, reason: CancelReason, at: Timestamp) {
        let reason = reason.explain();
        self.tell(call, events::CANCEL_REQUESTED, at, |facts| {
            events::cancel_requested(facts, &reason)
        });
    }

    fn ended(&self, call: &WitnessedCall, end: &WitnessedEnd<'_>) {
        let result = end.result;
        let at = end.at;
        if result.outcome.is_success() {
            let uses = end
                .effects
                .map(|effects| effects.uses.as_slice())
                .unwrap_or_default();
            uses.iter().for_each(|used| self.artifact(call, used, at));
        }
        if result.outcome == Outcome::Canceled {
            let took = result.timings.total_us / 1_000;
            self.tell(call, events::CANCEL_COMPLETED, at, |facts| {
                events::cancel_completed(facts, took)
            });
        }
        let Some(error) = &result.error else { return };
        match error.class {
            ErrorClass::ApprovalRejected => self.approval(call, ApprovalStep::Denied, at),
            ErrorClass::PermissionDenied
            | ErrorClass::PolicyBlocked
            | ErrorClass::SandboxViolation
            | ErrorClass::HookBlocked => self.tell(call, events::POLICY_VIOLATION, at, |facts| {
                events::policy_violation(facts, error.class.as_str(), &error.message)
            }),
            // Hooks get the calls of existing tools; a call that finds no tool ends before them.
            ErrorClass::UnknownTool => self.tell(call, events::TOOL_ERROR, at, |facts| {
                events::tool_error(facts, result.timings.total_us / 1_000, &of_result(result))
            }),
            _ => {}
        }
    }

    fn session_closed(&self, session: &SessionId) {
        self.0.session_closed(session);
    }
}
