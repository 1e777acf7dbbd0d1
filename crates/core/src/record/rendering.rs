//! The journal records of a call, made from the pipeline's state.

use std::borrow::Cow;

use serde::Serialize;
use toolpost_model::{Arguments, ModelInput, Redactions};

use crate::{
    approval::{CallApproval, CallApprovalState, KeptVerdictFlag},
    invocation::{OnRecord, PipelineCall, RecordedResult},
    record::{
        body::{
            ApprovalBody, CallRecordBody, EventCounts, RecordBodyMember, RecordedCallRequest,
            append_member,
        },
        facets::Facets,
        journal::{Record, RecordKind, RequestKey},
        redaction::{self, CallRedactor},
    },
};

impl ApprovalBody {
    fn of(asking: &CallApprovalState, kind: RecordKind) -> Option<Self> {
        if let Some((no, kept)) = &asking.refusal {
            let by = no.by.clone();
            let spent = *kept == KeptVerdictFlag::Yes;
            return Some(Self {
                ask_id: no.ask_id,
                by,
                allowed: false,
                spent,
            });
        }
        let CallApproval {
            yes,
            one_use,
            spent,
            ..
        } = asking.approval.as_ref()?;
        let spent = one_use.0 && (*spent || kind == RecordKind::Started);
        Some(Self {
            ask_id: yes.ask_id,
            by: yes.by.clone(),
            allowed: true,
            spent,
        })
    }
}

/// The observable model input, if the call continues with other arguments.
pub(crate) fn sent_arguments(call: &PipelineCall) -> Option<Arguments> {
    if let Some(sent) = &call.inputs.sent {
        return Some(sent.clone());
    }
    let resolved = call
        .findings
        .resolved
        .as_ref()
        .filter(|_| !call.inputs.mutations.is_empty())?;
    let sent = call.inputs.model.parse().ok()?;
    let sensitive = resolved.entry.input().sensitive_pointers(sent.value());
    let own = call.live.redactor().own;
    Some(
        redaction::observable_after(own.as_ref(), &sent, &sensitive, call.live.host_redactor())
            .shown,
    )
}

fn request_body<'a>(
    call: &'a PipelineCall,
    sent: Option<&'a Arguments>,
) -> RecordedCallRequest<'a> {
    let observable = call
        .inputs
        .observable
        .as_ref()
        .map(|input| input.arguments());
    // Without a schema the sensitive fields are not known, so only the size of unread arguments is recorded.
    let unread_bytes = match (observable, &call.inputs.model) {
        (Some(_), _) => None,
        (None, ModelInput::Text(text)) => Some(text.len()),
        (None, ModelInput::Value(value)) => Some(value.to_string().len()),
    };
    RecordedCallRequest {
        tool: call.live.tool.as_str().into(),
        arguments: observable.map(RecordBodyMember::Value),
        model_arguments: sent.map(RecordBodyMember::Value),
        unread_bytes,
        redacted: call.inputs.redacted,
        sensitive: RecordBodyMember::of_list(&call.inputs.sensitive),
        parent: call.lineage.parent.as_ref().map(|parent| parent.id),
        principal: call.session.principal().name.clone(),
        role: call.session.principal().role,
        face: call.origin.face.as_str().into(),
        native_call_id: call.origin.native_call_id.clone(),
        correlation_id: call.origin.correlation_id.as_deref().map(Cow::Borrowed),
        trace: call.live.caller.span.as_deref().map(Cow::Borrowed),
        timeout_ms: call
            .waits
            .timeout
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        batch: call.origin.place.as_ref().map(Cow::Borrowed),
        background: call.origin.background,
    }
}

/// The size of a small call's record without its result: large enough that the text is not moved while it grows.
const RECORD_ROOM: usize = 1_024;

/// The JSON of plain data, in a buffer of the expected size.
pub(crate) fn written(value: &impl Serialize, expected: usize) -> String {
    let mut text = Vec::with_capacity(expected);
    // The serialisation of plain data cannot fail, and JSON is UTF-8.
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => String::from_utf8(text).unwrap_or_default(),
        Err(_) => "{}".to_owned(),
    }
}

/// A record of the call's present state, with its answer if it ends.
pub(crate) fn record(
    call: &PipelineCall,
    kind: RecordKind,
    answer: Option<&RecordedResult>,
) -> Record {
    let (sent_events, dropped) = call.live.event_counts();
    let first = call.progress.on_record == OnRecord::Nothing;
    let asks = kind == RecordKind::Asked;
    let observable = call
        .inputs
        .observable
        .as_ref()
        .map(|input| input.arguments());
    let tells_arguments = !first && (asks || !call.inputs.mutations.is_empty());
    let sent = first.then(|| sent_arguments(call)).flatten();
    let met = call
        .circumstances_body()
        .filter(|_| matches!(kind, RecordKind::Started | RecordKind::Ended));
    let body = CallRecordBody {
        call: first.then(|| request_body(call, sent.as_ref())),
        tool_id: call
            .findings
            .resolved
            .as_ref()
            .map(|resolved| RecordBodyMember::Value(resolved.entry.id())),
        surface: call.findings.surface.clone(),
        effects: call.findings.effects.as_ref().map(RecordBodyMember::Value),
        decision: call.findings.decision.as_ref().map(Cow::Borrowed),
        ask: call.asking.asked.filter(|_| asks),
        programs: Cow::Borrowed(if asks { &call.asking.programs } else { &[] }),
        arguments: observable
            .filter(|_| tells_arguments)
            .map(RecordBodyMember::Value),
        redacted: tells_arguments && call.inputs.redacted,
        approval: ApprovalBody::of(&call.asking, kind),
        mutations: RecordBodyMember::of_list(&call.inputs.mutations),
        hooks: RecordBodyMember::of_list(&call.hooks.runs),
        output_mutations: RecordBodyMember::of_list(&call.hooks.output_mutations),
        transitions: Cow::Borrowed(&call.progress.transitions),
        events: (sent_events > 0).then_some(EventCounts {
            sent: sent_events,
            dropped,
        }),
        progress: if kind == RecordKind::Ended {
            call.live.milestones()
        } else {
            Vec::new()
        },
        explain: met.as_ref().map(RecordBodyMember::Value),
        result: None,
    };
    let result = answer.map(RecordedResult::json);
    let mut body = written(&body, RECORD_ROOM + result.map_or(0, str::len));
    // The host's secrets are removed from every record. The call's own secrets may be in its effects or hooks.
    let redactor = call.live.redactor();
    if redactor.own.is_some()
        && let Cow::Owned(clean) = redactor.json(&body, &mut Redactions::default())
    {
        body = clean;
    }
    if let Some(result) = result {
        // The result is already JSON. It is pasted in and not serialised again, so that record and answer have the same
        // bytes.
        append_member(&mut body, "result", result);
    }
    Record {
        kind,
        at: crate::port::now(),
        invocation_id: Some(call.live.id),
        session_id: Some(call.session.id().clone()),
        request: call
            .origin
            .request
            .as_ref()
            .filter(|_| first)
            .map(|key| request(key, &redactor)),
        body,
        facets: (first || answer.is_some()).then(|| facets(call, answer, &redactor)),
    }
}

/// A request id may repeat a secret of its call. Its hash still finds the call.
fn request(key: &RequestKey, redactor: &CallRedactor) -> RequestKey {
    let id = match redactor.text(key.id.as_str()) {
        Cow::Borrowed(_) => key.id.clone(),
        Cow::Owned(_) => redaction::hidden(&key.id),
    };
    RequestKey { id, ..key.clone() }
}

/// The facets of the call, with the same texts as its body.
fn facets(call: &PipelineCall, answer: Option<&RecordedResult>, redactor: &CallRedactor) -> Facets {
    let tool = match &call.findings.resolved {
        Some(resolved) => resolved.entry.id().to_string(),
        // The caller wrote this name, so it may hold secrets.
        None => redactor.text(&call.live.tool).into_owned(),
    };
    Facets {
        tool,
        principal: call.session.principal().name.to_string(),
        outcome: answer.map(|answer| answer.result().outcome),
        correlation: call.origin.correlation_id.clone(),
    }
}
