//! Layer 5, permission: whether a call is allowed, denied or asked about, and by which rule. A decision is a pure
//! function of facts.
//!
//! This file has the port, and `policy` the host's own engine. `parts` splits a call, `classifier` explains the class
//! of a part, `snapshot` finds the rules that could match, `evaluation` matches them against each part, `decision`
//! writes the result, and `account` explains it. `delegate` is the port to outside authorities.

mod account;
mod classifier;
pub(crate) mod decide;
mod decision;
mod delegate;
mod evaluation;
mod index;
mod matcher;
mod parts;
mod path_pattern;
mod places;
mod policy;
mod rule_tests;
mod snapshot;
mod suggest;
#[cfg(test)]
mod tests;
mod url_pattern;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde::Serialize;
use toolpost_model::{
    Behavior, Decision, DecisionReason, Declaration, DelegatedVote, EffectClass, Effects,
    PermissionInput, Principal, ResourceAccess, Rule, RuleRef, ToolId, Vote,
};

pub use account::{
    Account, ConsideredRule, DecisionAlternative, DecisionAlternativeKind, RuleVoice,
};
pub use delegate::{
    AuthorityAnswer, AuthorityFault, AuthorityQuestion, DecisionAuthority, Delegation,
};
pub(crate) use delegate::{DecisionAuthorities, KnownAuthority};
pub use places::PathBaseFolders;
pub use policy::{Policy, PolicySpec, RuleProblem};

/// The facts of a decision.
pub struct PermissionFacts<'a> {
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments. `None` for the question whether all calls of the tool are denied.
    pub input: Option<&'a PermissionInput>,
    /// The effects of the call, as far as the host trusts their origin.
    pub effects: &'a Effects,
    /// The caller.
    pub principal: &'a Principal,
    /// The votes of hooks. A vote counts like a rule and never overrides a stricter one.
    pub opinions: &'a [Vote],
    /// The votes of authorities that were asked. A rule whose authority was not asked denies.
    pub delegated: &'a [DelegatedVote],
    /// The time of the decision, because rules can expire.
    pub at: Timestamp,
}

/// Decides about calls. This is a port, so that an organisation can bring its own engine; [`Policy`] is the built-in
/// one.
pub trait PolicyEngine: Send + Sync + 'static {
    /// Decides. Must not do I/O or read the clock.
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision;

    /// The authorities that must be asked before the decision. Only called if [`decide`](Self::decide) returned a
    /// decision of the kind [`Delegate`](toolpost_model::ReasonType::Delegate).
    fn delegations(&self, facts: &PermissionFacts<'_>) -> Vec<Delegation> {
        let _ = facts;
        Vec::new()
    }

    /// Whether all calls of the tool would be denied, so that surfaces can hide it. `class` is `None` if it depends on
    /// the input.
    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool;

    /// Whether rules may deny any path to this caller.
    fn has_path_rules(&self, principal: &Principal) -> bool {
        let _ = principal;
        false
    }

    /// Whether rules let this caller use a path that its call found while running. The path is absolute, with links
    /// resolved.
    fn may_use(
        &self,
        path: &Path,
        access: ResourceAccess,
        principal: &Principal,
        at: Timestamp,
    ) -> bool {
        let _ = (path, access, principal, at);
        true
    }

    /// Whether this caller may change a file that steers agents without a question. The path is absolute, with links
    /// resolved.
    fn may_steer(&self, path: &Path, principal: &Principal, at: Timestamp) -> bool {
        let _ = (path, principal, at);
        false
    }

    /// Until when [`may_use`](Self::may_use) returns the same for the same path and caller, seen from `at`. `None`
    /// means as long as this engine is in force. The default is `at`, so that each use is checked again.
    fn path_rules_hold_until(&self, at: Timestamp) -> Option<Timestamp> {
        Some(at)
    }

    /// The folders that can contain denied paths of this caller: the fixed beginnings of the rules' patterns. A tool
    /// that must know all denied paths in advance searches these folders only.
    fn kept_places(&self, principal: &Principal) -> Vec<PathBuf> {
        let _ = principal;
        vec![PathBuf::from("/")]
    }

    /// The commands that the call would run, for an operator who is asked about it.
    fn commands(&self, facts: &PermissionFacts<'_>) -> Vec<String> {
        let _ = facts;
        Vec::new()
    }

    /// The decision on each part of the call, for `explain`. Empty if the engine has no parts.
    fn parts(&self, facts: &PermissionFacts<'_>) -> Vec<PartDecision> {
        let _ = facts;
        Vec::new()
    }

    /// The account of a decision, for `explain`: the rules that could match, and the changes that would lead to another
    /// decision. Never called for a live call. Empty if the engine has no account.
    fn account(&self, facts: &PermissionFacts<'_>) -> Account {
        let _ = facts;
        Account::default()
    }

    /// Rules, from narrow to wide, each of which would allow this call and similar ones without a question.
    fn suggestions(&self, facts: &PermissionFacts<'_>) -> Vec<Rule> {
        let _ = facts;
        Vec::new()
    }

    /// Whether an operator's answer that allows this tool would change decisions about this caller's calls and override no
    /// rule: they ask now, no rule asks about the tool, and no rule denies or allows all of its calls. `false` if the
    /// engine takes no further rules.
    fn is_open_to_allow(
        &self,
        tool: &Declaration,
        class: Option<EffectClass>,
        principal: &Principal,
        at: Timestamp,
    ) -> bool {
        let _ = (tool, class, principal, at);
        false
    }

    /// The same engine with further rules. `None` if it takes none, so that no answer can be remembered.
    fn with_rules(&self, rules: &[Rule]) -> Option<Arc<dyn PolicyEngine>> {
        let _ = rules;
        None
    }

    /// The allow rules with a bare name that only outside tools have, and which therefore allow nothing.
    fn bare_allows(&self, tools: &[&Declaration]) -> Vec<BareAllow> {
        let _ = tools;
        Vec::new()
    }

    /// The rules that match none of these tools, most likely because of a typing mistake.
    fn unmatched(&self, tools: &[&Declaration]) -> Vec<RuleRef> {
        let _ = tools;
        Vec::new()
    }
}

/// An allow rule with a bare name that only outside tools have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareAllow {
    /// The rule.
    pub rule: RuleRef,
    /// The tools with this name.
    pub meant: Vec<ToolId>,
    /// The rules that would allow these tools.
    pub instead: Vec<String>,
}

/// The decision on one part of a call: a command, a path, a request, or the rest of the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartDecision {
    /// The part. `None` for the call as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The effect class of the part.
    pub class: EffectClass,
    /// The decision.
    pub behavior: Behavior,
    /// Its reason.
    pub reason: DecisionReason,
}
