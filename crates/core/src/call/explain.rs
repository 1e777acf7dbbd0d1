//! The dry run of a call, layer by layer: the expected outcome, its reasons, and the changes that would alter it.

mod ahead;
mod layers;

use serde::Serialize;
use toolpost_model::{
    Behavior, Decision, Effects, HookRun, Outcome, ResourceKey, Stage, ToolError, ToolId,
    Visibility,
};

use crate::{
    host::HostInner,
    invocation::PipelineCall,
    permission::{Account, DecisionAlternative, PartDecision, PermissionFacts},
    record::redaction::CallRedactor,
    result::CallEnding,
};

pub use layers::{
    DeclarationExplanation, ExecutionExplanation, HookPlan, InterfaceExplanation,
    InvocationExplanation, KeptIn, KeptPlan, LayerExplanations, PermissionExplanation,
    PersistenceExplanation, ResultExplanation, SchedulingExplanation, SchemaVerdict,
    SurfaceExplanation,
};

/// The expected course of a call.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The tool name of the request.
    pub tool: String,
    /// The tool that the name resolves to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// The tool's visibility on the surface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// The stages that the call reached. The last one was not run.
    pub stages: Vec<Stage>,
    /// The effects of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// The runs of hooks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// The decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The decision on each part of the call: commands, paths and URLs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartDecision>,
    /// The explanation of each layer.
    pub layers: LayerExplanations,
    /// The changes that would lead to another outcome.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub would_change: Vec<DecisionAlternative>,
    /// Whether the call would run without a question, at once or after a wait.
    pub would_run: bool,
    /// Whether an operator would be asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub would_ask: bool,
    /// Why the scheduler would refuse the call now, regardless of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_now: Option<String>,
    /// The outcome, if the call would end before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The error of that outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

pub(crate) fn explain(host: &HostInner, mut call: PipelineCall) -> Explanation {
    let surface = host.surface(&call.session);
    let visibility = surface
        .find(&call.live.tool)
        .map(|(_, visibility)| visibility);
    let mut account = account(host, &call);
    let (outcome, error) = match call.conclusion.ending.take() {
        Some(CallEnding::Failure {
            outcome, mut error, ..
        }) => {
            call.live
                .redactor()
                .error(&mut error, &mut toolpost_model::Redactions::default());
            (Some(outcome), Some(*error))
        }
        Some(CallEnding::Output(_)) | None => (None, None),
    };
    let would_ask = outcome.is_none() && call.progress.stage == Stage::AwaitApproval;
    let mut would_change = std::mem::take(&mut account.changes);
    would_change.extend(ahead::changes(host, &call, visibility, error.as_ref()));
    let parts = std::mem::take(&mut account.parts);
    let layers = layers::of(host, &call, &surface, visibility, account, error.as_ref());
    let refused_now = layers
        .scheduling
        .as_ref()
        .and_then(SchedulingExplanation::refusal)
        .map(str::to_owned);
    let mut explanation = Explanation {
        tool: call.live.tool.clone(),
        tool_id: call
            .findings
            .resolved
            .as_ref()
            .map(|resolved| resolved.entry.id().clone()),
        visibility,
        stages: call
            .progress
            .transitions
            .iter()
            .map(|transition| transition.stage)
            .collect(),
        effects: call.findings.effects.take(),
        hooks: std::mem::take(&mut call.hooks.runs),
        decision: call.findings.decision.take(),
        parts,
        layers,
        would_change,
        would_run: outcome.is_none() && !would_ask && refused_now.is_none(),
        would_ask,
        refused_now,
        outcome,
        error,
    };
    explanation.clean(&call.live.redactor());
    explanation
}

/// The account of the decision, if there is one.
fn account(host: &HostInner, call: &PipelineCall) -> Account {
    let (Some(resolved), Some(effects), Some(decision)) = (
        &call.findings.resolved,
        &call.findings.effects,
        &call.findings.decision,
    ) else {
        return Account::default();
    };
    host.engine(&call.session).account(&PermissionFacts {
        declaration: resolved.entry.declaration(),
        input: call.inputs.permission.as_ref(),
        effects,
        principal: call.session.principal(),
        opinions: &call.hooks.opinions,
        delegated: &decision.delegated,
        at: crate::port::now(),
    })
}

impl Explanation {
    /// Redacts all texts that quote the call.
    fn clean(&mut self, redactor: &CallRedactor) {
        let text = |text: &mut String| {
            if let std::borrow::Cow::Owned(clean) = redactor.text(text) {
                *text = clean;
            }
        };
        text(&mut self.tool);
        self.refused_now.iter_mut().for_each(text);
        if let Some(scheduling) = &mut self.layers.scheduling {
            scheduling.refused.iter_mut().for_each(text);
        }
        for part in &mut self.parts {
            text(&mut part.reason.text);
            part.subject.iter_mut().for_each(text);
        }
        for change in &mut self.would_change {
            text(&mut change.text);
            change.rules.iter_mut().for_each(text);
        }
        if let Some(permission) = &mut self.layers.permission {
            permission
                .considered
                .iter_mut()
                .flat_map(|rule| &mut rule.of)
                .for_each(text);
        }
        let uses = self
            .effects
            .iter_mut()
            .flat_map(|effects| &mut effects.uses);
        let ahead = self
            .layers
            .scheduling
            .iter_mut()
            .filter_map(|layer| layer.now.as_mut());
        let mut held = Vec::new();
        for outlook in ahead {
            held.extend(&mut outlook.locks);
            outlook
                .waits_for
                .iter_mut()
                .for_each(|reason| reason.clean(|key| clean_key(redactor, key)));
        }
        for one in uses.chain(held) {
            if let Some(key) = clean_key(redactor, &one.key) {
                one.key = key;
            }
        }
    }

    /// The decision's behavior, if there is a decision.
    pub fn behavior(&self) -> Option<Behavior> {
        self.decision.as_ref().map(|decision| decision.behavior)
    }
}

/// The redacted form of a resource key, if it differs.
pub(crate) fn clean_key(redactor: &CallRedactor, key: &ResourceKey) -> Option<ResourceKey> {
    match redactor.text(key.as_str()) {
        std::borrow::Cow::Borrowed(_) => None,
        std::borrow::Cow::Owned(clean) => {
            let (kind, name) = clean.split_once(':').unwrap_or(("redacted", &clean));
            Some(ResourceKey::new(kind, name))
        }
    }
}
