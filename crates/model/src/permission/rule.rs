//! One rule: its behavior, its selector, its author and its place.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuthorityName, Behavior, Principal, Selector, selector::matches_any};
use crate::Declaration;

/// The origin of a rule. The order is that of precedence: explanations name the first origin first. It never lets an
/// allow override a deny.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleOrigin {
    /// The file of the machine's administrator.
    Policy,
    /// The command line: a flag, or a file it names.
    Cli,
    /// An operator's answer to an approval question, for one session.
    Session,
    /// An operator's answer to an approval question, remembered for this workspace.
    Local,
    /// The file found in the workspace.
    Project,
    /// The user's own file.
    User,
    /// Compiled in.
    Builtin,
}

impl RuleOrigin {
    /// Every origin, from the highest standing to the lowest.
    pub const ALL: [Self; 7] = [
        Self::Policy,
        Self::Cli,
        Self::Session,
        Self::Local,
        Self::Project,
        Self::User,
        Self::Builtin,
    ];

    /// The name in records and on the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Cli => "cli",
            Self::Session => "session",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Builtin => "builtin",
        }
    }
}

/// Whether the approval question of such a rule offers to remember the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Remember")]
pub enum RememberOffer {
    /// Yes.
    #[default]
    Offer,
    /// No: every such call is asked about.
    Never,
}

/// Examples that a rule's author wrote as tests. The host checks them when it loads the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleTests {
    /// Commands, paths or requests (`POST https://host/path`) as texts, or whole arguments as objects, that the rule
    /// must match.
    #[serde(rename = "match")]
    pub matching: Vec<Value>,
    /// The same, for calls that the rule must not match.
    pub not_match: Vec<Value>,
}

impl RuleTests {
    /// Whether there are no tests.
    pub fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.not_match.is_empty()
    }
}

/// One rule of an operator: `allow write_file(src/**)`, `ask class:write`, `deny shell(rm *)`, `delegate opa shell(git
/// push *)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule's behavior. For a rule that delegates it is `Deny`, so code that does not know the authority's vote
    /// denies.
    pub effect: Behavior,
    /// The authority of a rule that delegates.
    pub delegate: Option<AuthorityName>,
    /// The calls that the rule applies to.
    pub selector: Selector,
    /// The origin of the rule.
    pub origin: RuleOrigin,
    /// File and line, or the flag.
    pub place: String,
    /// Its name, for records and messages.
    pub id: Option<String>,
    /// The operator's reason; the model reads it.
    pub reason: Option<String>,
    /// The callers that the rule applies to: a name, with `*` for any characters. `None`: every caller.
    pub principal: Option<String>,
    /// When the rule expires.
    pub expires: Option<Timestamp>,
    /// Whether its questions offer to remember the answer.
    pub remember: RememberOffer,
    /// The author's tests.
    pub tests: RuleTests,
    /// The digest of the definition that a remembered rule allows. Such a rule does not apply to the tool once its
    /// source gives it another definition. `None`: any definition.
    pub definition: Option<String>,
}

/// Why a rule could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Not `effect selector`.
    #[error(
        "`{0}` is not a rule; write `allow`, `ask`, `deny` or `delegate AUTHORITY` and then a tool, `tool(matcher)`, `fs.read(path)`, \
         `fs.write(path)`, `net(url)` or `class:NAME`"
    )]
    Form(String),
    /// Not the name of an authority.
    #[error(
        "`{0}` is not a name for an authority; write `delegate AUTHORITY` and then which calls"
    )]
    Authority(String),
    /// Not a class.
    #[error("`{0}` is not a class; the classes are read, write, network, execute, unknown")]
    Class(String),
    /// A pattern that can match no tool.
    #[error(
        "`{0}` is not a tool name; names hold letters, digits and `_-./:`, with `*` for any of them"
    )]
    Tool(String),
    /// A bracket without its partner, or an empty pair.
    #[error("`{0}` has a matcher that is empty or not closed")]
    Matcher(String),
    /// Not `[/pointer op value]`.
    #[error(
        "`{0}` is not a condition; write `/pointer = value` with =, !=, <, <=, > or >=, or a pointer alone"
    )]
    Condition(String),
}

impl Rule {
    /// The first word of a rule that delegates.
    pub const DELEGATE: &str = "delegate";

    /// A plain rule.
    pub fn new(
        effect: Behavior,
        selector: Selector,
        origin: RuleOrigin,
        place: impl Into<String>,
    ) -> Self {
        Self {
            effect,
            delegate: None,
            selector,
            origin,
            place: place.into(),
            id: None,
            reason: None,
            principal: None,
            expires: None,
            remember: RememberOffer::Offer,
            tests: RuleTests::default(),
            definition: None,
        }
    }

    /// Reads the one-line form.
    pub fn parse(
        line: &str,
        origin: RuleOrigin,
        place: impl Into<String>,
    ) -> Result<Self, RuleError> {
        let form = || RuleError::Form(line.to_owned());
        let (word, rest) = line
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(form)?;
        if word == Self::DELEGATE {
            let (name, rest) = rest
                .trim_start()
                .split_once(char::is_whitespace)
                .ok_or_else(form)?;
            let name = name
                .parse()
                .map_err(|_| RuleError::Authority(name.to_owned()))?;
            let rule = Self::new(Behavior::Deny, rest.trim().parse()?, origin, place);
            return Ok(Self {
                delegate: Some(name),
                ..rule
            });
        }
        let effect = [Behavior::Allow, Behavior::Ask, Behavior::Deny]
            .into_iter()
            .find(|effect| effect.as_str() == word)
            .ok_or_else(form)?;
        Ok(Self::new(effect, rest.trim().parse()?, origin, place))
    }
}

impl Rule {
    /// Whether the rule names this tool. An `allow` must name the tool exactly; `ask` and `deny` match more generously.
    /// `false` for rules about a class, a path or a request.
    pub fn names_tool(&self, tool: &Declaration) -> bool {
        match (&self.selector, self.effect) {
            (Selector::Tool { tools, .. }, Behavior::Allow) => {
                let is_same = self.definition.is_none() || self.definition == tool.definition;
                is_same && tools.names_exactly(tool)
            }
            (Selector::Tool { tools, .. }, Behavior::Ask | Behavior::Deny) => {
                let bound_like = &tool.interface.permission.bound_like;
                tools.matches(&tool.tool_id, &tool.aliases)
                    || bound_like.iter().any(|name| tools.matches_name(name))
            }
            (
                Selector::Class(_)
                | Selector::Reads(_)
                | Selector::Writes(_)
                | Selector::Reaches(_),
                Behavior::Allow | Behavior::Ask | Behavior::Deny,
            ) => false,
        }
    }

    /// Whether the rule applies to this caller's calls at this time.
    pub fn speaks_of(&self, principal: &Principal, at: Timestamp) -> bool {
        self.principal
            .as_ref()
            .is_none_or(|pattern| matches_any(pattern, principal.name.as_str()))
            && self.expires.is_none_or(|end| at < end)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.delegate {
            Some(authority) => write!(f, "{} {authority} {}", Self::DELEGATE, self.selector),
            None => write!(f, "{} {}", self.effect.as_str(), self.selector),
        }
    }
}

/// A rule, as records name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRef {
    /// The rule's line.
    pub rule: String,
    /// The origin of the rule.
    pub origin: RuleOrigin,
    /// File and line, or the flag.
    pub place: String,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
}

impl From<&Rule> for RuleRef {
    fn from(rule: &Rule) -> Self {
        Self {
            rule: rule.to_string(),
            origin: rule.origin,
            place: rule.place.clone(),
            id: rule.id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rule, RuleOrigin};

    #[test]
    fn a_line_reads_back_as_it_was_written() {
        for line in [
            "allow read_file",
            "deny shell(rm *)",
            "ask http_request(POST https://*.example.com/*)",
            "deny fs.read(**/.env*)",
            "allow fs.write(src/**)",
            "ask net(https://api.example.com/v1/*)",
            "ask class:write",
            "ask mcp.*[/repo = \"prod-*\"]",
            "deny mcp.pay.*[/amount > 100, /currency = \"EUR\"]",
            "allow shell(echo '(a)')",
            "deny *[/force]",
            "delegate opa shell(git push *)",
            "delegate team-policy class:network",
        ] {
            let rule = Rule::parse(line, RuleOrigin::Cli, "")
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(rule.to_string(), line);
        }
    }

    #[test]
    fn what_is_not_a_rule_is_refused() {
        for line in [
            "",
            "allow",
            "permit x",
            "delegate",
            "delegate opa",
            "delegate shell(git push *)",
            "delegate o.p.a shell",
            "delegate opa class:writes",
            "delegate opa other shell",
            "allow class:writes",
            "allow a b",
            "allow ",
            "deny shell(rm *",
            "deny shell()",
            "deny shell(  )",
            "deny fs.read",
            "deny fs.read()",
            "deny fs.delete(x)",
            "ask net",
            "ask a[repo = 1]",
            "ask a[/repo ~ 1]",
            "ask a[]",
            "ask a[/x = ]",
            "ask a(x)y",
        ] {
            assert!(Rule::parse(line, RuleOrigin::Cli, "").is_err(), "{line:?}");
        }
    }
}
