//! The decision in its recorded form.

use toolpost_model::{Behavior, Decision, DecisionReason, PermissionMode, ReasonType, RuleRef};

use super::{
    PartDecision, PermissionFacts, classifier,
    evaluation::{JudgementGround, JudgementReport, RuleEvaluation},
    parts::PermissionParts,
    policy::Policy,
    suggest,
};

pub(super) fn write(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Decision {
    let facts = hearing.facts;
    let part = verdict.decided.part.map(|place| &hearing.parts.all[place]);
    let class = part.map_or(facts.effects.class, |part| part.class);
    let classified = part.and_then(|part| classifier::finding(facts, part));
    let mut reason = verdict.decided.reason(policy, class, classified.as_ref());
    let operator_hint = hint(policy, hearing, verdict, &reason);
    let behavior = behavior(policy, verdict);
    if behavior != verdict.decided.behavior {
        reason
            .text
            .push_str("; mode `never-ask` denies calls that need approval");
    }
    let deciding = verdict.decided.rule();
    let others = verdict
        .matched
        .iter()
        .filter(|rule| deciding.is_none_or(|one| !std::ptr::eq(one, **rule)));
    Decision {
        behavior,
        class: facts.effects.class,
        mode: policy.mode,
        also_matched: others.map(|rule| RuleRef::from(*rule)).collect(),
        subject: part.and_then(super::parts::PermissionPart::text),
        opaque: hearing.parts.opaque.clone(),
        notes: policy.notes.to_vec(),
        classified,
        delegated: facts.delegated.to_vec(),
        // The waiver is left out for a call that is denied or asked about.
        approval_waived: verdict
            .waived
            .clone()
            .filter(|_| behavior == Behavior::Allow),
        operator_hint,
        reason,
    }
}

/// The judgements of the parts in their recorded form.
pub(super) fn of_parts(
    policy: &Policy,
    facts: &PermissionFacts<'_>,
    parts: &PermissionParts,
    verdict: &JudgementReport<'_>,
) -> Vec<PartDecision> {
    let told = verdict
        .of_parts
        .iter()
        .zip(&parts.all)
        .map(|(judgement, part)| {
            let classified = classifier::finding(facts, part);
            PartDecision {
                subject: part.text(),
                class: part.class,
                behavior: judgement.behavior,
                reason: judgement.reason(policy, part.class, classified.as_ref()),
            }
        });
    told.collect()
}

/// The behavior of a verdict in the policy's mode.
pub(super) fn behavior(policy: &Policy, verdict: &JudgementReport<'_>) -> Behavior {
    match verdict.decided.behavior {
        Behavior::Ask if policy.mode == PermissionMode::NeverAsk => Behavior::Deny,
        behavior => behavior,
    }
}

/// The hint for the operator about a change that would help.
fn hint(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
    reason: &DecisionReason,
) -> Option<String> {
    if verdict.decided.behavior == Behavior::Allow {
        return None;
    }
    let in_place =
        |rule: &RuleRef| format!("the rule `{}` in {} decides this", rule.rule, rule.place);
    match (reason.kind, &reason.rule) {
        (ReasonType::Rule, Some(rule)) => Some(in_place(rule)),
        (ReasonType::Opaque, Some(rule)) => Some(format!(
            "write the call so that its effects are known before it runs, or change the rule `{}` in {}",
            rule.rule, rule.place
        )),
        (ReasonType::Delegate, Some(rule)) => Some(format!(
            "the rule `{}` in {} delegates this decision",
            rule.rule, rule.place
        )),
        (ReasonType::Mode | ReasonType::Classifier, _) => {
            Some(start_with(policy, hearing, verdict))
        }
        (ReasonType::Caution, _) if hearing.facts.effects.caution.is_none() => {
            let flags = suggest::flags(policy, hearing, verdict)?;
            Some(format!(
                "start the host with `{flags}` if this file may be changed without approval"
            ))
        }
        (ReasonType::Caution, _) => {
            let hint = "change `protect` (paths) or `sandbox` (processes) in the configuration if such calls may run \
                 without approval";
            Some(hint.to_owned())
        }
        (ReasonType::SafetyCheck, _) if hearing.can_waive_request() => {
            let flags =
                suggest::flags(policy, hearing, verdict).map(|flags| format!("`{flags}` or "));
            Some(format!(
                "start the host with {}`--mode bypass`",
                flags.unwrap_or_default()
            ))
        }
        (ReasonType::SafetyCheck, _) => {
            let key = hearing
                .facts
                .declaration
                .tool_id
                .setting_key("approval_required");
            Some(format!("set `{key}: false` in the configuration"))
        }
        (
            ReasonType::Hook
            | ReasonType::Approval
            | ReasonType::Rule
            | ReasonType::Delegate
            | ReasonType::Opaque,
            _,
        ) => None,
    }
}

/// The flags that would let the call pass.
fn start_with(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> String {
    let by_mode = || {
        let parts = verdict.of_parts.iter().zip(&hearing.parts.all);
        parts
            .filter(|(judgement, _)| matches!(judgement.ground, JudgementGround::Mode))
            .map(|(_, part)| part.class)
    };
    let confined = hearing.facts.effects.confined;
    let lets = |mode: &PermissionMode| {
        by_mode().all(|class| mode.behavior(class, confined) == Behavior::Allow)
    };
    let mode = [
        PermissionMode::Edits,
        PermissionMode::Sandboxed,
        PermissionMode::Bypass,
    ]
    .into_iter()
    .find(lets)
    .unwrap_or(PermissionMode::Bypass);
    match suggest::flags(policy, hearing, verdict) {
        Some(flags) => format!("start the host with `{flags}` or `--mode {mode}`"),
        None => format!("start the host with `--mode {mode}`"),
    }
}
