//! A token that cannot be printed, and so cannot end up in a log.

use std::fmt;

/// The credential of an agent. It cannot be printed, and only this crate can read it.
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
