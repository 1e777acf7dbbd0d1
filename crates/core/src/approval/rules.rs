//! The port that stores remembered rules, and its adapter in memory.

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toolpost_model::{InvocationId, PrincipalName, Rule, RuleError, RuleOrigin, ToolId};

/// A rule that an operator's answer wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedRule {
    /// The id of the question.
    pub id: String,
    /// The text of the rule.
    pub rule: String,
    /// The principal whose calls the rule is limited to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The operator that approved.
    pub by: PrincipalName,
    /// The time of the approval.
    pub at: Timestamp,
    /// The time from which the rule is ignored.
    pub expires: Timestamp,
    /// The question that the rule came from.
    pub ask_id: InvocationId,
    /// The tool of the question. Missing in rules of older hosts, which stored bare names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// The digest of the tool's definition. The rule does not apply once the tool's source defines it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
}

impl RememberedRule {
    /// Whether this rule takes the place of an older one: the same id, or the same rule about the same definition. Two
    /// questions with one offer then save each rule once, and forgetting it takes the permission back.
    pub fn replaces(&self, older: &Self) -> bool {
        let is_same_definition = self.definition.is_some() && self.definition == older.definition;
        self.id == older.id
            || (is_same_definition && self.rule == older.rule && self.principal == older.principal)
    }

    /// The origin of the rule for display.
    pub fn place(&self) -> String {
        place(self.ask_id, &self.by)
    }

    /// The rule in the form of the policy.
    pub(crate) fn to_rule(&self) -> Result<Rule, RuleError> {
        let mut rule = Rule::parse(&self.rule, RuleOrigin::Local, self.place())?;
        rule.id = Some(self.id.clone());
        rule.principal.clone_from(&self.principal);
        rule.expires = Some(self.expires);
        rule.definition.clone_from(&self.definition);
        Ok(rule)
    }
}

/// The origin of a remembered rule for display.
pub(crate) fn place(ask_id: InvocationId, by: &PrincipalName) -> String {
    format!("approval {} by {by}", super::short(ask_id))
}

/// A failure of the rule store.
#[derive(Debug, thiserror::Error)]
#[error("remembered rules cannot be used: {reason}")]
pub struct RuleStoreError {
    /// The problem and its remedy.
    pub reason: String,
    /// The error of the storage.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Stores remembered rules. The methods may block. A write that returned `Ok` must survive a power failure, because the
/// approval is recorded after it.
pub trait RuleStore: Send + Sync + 'static {
    /// All rules, including expired ones. After an error no rule counts.
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError>;

    /// Stores rules, each in place of the rule with the same id: all of them, or after an error none.
    fn remember(&self, rules: &[RememberedRule]) -> Result<(), RuleStoreError>;

    /// Removes a rule. Returns `false` if there is none with this id.
    fn forget(&self, id: &str) -> Result<bool, RuleStoreError>;
}

/// Keeps rules in memory.
#[derive(Default)]
pub struct MemoryRules {
    rules: Mutex<Vec<RememberedRule>>,
}

impl RuleStore for MemoryRules {
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError> {
        Ok(self.rules.lock().clone())
    }

    fn remember(&self, rules: &[RememberedRule]) -> Result<(), RuleStoreError> {
        let mut kept = self.rules.lock();
        kept.retain(|old| !rules.iter().any(|new| new.replaces(old)));
        kept.extend_from_slice(rules);
        Ok(())
    }

    fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        let mut rules = self.rules.lock();
        let before = rules.len();
        rules.retain(|kept| kept.id != id);
        Ok(rules.len() < before)
    }
}
