//! A token that does not end up in a log: nothing here prints it.

use std::fmt;

/// What lets an agent in. It cannot be printed, and only this crate reads it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AuthToken(String);

impl AuthToken {
    /// The token itself, for the handshake.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for AuthToken {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl From<&str> for AuthToken {
    fn from(token: &str) -> Self {
        Self(token.to_owned())
    }
}

impl fmt::Debug for AuthToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "AuthToken(none)"
        } else {
            "AuthToken(hidden)"
        })
    }
}
