//! A text that must not end up on a screen or in a log.

use std::fmt;

/// A secret. It has no `Display`, and its `Debug` does not tell it; [`reveal`](Self::reveal) does.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for whoever compares or hashes it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
