//! Layer 5: who may do what, by which rule.

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

/// What a caller is to the host.
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
    /// The word in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
        }
    }
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Principal {
    /// By name.
    pub name: PrincipalName,
    /// And role.
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

/// What is decided, or what a rule says.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Behavior {
    /// Go on.
    Allow,
    /// A person must say.
    Ask,
    /// No.
    Deny,
}

impl Behavior {
    /// The word in rules and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What one rule, mode or guard says; the decision is made from all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// What it says.
    pub behavior: Behavior,
    /// On what ground.
    pub reason: DecisionReason,
}

/// What sort of ground a decision stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonType {
    /// A rule matched.
    Rule,
    /// No rule matched; the mode decided.
    Mode,
    /// The tool's own interface asks for a person.
    SafetyCheck,
    /// This very call touches something a person should look at, whatever allows calls of its class.
    Caution,
    /// A hook has an opinion.
    Hook,
    /// A rule delegated the decision, and the vote of the authority decided.
    Delegate,
    /// No rule matched; the mode decided, on a class that the analysis of the arguments found.
    Classifier,
    /// Nobody can tell what it would run, and a rule that denies or asks might speak of it.
    Opaque,
    /// A person said it.
    Approval,
}

/// The ground of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionReason {
    /// What sort.
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

/// Allowed, denied or asked, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// What was decided.
    pub behavior: Behavior,
    /// The class it was decided on.
    pub class: EffectClass,
    /// The mode in force.
    pub mode: PermissionMode,
    /// The deciding ground.
    pub reason: DecisionReason,
    /// The other rules that matched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub also_matched: Vec<RuleRef>,
    /// The part of the call that decided: one command of several, one path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// What in the call nobody can tell beforehand, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub opaque: Vec<String>,
    /// What is wrong with the rules themselves, such as a file that cannot be read.
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
    /// What the operator would change to get another answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operator_hint: Option<String>,
}
