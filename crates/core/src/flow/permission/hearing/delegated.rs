//! Rules that delegate: which authorities a call has to be put to, and the votes they gave.

use toolpost_model::{Behavior, DelegatedVote, Rule, RuleRef};

use super::{Ground, Heard, Hearing, Votes};
use crate::flow::permission::{Delegation, parts::Part};

impl<'a> Hearing<'a> {
    /// The vote of the authority that a rule delegates to.
    fn vote_of(&self, rule: &Rule) -> Option<&'a DelegatedVote> {
        let name = rule.delegate.as_ref()?;
        self.facts.delegated.iter().find(|vote| vote.authority == *name)
    }

    /// What a rule says of this call: its effect, or the vote of its authority.
    pub(in super::super) fn effect_of(&self, rule: &Rule) -> Behavior {
        match &rule.delegate {
            Some(_) => self.vote_of(rule).map_or(Behavior::Deny, |vote| vote.behavior),
            None => rule.effect,
        }
    }

    /// The strictest vote of the authorities that rules delegate a part to, of equals the one of the highest standing.
    /// An allow by a pattern does not cover an opaque part, as for a rule that allows.
    pub(super) fn delegated(&self, part: &Part, votes: &Votes<'a>) -> Option<(Behavior, Ground<'a>)> {
        let by_pattern = votes.exact.iter().map(|heard| (heard, part.opaque.is_none()));
        let heard = votes.bare.iter().map(|heard| (heard, true)).chain(by_pattern);
        let mut strictest: Option<(Behavior, Heard<'a>)> = None;
        for (heard, may_allow) in heard.filter(|(heard, _)| heard.rule.delegate.is_some()) {
            let behavior = self.effect_of(heard.rule);
            if behavior == Behavior::Allow && !may_allow {
                continue;
            }
            let outranks = strictest.as_ref().is_none_or(|(other, by)| {
                behavior > *other || (behavior == *other && heard.standing() < by.standing())
            });
            if outranks {
                strictest = Some((behavior, *heard));
            }
        }
        let (behavior, heard) = strictest?;
        Some((behavior, Ground::Delegated { heard, vote: self.vote_of(heard.rule) }))
    }

    /// The authorities that the rules which speak of this call delegate to, each once.
    pub(in super::super) fn delegations(&self) -> Vec<Delegation> {
        let mut found: Vec<Delegation> = Vec::new();
        for part in &self.parts.all {
            for heard in self.votes(part).all() {
                let Some(authority) = &heard.rule.delegate else { continue };
                let rule = RuleRef::from(heard.rule);
                match found.iter_mut().find(|known| known.authority == *authority) {
                    Some(known) if known.rules.contains(&rule) => {}
                    Some(known) => known.rules.push(rule),
                    None => found.push(Delegation { authority: authority.clone(), rules: vec![rule] }),
                }
            }
        }
        found
    }
}
