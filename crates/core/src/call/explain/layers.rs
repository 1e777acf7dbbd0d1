//! What each layer has to say of a call that is only looked at.

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

/// What each layer has to say. One that the call did not come to says nothing.
#[derive(Clone, Debug, Serialize)]
pub struct LayerExplanations {
    /// 1: which tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declaration: Option<DeclarationExplanation>,
    /// 2: how it behaves, and who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceExplanation>,
    /// 3: whether it can be seen here.
    pub surface: SurfaceExplanation,
    /// 4: what was asked of it.
    pub invocation: InvocationExplanation,
    /// The hooks that would be asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookPlan>,
    /// 5: whether it may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionExplanation>,
    /// 6: when it would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingExplanation>,
    /// 7: how it would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionExplanation>,
    /// 8: how much of its result would be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultExplanation>,
    /// 9: what would be kept of a result that is larger, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<PersistenceExplanation>,
}

/// Which tool was meant.
#[derive(Clone, Debug, Serialize)]
pub struct DeclarationExplanation {
    /// The tool.
    pub tool_id: ToolId,
    /// Its name on the wire.
    pub name: String,
    /// By which of its names it was asked for.
    pub matched_by: MatchedBy,
    /// Where it comes from.
    pub source: String,
    /// Whether it can be used.
    pub lifecycle: Lifecycle,
}

/// How the tool behaves, and who says so.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceExplanation {
    /// Its class before any arguments are known.
    pub class: ClassFact,
    /// Who vouches for its class and its effects.
    pub vouched_by: EffectOrigin,
    /// Who states the effects of this very call; missing where nobody is listened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated_by: Option<EffectOrigin>,
    /// It may destroy what cannot be brought back.
    pub destructive: bool,
    /// A person must approve every call of it.
    pub approval_required: bool,
    /// The tool itself asks for approval of every call; mode `bypass` and an allow by its id answer that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approval_requested: bool,
}

/// Whether the tool can be seen.
#[derive(Clone, Debug, Serialize)]
pub struct SurfaceExplanation {
    /// The surface that was looked at.
    pub id: SurfaceId,
    /// Whether it shows the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Why so.
    pub why: String,
}

/// What was asked of the tool.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationExplanation {
    /// What the schema and the tool's own checks say of the arguments.
    pub schema: SchemaVerdict,
    /// What does not fit, as the error's details have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<Value>,
    /// The arguments as others may see them, after hooks and settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ObservableInput>,
    /// Some of them are kept out of every record.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Who changed them on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mutations: Vec<InputMutation>,
}

/// What is to be said of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaVerdict {
    /// Nobody looked at them.
    NotChecked,
    /// They are no JSON object, or too large to be read.
    Unreadable,
    /// They do not fit the schema.
    Violated,
    /// They fit the schema, and the tool refuses them.
    Refused,
    /// They fit.
    Fits,
}

/// A hook that would be asked.
#[derive(Clone, Debug, Serialize)]
pub struct HookPlan {
    /// Its name.
    pub name: String,
    /// What its failure means.
    pub standing: HookStanding,
    /// When it would be asked.
    pub events: Vec<HookEvent>,
}

/// Whether the call may run.
#[derive(Clone, Debug, Serialize)]
pub struct PermissionExplanation {
    /// What happens where no rule speaks.
    pub mode: PermissionMode,
    /// The rules that could have spoken, those that did first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<ConsideredRule>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// How long a person would be given to answer, in milliseconds; missing where nobody would be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_timeout_ms: Option<u64>,
}

/// When the call would run.
#[derive(Clone, Debug, Serialize)]
pub struct SchedulingExplanation {
    /// It needs no turn: it only looks at other calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unscheduled: bool,
    /// The scheduler as the call would find it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<SchedulerSnapshot>,
    /// Why it could never have a turn from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl SchedulingExplanation {
    /// Why the call would be refused if it came now.
    pub(super) fn refusal(&self) -> Option<&str> {
        let now = self.now.as_ref().and_then(|now| now.refused.as_deref());
        self.refused.as_deref().or(now)
    }
}

/// How the call would run.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutionExplanation {
    /// Where.
    pub kind: ExecutionKind,
    /// For how long, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<CallDeadline>,
    /// What happens when it is told to stop.
    pub cancel: CancelSupport,
    /// What would confine its process, where it starts one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxPlan>,
    /// Why the path rules that there are do not bind the tool, where they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbound_paths: Option<String>,
}

/// What would become of the result.
#[derive(Clone, Debug, Serialize)]
pub struct ResultExplanation {
    /// The largest text shown whole, in characters.
    pub inline_chars: usize,
    /// What becomes of a larger one.
    pub strategy: PersistStrategy,
}

/// What would be kept of a result that is larger than may be shown.
#[derive(Clone, Debug, Serialize)]
pub struct PersistenceExplanation {
    /// What becomes of it.
    pub strategy: PersistStrategy,
    /// How many of its characters are shown.
    pub preview_chars: usize,
    /// Where the whole of it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptPlan>,
    /// Why nothing of it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<&'static str>,
}

/// Where results are kept.
#[derive(Clone, Debug, Serialize)]
pub struct KeptPlan {
    /// In which kind of place.
    pub place: KeptIn,
    /// The folder. Only operators learn it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// How many bytes of kept results there may be, in all sessions together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// The tools by which the caller can read on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_with: Vec<&'static str>,
}

/// A kind of place for kept results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptIn {
    /// They go when the host ends.
    Memory,
    /// They outlive the host.
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
    // Of a call that is denied there is no turn, no run and no result to tell of.
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
        (None, _) => "no tool of that name is on it",
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
        PersistStrategy::Inline => Some("it is shown whole, however large it is"),
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
