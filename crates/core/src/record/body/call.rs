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

/// Body of `accepted`, `asked`, `started` and `ended`: what is said once is not repeated by later records.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Way", transform = state_defaults)]
pub struct CallRecordBody<'a> {
    /// What was asked for; in the first record of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallRequestBody<'a>>,
    /// The tool, where one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<RecordBodyMember<'a, ToolId>>,
    /// The surface its session saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub surface: Option<SurfaceId>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<RecordBodyMember<'a, Effects>>,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Cow<'a, Decision>>,
    /// The question it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<RecordedQuestion>,
    /// The files it would run, as they were when it asked.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub programs: Cow<'a, [ProgramFile]>,
    /// The arguments it asks, runs or ends with, where an earlier record has those it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub arguments: Option<RecordBodyMember<'a, Arguments>>,
    /// A secret was taken out of these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The answer it goes on with, or ends with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalBody>,
    /// Changes of its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<InputMutation>")]
    pub mutations: Option<RecordBodyMember<'a, [InputMutation]>>,
    /// Hooks that were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<HookRun>")]
    pub hooks: Option<RecordBodyMember<'a, [HookRun]>>,
    /// Changes of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<OutputMutation>")]
    pub output_mutations: Option<RecordBodyMember<'a, [OutputMutation]>>,
    /// Stages with the microseconds from the request on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<(Stage, u64)>")]
    pub transitions: Cow<'a, [Transition]>,
    /// Events that were sent and lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<EventCounts>,
    /// Milestones of its progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) progress: Vec<Milestone>,
    /// What it met on its way, where nothing else tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<RecordBodyMember<'a, CircumstancesBody<'a>>>,
    /// What came back; in `ended`.
    // The writer adds its text behind the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RecordBodyMember<'a, ToolResult>>,
}

/// What was asked for, by whom, from where.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Asked", transform = state_defaults)]
pub struct CallRequestBody<'a> {
    /// The tool's name as it was asked for.
    pub tool: Cow<'a, str>,
    /// The arguments, as others may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub arguments: Option<RecordBodyMember<'a, Arguments>>,
    /// What the model sent, where it was changed before this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub model_arguments: Option<RecordBodyMember<'a, Arguments>>,
    /// The size of arguments that were not read.
    // There was no tool, or they were no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub unread_bytes: Option<usize>,
    /// A secret was taken out of the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// What is said of the sensitive ones among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<SensitiveArgument>")]
    pub(crate) sensitive: Option<RecordBodyMember<'a, [SensitiveArgument]>>,
    /// The call that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<InvocationId>,
    /// Who called.
    #[schemars(with = "String")]
    pub principal: PrincipalName,
    /// In which role.
    pub role: PrincipalRole,
    /// Where it came in.
    pub face: Cow<'a, str>,
    /// The caller's own id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub native_call_id: Option<NativeCallId>,
    /// The caller's own word for what it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// The span of its caller. Without one, the trace has the id of the call.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "readable_trace"
    )]
    pub trace: Option<Cow<'a, TraceContext>>,
    /// The deadline its caller wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Its place in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Cow<'a, BatchPlace>>,
    /// Its caller does not wait for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// A trace context of a record, or none where a secret was taken out of it: no call is lost for that.
fn readable_trace<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'static, TraceContext>>, D::Error> {
    let written = Value::deserialize(deserializer)?;
    Ok(TraceContext::deserialize(written).ok().map(Cow::Owned))
}

impl CallRequestBody<'_> {
    /// Who called.
    pub fn principal(&self) -> Principal {
        Principal {
            name: self.principal.clone(),
            role: self.role,
        }
    }
}

impl CallRecordBody<'_> {
    /// Why it did not succeed, where it ended so.
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
    /// SHA-256 of what is asked about.
    #[schemars(with = "String")]
    pub hash: CallHash,
    /// The hash without the files that the call would run, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) without_files: Option<CallHash>,
    /// Since when.
    #[schemars(with = "String")]
    pub asked_at: Timestamp,
    /// Until when.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
}

/// A person's answer as a call heard it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Approval", transform = state_defaults)]
pub struct ApprovalBody {
    /// The question.
    pub ask_id: InvocationId,
    /// Who answered.
    #[schemars(with = "String")]
    pub by: PrincipalName,
    /// And what.
    pub allowed: bool,
    /// It had been kept for one call, and this is that call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

/// Events of a call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Events")]
pub(crate) struct EventCounts {
    /// How many there were.
    pub(crate) sent: u64,
    /// How many were lost to a slow reader.
    pub(crate) dropped: u64,
}

/// What a call met on its way.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Met", transform = state_defaults)]
pub struct CircumstancesBody<'a> {
    /// `id` or `alias`, where it was not asked for by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub matched_by: Option<MatchedBy>,
    /// `deferred`, where the tool was, and had been shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub visibility: Option<Visibility>,
    /// What it waited for.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<Value>")]
    pub waited_for: Cow<'a, [WaitReason]>,
    /// It ran alone in its session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// How long it might run, and who said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub deadline: Option<CallDeadline>,
    /// It ended after the word to stop: `told`, `unheard` or `discarded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub late: Option<LateAnswer>,
    /// The word to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<CancellationBody>,
}

/// A word to stop a call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cancellation", transform = state_defaults)]
pub struct CancellationBody {
    /// `requested`, `caller_gone`, `shutdown`, `session_closed`, `parent_stopped` or `sibling_failed`.
    pub reason: Cow<'static, str>,
    /// The principal that asked for it, where it was not the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub by: Option<PrincipalName>,
    /// In which role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<PrincipalRole>,
    /// When the call was told to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub requested_at: Option<Timestamp>,
    /// When its work had stopped. Absent where the host stopped listening before that.
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
    /// The surface its session saw.
    #[serde(default)]
    pub surface: Option<SurfaceId>,
    /// What was asked for; in the first record of a call.
    #[serde(borrow, default)]
    pub call: Option<CallRequestHead<'a>>,
    /// What came back; in `ended`.
    #[serde(default)]
    pub result: Option<RecordedResultFields>,
}

/// The same of a [`CallRequestBody`].
#[derive(Debug, Deserialize)]
pub struct CallRequestHead<'a> {
    /// The tool's name as it was asked for.
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// Who called.
    #[serde(borrow)]
    pub principal: Cow<'a, str>,
    /// The caller's own word for what it belongs to.
    #[serde(borrow, default)]
    pub correlation_id: Option<Cow<'a, str>>,
    /// The call that made it.
    #[serde(default)]
    pub parent: Option<InvocationId>,
}

/// The same of a [`ToolResult`].
#[derive(Debug, Deserialize)]
pub struct RecordedResultFields {
    /// How it ended.
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
    /// Where the time went.
    pub fn timings(&self) -> serde_json::Result<Timings> {
        let missing = || serde_json::Error::missing_field("timings");
        self.timings.as_ref().ok_or_else(missing)?.read_as()
    }

    /// What is kept of it.
    pub fn artifacts(&self) -> serde_json::Result<Vec<ArtifactRef>> {
        let listed = self
            .artifacts
            .as_ref()
            .map(RecordBodyMember::read)
            .transpose();
        listed.map(Option::unwrap_or_default)
    }

    /// The contents of what is kept of it.
    pub fn contents(&self) -> serde_json::Result<Vec<NamedContent>> {
        let listed = self
            .artifacts
            .as_ref()
            .map(RecordBodyMember::read_as)
            .transpose();
        listed.map(Option::unwrap_or_default)
    }

    /// Why it did not succeed.
    pub fn error_class(&self) -> serde_json::Result<Option<ErrorClass>> {
        let error: Option<RecordedErrorFields> = self
            .error
            .as_ref()
            .map(RecordBodyMember::read_as)
            .transpose()?;
        Ok(error.map(|error| error.class))
    }
}

/// A kept piece that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct NamedContent {
    /// Of its bytes.
    pub digest: ContentDigest,
    /// How many bytes it has.
    pub size: u64,
}
