//! Delegated decisions: the authorities that rules hand a decision to, and the votes they gave.

use std::{borrow::Borrow, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Behavior, RuleRef};

/// The name of an authority: a letter, then letters, digits, `_` and `-`; at most 64 characters.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AuthorityName(Box<str>);

/// A text that cannot name an authority.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a name for an authority; use up to 64 letters, digits, `_` and `-`, beginning with a letter"
)]
pub struct AuthorityNameError(pub String);

impl AuthorityName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AuthorityName {
    type Err = AuthorityNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if begins && text.len() <= 64 && text.bytes().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(AuthorityNameError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for AuthorityName {
    type Error = AuthorityNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<AuthorityName> for String {
    fn from(name: AuthorityName) -> Self {
        name.0.into()
    }
}

impl Borrow<str> for AuthorityName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AuthorityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthorityKind {
    /// A program that the host starts for every question.
    Program,
    /// A policy endpoint that is asked over HTTP.
    Endpoint,
    /// Code of the program that embeds the host.
    Embedded,
}

impl AuthorityKind {
    /// The name in records and on the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Endpoint => "endpoint",
            Self::Embedded => "embedded",
        }
    }
}

/// The vote of an authority that a rule delegated a decision to. It is one vote among those of the other rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DelegatedVote {
    /// The authority.
    pub authority: AuthorityName,
    /// Its kind. `None`: this host has no authority of that name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<AuthorityKind>,
    /// The vote; `deny` if the authority gave no decision.
    pub behavior: Behavior,
    /// The reason in the authority's own words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// Why the authority gave no decision.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fault: Option<String>,
    /// The rule that delegates to it; the first, if several do.
    pub rule: RuleRef,
    /// The vote was cached from an earlier call with the same input.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub cached: bool,
    /// When the host asked, in microseconds after the request.
    #[serde(default)]
    pub at_us: u64,
    /// The duration of the request, in microseconds.
    #[serde(default)]
    pub duration_us: u64,
}

impl DelegatedVote {
    /// The vote in a sentence.
    pub fn explain(&self) -> String {
        let name = &self.authority;
        if let Some(fault) = &self.fault {
            return format!(
                "the authority `{name}` gave no decision, so the call is denied: {fault}"
            );
        }
        let said = match self.behavior {
            Behavior::Allow => format!("the authority `{name}` allows it"),
            Behavior::Ask => format!("the authority `{name}` requires a person's approval"),
            Behavior::Deny => format!("the authority `{name}` denies it"),
        };
        match &self.reason {
            Some(reason) => format!("{said}: {reason}"),
            None => said,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AuthorityName;

    #[test]
    fn names_are_short_words() {
        let long = "a".repeat(64);
        for name in ["opa", "Team-Policy_2", &long] {
            assert_eq!(name.parse::<AuthorityName>().unwrap().as_str(), name);
        }
        let too_long = "a".repeat(65);
        for name in ["", "2opa", "-opa", "a b", "a.b", "a(b)", "ä", &too_long] {
            assert!(name.parse::<AuthorityName>().is_err(), "{name}");
            assert!(
                serde_json::from_value::<AuthorityName>(name.into()).is_err(),
                "{name}"
            );
        }
    }
}
