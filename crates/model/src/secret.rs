//! A text that must not end up on a screen, in a log or in a record.

use std::fmt;

/// A secret. It has no `Display`, and its `Debug` hides the text; only [`reveal`](Self::reveal) gives it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for code that compares, sends or redacts it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
