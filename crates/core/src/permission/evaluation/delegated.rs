//! Rules that delegate: the authorities that must be asked about a call, and their votes.

use toolpost_model::{Behavior, DelegatedVote, Rule, RuleRef, Selector};

use super::{JudgementGround, OrderedRule, PartRules, RuleEvaluation};
use crate::permission::{
    Delegation,
    parts::{PartSubject, PermissionPart},
};

impl<'a> RuleEvaluation<'a> {
    /// The vote of the authority that a rule delegates to.
    fn vote_of(&self, rule: &Rule) -> Option<&'a DelegatedVote> {
        let name = rule.delegate.as_ref()?;
        self.facts
            .delegated
            .iter()
            .find(|vote| vote.authority == *name)
    }

    /// The effect of a rule on this call: its own, or the vote of its authority.
    pub(in super::super) fn effect_of(&self, rule: &Rule) -> Behavior {
        match &rule.delegate {
            Some(_) => self
                .vote_of(rule)
                .map_or(Behavior::Deny, |vote| vote.behavior),
            None => rule.effect,
        }
    }

    /// The strictest vote of the authorities that rules delegate a part to; among equals that of the highest standing.
    /// An allow counts only where an allow rule would match too.
    pub(super) fn delegated(
        &self,
        part: &PermissionPart,
        votes: &PartRules<'a>,
    ) -> Option<(Behavior, JudgementGround<'a>)> {
        let mut strictest: Option<(Behavior, OrderedRule<'a>)> = None;
        for heard in votes.all().filter(|heard| heard.rule.delegate.is_some()) {
            let behavior = self.effect_of(heard.rule);
            if behavior == Behavior::Allow && !self.may_allow(&heard, part) {
                continue;
            }
            let outranks = strictest.as_ref().is_none_or(|(other, by)| {
                behavior > *other || (behavior == *other && heard.standing() < by.standing())
            });
            if outranks {
                strictest = Some((behavior, heard));
            }
        }
        let (behavior, heard) = strictest?;
        Some((
            behavior,
            JudgementGround::Delegated {
                heard,
                vote: self.vote_of(heard.rule),
            },
        ))
    }

    /// Whether a rule would match a part if it were an allow. A delegating rule matches as generously as a deny, so
    /// that an authority sees too many calls rather than too few. Its allow must not reach further than an allow rule:
    /// not to an outside tool that chose the name of a native one, and not to the target of a redirect.
    fn may_allow(&self, heard: &OrderedRule<'a>, part: &PermissionPart) -> bool {
        let of_tool = match &heard.rule.selector {
            Selector::Tool { tools, .. } if !tools.names_exactly(self.facts.declaration) => {
                return false;
            }
            Selector::Class(class) => return *class == part.class,
            Selector::Tool { .. } => true,
            Selector::Reads(_) | Selector::Writes(_) | Selector::Reaches(_) => false,
        };
        let Some(layer) = self.layers.get(heard.order.0) else {
            return false;
        };
        let Some(matcher) = &layer.snapshot.get(heard.order.1).matcher else {
            return true;
        };
        part.opaque.is_none()
            && match &part.subject {
                PartSubject::Command(command) => matcher.takes_command(Behavior::Allow, command),
                PartSubject::Path {
                    path,
                    access,
                    redirect,
                } => !(of_tool && *redirect) && matcher.takes_path(Behavior::Allow, path, *access),
                PartSubject::Request(request) => matcher.takes_request(Behavior::Allow, request),
                PartSubject::Unread(..) | PartSubject::Whole => false,
            }
    }

    /// The authorities that the matching rules delegate to, each once.
    pub(in super::super) fn delegations(&self) -> Vec<Delegation> {
        let mut found: Vec<Delegation> = Vec::new();
        for part in &self.parts.all {
            for heard in self.votes(part).all() {
                let Some(authority) = &heard.rule.delegate else {
                    continue;
                };
                let rule = RuleRef::from(heard.rule);
                match found.iter_mut().find(|known| known.authority == *authority) {
                    Some(known) if known.rules.contains(&rule) => {}
                    Some(known) => known.rules.push(rule),
                    None => found.push(Delegation {
                        authority: authority.clone(),
                        rules: vec![rule],
                    }),
                }
            }
        }
        found
    }
}
