//! Command lines that contain other commands, such as `git rebase --exec 'make x'`. A rule that allows the line allows
//! its pieces. A line that hides the commands it starts asks, if a rule might match them.

use toolpost_command::{SimpleCommand, SpelledIn};
use toolpost_model::{ArgumentKind, Behavior, Rule};

use super::{OrderedRule, PartRules, RuleEvaluation, RuleLayer};
use crate::permission::{
    index::RulePosition,
    matcher::Matcher,
    parts::{PartSubject, PermissionPart},
};

impl<'a> RuleEvaluation<'a> {
    /// Adds the allows for a command line to those for a piece of it.
    pub(super) fn add_allows_of_the_line(
        &self,
        layer: &RuleLayer<'a>,
        part: &PermissionPart,
        found: &mut Vec<RulePosition>,
    ) {
        let mut piece = part;
        while let Some((line, command, spelled)) = self.line_of(piece) {
            let mut places = layer.tool.matching.for_command(command);
            places.retain(|&place| {
                let spells = |matcher: &Matcher| match spelled.must_be_spelled {
                    true => matcher.spells_words(command, spelled.through),
                    false => matcher.takes_command(Behavior::Allow, command),
                };
                layer.takes(place, |matcher, effect| {
                    effect == Behavior::Allow && spells(matcher)
                })
            });
            places.retain(|place| !found.contains(place));
            found.extend(places);
            piece = line;
        }
    }

    /// The command line that contains a part.
    fn line_of(
        &self,
        part: &PermissionPart,
    ) -> Option<(&PermissionPart, &SimpleCommand, SpelledIn)> {
        let spelled = part.spelled_in?;
        let line = self.parts.all.get(spelled.command)?;
        match &line.subject {
            PartSubject::Command(command) => Some((line, command, spelled)),
            PartSubject::Path { .. }
            | PartSubject::Request(_)
            | PartSubject::Unread(..)
            | PartSubject::Whole => None,
        }
    }

    /// Whether an allow names the hidden text of a part, either in the part or in a line that contains it. The allow
    /// then covers it.
    fn is_spelled(&self, part: &PermissionPart, votes: &PartRules<'a>) -> bool {
        let PartSubject::Command(command) = &part.subject else {
            return false;
        };
        let spelled_by = |heard: &OrderedRule<'a>| {
            let spells = |matcher: &Matcher| {
                let mut spelled = matcher.spells_command(command);
                let mut piece = part;
                while let Some((line, command, by)) = self.line_of(piece).filter(|_| !spelled) {
                    spelled = matcher.spells_words(command, by.through);
                    piece = line;
                }
                spelled
            };
            let layer = self.layers.get(heard.order.0);
            layer.is_some_and(|layer| {
                layer.takes(heard.order.1, |matcher, effect| {
                    effect == Behavior::Allow && spells(matcher)
                })
            })
        };
        votes.exact.iter().any(spelled_by)
    }

    /// Why a part may start a command that a rule denies or asks about, and that rule.
    pub(super) fn hidden(
        &self,
        part: &PermissionPart,
        votes: &PartRules<'a>,
    ) -> Option<(String, &'a Rule)> {
        let why = part.hides.as_ref()?;
        let guard = self.guard(ArgumentKind::Command)?;
        (!self.is_spelled(part, votes)).then(|| (why.clone(), guard))
    }
}
