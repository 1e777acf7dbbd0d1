//! The judgement on a part of a call or on the whole call, with its ground.

use toolpost_model::{
    Behavior, ClassFinding, DecisionReason, DelegatedVote, EffectClass, ReasonType, Rule, RuleRef,
};

use super::{super::policy::Policy, OrderedRule};

pub(in super::super) struct Judgement<'a> {
    pub(in super::super) behavior: Behavior,
    pub(in super::super) ground: JudgementGround<'a>,
    /// The index of the part. `None` for the whole call.
    pub(in super::super) part: Option<usize>,
}

/// The ground of a judgement. [`Judgement::outranks`] orders grounds of the same strictness.
pub(in super::super) enum JudgementGround<'a> {
    Rule(OrderedRule<'a>),
    /// A rule delegates to an authority, and this is the authority's vote. `None` means it was not asked, which denies.
    Delegated {
        heard: OrderedRule<'a>,
        vote: Option<&'a DelegatedVote>,
    },
    /// A hook's vote, or a fact about the tool or the call.
    Said(DecisionReason),
    /// The part cannot be analysed, and this rule might match it.
    Opaque {
        why: String,
        guard: &'a Rule,
    },
    Mode,
}

/// The result of an evaluation.
pub(in super::super) struct JudgementReport<'a> {
    /// The strictest judgement; among equals the one of the highest standing.
    pub(in super::super) decided: Judgement<'a>,
    /// The judgements of the parts, in their order.
    pub(in super::super) of_parts: Vec<Judgement<'a>>,
    /// The rules that matched, in the order of the list.
    pub(in super::super) matched: Vec<&'a Rule>,
    /// Why the tool's own request for approval is waived.
    pub(in super::super) waived: Option<String>,
}

impl<'a> Judgement<'a> {
    pub(super) fn outranks(&self, other: &Self) -> bool {
        let standing = |one: &Self| match &one.ground {
            JudgementGround::Rule(heard) => (0, Some(heard.standing())),
            JudgementGround::Said(_) => (1, None),
            // Ranked below other grounds for a deny: then the authority need not be asked.
            JudgementGround::Delegated { heard, .. } => (2, Some(heard.standing())),
            JudgementGround::Opaque { .. } => (3, None),
            JudgementGround::Mode => (4, None),
        };
        self.behavior > other.behavior
            || (self.behavior == other.behavior && standing(self) < standing(other))
    }

    pub(super) fn again(&self) -> Self {
        let ground = match &self.ground {
            JudgementGround::Rule(heard) => JudgementGround::Rule(*heard),
            JudgementGround::Delegated { heard, vote } => JudgementGround::Delegated {
                heard: *heard,
                vote: *vote,
            },
            JudgementGround::Said(reason) => JudgementGround::Said(reason.clone()),
            JudgementGround::Opaque { why, guard } => JudgementGround::Opaque {
                why: why.clone(),
                guard,
            },
            JudgementGround::Mode => JudgementGround::Mode,
        };
        Self {
            behavior: self.behavior,
            ground,
            part: self.part,
        }
    }

    /// The rule of the ground, or the rule that might match an unreadable part.
    pub(in super::super) fn rule(&self) -> Option<&'a Rule> {
        match &self.ground {
            JudgementGround::Rule(heard) | JudgementGround::Delegated { heard, .. } => {
                Some(heard.rule)
            }
            JudgementGround::Opaque { guard, .. } => Some(*guard),
            JudgementGround::Said(_) | JudgementGround::Mode => None,
        }
    }

    /// The reason for a decision in this mode and for the part's class. `classified` is the finding that gave the part
    /// its class, if the arguments did.
    pub(in super::super) fn reason(
        &self,
        policy: &Policy,
        class: EffectClass,
        classified: Option<&ClassFinding>,
    ) -> DecisionReason {
        let told = |rule: &Rule| format!("the rule `{rule}` ({})", rule.place);
        match &self.ground {
            JudgementGround::Rule(OrderedRule { rule, .. }) => DecisionReason {
                kind: ReasonType::Rule,
                text: rule.reason.clone().unwrap_or_else(|| told(rule)),
                rule: Some(RuleRef::from(*rule)),
            },
            JudgementGround::Delegated { heard, vote } => delegated_reason(heard.rule, *vote),
            JudgementGround::Said(reason) => reason.clone(),
            JudgementGround::Opaque { why, guard } => DecisionReason {
                kind: ReasonType::Opaque,
                text: format!("{why}, and {} might match it", told(guard)),
                rule: Some(RuleRef::from(*guard)),
            },
            JudgementGround::Mode => {
                let mode = policy.mode;
                let text = match self.behavior {
                    Behavior::Allow => format!("mode `{mode}` runs calls of class `{class}`"),
                    Behavior::Ask => format!("mode `{mode}` asks about calls of class `{class}`"),
                    Behavior::Deny => format!("mode `{mode}` denies calls of class `{class}`"),
                };
                let kind = match classified {
                    Some(_) => ReasonType::Classifier,
                    None => ReasonType::Mode,
                };
                DecisionReason {
                    kind,
                    text,
                    rule: None,
                }
            }
        }
    }
}

/// The reason for a delegated decision. If the authority gives none, the reason of the rule is used.
fn delegated_reason(rule: &Rule, vote: Option<&DelegatedVote>) -> DecisionReason {
    let text = match (vote, &rule.delegate) {
        (Some(vote), _) => match &rule.reason {
            Some(reason) if vote.reason.is_none() && vote.fault.is_none() => {
                format!("{}: {reason}", vote.explain())
            }
            Some(_) | None => vote.explain(),
        },
        (None, Some(name)) => {
            format!("the authority `{name}` was not asked, so the call is denied")
        }
        (None, None) => "no authority was asked, so the call is denied".to_owned(),
    };
    DecisionReason {
        kind: ReasonType::Delegate,
        text,
        rule: Some(RuleRef::from(rule)),
    }
}
