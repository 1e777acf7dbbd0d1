//! A tool's own request for approval, and what it gives way to.
//!
//! A module can ask for approval of each of its calls. That is its author's word, not the operator's: an operator who says
//! `--mode bypass`, or who allows exactly this tool, has answered it. Anything wider, such as `allow class:execute`,
//! `allow *.*` or the vote of a hook, was not said with this tool in mind, and the request stands.

use toolpost_model::{Behavior, PermissionMode, Rule, Selector};

use super::{OrderedRule, RuleEvaluation};

/// The request in a sentence.
pub(super) const TEXT: &str = "the tool itself asks for approval of every call";

/// The rules that allow the tool by its id, part by part of one call.
#[derive(Default)]
pub(super) struct NamingAllows<'a> {
    first: Option<&'a Rule>,
    has_gap: bool,
}

impl<'a> NamingAllows<'a> {
    /// The rule for the next part, or that there is none.
    pub(super) fn add(&mut self, heard: Option<OrderedRule<'a>>) {
        match heard {
            Some(heard) => self.first = self.first.or(Some(heard.rule)),
            None => self.has_gap = true,
        }
    }

    /// The first of them, where each part has one.
    fn covering(&self) -> Option<&'a Rule> {
        self.first.filter(|_| !self.has_gap)
    }
}

impl<'a> RuleEvaluation<'a> {
    /// Whether a rule allows the tool of this call by its id, written out.
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

    /// What the tool's request for approval gives way to, in a sentence. `None`: it asks for none, or the request stands.
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
            (PermissionMode::Bypass, None) => "mode `bypass` asks about nothing".to_owned(),
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

    /// Whether only the tool's own request stands between a call and its run: what an allow by id would answer.
    pub(in super::super) fn can_waive_request(&self) -> bool {
        let interface = &self.facts.declaration.interface;
        interface.permission.approval_requested
            && !interface.permission.approval_required
            && !interface.safety.requires_user_interaction
    }
}
