//! What became of one part of a call, or of the call as such, and on which ground.

use toolpost_model::{
    Behavior, ClassFinding, DecisionReason, DelegatedVote, EffectClass, ReasonType, Rule, RuleRef,
};

use super::{super::policy::Policy, OrderedRule};

/// What became of one part, or of the call as such.
pub(in super::super) struct Judgement<'a> {
    pub(in super::super) behavior: Behavior,
    pub(in super::super) ground: JudgementGround<'a>,
    /// The part's place among the parts; `None`: it is about the call as such.
    pub(in super::super) part: Option<usize>,
}

/// What a judgement stands on. The order is that in which grounds of one strictness are named.
pub(in super::super) enum JudgementGround<'a> {
    Rule(OrderedRule<'a>),
    /// A rule delegates to an authority, and this is its vote. `None`: the authority was not asked, which denies.
    Delegated {
        heard: OrderedRule<'a>,
        vote: Option<&'a DelegatedVote>,
    },
    /// A hook's opinion or a fact about the tool or the call.
    Said(DecisionReason),
    /// Nobody can tell what it is, and this rule might speak of it.
    Opaque {
        why: String,
        guard: &'a Rule,
    },
    Mode,
}

/// Everything that was heard.
pub(in super::super) struct JudgementReport<'a> {
    /// The strictest of all, of equals the first by standing.
    pub(in super::super) decided: Judgement<'a>,
    /// The judgements of the parts, in their order.
    pub(in super::super) of_parts: Vec<Judgement<'a>>,
    /// Every rule that spoke, in the order of the list.
    pub(in super::super) matched: Vec<&'a Rule>,
    /// What the tool's own request for approval gave way to.
    pub(in super::super) waived: Option<String>,
}

impl<'a> Judgement<'a> {
    pub(super) fn outranks(&self, other: &Self) -> bool {
        let standing = |one: &Self| match &one.ground {
            JudgementGround::Rule(heard) => (0, Some(heard.standing())),
            JudgementGround::Said(_) => (1, None),
            // Behind a deny of any other ground: then the authority need not be asked.
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

    /// The rule that it stands on, or that might speak of the part.
    pub(in super::super) fn rule(&self) -> Option<&'a Rule> {
        match &self.ground {
            JudgementGround::Rule(heard) | JudgementGround::Delegated { heard, .. } => {
                Some(heard.rule)
            }
            JudgementGround::Opaque { guard, .. } => Some(*guard),
            JudgementGround::Said(_) | JudgementGround::Mode => None,
        }
    }

    /// The ground in a sentence, in a mode and for the part's class. `classified` is how the class was found, where the
    /// arguments told it.
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
                text: format!("{why}, and {} might speak of it", told(guard)),
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

/// The vote of an authority in a sentence. Where the authority gives no reason, the rule's own one is told.
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
