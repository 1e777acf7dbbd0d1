//! One rule: what it says, of which calls, who wrote it and where.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AuthorityName, Behavior, Principal, Selector, selector::matches_any};
use crate::Declaration;

/// Where a rule comes from. The order is that of standing: what is named first in an explanation. It never lets an
/// allow beat a deny.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleOrigin {
    /// The file of the machine's owner.
    Policy,
    /// The command line: a flag, or a file it names.
    Cli,
    /// Said for one session by whoever approved a call in it.
    Session,
    /// Remembered for this workspace from an approval.
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

    /// The word in records and on the screen.
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

/// Whether a person who approves a call that a rule asked about may be offered not to be asked again.
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

/// What a rule's author expects of it. Tried when the rule is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleTests {
    /// Commands, paths or requests (`POST https://host/path`) as texts, or whole arguments as objects, that the rule
    /// must speak of.
    #[serde(rename = "match")]
    pub matching: Vec<Value>,
    /// The same that it must not speak of.
    pub not_match: Vec<Value>,
}

impl RuleTests {
    /// Whether there is nothing to try.
    pub fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.not_match.is_empty()
    }
}

/// One rule an operator wrote: `allow write_file(src/**)`, `ask class:write`, `deny shell(rm *)`,
/// `delegate opa shell(git push *)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it says. Of a rule that delegates this is `Deny`: code that does not know the authority's vote denies.
    pub effect: Behavior,
    /// The authority that it delegates the decision to.
    pub delegate: Option<AuthorityName>,
    /// Of which calls.
    pub selector: Selector,
    /// Where it comes from.
    pub origin: RuleOrigin,
    /// File and line, or the flag.
    pub place: String,
    /// Its name, for records and messages.
    pub id: Option<String>,
    /// Why, in the operator's words; the model is told.
    pub reason: Option<String>,
    /// Of whose calls: a name, with `*` for any characters. `None`: everybody's.
    pub principal: Option<String>,
    /// When it stops to speak.
    pub expires: Option<Timestamp>,
    /// Whether its asks may be answered for later calls too.
    pub remember: RememberOffer,
    /// What its author expects of it.
    pub tests: RuleTests,
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
    /// Something that can match no tool.
    #[error(
        "`{0}` is not a tool name; names hold letters, digits and `_-./:`, with `*` for any of them"
    )]
    Tool(String),
    /// A bracket without its partner, or nothing in between.
    #[error("`{0}` has a matcher that is empty or not closed")]
    Matcher(String),
    /// Not `[/pointer op value]`.
    #[error(
        "`{0}` is not a condition; write `/pointer = value` with =, !=, <, <=, > or >=, or a pointer alone"
    )]
    Condition(String),
}

impl Rule {
    /// The word that a rule begins with which delegates.
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
    /// Whether it is about calls of this tool by name. An `allow` must name the tool exactly; `ask` and `deny` are
    /// generous. `false` for rules about a class, a path or a request.
    pub fn names_tool(&self, tool: &Declaration) -> bool {
        match (&self.selector, self.effect) {
            (Selector::Tool { tools, .. }, Behavior::Allow) => tools.names_exactly(tool),
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

    /// Whether it speaks of this caller's calls at this time.
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

/// A rule as a record names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRef {
    /// The rule's line.
    pub rule: String,
    /// Where it comes from.
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
