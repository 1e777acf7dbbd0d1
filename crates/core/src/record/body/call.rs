//! The body of `accepted`, `asked`, `started` and `ended`.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use toolpost_model::{
    Arguments, ArtifactRef, BatchPlace, CallHash, ContentDigest, Decision, Effects, ErrorClass,
    HookRun, InvocationId, NativeCallId, Outcome, Principal, PrincipalName, PrincipalRole,
    ProgramFile, Stage, SurfaceId, Timings, ToolId, ToolResult, TraceContext, Transition,
    Visibility,
};

use super::{RecordBodyMember, state_defaults};
use crate::{
    hooks::{InputMutation, OutputMutation},
    invocation::{CallDeadline, LateAnswer, MatchedBy, Milestone},
    record::redaction::SensitiveArgument,
    scheduling::WaitReason,
};

/// Body of `accepted`, `asked`, `started` and `ended`. Members of earlier records of the call are not repeated.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Way", transform = state_defaults)]
pub struct CallRecordBody<'a> {
    /// The request; in the first record of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<RecordedCallRequest<'a>>,
    /// The tool, where one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<RecordBodyMember<'a, ToolId>>,
    /// The surface of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub surface: Option<SurfaceId>,
    /// The effects of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<RecordBodyMember<'a, Effects>>,
    /// The permission decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Cow<'a, Decision>>,
    /// The question it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<RecordedQuestion>,
    /// The files that it would run, as they were when it asked.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub programs: Cow<'a, [ProgramFile]>,
    /// The arguments that it asks, runs or ends with, if they differ from those of an earlier record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub arguments: Option<RecordBodyMember<'a, Arguments>>,
    /// A secret was redacted in these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The answer that it continues or ends with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalBody>,
    /// The changes of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<InputMutation>")]
    pub mutations: Option<RecordBodyMember<'a, [InputMutation]>>,
    /// The hooks that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<HookRun>")]
    pub hooks: Option<RecordBodyMember<'a, [HookRun]>>,
    /// The changes of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<OutputMutation>")]
    pub output_mutations: Option<RecordBodyMember<'a, [OutputMutation]>>,
    /// Its stages, each with the microseconds since the request.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<(Stage, u64)>")]
    pub transitions: Cow<'a, [Transition]>,
    /// The numbers of sent and of lost events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<EventCounts>,
    /// Milestones of its progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) progress: Vec<Milestone>,
    /// Further circumstances of the call that no other member holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<RecordBodyMember<'a, CircumstancesBody<'a>>>,
    /// The result; in `ended`.
    // The writer adds the result's text after the other members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RecordBodyMember<'a, ToolResult>>,
}

/// The request of a call: tool, arguments and caller.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Asked", transform = state_defaults)]
pub struct RecordedCallRequest<'a> {
    /// The tool's name in the request.
    pub tool: Cow<'a, str>,
    /// The observable arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub arguments: Option<RecordBodyMember<'a, Arguments>>,
    /// The model input, if the arguments changed before this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub model_arguments: Option<RecordBodyMember<'a, Arguments>>,
    /// The size of arguments that were not read.
    // There was no tool, or they were no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub unread_bytes: Option<usize>,
    /// A secret was redacted in the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Length and keyed hash of the sensitive arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<SensitiveArgument>")]
    pub(crate) sensitive: Option<RecordBodyMember<'a, [SensitiveArgument]>>,
    /// The calling call of a nested call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<InvocationId>,
    /// The caller.
    #[schemars(with = "String")]
    pub principal: PrincipalName,
    /// The caller's role.
    pub role: PrincipalRole,
    /// The face that the call came through.
    pub face: Cow<'a, str>,
    /// The caller's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub native_call_id: Option<NativeCallId>,
    /// The caller's own correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// The caller's span. Without one, the trace has the id of the call.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "readable_trace"
    )]
    pub trace: Option<Cow<'a, TraceContext>>,
    /// The deadline that the caller asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its place in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Cow<'a, BatchPlace>>,
    /// The caller does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// A trace context of a record, or none if a secret was redacted in it: the call is still readable.
fn readable_trace<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'static, TraceContext>>, D::Error> {
    let written = Value::deserialize(deserializer)?;
    Ok(TraceContext::deserialize(written).ok().map(Cow::Owned))
}

impl RecordedCallRequest<'_> {
    /// The caller.
    pub fn principal(&self) -> Principal {
        Principal {
            name: self.principal.clone(),
            role: self.role,
        }
    }
}

impl CallRecordBody<'_> {
    /// The error class, if the call did not succeed.
    pub(crate) fn error_class(&self) -> Option<ErrorClass> {
        let ended: RecordedResultFields = self.result.as_ref()?.read_as().ok()?;
        ended.error_class().ok()?
    }
}

/// A question to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Question")]
pub struct RecordedQuestion {
    /// Its id.
    pub ask_id: InvocationId,
    /// SHA-256 of the call that the question is about.
    #[schemars(with = "String")]
    pub hash: CallHash,
    /// The same hash without the files that the call would run, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) without_files: Option<CallHash>,
    /// When the question was asked.
    #[schemars(with = "String")]
    pub asked_at: Timestamp,
    /// When the question expires.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    /// The hash of the tools that the question offered to allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) offer: Option<CallHash>,
}

/// An operator's answer, as the call got it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Approval", transform = state_defaults)]
pub struct ApprovalBody {
    /// The question.
    pub ask_id: InvocationId,
    /// The operator that answered.
    #[schemars(with = "String")]
    pub by: PrincipalName,
    /// Whether the call may run.
    pub allowed: bool,
    /// It was a grant for one later call, and this is that call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

/// The numbers of a call's events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Events")]
pub(crate) struct EventCounts {
    /// Events that were sent.
    pub(crate) sent: u64,
    /// Events that were lost to a slow reader.
    pub(crate) dropped: u64,
}

/// The circumstances of a call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Met", transform = state_defaults)]
pub struct CircumstancesBody<'a> {
    /// `id` or `alias`, if the request did not use the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub matched_by: Option<MatchedBy>,
    /// `deferred`, if the tool was deferred and discovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub visibility: Option<Visibility>,
    /// The reasons that it waited for.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<Value>")]
    pub waited_for: Cow<'a, [WaitReason]>,
    /// It ran alone in its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// Its deadline, and the origin of that deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub deadline: Option<CallDeadline>,
    /// The tool's answer after the cancellation: `told`, `unheard` or `discarded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub late: Option<LateAnswer>,
    /// The cancellation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationBody>,
}

/// A request to stop a call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cancellation", transform = state_defaults)]
pub struct CancellationBody {
    /// `requested`, `caller_gone`, `shutdown`, `session_closed`, `parent_stopped` or `sibling_failed`.
    pub reason: Cow<'static, str>,
    /// The principal that requested it, if it was not the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub by: Option<PrincipalName>,
    /// The principal's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<PrincipalRole>,
    /// When the cancellation was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub requested_at: Option<Timestamp>,
    /// When the work stopped. Absent if the host stopped waiting before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub acknowledged_at: Option<Timestamp>,
}

/// The members of a [`CallRecordBody`] that are read of every record of a journal: without arguments and content.
#[derive(Debug, Deserialize)]
pub struct CallRecordHead<'a> {
    /// The tool, where one was found.
    #[serde(borrow, default)]
    pub tool_id: Option<Cow<'a, str>>,
    /// The surface of its session.
    #[serde(default)]
    pub surface: Option<SurfaceId>,
    /// The request; in the first record of a call.
    #[serde(borrow, default)]
    pub call: Option<CallRequestHead<'a>>,
    /// The result; in `ended`.
    #[serde(default)]
    pub result: Option<RecordedResultFields>,
}

/// The head members of a [`RecordedCallRequest`].
#[derive(Debug, Deserialize)]
pub struct CallRequestHead<'a> {
    /// The tool's name in the request.
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// The caller.
    #[serde(borrow)]
    pub principal: Cow<'a, str>,
    /// The caller's own correlation id.
    #[serde(borrow, default)]
    pub correlation_id: Option<Cow<'a, str>>,
    /// The calling call of a nested call.
    #[serde(default)]
    pub parent: Option<InvocationId>,
}

/// The head members of a [`ToolResult`].
#[derive(Debug, Deserialize)]
pub struct RecordedResultFields {
    /// The outcome of the call.
    pub outcome: Outcome,
    #[serde(default)]
    error: Option<RecordBodyMember<'static, RecordedErrorFields>>,
    #[serde(default)]
    timings: Option<RecordBodyMember<'static, Timings>>,
    #[serde(default)]
    artifacts: Option<RecordBodyMember<'static, [ArtifactRef]>>,
}

#[derive(Debug, Deserialize)]
struct RecordedErrorFields {
    class: ErrorClass,
}

impl RecordedResultFields {
    /// The time of the call by phase.
    pub fn timings(&self) -> serde_json::Result<Timings> {
        let missing = || serde_json::Error::missing_field("timings");
        self.timings.as_ref().ok_or_else(missing)?.read_as()
    }

    /// The call's artifacts.
    pub fn artifacts(&self) -> serde_json::Result<Vec<ArtifactRef>> {
        let listed = self
            .artifacts
            .as_ref()
            .map(RecordBodyMember::read)
            .transpose();
        listed.map(Option::unwrap_or_default)
    }

    /// The blobs of the call's artifacts.
    pub fn contents(&self) -> serde_json::Result<Vec<NamedContent>> {
        let listed = self
            .artifacts
            .as_ref()
            .map(RecordBodyMember::read_as)
            .transpose();
        listed.map(Option::unwrap_or_default)
    }

    /// The error class, if the call did not succeed.
    pub fn error_class(&self) -> serde_json::Result<Option<ErrorClass>> {
        let error: Option<RecordedErrorFields> = self
            .error
            .as_ref()
            .map(RecordBodyMember::read_as)
            .transpose()?;
        Ok(error.map(|error| error.class))
    }
}

/// A blob that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct NamedContent {
    /// The digest of its bytes.
    pub digest: ContentDigest,
    /// Its size in bytes.
    pub size: u64,
}
