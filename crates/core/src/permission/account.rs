//! The account of a decision: the rules that could match the call, the rules that did, and the changes that would lead
//! to another decision. Each change was tried on this call before it is reported.

mod changes;

use serde::Serialize;
use toolpost_model::{Behavior, EffectClass, ResourceAccess, Rule, RuleRef, Selector};

use super::{
    PartDecision, PermissionFacts, decision,
    evaluation::{JudgementReport, RuleEvaluation, RuleExclusion},
    parts::{PartSubject, PermissionPart, PermissionParts},
    policy::Policy,
};

pub use changes::{DecisionAlternative, DecisionAlternativeKind};

/// The number of rules in an account. Matching rules come first.
const TOLD_RULES: usize = 64;
/// The number of parts that are evaluated again for an account.
const TOLD_PARTS: usize = 256;
/// The number of parts that are listed with one rule.
const TOLD_SUBJECTS: usize = 4;

/// The account of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The decision on each part of the call.
    pub parts: Vec<PartDecision>,
    /// The rules that could match the call: first those that did, then the others in their written order.
    pub considered: Vec<ConsideredRule>,
    /// The number of further rules.
    pub left_out: usize,
    /// The changes that would lead to another decision.
    pub changes: Vec<DecisionAlternative>,
}

/// A rule that could match a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsideredRule {
    /// The rule and its place.
    #[serde(flatten)]
    pub rule: RuleRef,
    /// The effect of the rule.
    pub effect: Behavior,
    /// The part of the rule in the decision.
    pub voice: RuleVoice,
    /// Why the rule did not match, or why it was overruled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Some of the parts that the rule matches. Empty if it matches the call as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
}

/// The part of a rule in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVoice {
    /// The rule decided.
    Decided,
    /// The rule matched, and agrees with the decision.
    Agreed,
    /// The rule matched, and a stricter reason overruled it.
    Overruled,
    /// The rule does not match the call.
    Silent,
}

pub(super) fn of(policy: &Policy, facts: &PermissionFacts<'_>) -> Account {
    let parts = PermissionParts::of(facts, &policy.places);
    let hearing = RuleEvaluation::open(policy, facts, &parts);
    let verdict = hearing.judge();
    let mut account = Account {
        parts: decision::of_parts(policy, facts, &parts, &verdict),
        changes: changes::of(policy, &hearing, &verdict),
        ..Account::default()
    };
    account.considered = considered(policy, &hearing, &verdict);
    account.left_out = account.considered.len().saturating_sub(TOLD_RULES);
    account.considered.truncate(TOLD_RULES);
    account
}

/// The rules about this tool, its class or a resource that the call touches.
fn considered(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Vec<ConsideredRule> {
    let behavior = decision::behavior(policy, verdict);
    let deciding = verdict.decided.rule();
    let spoken = spoken(hearing);
    let decides = |rule: &Rule| deciding.is_some_and(|one| std::ptr::eq(one, rule));
    let of = |rule: &Rule| {
        spoken
            .iter()
            .find(|(one, _)| std::ptr::eq(*one, rule))
            .map(|(_, of)| of)
    };
    let mut told: Vec<ConsideredRule> = Vec::new();
    for rule in policy.rules() {
        let heard = of(rule);
        if heard.is_none() && !decides(rule) && !is_about(rule, hearing) {
            continue;
        }
        let effect = hearing.effect_of(rule);
        let (voice, why) = match heard {
            _ if decides(rule) => (RuleVoice::Decided, None),
            Some(_) if effect == verdict.decided.behavior => (RuleVoice::Agreed, None),
            Some(_) => (RuleVoice::Overruled, Some(overruled(effect, behavior))),
            None => (RuleVoice::Silent, Some(silent(rule, hearing).to_owned())),
        };
        let of = heard.cloned().unwrap_or_default();
        told.push(ConsideredRule {
            rule: RuleRef::from(rule),
            effect,
            voice,
            why,
            of,
        });
    }
    // The sort is stable, so rules with the same voice keep their written order.
    told.sort_by_key(|one| one.voice);
    told
}

/// The rules that matched, each with some of the matched parts.
fn spoken<'a>(hearing: &RuleEvaluation<'a>) -> Vec<(&'a Rule, Vec<String>)> {
    let mut spoken: Vec<(&'a Rule, Vec<String>)> = Vec::new();
    for part in hearing.parts.all.iter().take(TOLD_PARTS) {
        for rule in hearing.speakers(part) {
            let known = spoken.iter().position(|(one, _)| std::ptr::eq(*one, rule));
            let place = known.unwrap_or_else(|| {
                spoken.push((rule, Vec::new()));
                spoken.len() - 1
            });
            let of = &mut spoken[place].1;
            if of.len() < TOLD_SUBJECTS
                && let Some(subject) = part.text()
                && !of.contains(&subject)
            {
                of.push(subject);
            }
        }
    }
    spoken
}

/// Whether a rule is about this tool, this class, or a kind of resource that the call touches.
fn is_about(rule: &Rule, hearing: &RuleEvaluation<'_>) -> bool {
    let declaration = hearing.facts.declaration;
    let parts = &hearing.parts.all;
    let any = |wanted: fn(&PartSubject) -> bool| parts.iter().any(|part| wanted(&part.subject));
    let has_class = |class: EffectClass| {
        class == hearing.facts.effects.class
            || parts
                .iter()
                .any(|part: &PermissionPart| part.class == class)
    };
    match &rule.selector {
        Selector::Tool { tools, .. } => tools.matches(&declaration.tool_id, &declaration.aliases),
        Selector::Class(class) => has_class(*class),
        Selector::Reads(_) => any(|subject| {
            matches!(
                subject,
                PartSubject::Path {
                    access: ResourceAccess::Read,
                    ..
                }
            )
        }),
        Selector::Writes(_) => any(|subject| {
            matches!(
                subject,
                PartSubject::Path {
                    access: ResourceAccess::Write,
                    ..
                }
            )
        }),
        Selector::Reaches(_) => any(|subject| matches!(subject, PartSubject::Request(_))),
    }
}

fn silent(rule: &Rule, hearing: &RuleEvaluation<'_>) -> &'static str {
    match hearing.silence(rule) {
        Some(RuleExclusion::OtherCaller) => "it applies to another caller",
        Some(RuleExclusion::Expired) => "it has expired",
        Some(RuleExclusion::Condition) => "its conditions do not hold for these arguments",
        None => match &rule.selector {
            Selector::Class(_) => "no part of the call is of that class",
            Selector::Tool { tools, .. } if !rule.names_tool(hearing.facts.declaration) => {
                if rule.definition.is_some() && tools.names_exactly(hearing.facts.declaration) {
                    "it allows the tool as it was defined when an operator answered; the definition changed since"
                } else if tools.is_qualified() {
                    "it names another tool by id; this tool only has a similar name"
                } else {
                    "an allow by bare name applies to compiled-in tools only; name this tool by its id"
                }
            }
            Selector::Tool { .. }
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => "it matches no part of the call",
        },
    }
}

fn overruled(effect: Behavior, behavior: Behavior) -> String {
    match (effect, behavior) {
        (Behavior::Allow, Behavior::Deny) => "a deny overrides it".to_owned(),
        (Behavior::Allow, _) => "an ask overrides it".to_owned(),
        (Behavior::Ask, Behavior::Deny) => "a deny overrides it".to_owned(),
        (Behavior::Ask, _) => "a person has answered it".to_owned(),
        (Behavior::Deny, _) => "another ground was named first".to_owned(),
    }
}
