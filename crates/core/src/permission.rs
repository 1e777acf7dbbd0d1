//! Layer 5: allowed, denied or asked, and by which rule. Decisions are pure functions of facts.
//!
//! Here is the port; the host's own engine lies in the folder, and `delegate` is the port to authorities outside of the
//! host. `parts` takes a call apart, `classifier` tells how a part got its class, `hearing` hears the
//! rules on each part, `decision` writes down what follows, `account` tells the whole story to whoever asks, and
//! `snapshot` finds the rules that could speak.

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

/// What a decision is made on.
pub struct PermissionFacts<'a> {
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments the decision is about. `None` where the tool is denied whatever it is called with.
    pub input: Option<&'a PermissionInput>,
    /// What the call will do, as far as the host believes it.
    pub effects: &'a Effects,
    /// Who calls.
    pub principal: &'a Principal,
    /// What hooks think of it. An opinion counts like a rule: it never beats a stricter one.
    pub opinions: &'a [Vote],
    /// The votes of the authorities that rules delegate to, as far as they were asked. A rule whose authority was not
    /// asked denies.
    pub delegated: &'a [DelegatedVote],
    /// When: rules may have expired.
    pub at: Timestamp,
}

/// Decides. A port, so that an organisation can bring its own; [`Policy`] is the built-in one.
pub trait PolicyEngine: Send + Sync + 'static {
    /// Facts in, decision out. No I/O, no clock.
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision;

    /// The authorities that must be asked before the call is decided. Only looked up where
    /// [`decide`](Self::decide) came to a decision of the kind [`Delegate`](toolpost_model::ReasonType::Delegate).
    fn delegations(&self, facts: &PermissionFacts<'_>) -> Vec<Delegation> {
        let _ = facts;
        Vec::new()
    }

    /// Whether every call of the tool would be denied, so that a surface need not show it. `class` is `None`
    /// when only the input tells it.
    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool;

    /// Whether rules keep any path from this caller, or may.
    fn has_path_rules(&self, principal: &Principal) -> bool {
        let _ = principal;
        false
    }

    /// Whether rules let this caller use a path that its call met on the way: absolute, links resolved.
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

    /// Whether this caller may change a file that steers agents without a question: absolute, links resolved.
    fn may_steer(&self, path: &Path, principal: &Principal, at: Timestamp) -> bool {
        let _ = (path, principal, at);
        false
    }

    /// Until when [`may_use`](Self::may_use) answers the same for the same path and caller, seen from `at`. `None`: as
    /// long as this engine is in force. An engine that does not tell is asked anew each time.
    fn path_rules_hold_until(&self, at: Timestamp) -> Option<Timestamp> {
        Some(at)
    }

    /// Where paths that rules keep from this caller can lie, each meant with all beneath it: the fixed beginnings of the
    /// rules' patterns. A tool that must know all kept paths beforehand looks for them nowhere else.
    fn kept_places(&self, principal: &Principal) -> Vec<PathBuf> {
        let _ = principal;
        vec![PathBuf::from("/")]
    }

    /// What the call would run, command by command, for a person who is asked about it.
    fn commands(&self, facts: &PermissionFacts<'_>) -> Vec<String> {
        let _ = facts;
        Vec::new()
    }

    /// What was decided about each part of the call, for `explain`. Empty where the engine knows no parts.
    fn parts(&self, facts: &PermissionFacts<'_>) -> Vec<PartDecision> {
        let _ = facts;
        Vec::new()
    }

    /// The whole story of a decision, for `explain`: every rule that could have spoken of the call, and what would have
    /// led to another answer. Never asked on a call's own way. Empty where the engine keeps no account.
    fn account(&self, facts: &PermissionFacts<'_>) -> Account {
        let _ = facts;
        Account::default()
    }

    /// Rules, from narrow to wide, each of which would let this call and the like of it pass without a question.
    fn suggestions(&self, facts: &PermissionFacts<'_>) -> Vec<Rule> {
        let _ = facts;
        Vec::new()
    }

    /// The same engine with further rules. `None`: it takes none, so no answer can be remembered.
    fn with_rules(&self, rules: &[Rule]) -> Option<Arc<dyn PolicyEngine>> {
        let _ = rules;
        None
    }

    /// The rules that allow by a bare name which only outside tools have, and so do not allow those.
    fn bare_allows(&self, tools: &[&Declaration]) -> Vec<BareAllow> {
        let _ = tools;
        Vec::new()
    }

    /// The rules that can speak of none of these tools: most likely a typing mistake.
    fn unmatched(&self, tools: &[&Declaration]) -> Vec<RuleRef> {
        let _ = tools;
        Vec::new()
    }
}

/// A rule that allows by a bare name which only outside tools have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareAllow {
    /// The rule.
    pub rule: RuleRef,
    /// The tools that have such a name.
    pub meant: Vec<ToolId>,
    /// The lines that would allow them.
    pub instead: Vec<String>,
}

/// What was decided about one part of a call: one command of several, one path, one request, or what remains of the
/// call beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartDecision {
    /// The part. `None`: the call as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What sort of effect it is.
    pub class: EffectClass,
    /// What was decided about it.
    pub behavior: Behavior,
    /// On what ground.
    pub reason: DecisionReason,
}
