//! Records as they are read back: what an export stands on, and what its schema describes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toolpost_model::{
    ArgumentChange, BatchPlace, ContentDigest, Decision, Effects, EventBody, HookRun, InvocationId,
    PrincipalRole, ProgramFile, Stage, SurfaceRequest, ToolId, ToolResult, TraceContext, Verdict,
};

use crate::record::{
    declared::{BlockedTool, DeclaredTool},
    rendering::{DiscoveryWay, readable_trace},
};

/// Body of `accepted`, `asked`, `started` and `ended`: what is said once is not repeated by later records.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Way")]
pub(super) struct ExportedCallBody {
    /// What was asked for; in the first record of a call.
    pub(super) call: Option<ExportedCallRequest>,
    /// The tool, where one was found.
    pub(super) tool_id: Option<ToolId>,
    /// The surface its session saw.
    pub(super) surface: Option<String>,
    /// What it does.
    pub(super) effects: Option<Effects>,
    /// What was decided.
    pub(super) decision: Option<Decision>,
    /// The question it waits for.
    pub(super) ask: Option<ExportedQuestion>,
    /// The files it would run, as they were when it asked.
    pub(super) programs: Vec<ProgramFile>,
    /// The arguments it asks, runs or ends with, where an earlier record has those it came with.
    pub(super) arguments: Option<Value>,
    /// A secret was taken out of these.
    pub(super) redacted: bool,
    /// The answer it goes on with, or ends with.
    pub(super) approval: Option<ExportedApproval>,
    /// Changes of its arguments.
    pub(super) mutations: Vec<Mutation>,
    /// Hooks that were asked.
    pub(super) hooks: Vec<HookRun>,
    /// Changes of its output.
    pub(super) output_mutations: Vec<ExportedOutputMutation>,
    /// Stages with the microseconds from the request on.
    pub(super) transitions: Vec<(Stage, u64)>,
    /// Events that were sent and lost.
    pub(super) events: Option<ExportedEventCounts>,
    /// Milestones of its progress.
    pub(super) progress: Vec<ExportedMilestone>,
    /// What it met on its way, where nothing else tells.
    #[schemars(with = "Option<ExportedCircumstances>")]
    pub(super) explain: Option<Value>,
    /// What came back; in `ended`.
    pub(super) result: Option<Box<ToolResult>>,
}

/// What was asked for, by whom, from where.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Asked")]
pub(super) struct ExportedCallRequest {
    /// The tool's name as it was asked for.
    pub(super) tool: String,
    /// The arguments, as others may see them.
    #[serde(default)]
    pub(super) arguments: Option<Value>,
    /// What the model sent, where it was changed before this was written.
    #[serde(default)]
    pub(super) model_arguments: Option<Value>,
    /// The size of arguments that were not read.
    #[serde(default)]
    pub(super) unread_bytes: Option<u64>,
    /// A secret was taken out of the arguments.
    #[serde(default)]
    pub(super) redacted: bool,
    /// What is said of the sensitive ones among them.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) sensitive: Vec<Sensitive>,
    /// The call that made it.
    #[serde(default)]
    pub(super) parent: Option<InvocationId>,
    /// Who called.
    pub(super) principal: String,
    /// In which role.
    pub(super) role: PrincipalRole,
    /// Where it came in.
    pub(super) face: String,
    /// The caller's own id of the call.
    #[serde(default)]
    pub(super) native_call_id: Option<String>,
    /// The caller's own word for what it belongs to.
    #[serde(default)]
    pub(super) correlation_id: Option<String>,
    /// The span of its caller. Without one, the trace has the id of the call.
    #[serde(default, deserialize_with = "readable_trace")]
    pub(super) trace: Option<Box<TraceContext>>,
    /// The deadline its caller wished for.
    #[serde(default)]
    pub(super) timeout_ms: Option<u64>,
    /// Its place in a batch.
    #[serde(default)]
    pub(super) batch: Option<BatchPlace>,
    /// Its caller does not wait for it.
    #[serde(default)]
    pub(super) background: bool,
}

/// A sensitive argument: enough to tell whether two calls were given the same one.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
pub(super) struct Sensitive {
    /// Where it stands in the arguments.
    pub(super) pointer: String,
    /// How long it is, in bytes of text.
    pub(super) length: u64,
    /// A keyed hash of it. The key goes with the host that wrote it.
    pub(super) hash: String,
}

/// What a call met on its way.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Met")]
pub(super) struct ExportedCircumstances {
    /// `id` or `alias`, where it was not asked for by its name.
    #[serde(default)]
    pub(super) matched_by: Option<String>,
    /// `deferred`, where the tool was, and had been shown.
    #[serde(default)]
    pub(super) visibility: Option<Value>,
    /// What it waited for.
    #[serde(default)]
    pub(super) waited_for: Vec<Value>,
    /// It ran alone in its session.
    #[serde(default)]
    pub(super) alone: bool,
    /// How long it might run, and who said so.
    #[serde(default)]
    pub(super) deadline: Option<Value>,
    /// It ended after the word to stop: `told`, `unheard` or `discarded`.
    #[serde(default)]
    pub(super) late: Option<String>,
    /// The word to stop.
    #[serde(default)]
    pub(super) cancellation: Option<ExportedCancellation>,
}

/// A word to stop a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Cancellation")]
pub(super) struct ExportedCancellation {
    /// `requested`, `caller_gone`, `shutdown`, `session_closed`, `parent_stopped` or `sibling_failed`.
    pub(super) reason: String,
    /// The principal that asked for it, where it was not the host.
    #[serde(default)]
    pub(super) by: Option<String>,
    /// In which role.
    #[serde(default)]
    pub(super) role: Option<PrincipalRole>,
    /// When the call was told to stop.
    #[serde(default)]
    pub(super) requested_at: Option<String>,
    /// When its work had stopped. Absent where the host stopped listening before that.
    #[serde(default)]
    pub(super) acknowledged_at: Option<String>,
}

/// A question to a person.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(
    dead_code,
    reason = "an export tells its id and its end; the schema tells all of it"
)]
#[schemars(rename = "Question")]
pub(super) struct ExportedQuestion {
    /// Its id.
    pub(super) ask_id: InvocationId,
    /// SHA-256 of what is asked about.
    pub(super) hash: String,
    /// Since when.
    pub(super) asked_at: String,
    /// Until when.
    pub(super) expires_at: String,
}

/// A person's answer as a call heard it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(super) struct ExportedApproval {
    /// The question.
    pub(super) ask_id: InvocationId,
    /// Who answered.
    pub(super) by: String,
    /// And what.
    pub(super) allowed: bool,
    /// It had been kept for one call, and this is that call.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) spent: bool,
}

/// A change of the arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Mutation {
    /// `hook`, `permission_prompt` or `runtime`.
    pub(super) source_type: String,
    /// Who made it.
    pub(super) source: String,
    /// The fields at the top of the arguments that differ.
    pub(super) changed_fields: Vec<String>,
    /// Why.
    pub(super) reason: String,
    /// When, in microseconds from the request on.
    #[serde(default)]
    pub(super) at_us: u64,
    /// The arguments that it changed, where another change came before it.
    #[serde(default)]
    pub(super) arguments_before: Option<Value>,
}

/// A change of the output.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "OutputMutation")]
pub(super) struct ExportedOutputMutation {
    /// `hook`.
    pub(super) source_type: String,
    /// Which one.
    pub(super) source: String,
    /// `content`, `structured_content`.
    pub(super) changed_fields: Vec<String>,
    /// How much content there was.
    pub(super) bytes_before: u64,
    /// How much there is.
    pub(super) bytes_after: u64,
    /// Why.
    pub(super) reason: String,
}

/// Events of a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Events")]
pub(super) struct ExportedEventCounts {
    /// How many there were.
    pub(super) sent: u64,
    /// How many were lost to a slow reader.
    pub(super) dropped: u64,
}

/// A word on how far the work got.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Milestone")]
pub(super) struct ExportedMilestone {
    /// The event's number within the call.
    pub(super) seq: u64,
    /// When, in microseconds from the request on.
    pub(super) at_us: u64,
    /// What.
    #[serde(flatten)]
    pub(super) body: EventBody,
}

/// Body of `decided`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Decided")]
pub(super) struct ExportedVerdictBody {
    /// The question.
    pub(super) ask_id: InvocationId,
    /// SHA-256 of what was asked about.
    #[expect(dead_code, reason = "for the schema")]
    pub(super) hash: String,
    /// SHA-256 of what may run.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) approves: Option<String>,
    /// SHA-256 of what was asked about without the files that the call would run.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) without_files: Option<String>,
    /// The files of what may run, as they were.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) programs: Vec<ProgramFile>,
    /// Whose call it was.
    pub(super) principal: String,
    /// In which role.
    pub(super) role: PrincipalRole,
    /// The tool.
    pub(super) tool_id: String,
    /// The answer.
    pub(super) verdict: Verdict,
    /// The arguments that were changed.
    #[serde(default)]
    pub(super) changed_fields: Vec<String>,
    /// The same with the values, in readable text.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) changed_arguments: Vec<ArgumentChange>,
    /// A secret was taken out of the changed arguments.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) redacted: bool,
    /// Who answered.
    pub(super) by: String,
    /// How many calls it was for.
    pub(super) waiting: usize,
    /// Until when it is good for one more call.
    #[serde(default)]
    pub(super) kept_until: Option<String>,
    /// The rule it left behind.
    #[serde(default)]
    pub(super) rule: Option<String>,
}

/// Body of `host_started`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Start")]
pub(super) struct ExportedHostStartBody {
    /// Of Toolpost.
    pub(super) version: String,
    /// Calls of earlier hosts that go on.
    pub(super) carried: Vec<InvocationId>,
    /// Its calls have spans.
    pub(super) traces: bool,
    /// Where the record tells what can be called, where that was told before.
    pub(super) catalog: Option<CatalogPlace>,
    /// What its calls are held to.
    pub(super) limits: ExportedHostLimits,
}

/// Where a catalog is told.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
pub(super) struct CatalogPlace {
    /// What it is known by.
    pub(super) digest: ContentDigest,
    /// The record its whole begins with.
    pub(super) from: u64,
}

/// The limits of a host.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Limits")]
pub(super) struct ExportedHostLimits {
    /// Calls that run at the same time.
    pub(super) concurrency: u64,
    /// Calls of one session that do.
    pub(super) session_concurrency: u64,
    /// Calls that wait.
    pub(super) queue: u64,
    /// A call's deadline where nobody says otherwise.
    pub(super) deadline_ms: u64,
    /// The longest deadline.
    pub(super) deadline_ceiling_ms: u64,
    /// The largest text that is shown whole.
    pub(super) inline_chars: u64,
    /// The largest arguments.
    pub(super) argument_bytes: u64,
}

/// Body of `session_opened`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Session")]
pub(super) struct ExportedSessionBody {
    /// Whose it is.
    pub(super) principal: String,
    /// In which role.
    pub(super) role: PrincipalRole,
    /// What it asks of a surface.
    pub(super) surface: SurfaceRequest,
    /// A mark of the credential it was opened with. Not a secret.
    #[serde(default)]
    #[expect(dead_code, reason = "for the schema")]
    pub(super) credential: Option<String>,
}

/// Body of `session_closed`: there is nothing to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Empty")]
pub(super) struct ExportedSessionEndBody {}

/// Body of `catalog`.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Catalog")]
pub(super) struct ExportedCatalogBody {
    /// Of all tools once the last piece is read: SHA-256 over each tool's id, a zero byte and the SHA-256 of its text in
    /// `declared`, in the order of the ids.
    pub(super) digest: ContentDigest,
    /// Nothing that was declared before counts.
    pub(super) whole: bool,
    /// Which piece, from 1.
    pub(super) part: u32,
    /// Of how many.
    pub(super) parts: u32,
    /// Tools that are new, or no longer what they were.
    pub(super) declared: Vec<DeclaredTool>,
    /// Tools that are gone.
    pub(super) removed: Option<Vec<ToolId>>,
    /// It is told again.
    pub(super) restated: Option<ExportedRestatement>,
}

/// Body of `surface`.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Surface")]
pub(super) struct ExportedSurfaceBody {
    /// What calls name it by.
    pub(super) surface_id: String,
    /// What it was built for.
    pub(super) request: SurfaceRequest,
    /// For whom.
    pub(super) role: PrincipalRole,
    /// The catalog it looks at.
    pub(super) catalog: ContentDigest,
    /// Tools that are listed.
    pub(super) loaded: Vec<ToolId>,
    /// Tools that wait to be discovered.
    pub(super) deferred: Option<Vec<ToolId>>,
    /// Tools that are not there for such a caller.
    pub(super) blocked: Option<Vec<BlockedTool>>,
    /// It is told again.
    pub(super) restated: Option<ExportedRestatement>,
}

/// Body of `discovered`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Discovered")]
pub(super) struct ExportedDiscoveryBody {
    /// Deferred tools that the session had not been shown before, and may call from now on.
    pub(super) tools: Vec<ToolId>,
    /// How it came to see them.
    pub(super) way: DiscoveryWay,
}

/// Body of `pruned`.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Pruned")]
pub(super) struct ExportedPruneBody {
    /// The last record that was removed.
    pub(super) up_to: u64,
    /// The chain's hash after it.
    pub(super) hash: String,
    /// How many records went.
    pub(super) records: u64,
    /// When the first of them was written.
    pub(super) first: String,
    /// When the last of them was written.
    pub(super) last: String,
    /// Why they went.
    pub(super) why: String,
}

/// A catalog or a surface that is told again, so that it outlives the records around it.
#[derive(Debug, JsonSchema)]
#[expect(dead_code, reason = "for the schema")]
#[schemars(rename = "Restated")]
pub(super) struct ExportedRestatement {
    /// The record that told it first.
    pub(super) seq: u64,
    /// When that was.
    pub(super) at: String,
}
