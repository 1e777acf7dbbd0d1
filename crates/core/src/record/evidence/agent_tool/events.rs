//! The events of the export, one for each fact.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_model::{Disposition, EventBody, HookEvent, InvocationId, Stage, ToolId, Verdict};

use super::{RecordingHost, moment, push, story::CallEvidence, words};
use crate::{
    invocation::Milestone,
    record::{
        body::{DiscoveryBody, SessionOpenedBody, SurfaceRecordBody, VerdictBody},
        declared::DeclaredTool,
        journal::StoredRecord,
    },
};

struct RecordedEvent<'a> {
    row: &'a StoredRecord,
    life: &'a RecordingHost,
}

impl RecordedEvent<'_> {
    fn push(&self, lines: &mut Vec<String>, kind: &str, subject: &Value, mark: &str, data: &Value) {
        push(
            lines,
            "event",
            json!({
                "event_id": format!("record/{}/{kind}{mark}", self.row.seq),
                "event_type": kind,
                "source": self.life.source(),
                "subject": subject,
                "time": self.row.record.at,
                "invocation_id": self.row.record.invocation_id,
                "journal_record": self.row.seq,
                "data": data,
            }),
        );
    }
}

pub(super) fn host_started(
    row: &StoredRecord,
    life: &RecordingHost,
    carried: &[InvocationId],
    lines: &mut Vec<String>,
) {
    let data = json!({ "version": life.version, "carried": carried });
    RecordedEvent { row, life }.push(lines, "host.started", &Value::Null, "", &data);
}

pub(super) fn session_opened(
    row: &StoredRecord,
    session: &SessionOpenedBody,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    let data = json!({
        "actor_ref": format!("{}/{}", session.role.as_str(), session.principal),
        "surface_request": session.surface,
    });
    RecordedEvent { row, life }.push(
        lines,
        "session.opened",
        &json!(row.record.session_id),
        "",
        &data,
    );
}

pub(super) fn session_closed(row: &StoredRecord, life: &RecordingHost, lines: &mut Vec<String>) {
    RecordedEvent { row, life }.push(
        lines,
        "session.closed",
        &json!(row.record.session_id),
        "",
        &json!({}),
    );
}

pub(super) fn pruned(row: &StoredRecord, life: &RecordingHost, lines: &mut Vec<String>) {
    let data: Value = row.record.read_body().unwrap_or_else(|_| json!({}));
    RecordedEvent { row, life }.push(lines, "journal.pruned", &Value::Null, "", &data);
}

pub(super) fn declared(
    row: &StoredRecord,
    tool: &DeclaredTool,
    interface: &str,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    let id = &tool.declaration.tool_id;
    let data = json!({ "interface_ref": interface, "source": tool.source });
    RecordedEvent { row, life }.push(lines, "tool.declared", &json!(id), &format!("/{id}"), &data);
}

pub(super) fn removed(
    row: &StoredRecord,
    id: &ToolId,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    RecordedEvent { row, life }.push(
        lines,
        "tool.removed",
        &json!(id),
        &format!("/{id}"),
        &json!({}),
    );
}

pub(super) fn surface(
    row: &StoredRecord,
    surface: &SurfaceRecordBody,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    let data = json!({
        "loaded": surface.loaded.len(), "deferred": surface.deferred.len(), "blocked": surface.blocked.len(),
    });
    RecordedEvent { row, life }.push(
        lines,
        "tool.surface.created",
        &json!(surface.surface_id),
        "",
        &data,
    );
}

/// The discovery of deferred tools. The answer that shows a tool includes its schema, so the tool is found and loaded
/// in one step.
pub(super) fn discovered(
    row: &StoredRecord,
    discovered: &DiscoveryBody,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    for id in &discovered.tools {
        let data =
            json!({ "tool_id": id, "session_id": row.record.session_id, "way": discovered.way });
        for kind in ["tool.deferred.discovered", "tool.deferred.loaded"] {
            RecordedEvent { row, life }.push(lines, kind, &json!(id), &format!("/{id}"), &data);
        }
    }
}

/// An operator's answer. Its call may have ended, and it may be for several calls.
pub(super) fn decided(
    row: &StoredRecord,
    decided: &VerdictBody,
    life: &RecordingHost,
    lines: &mut Vec<String>,
) {
    let (behavior, scope, feedback) = match &decided.verdict {
        Verdict::Allow { scope, .. } => ("allow", Some(scope), None),
        Verdict::Deny { feedback } => ("deny", None, feedback.as_ref()),
    };
    let data = json!({
        "ask_id": decided.ask_id,
        "behavior": behavior,
        "by": format!("operator/{}", decided.by),
        "scope": scope,
        "feedback": feedback,
        "changed_fields": decided.changed_fields,
        "waiting": decided.waiting,
        "kept_until": decided.kept_until,
        "rule": decided.rule,
        "asked_by": format!("{}/{}", decided.role.as_str(), decided.principal),
    });
    RecordedEvent { row, life }.push(
        lines,
        "tool.permission.decided",
        &json!(decided.tool_id),
        "",
        &data,
    );
}

struct CallEvents<'a> {
    story: &'a CallEvidence,
    source: String,
    count: usize,
}

impl CallEvents<'_> {
    fn push(&mut self, lines: &mut Vec<String>, kind: &str, at: Timestamp, data: &Value) {
        self.count += 1;
        push(
            lines,
            "event",
            json!({
                "event_id": format!("{}/event/{}", self.story.id, self.count),
                "event_type": kind,
                "source": self.source,
                "subject": self.story.session,
                "time": at,
                "invocation_id": self.story.id,
                "tool_id": self.story.tool(),
                "data": data,
            }),
        );
    }
}

pub(super) fn of_call(story: &CallEvidence, life: &RecordingHost, lines: &mut Vec<String>) {
    let mut events = CallEvents {
        story,
        source: life.source(),
        count: 0,
    };
    for (stage, at) in &story.transitions {
        if let Some(kind) = words::stage_event(*stage) {
            events.push(lines, kind, *at, &json!({ "stage": stage }));
        }
        match stage {
            Stage::PreHooks => hooks(&mut events, HookEvent::Before, lines),
            Stage::Decide if story.decision.is_some() => {
                let behavior = story.decision.as_ref().map(|decision| decision.behavior);
                events.push(
                    lines,
                    "tool.permission.decided",
                    *at,
                    &json!({ "behavior": behavior }),
                );
            }
            Stage::PostHooks => {
                hooks(&mut events, HookEvent::After, lines);
                hooks(&mut events, HookEvent::Failure, lines);
            }
            Stage::Resolve
            | Stage::Parse
            | Stage::Validate
            | Stage::Observe
            | Stage::Decide
            | Stage::AwaitApproval
            | Stage::Admit
            | Stage::Execute
            | Stage::Map
            | Stage::Persist
            | Stage::Emit => {}
        }
    }
    for (milestone, at) in &story.progress {
        milestones(&mut events, milestone, *at, lines);
    }
    let Some(result) = &story.result else { return };
    let at = story.last_at;
    let reference = json!({ "result_ref": format!("{}/result", story.id) });
    events.push(lines, "tool.result.created", at, &reference);
    if result
        .persistence
        .as_ref()
        .is_some_and(|done| done.artifact.is_some())
    {
        events.push(lines, "tool.result.persisted", at, &reference);
    }
    if !result.redactions.is_empty() || result.disposition == Disposition::Redacted {
        events.push(
            lines,
            "tool.result.redacted",
            at,
            &json!({ "redactions": result.redactions }),
        );
    }
    let class = result.error_class().map(toolpost_model::ErrorClass::as_str);
    events.push(
        lines,
        words::end_event(result),
        at,
        &json!({ "outcome": result.outcome, "error_class": class }),
    );
}

/// Progress, which is a record of its own in the draft, or an event of a module, which is exported whole.
fn milestones(
    events: &mut CallEvents<'_>,
    milestone: &Milestone,
    at: Timestamp,
    lines: &mut Vec<String>,
) {
    match &milestone.body {
        EventBody::Progress(_) | EventBody::Status { .. } => {
            let reference = format!("{}/progress/{}", events.story.id, milestone.seq);
            events.push(
                lines,
                "tool.invocation.progress",
                at,
                &json!({ "progress_ref": reference }),
            );
        }
        EventBody::Custom { .. } => {
            if let Some((name, data)) = milestone.body.as_module_event() {
                events.push(
                    lines,
                    "module.event",
                    at,
                    &json!({ "event": name, "data": data }),
                );
            }
        }
        EventBody::Stage { .. }
        | EventBody::Log { .. }
        | EventBody::Artifact { .. }
        | EventBody::Kept(_)
        | EventBody::Output(_)
        | EventBody::Approval(_)
        | EventBody::Message { .. } => {}
    }
}

fn hooks(events: &mut CallEvents<'_>, event: HookEvent, lines: &mut Vec<String>) {
    let story = events.story;
    let when = if event == HookEvent::Before {
        "pre"
    } else {
        "post"
    };
    for (place, (run, at)) in (1..).zip(&story.hooks) {
        if run.event != event {
            continue;
        }
        let data = json!({ "hook_ref": format!("{}/hook/{place}", story.id) });
        events.push(lines, &format!("tool.hook.{when}.started"), *at, &data);
        events.push(
            lines,
            &format!("tool.hook.{when}.completed"),
            moment(*at, run.duration_us),
            &data,
        );
    }
}
