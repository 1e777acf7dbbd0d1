//! What people said for later calls too: the port that keeps it, and the adapter in memory.

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toolpost_model::{InvocationId, PrincipalName, Rule, RuleError, RuleOrigin, ToolId};

/// A rule that somebody who approved a call wanted to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedRule {
    /// Its name: the question's id.
    pub id: String,
    /// The rule's line.
    pub rule: String,
    /// Of whose calls, where not everybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Who said so.
    pub by: PrincipalName,
    /// When.
    pub at: Timestamp,
    /// When it stops to speak.
    pub expires: Timestamp,
    /// The question it came from.
    pub ask_id: InvocationId,
    /// The tool that question was about. Missing in rules of hosts that named tools by their bare names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
}

impl RememberedRule {
    /// Where it comes from, in a few words.
    pub fn place(&self) -> String {
        place(self.ask_id, &self.by)
    }

    /// The rule as the policy takes it.
    pub(crate) fn to_rule(&self) -> Result<Rule, RuleError> {
        let mut rule = Rule::parse(&self.rule, RuleOrigin::Local, self.place())?;
        rule.id = Some(self.id.clone());
        rule.principal.clone_from(&self.principal);
        rule.expires = Some(self.expires);
        Ok(rule)
    }
}

/// How a rule that an approval left behind says where it comes from.
pub(crate) fn place(ask_id: InvocationId, by: &PrincipalName) -> String {
    format!("approval {} by {by}", super::short(ask_id))
}

/// Why remembered rules cannot be had or kept.
#[derive(Debug, thiserror::Error)]
#[error("remembered rules cannot be used: {reason}")]
pub struct RuleStoreError {
    /// What is wrong, and what to do about it.
    pub reason: String,
    /// What the storage said.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Keeps remembered rules. Called from threads that may wait, so an adapter simply does its work; what it says is
/// done survives a loss of power.
pub trait RuleStore: Send + Sync + 'static {
    /// All of them, expired ones too. An error means that none may count.
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError>;

    /// Keeps one, in place of one with the same id.
    fn remember(&self, rule: &RememberedRule) -> Result<(), RuleStoreError>;

    /// Drops one; `false` where there was none.
    fn forget(&self, id: &str) -> Result<bool, RuleStoreError>;
}

/// Keeps rules as long as the host.
#[derive(Default)]
pub struct MemoryRules {
    rules: Mutex<Vec<RememberedRule>>,
}

impl RuleStore for MemoryRules {
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError> {
        Ok(self.rules.lock().clone())
    }

    fn remember(&self, rule: &RememberedRule) -> Result<(), RuleStoreError> {
        let mut rules = self.rules.lock();
        rules.retain(|kept| kept.id != rule.id);
        rules.push(rule.clone());
        Ok(())
    }

    fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        let mut rules = self.rules.lock();
        let before = rules.len();
        rules.retain(|kept| kept.id != id);
        Ok(rules.len() < before)
    }
}
