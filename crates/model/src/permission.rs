//! Layer 5: permission decisions and the rules behind them.

mod authority;
mod mode;
mod rule;
mod selector;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EffectClass, PrincipalName};

pub use authority::{AuthorityKind, AuthorityName, AuthorityNameError, DelegatedVote};
pub use mode::{ModeError, PermissionMode};
pub use rule::{RememberOffer, Rule, RuleError, RuleOrigin, RuleRef, RuleTests};
pub use selector::{ArgumentComparison, ArgumentCondition, Selector, ToolPattern, matches_any};

/// The role of a caller on this host.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Role")]
pub enum PrincipalRole {
    /// Calls tools. Sees and ends its own calls only.
    #[default]
    Agent,
    /// Runs the host.
    Operator,
}

impl PrincipalRole {
    /// The name in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
        }
    }
}

/// A caller: name and role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// The name.
    pub name: PrincipalName,
    /// The role.
    pub role: PrincipalRole,
}

impl Principal {
    /// An agent of that name.
    pub fn agent(name: &str) -> Self {
        Self {
            name: PrincipalName::new(name),
            role: PrincipalRole::Agent,
        }
    }

    /// An operator of that name.
    pub fn operator(name: &str) -> Self {
        Self {
            name: PrincipalName::new(name),
            role: PrincipalRole::Operator,
        }
    }
}

/// The behavior of a rule or a decision: allow, ask or deny.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Behavior {
    /// The call goes on.
    Allow,
    /// A person decides.
    Ask,
    /// The call is refused.
    Deny,
}

impl Behavior {
    /// The name in rules and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The vote of one rule, mode or guard; the decision combines all votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The voted behavior.
    pub behavior: Behavior,
    /// The reason of the vote.
    pub reason: DecisionReason,
}

/// The kind of the reason behind a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonType {
    /// A rule matched.
    Rule,
    /// No rule matched; the mode decided.
    Mode,
    /// The tool's own interface requires a person.
    SafetyCheck,
    /// This call touches something that a person should look at, even when its class is allowed.
    Caution,
    /// A hook voted.
    Hook,
    /// A rule delegated the decision, and the vote of the authority decided.
    Delegate,
    /// No rule matched; the mode decided, on a class that the analysis of the arguments found.
    Classifier,
    /// The commands of the call cannot be determined in advance, and a rule that denies or asks might apply to them.
    Opaque,
    /// A person answered an approval question.
    Approval,
}

/// The reason of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionReason {
    /// The kind of the reason.
    #[serde(rename = "type")]
    pub kind: ReasonType,
    /// One sentence, for the model too.
    pub text: String,
    /// The rule, where one decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<RuleRef>,
}

/// The class that the analysis of a call's arguments found, and the finding it follows from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassFinding {
    /// The class.
    pub class: EffectClass,
    /// The finding: one sentence about a command, a path or an address.
    pub found: String,
}

/// A permission decision and its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The decided behavior.
    pub behavior: Behavior,
    /// The class that the decision was made on.
    pub class: EffectClass,
    /// The mode in force.
    pub mode: PermissionMode,
    /// The reason that decided.
    pub reason: DecisionReason,
    /// The other rules that matched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub also_matched: Vec<RuleRef>,
    /// The part of the call that decided: one command of several, one path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// The parts of the call that cannot be determined in advance, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub opaque: Vec<String>,
    /// Problems of the rules themselves, such as an unreadable file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// The class of the part that decided, where it came from the analysis of the arguments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub classified: Option<ClassFinding>,
    /// The votes of the authorities that rules delegated the decision to.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub delegated: Vec<DelegatedVote>,
    /// The approval that the tool itself asks for, and the mode or rule that it gave way to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub approval_waived: Option<String>,
    /// Advice for an operator who wants another decision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operator_hint: Option<String>,
}
