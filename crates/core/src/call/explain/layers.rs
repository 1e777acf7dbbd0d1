//! The explanation of each layer for a dry run.

use serde::Serialize;
use serde_json::Value;
use toolpost_model::{
    Behavior, CancelSupport, ClassFact, EffectOrigin, ErrorClass, ExecutionKind, HiddenReason,
    HookEvent, HookStanding, Lifecycle, ObservableInput, PermissionMode, PersistStrategy,
    PrincipalRole, SandboxPlan, Stage, SurfaceId, ToolError, ToolId, Visibility,
};

use crate::{
    approval::Approvals,
    catalog::{CatalogEntry, Surface},
    hooks::{self, InputMutation},
    host::HostInner,
    invocation::{CallDeadline, MatchedBy, PipelineCall, ResolvedTool, patience},
    permission::{Account, ConsideredRule},
    record::{blobs::StoragePlace, persist},
    scheduling::SchedulerSnapshot,
};

/// The explanations of the layers. A layer that the call did not reach is missing.
#[derive(Clone, Debug, Serialize)]
pub struct LayerExplanations {
    /// Layer 1: the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declaration: Option<DeclarationExplanation>,
    /// Layer 2: the tool's interface and the origin of its claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceExplanation>,
    /// Layer 3: the tool's visibility in this session.
    pub surface: SurfaceExplanation,
    /// Layer 4: the arguments.
    pub invocation: InvocationExplanation,
    /// The hooks that would run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookPlan>,
    /// Layer 5: the permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionExplanation>,
    /// Layer 6: the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingExplanation>,
    /// Layer 7: the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionExplanation>,
    /// Layer 8: the limits of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultExplanation>,
    /// Layer 9: the storage of a result that exceeds these limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<PersistenceExplanation>,
}

/// The tool that the request named.
#[derive(Clone, Debug, Serialize)]
pub struct DeclarationExplanation {
    /// The tool.
    pub tool_id: ToolId,
    /// Its name on the wire.
    pub name: String,
    /// The kind of name that matched.
    pub matched_by: MatchedBy,
    /// The name of the tool's source.
    pub source: String,
    /// The tool's lifecycle.
    pub lifecycle: Lifecycle,
}

/// The tool's interface and the origin of its claims.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceExplanation {
    /// The effect class before the arguments are known.
    pub class: ClassFact,
    /// The origin of the class and the effects.
    pub vouched_by: EffectOrigin,
    /// The origin of the effects of this call. Missing if no statement counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_by: Option<EffectOrigin>,
    /// Whether the tool may destroy data irrecoverably.
    pub destructive: bool,
    /// Whether each call needs an operator's approval.
    pub approval_required: bool,
    /// Whether the tool requests approval for each call. Mode `bypass` and an allow for its id waive that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approval_requested: bool,
}

/// The tool's visibility.
#[derive(Clone, Debug, Serialize)]
pub struct SurfaceExplanation {
    /// The surface of the session.
    pub id: SurfaceId,
    /// The visibility on that surface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// The reason.
    pub why: String,
}

/// The arguments of the call.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationExplanation {
    /// The result of validation.
    pub schema: SchemaVerdict,
    /// The violations, as in the error's details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<Value>,
    /// The arguments as others may see them, after hooks and settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ObservableInput>,
    /// Whether some arguments are redacted in all records.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The changes of the arguments, with their sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mutations: Vec<InputMutation>,
}

/// The result of validating the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaVerdict {
    /// The call ended before validation.
    NotChecked,
    /// The arguments are not a JSON object, or are too large.
    Unreadable,
    /// They do not fit the schema.
    Violated,
    /// They fit the schema, and the tool refuses them.
    Refused,
    /// They fit.
    Fits,
}

/// A hook that would run.
#[derive(Clone, Debug, Serialize)]
pub struct HookPlan {
    /// Its name.
    pub name: String,
    /// The effect of its failure.
    pub standing: HookStanding,
    /// The events that it would run for.
    pub events: Vec<HookEvent>,
}

/// The permission of the call.
#[derive(Clone, Debug, Serialize)]
pub struct PermissionExplanation {
    /// The default when no rule matches.
    pub mode: PermissionMode,
    /// The rules that could match, the matching ones first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<ConsideredRule>,
    /// The number of further rules.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// The time for an operator's answer in milliseconds. Missing if no operator can be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_timeout_ms: Option<u64>,
}

/// The schedule of the call.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulingExplanation {
    /// Whether the call needs no slot, because it only looks at other calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unscheduled: bool,
    /// The state of the scheduler for this call now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<SchedulerSnapshot>,
    /// Why the call can never be admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl SchedulingExplanation {
    /// Why the scheduler would refuse the call now.
    pub(super) fn refusal(&self) -> Option<&str> {
        let now = self.now.as_ref().and_then(|now| now.refused.as_deref());
        self.refused.as_deref().or(now)
    }
}

/// The execution of the call.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutionExplanation {
    /// The kind of execution.
    pub kind: ExecutionKind,
    /// The deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<CallDeadline>,
    /// The tool's reaction to a cancellation.
    pub cancel: CancelSupport,
    /// The sandbox of the process, if the tool starts one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxPlan>,
    /// Why the configured path rules do not bind the tool, if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbound_paths: Option<String>,
}

/// The limits of the result.
#[derive(Clone, Debug, Serialize)]
pub struct ResultExplanation {
    /// The largest inline text, in characters.
    pub inline_chars: usize,
    /// The treatment of a larger result.
    pub strategy: PersistStrategy,
}

/// The storage of a result that exceeds the inline limit.
#[derive(Clone, Debug, Serialize)]
pub struct PersistenceExplanation {
    /// The treatment of the result.
    pub strategy: PersistStrategy,
    /// The length of the preview, in characters.
    pub preview_chars: usize,
    /// The place of the full result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptPlan>,
    /// Why the full result is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<&'static str>,
}

/// The place where results are kept.
#[derive(Clone, Debug, Serialize)]
pub struct KeptPlan {
    /// The kind of place.
    pub place: KeptIn,
    /// The folder. Shown to operators only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The limit for all kept results together, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// The size of all kept results, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// The tools that read kept results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_with: Vec<&'static str>,
}

/// A kind of place for kept results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptIn {
    /// Lost when the host ends.
    Memory,
    /// Kept beyond the host.
    Folder,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) fn of(
    host: &HostInner,
    call: &PipelineCall,
    surface: &Surface,
    visibility: Option<Visibility>,
    account: Account,
    error: Option<&ToolError>,
) -> LayerExplanations {
    let resolved = call.findings.resolved.as_ref();
    let entry = resolved.map(|resolved| &*resolved.entry);
    // A denied call has no slot, no execution and no result, so these layers are left out.
    let may_run = call
        .findings
        .decision
        .as_ref()
        .is_some_and(|decision| decision.behavior != Behavior::Deny);
    LayerExplanations {
        declaration: entry.and_then(|entry| declaration(host, call, entry)),
        interface: entry.map(interface),
        surface: SurfaceExplanation {
            id: surface.id().clone(),
            visibility,
            why: seen(host, call, entry, visibility).to_owned(),
        },
        invocation: invocation(call, error),
        hooks: hooks::run::ahead(host, call),
        permission: call
            .findings
            .decision
            .as_ref()
            .map(|decision| PermissionExplanation {
                mode: decision.mode,
                considered: account.considered,
                left_out: account.left_out,
                approval_timeout_ms: match host.approval.mode {
                    Approvals::Nobody => None,
                    Approvals::Ask { timeout, .. } => u64::try_from(timeout.as_millis()).ok(),
                },
            }),
        scheduling: scheduling(host, call).filter(|_| may_run),
        execution: resolved
            .filter(|_| may_run)
            .map(|resolved| execution(host, call, resolved)),
        result: entry.filter(|_| may_run).map(|_| result(host, call)),
        persistence: entry.filter(|_| may_run).map(|_| persistence(host, call)),
    }
}

fn declaration(
    host: &HostInner,
    call: &PipelineCall,
    entry: &CatalogEntry,
) -> Option<DeclarationExplanation> {
    Some(DeclarationExplanation {
        tool_id: entry.id().clone(),
        name: entry.name().to_owned(),
        matched_by: call.matched_by()?,
        source: host.sources.list.get(entry.source.0)?.name().to_owned(),
        lifecycle: entry.declaration().lifecycle.clone(),
    })
}

fn interface(entry: &CatalogEntry) -> InterfaceExplanation {
    let interface = &entry.declaration().interface;
    InterfaceExplanation {
        class: interface.safety.class,
        vouched_by: entry.origin,
        stated_by: entry.stated_by,
        destructive: interface.safety.destructive,
        approval_required: interface.permission.approval_required,
        approval_requested: interface.permission.approval_requested,
    }
}

fn seen(
    host: &HostInner,
    call: &PipelineCall,
    entry: Option<&CatalogEntry>,
    visibility: Option<Visibility>,
) -> &'static str {
    match (visibility, entry) {
        (None, _) => "the surface has no tool of that name",
        (Some(Visibility::Loaded), _) => "it is listed",
        (Some(Visibility::Unlisted), _) => HiddenReason::Companion.explain(),
        (Some(Visibility::Blocked(reason)), _) => reason.explain(),
        (Some(Visibility::Deferred), Some(entry)) if host.is_shown(&call.session, entry) => {
            "it is deferred, and was shown in this session"
        }
        (Some(Visibility::Deferred), _) => "it is deferred, and was not shown in this session yet",
    }
}

fn invocation(call: &PipelineCall, error: Option<&ToolError>) -> InvocationExplanation {
    let reached = |stage: Stage| {
        call.progress
            .transitions
            .iter()
            .any(|transition| transition.stage == stage)
    };
    let violations = error
        .and_then(|error| error.details.as_ref())
        .and_then(|found| found.get("violations"));
    let schema = match error.map(|error| error.class) {
        _ if reached(Stage::Observe) => SchemaVerdict::Fits,
        Some(ErrorClass::SchemaValidationFailed) => SchemaVerdict::Unreadable,
        Some(_) if violations.is_some() => SchemaVerdict::Violated,
        Some(_) if reached(Stage::Validate) => SchemaVerdict::Refused,
        Some(_) if reached(Stage::Parse) => SchemaVerdict::Unreadable,
        Some(_) | None => SchemaVerdict::NotChecked,
    };
    InvocationExplanation {
        schema,
        violations: violations.cloned(),
        arguments: call.inputs.observable.clone(),
        redacted: call.inputs.redacted,
        mutations: call.inputs.mutations.clone(),
    }
}

fn scheduling(host: &HostInner, call: &PipelineCall) -> Option<SchedulingExplanation> {
    let unscheduled = call.findings.effects.as_ref()?.unscheduled;
    let (now, refused) = match crate::scheduling::admit::look_ahead(host, call) {
        None => (None, None),
        Some(Ok(outlook)) => (Some(outlook), None),
        Some(Err(full)) => (None, Some(full.to_string())),
    };
    Some(SchedulingExplanation {
        unscheduled,
        now,
        refused,
    })
}

fn execution(
    host: &HostInner,
    call: &PipelineCall,
    resolved: &ResolvedTool,
) -> ExecutionExplanation {
    let entry = &resolved.entry;
    let profile = &entry.declaration().interface.execution;
    let input = call.inputs.call.as_ref();
    let has_path_rules = host
        .engine(&call.session)
        .has_path_rules(call.session.principal());
    ExecutionExplanation {
        kind: profile.kind,
        deadline: patience::time_left(host, call, entry)
            .ok()
            .map(|(_, deadline)| deadline),
        cancel: profile.cancel,
        sandbox: input.and_then(|input| {
            resolved
                .source
                .sandbox(entry.id(), input, entry.settings.execution.sandbox)
        }),
        unbound_paths: resolved
            .source
            .unbound_paths(entry.id())
            .filter(|_| has_path_rules),
    }
}

fn result(host: &HostInner, call: &PipelineCall) -> ResultExplanation {
    let room = persist::room(host, call);
    ResultExplanation {
        inline_chars: room.limit,
        strategy: room.strategy,
    }
}

fn persistence(host: &HostInner, call: &PipelineCall) -> PersistenceExplanation {
    let room = persist::room(host, call);
    let not_kept = match room.strategy {
        PersistStrategy::Inline => Some("it is always shown whole"),
        PersistStrategy::PreviewAndPersist
        | PersistStrategy::RefOnly
        | PersistStrategy::Redact
        | PersistStrategy::DropWithReason
        | PersistStrategy::NeverPersist => room.keeps_nothing(),
    };
    let readers = [
        ("read_result", room.readers.read),
        ("search_result", room.readers.search),
    ];
    let kept = not_kept.is_none().then(|| {
        let is_operator = call.session.principal().role == PrincipalRole::Operator;
        let (place, folder) = match host.record.artifact_room.blobs.place() {
            StoragePlace::Memory => (KeptIn::Memory, None),
            StoragePlace::Folder(path) => (KeptIn::Folder, Some(path).filter(|_| is_operator)),
        };
        let bytes = host.record.artifact_room.blobs.room();
        KeptPlan {
            place,
            folder,
            limit_bytes: bytes.map(|bytes| bytes.limit),
            used_bytes: bytes.map(|bytes| bytes.used),
            read_with: readers
                .iter()
                .filter(|(_, has)| *has)
                .map(|(name, _)| *name)
                .collect(),
        }
    });
    PersistenceExplanation {
        strategy: room.strategy,
        preview_chars: room.preview(),
        kept,
        not_kept,
    }
}
