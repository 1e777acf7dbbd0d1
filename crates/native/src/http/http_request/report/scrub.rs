//! Removes a credential from the output, in case the server sends it back. The host's redaction does the same for
//! everything that it records; this also covers hosts whose redaction does not have the secret.

use super::Credential;

/// Shorter secrets would remove ordinary words.
const MIN_SECRET: usize = 4;
/// How many bytes the marks may add to a text, computed before they are written.
const MOST_ADDED: usize = 1 << 20;
/// The mark if that limit would be exceeded. It is not longer than any secret.
const SHORT_MARK: &str = "***";

pub(super) struct CredentialScrubber<'c> {
    credential: Option<&'c Credential>,
}

impl<'c> CredentialScrubber<'c> {
    pub(super) fn new(credential: Option<&'c Credential>) -> Self {
        Self { credential }
    }

    /// The text without the secret.
    pub(super) fn text(&self, text: &str) -> String {
        let Some(credential) = self.credential else {
            return text.to_owned();
        };
        let secret = credential.value.reveal().trim();
        if secret.len() < MIN_SECRET {
            return text.to_owned();
        }
        let escaped = serde_json::Value::from(secret).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        let mark = format!("[redacted:{}]", credential.name);
        let grows = mark.len().saturating_sub(secret.len());
        let added =
            (text.matches(secret).count() + text.matches(escaped).count()).saturating_mul(grows);
        let mark = if added > MOST_ADDED {
            SHORT_MARK
        } else {
            mark.as_str()
        };
        text.replace(secret, mark).replace(escaped, mark)
    }
}
