//! The changes that would lead to another decision. Each was tried before it is offered.

use serde::Serialize;
use toolpost_model::{Behavior, PermissionMode, ReasonType, RememberOffer, Rule, RuleOrigin};

use super::super::{decision, policy::Policy, suggest};
use crate::permission::evaluation::{JudgementGround, JudgementReport, RuleEvaluation};

/// The number of rules that are removed in search of another decision.
const MOST_REMOVED: usize = 8;

/// A change that would lead to another decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionAlternative {
    /// The kind of change.
    pub kind: DecisionAlternativeKind,
    /// The change in a few words.
    pub text: String,
    /// The rules to add or to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The setting to change, with its new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The decision after the change. Missing if it is unknown beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<Behavior>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionAlternativeKind {
    /// An added rule.
    AddRule,
    /// A removed or changed rule.
    RemoveRule,
    /// Another mode.
    Mode,
    /// A setting of the operator.
    Setting,
    /// An answer of an operator.
    Answer,
    /// Another vote of a hook.
    Hook,
    /// Another vote of an authority.
    Authority,
    /// Another call, with other arguments or another tool.
    Call,
    /// The discovery of the tool.
    Discover,
}

impl DecisionAlternative {
    /// A change without rules or settings.
    pub(crate) fn other(kind: DecisionAlternativeKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            rules: Vec::new(),
            setting: None,
            then: None,
        }
    }

    /// A change of a setting.
    pub(crate) fn setting(setting: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            setting: Some(setting.into()),
            ..Self::other(DecisionAlternativeKind::Setting, text)
        }
    }

    fn then(mut self, behavior: Behavior) -> Self {
        self.then = Some(behavior);
        self
    }

    fn rules(mut self, rules: Vec<String>) -> Self {
        self.rules = rules;
        self
    }
}

pub(super) fn of(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Vec<DecisionAlternative> {
    let behavior = decision::behavior(policy, verdict);
    let mut changes = Vec::new();
    if behavior == Behavior::Ask {
        let text = "approve the call (`toolpost approvals`)";
        changes.push(
            DecisionAlternative::other(DecisionAlternativeKind::Answer, text).then(Behavior::Allow),
        );
    }
    changes.extend(without_rules(policy, hearing, verdict));
    match &verdict.decided.ground {
        JudgementGround::Rule(_) | JudgementGround::Mode => {}
        JudgementGround::Delegated { heard, .. } => {
            let name = heard
                .rule
                .delegate
                .iter()
                .map(|name| format!(" `{name}`"))
                .collect::<String>();
            changes.push(DecisionAlternative::other(
                DecisionAlternativeKind::Authority,
                format!("another vote of the authority{name}"),
            ));
        }
        JudgementGround::Said(reason) => changes.extend(said(reason.kind, hearing)),
        JudgementGround::Opaque { .. } => {
            let text = "write the call so that its effects are known before it runs";
            changes.push(DecisionAlternative::other(
                DecisionAlternativeKind::Call,
                text,
            ));
        }
    }
    changes.extend(added_rule(policy, hearing, verdict));
    changes.extend(modes(policy, hearing, behavior));
    changes
}

/// Removes the deciding rule, and those that would decide in its place, until the decision changes.
fn without_rules<'a>(
    policy: &'a Policy,
    hearing: &RuleEvaluation<'a>,
    verdict: &JudgementReport<'a>,
) -> Option<DecisionAlternative> {
    let behavior = decision::behavior(policy, verdict);
    let mut without: Vec<&'a Rule> = vec![verdict.decided.rule()?];
    loop {
        let again =
            RuleEvaluation::open_without(policy, hearing.facts, hearing.parts, without.clone())
                .judge();
        let then = decision::behavior(policy, &again);
        if then != behavior {
            let all: Vec<String> = without
                .iter()
                .map(|rule| format!("`{rule}` ({})", rule.place))
                .collect();
            let what = if all.len() == 1 {
                "the rule"
            } else {
                "the rules"
            };
            let lines = without.iter().map(ToString::to_string).collect();
            let text = format!("remove or change {what} {}", all.join(", "));
            return Some(
                DecisionAlternative::other(DecisionAlternativeKind::RemoveRule, text)
                    .rules(lines)
                    .then(then),
            );
        }
        without.push(
            again
                .decided
                .rule()
                .filter(|_| without.len() < MOST_REMOVED)?,
        );
    }
}

/// The changes that remove a reason other than a rule.
fn said(kind: ReasonType, hearing: &RuleEvaluation<'_>) -> Vec<DecisionAlternative> {
    match kind {
        ReasonType::SafetyCheck => {
            let key = hearing
                .facts
                .declaration
                .tool_id
                .setting_key("approval_required");
            let setting = format!("{key}: false");
            vec![DecisionAlternative::setting(
                setting,
                "let the tool run without approval of every call",
            )]
        }
        // A rule that names the path is enough. Such a rule is tried below.
        ReasonType::Caution if hearing.facts.effects.caution.is_none() => Vec::new(),
        ReasonType::Caution => vec![
            DecisionAlternative::setting(
                "protect",
                "remove the path from the protected paths, if the reason is a path",
            ),
            DecisionAlternative::setting(
                "sandbox.profile: none",
                "run processes without a sandbox, if the reason is a process",
            ),
        ],
        ReasonType::Hook => vec![DecisionAlternative::other(
            DecisionAlternativeKind::Hook,
            "another vote of the hook",
        )],
        ReasonType::Rule
        | ReasonType::Mode
        | ReasonType::Delegate
        | ReasonType::Classifier
        | ReasonType::Opaque
        | ReasonType::Approval => Vec::new(),
    }
}

/// A rule that would allow a call that asks, or deny a call that runs.
fn added_rule(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Option<DecisionAlternative> {
    let behavior = decision::behavior(policy, verdict);
    if behavior == Behavior::Allow {
        let name = hearing.facts.declaration.tool_id.rule_form();
        let narrow = hearing
            .parts
            .all
            .iter()
            .flat_map(|part| suggest::of_part(part, &name, &policy.places));
        let lines = narrow.take(1).chain([format!("allow {name}")]);
        let denies = |line: String| line.replacen("allow ", "deny ", 1);
        return lines
            .map(denies)
            .find_map(|line| tried(policy, hearing, vec![line], behavior));
    }
    let mut lines = suggest::narrowest(policy, hearing, verdict)?;
    lines.sort_unstable();
    lines.dedup();
    tried(policy, hearing, lines, behavior).or_else(|| answered(policy, hearing, verdict))
}

/// The change by these rules, if it leads to another decision.
fn tried(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    lines: Vec<String>,
    now: Behavior,
) -> Option<DecisionAlternative> {
    let parse = |line: &String| Rule::parse(line, RuleOrigin::Cli, "a rule to try").ok();
    let rules: Option<Vec<Rule>> = lines.iter().map(parse).collect();
    let with = policy.with(&rules?).ok()?;
    let again = RuleEvaluation::open(&with, hearing.facts, hearing.parts);
    let then = decision::behavior(&with, &again.judge());
    let quoted: Vec<String> = lines.iter().map(|line| format!("`{line}`")).collect();
    let what = if lines.len() == 1 {
        "a rule"
    } else {
        "the rules"
    };
    let text = format!("add {what} {}", quoted.join(", "));
    (then != now).then(|| {
        DecisionAlternative::other(DecisionAlternativeKind::AddRule, text)
            .rules(lines)
            .then(then)
    })
}

/// A rule that works only as an operator's remembered answer, which overrides the rule that asks.
fn answered(
    policy: &Policy,
    hearing: &RuleEvaluation<'_>,
    verdict: &JudgementReport<'_>,
) -> Option<DecisionAlternative> {
    let asks_always =
        |rule: &&Rule| rule.effect == Behavior::Ask && rule.remember == RememberOffer::Never;
    if verdict.decided.behavior != Behavior::Ask || verdict.matched.iter().any(asks_always) {
        return None;
    }
    let line = suggest::rules(policy, hearing.facts).first()?.to_string();
    let text = format!("approve the call and remember `{line}`");
    Some(
        DecisionAlternative::other(DecisionAlternativeKind::Answer, text)
            .rules(vec![line])
            .then(Behavior::Allow),
    )
}

/// The nearest modes with another decision: looser modes for a call that does not run, stricter ones for a call that
/// runs.
fn modes(policy: &Policy, hearing: &RuleEvaluation<'_>, now: Behavior) -> Vec<DecisionAlternative> {
    let place = |mode: PermissionMode| {
        PermissionMode::ALL
            .iter()
            .position(|each| *each == mode)
            .unwrap_or_default()
    };
    let (stricter, looser) = PermissionMode::ALL.split_at(place(policy.mode));
    let nearest: Vec<PermissionMode> = match now {
        Behavior::Allow => stricter.iter().rev().copied().collect(),
        Behavior::Ask | Behavior::Deny => looser.to_vec(),
    };
    let mut seen = vec![now];
    let mut changes = Vec::new();
    for mode in nearest {
        let with = Policy {
            mode,
            ..policy.clone()
        };
        let then = decision::behavior(
            &with,
            &RuleEvaluation::open(&with, hearing.facts, hearing.parts).judge(),
        );
        if !seen.contains(&then) {
            seen.push(then);
            let change = DecisionAlternative::setting(
                format!("mode: {mode}"),
                format!("run in mode `{mode}`"),
            );
            changes.push(DecisionAlternative {
                kind: DecisionAlternativeKind::Mode,
                ..change.then(then)
            });
        }
    }
    changes
}
