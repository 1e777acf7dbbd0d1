//! The whole story of a decision: every rule that could have spoken of the call, which of them did, and what would have
//! led to another answer. Each way to another answer was tried on this very call before it is told.

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

/// More rules than this nobody reads; those that spoke come first.
const TOLD_RULES: usize = 64;
/// Parts beyond these are not looked at again for who spoke of them.
const TOLD_PARTS: usize = 256;
/// How many parts are named with one rule.
const TOLD_SUBJECTS: usize = 4;

/// The story of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// What was decided on each part of the call.
    pub parts: Vec<PartDecision>,
    /// The rules that could have spoken of the call: first those that did, then the others in the order they were
    /// written.
    pub considered: Vec<ConsideredRule>,
    /// How many more there are.
    pub left_out: usize,
    /// What would lead to another answer.
    pub changes: Vec<DecisionAlternative>,
}

/// A rule that could have spoken of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsideredRule {
    /// Which rule, and where it stands.
    #[serde(flatten)]
    pub rule: RuleRef,
    /// What it says.
    pub effect: Behavior,
    /// Whether it was heard.
    pub voice: RuleVoice,
    /// Why it did not speak, or what became of its word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The parts of the call it speaks of, a few of them; empty where it speaks of the call as such.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
}

/// What became of a rule's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVoice {
    /// It decided.
    Decided,
    /// It spoke, and says no other than what was decided.
    Agreed,
    /// It spoke, and another ground outweighed it.
    Overruled,
    /// It has nothing to say of this call.
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

/// Every rule whose subject is this tool, its class or something the call touches.
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
    // Stable: rules of one voice stay in the order they were written.
    told.sort_by_key(|one| one.voice);
    told
}

/// The rules that spoke, each with a few of the parts it spoke of.
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

/// Whether a rule is about this tool, this class, or something of the kind that the call touches.
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
        Some(RuleExclusion::OtherCaller) => "it is about another caller",
        Some(RuleExclusion::Expired) => "its time is over",
        Some(RuleExclusion::Condition) => "its conditions do not hold for these arguments",
        None => match &rule.selector {
            Selector::Class(_) => "no part of the call is of that class",
            Selector::Tool { tools, .. } if !rule.names_tool(hearing.facts.declaration) => {
                if tools.is_qualified() {
                    "it names another tool by id; this tool only looks like it"
                } else {
                    "an allow by bare name means compiled-in tools only; name this tool by its id"
                }
            }
            Selector::Tool { .. }
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => "it fits no part of the call",
        },
    }
}

fn overruled(effect: Behavior, behavior: Behavior) -> String {
    match (effect, behavior) {
        (Behavior::Allow, Behavior::Deny) => "a denial outweighs it".to_owned(),
        (Behavior::Allow, _) => "that somebody must be asked outweighs it".to_owned(),
        (Behavior::Ask, Behavior::Deny) => "a denial outweighs it".to_owned(),
        (Behavior::Ask, _) => "a person has answered it".to_owned(),
        (Behavior::Deny, _) => "another ground was named first".to_owned(),
    }
}
