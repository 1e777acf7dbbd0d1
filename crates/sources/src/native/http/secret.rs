//! A text that must not end up on a screen, in a record or in an error.

use std::fmt;

/// A secret. It has no `Display`, and its `Debug` does not tell it; [`reveal`](Self::reveal) does.
#[derive(Clone)]
pub struct SecretText(String);

impl SecretText {
    /// Takes the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the request it is meant for and for the redactor.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}
