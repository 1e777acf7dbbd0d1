//! The decision stage: it computes the effects, asks the policy engine and its authorities, and routes the call.

use toolpost_model::{
    Behavior, CallInput, Decision, DecisionReason, EffectOrigin, Effects, ReasonType, Stage,
};

use super::{PermissionFacts, PolicyEngine, delegate::consult::ask_authorities};
use crate::{
    call::{CallRunKind, StageExit, lost_its_way},
    execution::credentials,
    host::HostInner,
    invocation::{
        PipelineCall, ResolvedTool,
        patience::patiently,
        resolve::{accept, owes_acknowledgement},
    },
    result::{self, CallEnding},
};

/// The effects of the call, as far as the host trusts their origin.
pub(crate) fn effects(call: &PipelineCall) -> Option<Effects> {
    Some(effects_of(
        call.findings.resolved.as_ref()?,
        call.inputs.call.as_ref()?,
    ))
}

/// The effects of a tool with these arguments.
///
/// Claims of an outside source only tighten: `as_stated_by` turns their class into `unknown` unless it is `execute`. If
/// the operator set a class for the tool, that class counts, and from the statement about the call only resources and
/// cautions are used, because more of them make a decision stricter. A confinement would loosen the decision, so it
/// counts only if code of this host states it.
pub(crate) fn effects_of(resolved: &ResolvedTool, input: &CallInput) -> Effects {
    let interface = &resolved.entry.declaration().interface;
    let declared = Effects::of(interface.safety.class.worst());
    let entry = &resolved.entry;
    let set = &resolved.entry.settings;
    let input = credentials::with_words(input);
    let stated = entry
        .stated_by
        .and_then(|_| resolved.source.effects(entry.id(), &input));
    let mut effects = stated.unwrap_or_else(|| declared.clone());
    if entry.origin == EffectOrigin::Operator {
        let Effects {
            uses,
            caution,
            path_cautions,
            confined,
            ..
        } = effects;
        // Confinement counts only if code of this host states it.
        let confined = confined.filter(|_| entry.stated_by == Some(EffectOrigin::HostCode));
        effects = Effects {
            uses,
            caution,
            path_cautions,
            confined,
            ..declared
        };
    }
    effects.idempotent |= interface.execution.idempotent;
    let mut effects = effects.as_stated_by(entry.origin);
    // The operator's setting overrides any origin.
    effects.idempotent = set.execution.idempotent.unwrap_or(effects.idempotent);
    if let (Some(confined), Some(set)) = (effects.confined, set.execution.sandbox) {
        effects.confined = Some(confined.stricter(set));
    }
    // Code of this host states this caution, so it counts even if claims of the source do not.
    if let Some(caution) = resolved.source.caution(entry.id()) {
        effects.caution = Some(match effects.caution {
            Some(other) => format!("{other}; {caution}"),
            None => caution,
        });
    }
    effects
}

/// Decides about the call and chooses its next stage.
pub(crate) async fn decide(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    if let Some(resolved) = &call.findings.resolved
        && let Some(preparing) = resolved.source.prepare_decision(resolved.entry.id())
        && let Err(ending) = patiently(host, call, preparing).await
    {
        return StageExit::End(ending);
    }
    let Some(effects) = effects(call) else {
        return lost_its_way();
    };
    let engine = host.engine(&call.session);
    let Some(facts) = facts(call, &effects) else {
        return lost_its_way();
    };
    let mut decision = engine.decide(&facts);
    if decision.reason.kind == ReasonType::Delegate {
        // Boxed, because few calls are delegated and the others should not be larger for it.
        match Box::pin(decide_delegated(
            host, call, &*engine, &effects, decision, way,
        ))
        .await
        {
            Ok(decided) => decision = decided,
            Err(ending) => return StageExit::End(ending),
        }
    }
    let Some(resolved) = &call.findings.resolved else {
        return lost_its_way();
    };
    call.live.redactor().decision(&mut decision);
    // The mode was applied to the parent, and an operator who approved the parent need not be asked again. A rule that
    // denies the step still denies it. A rule that asks about the step still asks, unless an operator approved the
    // parent.
    if let Some(parent) = call
        .lineage
        .parent
        .as_ref()
        .filter(|_| call.lineage.is_step)
        && (matches!(
            decision.reason.kind,
            ReasonType::Mode | ReasonType::Classifier
        ) || (decision.behavior == Behavior::Ask && parent.is_approved))
    {
        let text = format!(
            "it is a step of the call {}, which was decided already",
            parent.id
        );
        override_by_approval(&mut decision, Behavior::Allow, text);
    }
    let name = resolved.entry.label();
    let step = match decision.behavior {
        Behavior::Allow => StageExit::Next(Stage::Admit),
        Behavior::Ask => StageExit::Next(Stage::AwaitApproval),
        Behavior::Deny => StageExit::End(result::denied(name, &decision)),
    };
    call.findings.effects = Some(effects);
    call.findings.decision = Some(decision);
    step
}

/// The facts of a decision about the call now. `None` if the call has no tool yet.
fn facts<'a>(call: &'a PipelineCall, effects: &'a Effects) -> Option<PermissionFacts<'a>> {
    Some(PermissionFacts {
        declaration: call.findings.resolved.as_ref()?.entry.declaration(),
        input: call.inputs.permission.as_ref(),
        effects,
        principal: call.session.principal(),
        opinions: &call.hooks.opinions,
        delegated: &[],
        at: crate::port::now(),
    })
}

/// Decides with the votes of the authorities that rules delegate to. Votes of an earlier decision are not reused,
/// because the facts may have changed. `unasked` is the decision without votes.
async fn decide_delegated(
    host: &HostInner,
    call: &mut PipelineCall,
    engine: &dyn PolicyEngine,
    effects: &Effects,
    unasked: Decision,
    way: CallRunKind,
) -> Result<Decision, CallEnding> {
    // An authority may take long, and the acknowledgement of the call must not wait for it.
    if owes_acknowledgement(call, way) {
        accept(host, call).await?;
    }
    let Some(facts) = facts(call, effects) else {
        return Ok(unasked);
    };
    let delegations = engine.delegations(&facts);
    let votes = ask_authorities(host, call, effects, unasked.mode, &delegations, way).await?;
    Ok(engine.decide(&PermissionFacts {
        delegated: &votes,
        ..facts
    }))
}

/// Replaces the reason of a decision by an approval, a refusal or a decided parent.
pub(crate) fn override_by_approval(decision: &mut Decision, behavior: Behavior, text: String) {
    let reason = DecisionReason {
        kind: ReasonType::Approval,
        text,
        rule: None,
    };
    let asked = std::mem::replace(&mut decision.reason, reason);
    decision.also_matched.splice(..0, asked.rule);
    decision.behavior = behavior;
    decision.operator_hint = None;
}
