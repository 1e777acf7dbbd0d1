//! An invocation, how it was scheduled and how far it got.

use std::collections::HashSet;

use serde::Deserialize as _;
use serde_json::{Value, json};
use toolpost_model::{
    BatchOrdering, EventBody, Interrupt, NativeCallId, OnFailure, Outcome, Stage, TraceContext,
};

use super::{RecordingHost, four_inputs::FourInputs, push, story::CallEvidence, words};
use crate::record::{body::CancellationBody, declared::DeclaredTool};

/// The face for which the host makes the request ids.
const A2A_FACE: &str = "a2a";

/// Exports the policy that scheduled a call, once, and returns its id.
pub(super) fn scheduler_policy(
    story: &CallEvidence,
    tool: Option<&DeclaredTool>,
    life: &RecordingHost,
    told: &mut HashSet<String>,
    lines: &mut Vec<String>,
) -> String {
    let batch = story.call.as_ref().and_then(|call| call.batch.as_ref());
    let ordering = match batch.map(|batch| batch.ordering) {
        // A call outside of a batch has no order.
        None | Some(BatchOrdering::AllowUnordered) => "allow_unordered",
        Some(BatchOrdering::PreserveTerminalOrder) => "preserve_terminal_order",
        Some(BatchOrdering::Serial) => "serial",
    };
    let siblings = match batch.map(|batch| batch.on_failure) {
        None | Some(OnFailure::Ignore) => "ignore",
        Some(OnFailure::CancelSiblings) => "cancel_siblings",
        Some(OnFailure::CancelDependent) => "cancel_dependent",
    };
    let interrupt = match tool.map(|tool| tool.declaration.interface.execution.interrupt) {
        None | Some(Interrupt::Block) => "block",
        Some(Interrupt::Cancel) => "cancel",
    };
    let scope = if batch.is_some() { "batch" } else { "call" };
    let host = life
        .seq
        .map_or_else(|| "unknown".to_owned(), |seq| seq.to_string());
    let id = format!("scheduler/{host}/{scope}/{ordering}/{siblings}/{interrupt}");
    let limits = life.limits.as_ref();
    if told.insert(id.clone()) {
        push(
            lines,
            "scheduler_policy",
            json!({
                "scheduler_policy_id": id,
                "scope": scope,
                "max_parallel": limits.map(|limits| limits.concurrency),
                "max_parallel_in_session": limits.map(|limits| limits.session_concurrency),
                "max_queued": limits.map(|limits| limits.queue),
                "ordering_policy": ordering,
                "yield_policy": if ordering == "allow_unordered" {
                    "unordered_streaming"
                } else {
                    "progress_immediate_results_ordered"
                },
                "interrupt_behavior": interrupt,
                "sibling_failure_policy": siblings,
                "context_modifier_policy": "forbid",
            }),
        );
    }
    id
}

fn transitions(story: &CallEvidence) -> Vec<Value> {
    let mut passed: Vec<Value> = Vec::with_capacity(story.transitions.len() + 1);
    for (stage, at) in &story.transitions {
        passed.push(json!({ "status": words::state(*stage), "stage": stage, "at": at }));
    }
    if let Some(result) = &story.result {
        let status = words::final_state(result);
        passed.push(json!({ "status": status, "outcome": result.outcome, "at": story.last_at }));
    }
    passed
}

/// The caller's id of its call. A caller that gave none may have sent a request id, which is the caller's own as well.
/// Over A2A the host makes the request ids of message and call, so they are not the caller's names.
fn native_call_id(story: &CallEvidence) -> Option<&str> {
    let call = story.call.as_ref()?;
    let of_request = || {
        let request = story.request.as_ref().filter(|_| call.face != A2A_FACE)?;
        Some(request.as_str()).filter(|id| id.len() <= NativeCallId::LONGEST)
    };
    call.native_call_id
        .as_ref()
        .map(NativeCallId::as_str)
        .or_else(of_request)
}

pub(super) fn invocation(
    story: &CallEvidence,
    policy: &str,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    let call = story.call.as_ref();
    let last_stage = story
        .transitions
        .last()
        .map_or("planned", |(stage, _)| words::state(*stage));
    let status = story.result.as_ref().map_or(last_stage, words::final_state);
    let refs = |kind: &str, count: usize| -> Vec<String> {
        (1..=count)
            .map(|place| format!("{}/{kind}/{place}", story.id))
            .collect()
    };
    let artifacts = story.result.as_ref().map(|result| &result.artifacts);
    let mut fields = json!({
            "invocation_id": story.id,
            "tool_id": story.tool(),
            "asked_for": call.map(|call| &call.tool),
            "surface_id": story.surface,
            "native_call_id": native_call_id(story),
            "correlation_id": call.and_then(|call| call.correlation_id.as_ref()),
            "session_id": story.session,
            "parent_invocation_id": call.and_then(|call| call.parent),
            "status": status,
            "stage": story.transitions.last().map(|(stage, _)| stage),
            "outcome": story.result.as_ref().map(|result| result.outcome),
            "inputs_redacted": story.redacted,
            "unread_bytes": call.and_then(|call| call.unread_bytes),
            "actor_ref": call.map(|call| format!("{}/{}", call.role.as_str(), call.principal)),
            "face": call.map(|call| &call.face),
            "batch": call.and_then(|call| call.batch.as_ref()),
            "background": call.map(|call| call.background),
            "wished_timeout_ms": call.and_then(|call| call.timeout_ms),
            "effects": story.effects,
            "permission_decision_refs": refs("decision", super::grounds::count(story)),
            "policy_refs": super::grounds::policy_refs(story),
            "cancellation": cancellation(story),
            "telemetry_refs": telemetry(story, life),
            "hook_refs": refs("hook", story.hooks.len()),
            "mutation_refs": refs("mutation", story.inputs.changes.len()),
            "result_ref": story.result.as_ref().map(|_| format!("{}/result", story.id)),
            "journal_records": story.records,
            "artifact_refs": artifacts,
            "met": story.met,
            "scheduler_policy_ref": policy,
            "status_transitions": transitions(story),
            "created_at": story.created_at,
            "started_at": story.reached(Stage::Execute),
            "ended_at": story.ended_at(),
    });
    if let (Value::Object(fields), Value::Object(inputs)) =
        (&mut fields, FourInputs::of(story).fields())
    {
        fields.extend(inputs);
    }
    push(lines, "invocation", fields);
}

/// The call's span. For a host without spans, only the caller's span from the record.
fn telemetry(story: &CallEvidence, life: &RecordingHost) -> Option<Value> {
    let call = story.call.as_ref()?;
    let span = match &call.trace {
        Some(caller) => caller.child(story.id),
        None if life.traces && call.parent.is_none() => TraceContext::of_call(story.id),
        None => return None,
    };
    let mut reference = json!({
        "type": "w3c_trace_context",
        "traceparent": span.traceparent(),
        "trace_id": span.trace_id(),
        "span_id": span.span_id(),
    });
    if let Some(caller) = &call.trace {
        reference["parent_span_id"] = json!(caller.span_id());
    }
    if let Some(state) = span.tracestate() {
        reference["tracestate"] = json!(state);
    }
    Some(json!([reference]))
}

/// The cancellation: its principal, its time, and whether the work stopped.
fn cancellation(story: &CallEvidence) -> Option<Value> {
    let told = story.met.as_ref()?.get("cancellation")?;
    let told: CancellationBody = CancellationBody::deserialize(told).ok()?;
    let by = told
        .by
        .zip(told.role)
        .map(|(name, role)| format!("{}/{name}", role.as_str()));
    let is_canceled = story
        .result
        .as_ref()
        .is_some_and(|result| result.outcome == Outcome::Canceled);
    Some(json!({
        "reason": told.reason,
        "requested_by": by.unwrap_or_else(|| "host".to_owned()),
        "requested_at": told.requested_at,
        "acknowledged_at": told.acknowledged_at,
        "status": if is_canceled { "canceled" } else { "cancel_failed" },
    }))
}

pub(super) fn progress(story: &CallEvidence, lines: &mut Vec<String>) {
    let started = story.reached(Stage::Execute);
    for (milestone, at) in &story.progress {
        let (message, progress) = match &milestone.body {
            EventBody::Progress(progress) => (&progress.message, Some(progress)),
            EventBody::Status { message } => (message, None),
            EventBody::Stage { .. }
            | EventBody::Log { .. }
            | EventBody::Artifact { .. }
            | EventBody::Kept(_)
            | EventBody::Output(_)
            | EventBody::Approval(_)
            | EventBody::Custom { .. }
            | EventBody::Message { .. } => continue,
        };
        let runs = started.is_some_and(|started| *at >= started);
        let percent = progress
            .and_then(|progress| progress.percent)
            .filter(|p| (0.0..=100.0).contains(p));
        push(
            lines,
            "progress",
            json!({
                "progress_id": format!("{}/progress/{}", story.id, milestone.seq),
                "invocation_id": story.id,
                "sequence": milestone.seq,
                "status": if runs { "running" } else { "queued" },
                "message": Some(message).filter(|message| !message.is_empty()),
                "percent": percent,
                "done": progress.and_then(|progress| progress.done),
                "total_steps": progress.and_then(|progress| progress.total),
                "elapsed_ms": milestone.at_us / 1_000,
                "timestamp": at,
            }),
        );
    }
}
