//! How a call is written down: the bodies of journal records, and what recovery and readers get back from them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolpost_model::{
    Arguments, Decision, Effects, HookRun, InvocationId, ModelInput, Principal, PrincipalName, Role,
    SurfaceId, SurfaceRequest, ToolId, Transition,
};

use crate::{
    flow::{
        hooks::{InputMutation, OutputMutation},
        invocation::{Call, OnRecord},
    },
    record::journal::{Record, RecordKind},
};

/// What was asked, by whom, from where. Stands in the first record of a call.
#[derive(Serialize)]
struct CallBody<'a> {
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a Arguments>,
    /// The size of arguments that were not read: there was no tool, or they were no JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_bytes: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
    /// The call that made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<InvocationId>,
    principal: &'a PrincipalName,
    role: Role,
    face: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

/// What the host found, decided and did.
#[derive(Serialize)]
struct WayBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_id: Option<&'a ToolId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<&'a SurfaceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<&'a Effects>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a Decision>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    mutations: &'a [InputMutation],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hooks: &'a [HookRun],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    output_mutations: &'a [OutputMutation],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    transitions: &'a [Transition],
    #[serde(skip_serializing_if = "EventCounts::is_zero")]
    events: EventCounts,
}

#[derive(Serialize)]
struct EventCounts {
    sent: u64,
    dropped: u64,
}

impl EventCounts {
    fn is_zero(&self) -> bool {
        self.sent == 0
    }
}

fn call_body(call: &Call) -> CallBody<'_> {
    let observable = call.inputs.observable.as_ref().map(|input| input.arguments());
    // Without a schema nobody can say what is sensitive, so of arguments that were not read only the size is kept.
    let unread_bytes = match (observable, &call.inputs.model) {
        (Some(_), _) => None,
        (None, ModelInput::Text(text)) => Some(text.len()),
        (None, ModelInput::Value(value)) => Some(value.to_string().len()),
    };
    CallBody {
        tool: &call.live.tool,
        arguments: observable,
        unread_bytes,
        redacted: call.inputs.redacted,
        parent: call.parent.as_ref().map(|parent| parent.id),
        principal: &call.session.principal().name,
        role: call.session.principal().role,
        face: &call.face,
        correlation_id: call.correlation_id.as_deref(),
        timeout_ms: call.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// What a record of a small call takes beside its result: enough that its text is not moved while it grows.
const RECORD_ROOM: usize = 1_024;

/// The JSON of plain data, in a buffer of the expected size.
pub(crate) fn written(value: &impl Serialize, expected: usize) -> String {
    let mut text = Vec::with_capacity(expected);
    // Plain data cannot fail to be written, and JSON is UTF-8.
    match serde_json::to_writer(&mut text, value) {
        Ok(()) => String::from_utf8(text).unwrap_or_default(),
        Err(_) => "{}".to_owned(),
    }
}

/// A record of where the call stands; `result` is the finished result's JSON for its end.
pub(crate) fn record(call: &Call, kind: RecordKind, result: Option<&str>) -> Record {
    let (sent, dropped) = call.live.event_counts();
    let first = call.on_record == OnRecord::Nothing;
    let body = WayBody {
        call: first.then(|| call_body(call)),
        tool_id: call.resolved.as_ref().map(|resolved| resolved.entry.id()),
        surface: call.resolved.as_ref().map(|resolved| &resolved.surface),
        effects: call.effects.as_ref(),
        decision: call.decision.as_ref(),
        mutations: &call.inputs.mutations,
        hooks: &call.hooks.runs,
        output_mutations: &call.hooks.output_mutations,
        transitions: &call.transitions,
        events: EventCounts { sent, dropped },
    };
    let mut body = written(&body, RECORD_ROOM + result.map_or(0, str::len));
    if let Some(result) = result {
        // The result is JSON already; pasting it in keeps the record and the answer the same bytes.
        body.pop();
        if body.len() > 1 {
            body.push(',');
        }
        body.push_str("\"result\":");
        body.push_str(result);
        body.push('}');
    }
    Record {
        kind,
        at: crate::port::now(),
        invocation_id: Some(call.live.id),
        session_id: Some(call.session.id().clone()),
        request: first.then(|| call.request.clone()).flatten(),
        body,
    }
}

/// The first record's account of a call, read back.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedCall {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) redacted: bool,
    #[serde(default)]
    pub(crate) parent: Option<InvocationId>,
    pub(crate) principal: PrincipalName,
    pub(crate) role: Role,
    pub(crate) face: String,
    #[serde(default)]
    pub(crate) correlation_id: Option<String>,
    #[serde(default)]
    pub(crate) timeout_ms: Option<u64>,
}

impl RecordedCall {
    pub(crate) fn principal(&self) -> Principal {
        Principal { name: self.principal.clone(), role: self.role }
    }
}

/// The parts of a record body that recovery and repeats need.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedWay {
    #[serde(default)]
    pub(crate) call: Option<RecordedCall>,
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
}

/// Body of a host start: the calls from before it that go on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StartBody {
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) carried: Vec<InvocationId>,
}

/// Body of a session's opening.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionBody {
    pub(crate) principal: PrincipalName,
    pub(crate) role: Role,
    pub(crate) surface: SurfaceRequest,
    /// A mark of the credential it was opened with, where its face keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
}
