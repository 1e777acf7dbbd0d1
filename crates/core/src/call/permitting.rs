//! Whether a call may happen: the facts, the decision, and a person's word where one is needed.

use toolpost_model::{Behavior, Effects, Stage};

use super::{Step, lost_its_way};
use crate::{
    flow::{invocation::Call, permission::Facts, result},
    host::Inner,
};

/// What the call will do, as far as the host believes it.
pub(super) fn effects(call: &Call) -> Option<Effects> {
    let (resolved, input) = (call.resolved.as_ref()?, call.inputs.call.as_ref()?);
    let interface = &resolved.entry.declaration().interface;
    let declared = Effects::of(interface.safety.class.worst());
    let mut effects = resolved.source.effects(resolved.entry.id(), input).unwrap_or_else(|| declared.clone());
    if resolved.entry.origin == toolpost_model::EffectOrigin::Operator {
        effects = Effects { uses: effects.uses, caution: effects.caution, ..declared };
    }
    effects.idempotent |= interface.execution.idempotent;
    Some(effects.as_stated_by(resolved.entry.origin))
}

/// Allowed, denied or asked?
pub(super) fn decide(host: &Inner, call: &mut Call) -> Step {
    let (Some(effects), Some(resolved)) = (effects(call), &call.resolved) else {
        return lost_its_way();
    };
    let facts = Facts {
        declaration: resolved.entry.declaration(),
        input: call.inputs.permission.as_ref(),
        effects: &effects,
        principal: call.session.principal(),
        opinions: &call.hooks.opinions,
        at: crate::port::now(),
    };
    let mut decision = host.policy.decide(&facts);
    call.live.redactor().decision(&mut decision);
    let step = match decision.behavior {
        Behavior::Allow => Step::Next(Stage::Admit),
        Behavior::Ask => Step::Next(Stage::AwaitApproval),
        Behavior::Deny => Step::End(result::denied(resolved.entry.name(), &decision)),
    };
    call.effects = Some(effects);
    call.decision = Some(decision);
    step
}

/// Nobody can be asked yet, so an ask is a denial that says what would change it.
pub(super) fn await_approval(call: &Call) -> Step {
    let (Some(resolved), Some(decision)) = (&call.resolved, &call.decision) else {
        return lost_its_way();
    };
    Step::End(result::nobody_to_ask(resolved.entry.name(), decision))
}
