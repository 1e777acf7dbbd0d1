//! Whether a call may happen: the facts, the decision, and a person's word where one is needed.

use toolpost_model::{Behavior, EffectOrigin, Effects, Stage};

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
    let (entry, set) = (&resolved.entry, &resolved.entry.settings);
    let stated = entry.stated_by.and_then(|_| resolved.source.effects(entry.id(), input));
    let mut effects = stated.unwrap_or_else(|| declared.clone());
    if entry.origin == EffectOrigin::Operator {
        let Effects { uses, caution, confined, .. } = effects;
        // That a process is confined is a fact only where this host's own code says it.
        let confined = confined.filter(|_| entry.stated_by == Some(EffectOrigin::HostCode));
        effects = Effects { uses, caution, confined, ..declared };
    }
    effects.idempotent |= interface.execution.idempotent;
    let mut effects = effects.as_stated_by(entry.origin);
    // The operator's own word counts whoever offers the tool.
    effects.idempotent = set.idempotent.unwrap_or(effects.idempotent);
    if let (Some(confined), Some(set)) = (effects.confined, set.sandbox) {
        effects.confined = Some(confined.stricter(set));
    }
    Some(effects)
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
        opinions: &[],
        at: crate::port::now(),
    };
    let decision = host.policy.decide(&facts);
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
