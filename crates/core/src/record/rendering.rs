//! How a call is written down: the bodies of journal records, and what recovery and readers get back from them.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use toolpost_model::{
    ArgumentChange, Arguments, BatchPlace, CallHash, Decision, Effects, ErrorClass, HookRun,
    InvocationId, ModelInput, NativeCallId, Principal, PrincipalName, PrincipalRole, ProgramFile,
    Redactions, SurfaceId, SurfaceRequest, ToolId, TraceContext, Transition, Verdict,
};

use crate::{
    approval::{CallApproval, CallApprovalState, KeptVerdictFlag, RecordedQuestion},
    hooks::{InputMutation, OutputMutation},
    host::HostLimits,
    invocation::{MetBody, Milestone, OnRecord, PipelineCall, RecordedResult},
    record::{
        declared::CatalogOnRecord,
        facets::Facets,
        journal::{Record, RecordKind, RequestKey},
        redaction::{self, CallRedactor, SensitiveArgument},
    },
};

/// What was asked, by whom, from where. Stands in the first record of a call.
#[derive(Serialize)]
struct CallBody<'a> {
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a Arguments>,
    /// What the model sent, where it was changed before this was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_arguments: Option<Arguments>,
    /// The size of arguments that were not read: there was no tool, or they were no JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_bytes: Option<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
    /// What may be said of the sensitive arguments.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    sensitive: &'a [SensitiveArgument],
    /// The call that made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<InvocationId>,
    principal: &'a PrincipalName,
    role: PrincipalRole,
    face: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_call_id: Option<&'a NativeCallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    /// The span of the caller. Without one, the trace has the id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<&'a BatchPlace>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    background: bool,
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
    /// The question it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<RecordedQuestion>,
    /// The files it would run, as they were when it asked.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    programs: &'a [ProgramFile],
    /// The arguments it asks, runs or ends with, where an earlier record has those it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a Arguments>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
    /// The answer it goes on with, or ends with.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalBody>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    progress: Vec<Milestone>,
    /// What it met on its way, where nothing else tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<MetBody<'a>>,
}

/// A person's answer, as the records of a call that heard it tell it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ApprovalBody {
    pub(crate) ask_id: InvocationId,
    pub(crate) by: PrincipalName,
    pub(crate) allowed: bool,
    /// It had been kept for one call, and this is that call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) spent: bool,
}

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

/// Body of a person's answer. Holds all that is needed to go on with it in another life.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DecidedBody {
    pub(crate) ask_id: InvocationId,
    /// What was asked.
    pub(crate) hash: CallHash,
    /// What may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approves: Option<CallHash>,
    /// What was asked, without the files that the call would run, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) without_files: Option<CallHash>,
    /// The files of what may run, as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) programs: Vec<ProgramFile>,
    pub(crate) principal: PrincipalName,
    pub(crate) role: PrincipalRole,
    pub(crate) tool_id: String,
    pub(crate) verdict: Verdict,
    /// The arguments that were changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changed_fields: Vec<String>,
    /// The same with the values, in readable text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changed_arguments: Vec<ArgumentChange>,
    /// A sensitive value was taken out of the changed arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) redacted: bool,
    pub(crate) by: PrincipalName,
    /// How many calls it was for.
    pub(crate) waiting: usize,
    /// Until when it is good for one more call, where it was for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept_until: Option<Timestamp>,
    /// The rule it left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// A call of an earlier life goes on with it. Known only while a host starts.
    #[serde(skip)]
    pub(crate) is_taken: bool,
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

/// What the model sent, as others may see it, where it is no longer what the call goes on with.
pub(crate) fn sent_arguments(call: &PipelineCall) -> Option<Arguments> {
    if let Some(sent) = &call.inputs.sent {
        return Some(sent.clone());
    }
    let resolved = call
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

fn call_body(call: &PipelineCall) -> CallBody<'_> {
    let observable = call
        .inputs
        .observable
        .as_ref()
        .map(|input| input.arguments());
    // Without a schema nobody can say what is sensitive, so of arguments that were not read only the size is kept.
    let unread_bytes = match (observable, &call.inputs.model) {
        (Some(_), _) => None,
        (None, ModelInput::Text(text)) => Some(text.len()),
        (None, ModelInput::Value(value)) => Some(value.to_string().len()),
    };
    CallBody {
        tool: &call.live.tool,
        arguments: observable,
        model_arguments: sent_arguments(call),
        unread_bytes,
        redacted: call.inputs.redacted,
        sensitive: &call.inputs.sensitive,
        parent: call.parent.as_ref().map(|parent| parent.id),
        principal: &call.session.principal().name,
        role: call.session.principal().role,
        face: &call.face,
        native_call_id: call.native_call_id.as_ref(),
        correlation_id: call.correlation_id.as_deref(),
        trace: call.live.caller_span.as_deref(),
        timeout_ms: call
            .timeout
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        batch: call.place.as_ref(),
        background: call.background,
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

/// A record of where the call stands, with its answer where it ends.
pub(crate) fn record(
    call: &PipelineCall,
    kind: RecordKind,
    answer: Option<&RecordedResult>,
) -> Record {
    let (sent, dropped) = call.live.event_counts();
    let first = call.on_record == OnRecord::Nothing;
    let asks = kind == RecordKind::Asked;
    let observable = call
        .inputs
        .observable
        .as_ref()
        .map(|input| input.arguments());
    let tells_arguments = !first && (asks || !call.inputs.mutations.is_empty());
    let body = WayBody {
        call: first.then(|| call_body(call)),
        tool_id: call.resolved.as_ref().map(|resolved| resolved.entry.id()),
        surface: call.surface.as_ref(),
        effects: call.effects.as_ref(),
        decision: call.decision.as_ref(),
        ask: call.asking.asked.filter(|_| asks),
        programs: if asks { &call.asking.programs } else { &[] },
        arguments: observable.filter(|_| tells_arguments),
        redacted: tells_arguments && call.inputs.redacted,
        approval: ApprovalBody::of(&call.asking, kind),
        mutations: &call.inputs.mutations,
        hooks: &call.hooks.runs,
        output_mutations: &call.hooks.output_mutations,
        transitions: &call.transitions,
        events: EventCounts { sent, dropped },
        progress: if kind == RecordKind::Ended {
            call.live.milestones()
        } else {
            Vec::new()
        },
        explain: call
            .met_body()
            .filter(|_| matches!(kind, RecordKind::Started | RecordKind::Ended)),
    };
    let result = answer.map(RecordedResult::json);
    let mut body = written(&body, RECORD_ROOM + result.map_or(0, str::len));
    // What the host knows is taken out of every record. What only this call knows may be in its effects or hooks.
    let redactor = call.live.redactor();
    if redactor.own.is_some()
        && let Cow::Owned(clean) = redactor.json(&body, &mut Redactions::default())
    {
        body = clean;
    }
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
        request: call
            .request
            .as_ref()
            .filter(|_| first)
            .map(|key| request(key, &redactor)),
        body,
        facets: (first || answer.is_some()).then(|| facets(call, answer, &redactor)),
    }
}

/// A request id may repeat what only the call knows for a secret. The same id still finds the call.
fn request(key: &RequestKey, redactor: &CallRedactor) -> RequestKey {
    let id = match redactor.text(key.id.as_str()) {
        Cow::Borrowed(_) => key.id.clone(),
        Cow::Owned(_) => redaction::hidden(&key.id),
    };
    RequestKey { id, ..key.clone() }
}

/// What the call is looked for by: the same words as in its body.
fn facets(call: &PipelineCall, answer: Option<&RecordedResult>, redactor: &CallRedactor) -> Facets {
    let tool = match &call.resolved {
        Some(resolved) => resolved.entry.id().to_string(),
        // It is what the caller wrote.
        None => redactor.text(&call.live.tool).into_owned(),
    };
    Facets {
        tool,
        principal: call.session.principal().name.to_string(),
        outcome: answer.map(|answer| answer.result().outcome),
        correlation: call.correlation_id.clone(),
    }
}

/// The first record's account of a call, read back.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RecordedCall {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) arguments: Option<Box<RawValue>>,
    /// What the caller sent, where that became something else.
    #[serde(default)]
    pub(crate) model_arguments: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) unread_bytes: Option<usize>,
    #[serde(default)]
    pub(crate) redacted: bool,
    #[serde(default)]
    pub(crate) parent: Option<InvocationId>,
    pub(crate) principal: PrincipalName,
    pub(crate) role: PrincipalRole,
    pub(crate) face: String,
    #[serde(default)]
    pub(crate) native_call_id: Option<NativeCallId>,
    #[serde(default)]
    pub(crate) correlation_id: Option<String>,
    /// One that a secret was taken out of is none any more.
    #[serde(default, deserialize_with = "readable_trace")]
    pub(crate) trace: Option<Box<TraceContext>>,
    #[serde(default)]
    pub(crate) timeout_ms: Option<u64>,
    #[serde(default)]
    pub(crate) batch: Option<BatchPlace>,
}

/// A trace context of a record, or none where it cannot be read: no call is lost for that.
pub(crate) fn readable_trace<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<TraceContext>>, D::Error> {
    let written = serde_json::Value::deserialize(deserializer)?;
    Ok(TraceContext::deserialize(written).ok().map(Box::new))
}

impl RecordedCall {
    pub(crate) fn principal(&self) -> Principal {
        Principal {
            name: self.principal.clone(),
            role: self.role,
        }
    }
}

/// The parts of a record body that recovery and repeats need.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedWay {
    #[serde(default)]
    pub(crate) call: Option<RecordedCall>,
    #[serde(default)]
    pub(crate) surface: Option<SurfaceId>,
    #[serde(default)]
    pub(crate) transitions: Vec<Transition>,
    #[serde(default)]
    pub(crate) progress: Vec<Milestone>,
    #[serde(default)]
    pub(crate) decision: Option<Decision>,
    #[serde(default)]
    pub(crate) ask: Option<RecordedQuestion>,
    #[serde(default)]
    pub(crate) programs: Vec<ProgramFile>,
    #[serde(default)]
    pub(crate) arguments: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) redacted: bool,
    #[serde(default)]
    pub(crate) approval: Option<ApprovalBody>,
    #[serde(default)]
    pub(crate) result: Option<Box<RawValue>>,
}

impl RecordedWay {
    /// Why it did not succeed, where it ended so.
    pub(crate) fn error_class(&self) -> Option<ErrorClass> {
        #[derive(Deserialize)]
        struct Ended {
            error: Option<Classed>,
        }
        #[derive(Deserialize)]
        struct Classed {
            class: ErrorClass,
        }
        let ended: Ended = serde_json::from_str(self.result.as_ref()?.get()).ok()?;
        Some(ended.error?.class)
    }
}

/// Body of a host start: the calls from before it that go on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StartBody {
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) carried: Vec<InvocationId>,
    /// Its calls have spans: one without a recorded trace began one of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) traces: bool,
    /// Where the record tells what can be called, where that was told before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) catalog: Option<CatalogOnRecord>,
    /// What its calls are held to.
    #[serde(default)]
    pub(crate) limits: StartLimits,
}

/// The limits of a host, as its start tells them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StartLimits {
    pub(crate) concurrency: usize,
    pub(crate) session_concurrency: usize,
    pub(crate) queue: usize,
    pub(crate) deadline_ms: u64,
    pub(crate) deadline_ceiling_ms: u64,
    pub(crate) inline_chars: usize,
    pub(crate) argument_bytes: usize,
}

impl StartLimits {
    pub(crate) fn of(limits: &HostLimits) -> Self {
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            concurrency: limits.scheduler.concurrency,
            session_concurrency: limits.scheduler.session_concurrency,
            queue: limits.scheduler.queue,
            deadline_ms: millis(limits.deadline),
            deadline_ceiling_ms: millis(limits.deadline_ceiling),
            inline_chars: limits.inline_chars,
            argument_bytes: limits.argument_bytes,
        }
    }
}

/// Body of a session's first sight of deferred tools.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DiscoveredBody {
    pub(crate) tools: Vec<ToolId>,
    pub(crate) way: DiscoveryWay,
}

/// How a session came to see a deferred tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiscoveryWay {
    /// A search found it.
    Search,
    /// It was in a list.
    Listing,
    /// It was looked up by its name.
    Name,
}

/// Body of a session's opening.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionBody {
    pub(crate) principal: PrincipalName,
    pub(crate) role: PrincipalRole,
    pub(crate) surface: SurfaceRequest,
    /// A mark of the credential it was opened with, where its face keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) credential: Option<String>,
}
