//! Layer 5: who may do what, by which rule.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EffectClass, PrincipalName, ToolId};

/// What a caller is to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Calls tools. Sees and ends its own calls only.
    #[default]
    Agent,
    /// Runs the host.
    Operator,
}

impl Role {
    /// The word in configuration and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
        }
    }
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Principal {
    /// By name.
    pub name: PrincipalName,
    /// And role.
    pub role: Role,
}

impl Principal {
    /// An agent of that name.
    pub fn agent(name: &str) -> Self {
        Self { name: PrincipalName::new(name), role: Role::Agent }
    }

    /// An operator of that name.
    pub fn operator(name: &str) -> Self {
        Self { name: PrincipalName::new(name), role: Role::Operator }
    }
}

/// What is decided, or what a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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

/// What happens where no rule speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reads run; everything else asks.
    #[default]
    Default,
    /// Reads run; everything else is denied.
    Plan,
    /// Reads and workspace writes run; everything else asks.
    Edits,
    /// Everything runs that no rule denies or asks about.
    Bypass,
}

impl Mode {
    /// Every mode, from the strictest to the loosest.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Default, Self::Edits, Self::Bypass];

    /// The word in configuration and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::Edits => "edits",
            Self::Bypass => "bypass",
        }
    }

    /// What the mode says of a class.
    pub fn behavior(self, class: EffectClass) -> Behavior {
        match (self, class) {
            (_, EffectClass::Read) | (Self::Bypass, _) | (Self::Edits, EffectClass::Write) => Behavior::Allow,
            (Self::Plan, _) => Behavior::Deny,
            (Self::Default | Self::Edits, _) => Behavior::Ask,
        }
    }

    /// The stricter of two, for configuration that may only restrict.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let place = |mode: Self| Self::ALL.iter().position(|&each| each == mode);
        if place(other) < place(self) { other } else { self }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| RuleError::Mode(text.to_owned()))
    }
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleOrigin {
    /// A flag of the command line.
    Cli,
    /// A configuration file given by name.
    Config,
    /// The file found in the workspace.
    Project,
    /// Compiled in.
    Builtin,
}

/// Which calls a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Tools by name, alias or id; a `*` at the end stands for any rest.
    Tool(String),
    /// Calls by class.
    Class(EffectClass),
}

impl Selector {
    /// Whether the rule speaks of a call of this tool with this class.
    pub fn matches(&self, id: &ToolId, aliases: &[String], class: EffectClass) -> bool {
        match self {
            Self::Class(wanted) => *wanted == class,
            Self::Tool(_) => self.matches_tool(id, aliases),
        }
    }

    /// Whether the rule names this tool, whatever it is called with.
    pub fn matches_tool(&self, id: &ToolId, aliases: &[String]) -> bool {
        let Self::Tool(pattern) = self else { return false };
        let fits = |name: &str| match pattern.strip_suffix('*') {
            Some(head) => name.starts_with(head),
            None => name == pattern,
        };
        fits(id.as_str()) || fits(id.name()) || aliases.iter().any(|alias| fits(alias))
    }
}

/// One line an operator wrote: `allow write_file`, `ask class:write`, `deny shell.*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What it says.
    pub effect: Behavior,
    /// Of which calls.
    pub selector: Selector,
    /// Where it comes from.
    pub origin: RuleOrigin,
    /// File and line, or the flag.
    pub place: String,
    /// Why, in the operator's words; the model is told.
    pub reason: Option<String>,
}

/// Why a rule or mode could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not `effect selector`.
    #[error("`{0}` is not a rule; write `allow|ask|deny` and then a tool or `class:NAME`")]
    Form(String),
    /// Not a class.
    #[error("`{0}` is not a class; the classes are read, write, network, execute, unknown")]
    Class(String),
    /// Not a mode.
    #[error("`{0}` is not a mode; the modes are plan, default, edits, bypass")]
    Mode(String),
    /// Something that can match no tool.
    #[error("`{0}` is not a tool name; names hold letters, digits and `_-./:`, with `*` only at the end")]
    Tool(String),
}

impl FromStr for Selector {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(name) = text.strip_prefix("class:") {
            let found = EffectClass::ALL.into_iter().find(|class| class.as_str() == name);
            return found.map(Self::Class).ok_or_else(|| RuleError::Class(name.to_owned()));
        }
        let stem = text.strip_suffix('*').unwrap_or(text);
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        if text.is_empty() || !stem.chars().all(legal) {
            return Err(RuleError::Tool(text.to_owned()));
        }
        Ok(Self::Tool(text.to_owned()))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(pattern) => f.write_str(pattern),
            Self::Class(class) => write!(f, "class:{class}"),
        }
    }
}

impl Rule {
    /// Reads the one-line form.
    pub fn parse(line: &str, origin: RuleOrigin, place: impl Into<String>) -> Result<Self, RuleError> {
        let (word, rest) =
            line.trim().split_once(char::is_whitespace).ok_or_else(|| RuleError::Form(line.into()))?;
        let effect = [Behavior::Allow, Behavior::Ask, Behavior::Deny]
            .into_iter()
            .find(|effect| effect.as_str() == word)
            .ok_or_else(|| RuleError::Form(line.to_owned()))?;
        Ok(Self { effect, selector: rest.trim().parse()?, origin, place: place.into(), reason: None })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.effect.as_str(), self.selector)
    }
}

/// A rule as a record names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRef {
    /// The rule's line.
    pub rule: String,
    /// Where it comes from.
    pub origin: RuleOrigin,
    /// File and line, or the flag.
    pub place: String,
}

impl From<&Rule> for RuleRef {
    fn from(rule: &Rule) -> Self {
        Self { rule: rule.to_string(), origin: rule.origin, place: rule.place.clone() }
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

/// Allowed, denied or asked, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// What was decided.
    pub behavior: Behavior,
    /// The class it was decided on.
    pub class: EffectClass,
    /// The mode in force.
    pub mode: Mode,
    /// The deciding ground.
    pub reason: DecisionReason,
    /// The other rules that matched.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub also_matched: Vec<RuleRef>,
    /// What the operator would change to get another answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operator_hint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{Mode, Rule, RuleOrigin};
    use crate::{EffectClass, ToolId};

    fn check(line: &str, tool: &str, class: EffectClass, expected: bool) {
        let rule = Rule::parse(line, RuleOrigin::Cli, "--flag").unwrap();
        let id: ToolId = tool.parse().unwrap();
        assert_eq!(rule.selector.matches(&id, &["cat".to_owned()], class), expected, "{line} on {tool}");
    }

    #[test]
    fn rules_select_by_name_id_alias_prefix_and_class() {
        check("allow read_file", "files.read_file", EffectClass::Read, true);
        check("allow files.read_file", "files.read_file", EffectClass::Read, true);
        check("allow read_file", "files.read_files", EffectClass::Read, false);
        check("deny files.*", "files.write_file", EffectClass::Write, true);
        check("deny *", "a.b", EffectClass::Unknown, true);
        check("ask cat", "files.read_file", EffectClass::Read, true);
        check("ask class:write", "files.read_file", EffectClass::Write, true);
        check("ask class:write", "files.read_file", EffectClass::Read, false);
    }

    #[test]
    fn what_is_not_a_rule_is_refused() {
        for line in ["", "allow", "permit x", "allow class:writes", "allow a b", "deny a*b", "allow "] {
            assert!(Rule::parse(line, RuleOrigin::Cli, "").is_err(), "{line:?}");
        }
    }

    #[test]
    fn the_stricter_of_two_modes_wins() {
        assert_eq!(Mode::Bypass.stricter(Mode::Plan), Mode::Plan);
        assert_eq!(Mode::Default.stricter(Mode::Edits), Mode::Default);
    }
}
