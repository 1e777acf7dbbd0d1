//! The port of a running call to its host, through which the tool makes nested calls.
//!
//! A nested call has its own decision, record and end. From its parent it inherits the slot, the locks, a deadline that
//! is not later, and cancellation. It does not queue behind other calls for its parent's slot: parent and child would
//! wait for each other.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use toolpost_model::{
    ArtifactError, ArtifactHeader, ArtifactId, ArtifactSink, BoxFuture, CallArtifactStore,
    CallPort, CallReport, CallRules, CallSurroundings, CallableTool, CallerPort, ConsultError,
    ConsultKinds, ConsultQuestion, ConsultReply, Effects, ErrorClass, EventBody, InvocationId,
    ModelInput, NestedCall, PathCaution, PersistStrategy, Principal, Redactions, ResourceAccess,
    ResourceKey, ResourceUse, SandboxProfile, SessionId, SiblingCalls, StoredArtifact, ToolFailure,
    ToolId, ToolResult, TraceContext, Visibility,
};

use super::redirect::RedirectCheck;
use crate::{
    approval::coverage::rests_on_a_yes,
    call::CallRunKind,
    host::{CallVisibility, HostInner, InvocationView},
    invocation::{
        AcknowledgementTiming, CallRequest, LiveCall, ParentCall, Patience, PipelineCall,
    },
    permission::PolicyEngine,
    record::{artifacts::RedactingArtifactSink, journal::JournalError, persist},
    result::ResultSizePolicy,
    session::Session,
};

/// The greatest depth of nested calls, so that tools that call each other come to an end. A plugin of an A2E host that
/// reaches another plugin, which calls a tool, needs six levels.
const MAX_DEPTH: usize = 8;

/// The time that a caller has to answer a question of a running call.
const CALLER_PATIENCE: Duration = Duration::from_secs(600);

/// The port of a running call to its host.
pub(crate) struct RunningCallPort {
    host: Arc<HostInner>,
    live: Arc<LiveCall>,
    session: Arc<Session>,
    tool: Option<ToolId>,
    limits: PathLimits,
    profile: Option<SandboxProfile>,
    room: ResultSizePolicy,
    onward: Option<RedirectCheck>,
    nested: NestedCallTerms,
}

/// The paths that a running call may use.
struct PathLimits {
    is_cautioned: bool,
    /// The paths that the call was cautioned about individually.
    cautions: Vec<PathCaution>,
    /// The policy at the start of the run.
    engine: Arc<dyn PolicyEngine>,
    /// The resources that the decision covered.
    decided: Vec<ResourceUse>,
}

/// The terms that nested calls inherit.
struct NestedCallTerms {
    parent: ParentCall,
    under_way: AtomicUsize,
    face: String,
    correlation_id: Option<String>,
    /// The time that nested calls wait for an approval. Callers that wait for this call wait for its nested calls as
    /// well.
    patience: Option<Duration>,
}

impl RunningCallPort {
    pub(crate) fn of(
        host: &Arc<HostInner>,
        call: &PipelineCall,
        effects: &Effects,
        deadline: Instant,
    ) -> Self {
        let above = call.lineage.parent.as_ref();
        let mut held = above.map(|parent| parent.held.clone()).unwrap_or_default();
        held.extend_from_slice(&effects.uses);
        let mut line = above.map(|parent| parent.line.clone()).unwrap_or_default();
        line.push(call.live.id);
        persist::hold_back(host, call);
        let resolved = call.findings.resolved.as_ref();
        Self {
            host: Arc::clone(host),
            live: Arc::clone(&call.live),
            session: Arc::clone(&call.session),
            tool: resolved.map(|resolved| resolved.entry.id().clone()),
            limits: PathLimits {
                is_cautioned: effects.caution.is_some(),
                cautions: effects.path_cautions.clone(),
                engine: host.engine(&call.session),
                decided: effects.uses.clone(),
            },
            profile: resolved.and_then(|resolved| resolved.entry.settings.execution.sandbox),
            room: persist::bounds(host, call),
            onward: RedirectCheck::of(call, effects),
            nested: NestedCallTerms {
                parent: ParentCall {
                    id: call.live.id,
                    line,
                    source: resolved.map(|resolved| resolved.entry.source),
                    deadline,
                    held,
                    is_approved: rests_on_a_yes(call),
                },
                under_way: AtomicUsize::new(0),
                face: call.origin.face.clone(),
                correlation_id: call.origin.correlation_id.clone(),
                patience: call.waits.nested_patience,
            },
        }
    }

    /// Refuses this call and the calls above it: waiting for one of them would never end.
    fn check_not_above(&self, id: InvocationId) -> Result<(), ToolFailure> {
        if self.nested.parent.line.contains(&id) {
            return Err(ToolFailure::invalid(format!(
                "`{id}` is this call or one of its parent calls"
            )));
        }
        Ok(())
    }

    async fn call(&self, nested: NestedCall) -> Result<ToolResult, ToolFailure> {
        if self.nested.parent.line.len() >= MAX_DEPTH {
            let message = format!("nested calls can be at most {} levels deep", MAX_DEPTH - 1);
            return Err(ToolFailure::of(ErrorClass::RateLimited, message)
                .code("too_deep")
                .untouched());
        }
        if let Err(refusal) = self
            .host
            .record
            .journal_room
            .check(self.session.principal())
        {
            let message = refusal.told("bytes of the journal", "limits.journal");
            return Err(ToolFailure::of(ErrorClass::RateLimited, message)
                .code("journal_share")
                .untouched());
        }
        let limit = self.host.limits.scheduler.session_concurrency;
        let _place = NestedCallPermit::take(&self.nested.under_way, limit)?;
        let mut request = CallRequest::new(
            Arc::clone(&self.session),
            nested.tool,
            ModelInput::Value(Arc::new(nested.arguments)),
        );
        request.identity.correlation_id = self.nested.correlation_id.clone();
        request.identity.trace = Some(Box::new(self.live.trace()));
        request.times.patience = self.nested.patience.map(Patience::Approval);
        request
            .delivery
            .caller
            .clone_from(&self.live.caller.consulted);
        let live = LiveCall::new(
            InvocationId::new(),
            &request,
            Arc::clone(&self.host.record.redactor),
        );
        let live = live.witnessed(&self.host.witnesses, &request, Some(self.nested.parent.id));
        let live = Arc::new(live.nested_in(self.live.token()));
        // Secrets of this call stay secrets in the calls that it makes.
        if let Some(own) = self.live.redactor().own {
            live.add_secrets(own.texts().to_vec());
        }
        let mut call = PipelineCall::new(Arc::clone(&live), request, None);
        call.origin.face.clone_from(&self.nested.face);
        call.lineage.parent = Some(self.nested.parent.clone());
        call.lineage.is_step = nested.is_step;
        Ok(self
            .host
            .in_callers_task(call, CallRunKind::Live(AcknowledgementTiming::AtTheEnd))
            .await
            .result()
            .clone())
    }
}

impl RunningCallPort {
    /// Asks the caller. The questions come from a tool, so they are redacted like all its output; the replies are the
    /// caller's own text and are not redacted.
    async fn ask_caller(
        &self,
        mut questions: Vec<ConsultQuestion>,
    ) -> Result<Vec<ConsultReply>, ConsultError> {
        let Some(caller) = self.live.caller.consulted.clone() else {
            return Err(ConsultError::Nobody);
        };
        let answered = caller.answers();
        if let Some(other) = questions
            .iter()
            .find(|question| !answered.includes(question.kind))
        {
            caller.lacks(other.kind);
            return Err(ConsultError::Unsupported(other.kind));
        }
        let kinds: Vec<&str> = questions
            .iter()
            .map(|question| question.kind.as_str())
            .collect();
        self.live.say(format!(
            "waiting for the caller's answer: {}",
            kinds.join(", ")
        ));
        let redactor = self.live.redactor();
        for question in &mut questions {
            redactor.value(&mut question.params, &mut Redactions::default());
        }
        let _pause = self.live.pauses.begin();
        // The slot is given back during the question, because a person may take minutes and a call that runs alone
        // would block its whole session. The locks stay: other calls could change the resources that the decision
        // covered.
        let aside = self.host.scheduler.step_aside(self.live.id);
        let asked = tokio::time::timeout(CALLER_PATIENCE, caller.consult(self.live.id, questions));
        let answered = tokio::select! {
            answered = asked => answered.unwrap_or(Err(ConsultError::TimedOut)),
            () = self.live.token().cancelled() => return Err(ConsultError::Canceled),
        };
        if let Some(aside) = aside {
            tokio::select! {
                () = self.host.scheduler.come_back(aside) => {}
                () = self.live.token().cancelled() => return Err(ConsultError::Canceled),
            }
        }
        answered
    }
}

/// The report on another call. A tool only sees calls of its own caller.
fn report(
    id: InvocationId,
    found: Result<Option<InvocationView>, JournalError>,
) -> Result<CallReport, ToolFailure> {
    let view = found
        .map_err(|error| ToolFailure::of(ErrorClass::JournalUnavailable, error.to_string()))?;
    let Some(view) = view else {
        let failure = ToolFailure::invalid(format!("the call `{id}` is unknown"));
        return Err(failure
            .code("unknown_call")
            .hint("use the invocation id from the answer to the call"));
    };
    let result = view
        .result
        .and_then(|json| serde_json::from_str(json.get()).ok());
    Ok(CallReport {
        invocation_id: id,
        tool: view.tool,
        stage: view.stage,
        result,
    })
}

/// Limits the nested calls of one call to the concurrency of a session.
struct NestedCallPermit<'a>(&'a AtomicUsize);

impl<'a> NestedCallPermit<'a> {
    fn take(under_way: &'a AtomicUsize, limit: usize) -> Result<Self, ToolFailure> {
        if under_way.fetch_add(1, Ordering::Relaxed) >= limit {
            under_way.fetch_sub(1, Ordering::Relaxed);
            let message = format!("a call can make at most {limit} calls at the same time");
            let failure = ToolFailure::of(ErrorClass::RateLimited, message).untouched();
            return Err(failure.hint("wait for one of them to end"));
        }
        Ok(Self(under_way))
    }
}

impl Drop for NestedCallPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallPort for RunningCallPort {
    fn invocation_id(&self) -> InvocationId {
        self.live.id
    }

    fn session_id(&self) -> &SessionId {
        self.session.id()
    }

    fn principal(&self) -> &Principal {
        self.session.principal()
    }

    fn deadline(&self) -> Instant {
        self.nested.parent.deadline
    }

    fn trace(&self) -> TraceContext {
        self.live.trace()
    }

    fn emit(&self, body: EventBody) {
        let is_output = matches!(body, EventBody::Output(_) | EventBody::Artifact { .. });
        if self.room.strategy == PersistStrategy::Redact && is_output {
            return;
        }
        self.live.emit(body);
    }

    fn is_canceled(&self) -> bool {
        self.live.token().is_cancelled()
    }

    fn canceled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.live.token().cancelled())
    }

    fn around(&self) -> CallSurroundings<'_> {
        CallSurroundings {
            caller: self,
            rules: self,
            calls: self,
            artifacts: self,
        }
    }
}

impl CallerPort for RunningCallPort {
    fn consultable(&self) -> ConsultKinds {
        self.live
            .caller
            .consulted
            .as_ref()
            .map(|caller| caller.answers())
            .unwrap_or_default()
    }

    fn consult(
        &self,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>> {
        Box::pin(self.ask_caller(questions))
    }

    fn meta(&self) -> Option<&Map<String, Value>> {
        self.live.caller.meta.as_deref()
    }
}

impl CallRules for RunningCallPort {
    fn cautioned(&self) -> bool {
        self.limits.is_cautioned
    }

    fn cautioned_about(&self, path: &Path) -> bool {
        let key = path.to_str().map(ResourceKey::path);
        self.limits.is_cautioned
            || self
                .limits
                .cautions
                .iter()
                .any(|known| Some(&known.key) == key.as_ref())
    }

    fn may_steer(&self, path: &Path) -> bool {
        self.limits
            .engine
            .may_steer(path, self.session.principal(), crate::port::now())
    }

    fn has_path_rules(&self) -> bool {
        self.limits.engine.has_path_rules(self.session.principal())
    }

    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        // The decision, and an approval if there was one, already covers these resources.
        let key = path.to_str().map(ResourceKey::path);
        let decided = |one: &ResourceUse| one.access == access && key.as_ref() == Some(&one.key);
        self.limits.decided.iter().any(decided)
            || self.limits.engine.may_use(
                path,
                access,
                self.session.principal(),
                crate::port::now(),
            )
    }

    fn kept_places(&self) -> Vec<PathBuf> {
        self.limits.engine.kept_places(self.session.principal())
    }

    fn may_request(&self, method: &str, url: &str) -> bool {
        let allows = |onward: &RedirectCheck| {
            onward.allows(
                &*self.limits.engine,
                self.session.principal(),
                (method, url),
            )
        };
        self.onward.as_ref().is_none_or(allows)
    }

    fn profile(&self) -> Option<SandboxProfile> {
        self.profile
    }
}

impl SiblingCalls for RunningCallPort {
    fn callable(&self) -> Vec<CallableTool> {
        let surface = self.host.surface(&self.session);
        let visible = surface
            .all()
            .filter(|(entry, visibility)| match visibility {
                Visibility::Loaded => true,
                Visibility::Deferred => self.host.is_shown(&self.session, entry),
                Visibility::Unlisted | Visibility::Blocked(_) => false,
            });
        let others = visible.filter(|(entry, _)| Some(entry.id()) != self.tool.as_ref());
        others
            .map(|(entry, _)| CallableTool {
                name: entry.name().to_owned(),
                id: entry.id().clone(),
                provenance: entry.declaration().provenance,
                schema: Arc::clone(&entry.declaration().input.schema),
            })
            .collect()
    }

    fn call_tool(&self, call: NestedCall) -> BoxFuture<'_, Result<ToolResult, ToolFailure>> {
        Box::pin(self.call(call))
    }

    fn look_at_call(
        &self,
        id: InvocationId,
        wait: Duration,
    ) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        Box::pin(async move {
            self.check_not_above(id)?;
            report(
                id,
                self.host
                    .wait(id, CallVisibility::OwnOnly(self.principal()), wait)
                    .await,
            )
        })
    }

    fn cancel_call(&self, id: InvocationId) -> BoxFuture<'_, Result<CallReport, ToolFailure>> {
        Box::pin(async move {
            self.check_not_above(id)?;
            let sight = CallVisibility::OwnOnly(self.principal());
            let stood = report(id, self.host.invocation(id, sight).await)?;
            self.host.cancel(id, sight);
            Ok(stood)
        })
    }
}

impl CallArtifactStore for RunningCallPort {
    fn create_artifact(
        &self,
        artifact: ArtifactHeader,
    ) -> BoxFuture<'_, Result<Box<dyn ArtifactSink>, ArtifactError>> {
        Box::pin(async move {
            if let Some(why) = self.room.keeps_nothing() {
                return Err(ArtifactError::Storage(why.to_owned()));
            }
            let sink = RedactingArtifactSink::begin(
                Arc::clone(&self.live),
                &self.host.record.artifact_room,
                artifact,
            )
            .await?;
            Ok(Box::new(sink) as Box<dyn ArtifactSink>)
        })
    }

    fn open_artifact(
        &self,
        id: ArtifactId,
    ) -> BoxFuture<'_, Result<Arc<dyn StoredArtifact>, ArtifactError>> {
        Box::pin(self.host.artifact(
            id,
            CallVisibility::OwnOnly(self.principal()),
            Some(self.live.id),
        ))
    }
}
