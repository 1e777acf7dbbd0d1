//! Whether a call may happen: the facts, the decision, and a person's word where one is needed.

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

/// What the call will do, as far as the host believes it.
pub(crate) fn effects(call: &PipelineCall) -> Option<Effects> {
    Some(effects_of(
        call.findings.resolved.as_ref()?,
        call.inputs.call.as_ref()?,
    ))
}

/// The same of a tool and arguments.
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
        // That a process is confined is a fact only where this host's own code says it.
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
    // The operator's own word counts whoever offers the tool.
    effects.idempotent = set.execution.idempotent.unwrap_or(effects.idempotent);
    if let (Some(confined), Some(set)) = (effects.confined, set.execution.sandbox) {
        effects.confined = Some(confined.stricter(set));
    }
    // Said by the host's own code, so it counts where the source's claims do not.
    if let Some(caution) = resolved.source.caution(entry.id()) {
        effects.caution = Some(match effects.caution {
            Some(other) => format!("{other}; {caution}"),
            None => caution,
        });
    }
    effects
}

/// Allowed, denied or asked?
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
        // Boxed: few calls are delegated, and the others should not carry the room for it.
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
    // The mode was applied to the parent already, and a person who approved the parent need not be asked again. A rule that
    // denies the step still denies it, and a rule that asks about the step alone still asks.
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

/// What a decision on the call is made on now. `None`: it has not come that far.
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

/// Decides with the votes of the authorities that rules delegate to. No vote is taken over from an earlier decision on
/// the same call: its facts may be others now. `unasked` is the decision without the votes.
async fn decide_delegated(
    host: &HostInner,
    call: &mut PipelineCall,
    engine: &dyn PolicyEngine,
    effects: &Effects,
    unasked: Decision,
    way: CallRunKind,
) -> Result<Decision, CallEnding> {
    // An authority may take its time, and whoever waits to hear that the call was taken must not wait for it.
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

/// Sets a decision to what an approval, or the lack of one, makes of it.
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
