//! A tool's own request for approval, and its waiver.
//!
//! A module can request approval for each of its calls. Its author wrote this request, not the operator. Mode `bypass`,
//! or an allow for exactly this tool, is the operator's answer to it. Anything wider, such as an allow for a class,
//! `allow *.*` or the vote of a hook, was not meant for this tool, so the request stands.

use toolpost_model::{Behavior, PermissionMode, Rule, Selector};

use super::{OrderedRule, RuleEvaluation};

/// The request in a sentence.
pub(super) const TEXT: &str = "the tool itself requests approval for every call";

/// The rules that allow the tool by its id, for each part of one call.
#[derive(Default)]
pub(super) struct NamingAllows<'a> {
    first: Option<&'a Rule>,
    has_gap: bool,
}

impl<'a> NamingAllows<'a> {
    /// Adds the rule for the next part, or the lack of one.
    pub(super) fn add(&mut self, heard: Option<OrderedRule<'a>>) {
        match heard {
            Some(heard) => self.first = self.first.or(Some(heard.rule)),
            None => self.has_gap = true,
        }
    }

    /// The first rule, if each part has one.
    fn covering(&self) -> Option<&'a Rule> {
        self.first.filter(|_| !self.has_gap)
    }
}

impl<'a> RuleEvaluation<'a> {
    /// Whether a rule allows the tool of this call by its full id.
    pub(super) fn allows_by_id(&self, rule: &Rule) -> bool {
        let names = match &rule.selector {
            Selector::Tool { tools, .. } => {
                !tools.as_str().contains('*') && tools.names_exactly(self.facts.declaration)
            }
            Selector::Class(_)
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => false,
        };
        rule.effect == Behavior::Allow && rule.delegate.is_none() && names
    }

    /// Why the tool's request for approval is waived. `None` if it requests none or the request stands.
    pub(super) fn waived_request(&self, allows: &NamingAllows<'a>) -> Option<String> {
        if !self
            .facts
            .declaration
            .interface
            .permission
            .approval_requested
        {
            return None;
        }
        let answer = match (self.policy.mode, allows.covering()) {
            (_, Some(rule)) => format!("the rule `{rule}` ({}) allows it by its id", rule.place),
            (PermissionMode::Bypass, None) => "mode `bypass` never asks".to_owned(),
            (
                PermissionMode::Plan
                | PermissionMode::NeverAsk
                | PermissionMode::Default
                | PermissionMode::Edits
                | PermissionMode::Sandboxed,
                None,
            ) => {
                return None;
            }
        };
        Some(format!("{TEXT}; {answer}"))
    }

    /// Whether the tool's own request is the only one for approval, so that an allow by id could waive it.
    pub(in super::super) fn can_waive_request(&self) -> bool {
        let interface = &self.facts.declaration.interface;
        interface.permission.approval_requested
            && !interface.permission.approval_required
            && !interface.safety.requires_user_interaction
    }
}
