//! One line per authority of the configuration: for the banner and for `doctor`.

use toolpost_config::{AuthorityConfig, AuthorityReachConfig, ConfigDuration};

/// `opa: http://127.0.0.1:8181/v1/data/toolpost (2s, answers kept for 10s); toolpost.yaml:12`
pub(crate) fn described(authority: &AuthorityConfig) -> String {
    let reach = match &authority.reach {
        AuthorityReachConfig::Endpoint { url, .. } => url.escape_debug().to_string(),
        AuthorityReachConfig::Program { command, .. } => {
            format!("`{}`", command.join(" ").escape_debug())
        }
    };
    let kept = authority
        .cache
        .map(|time| format!(", answers kept for {}", ConfigDuration::new(time)));
    let timeout = ConfigDuration::new(authority.timeout);
    let kept = kept.unwrap_or_default();
    format!(
        "{}: {reach} ({timeout}{kept}); {}",
        authority.name, authority.place
    )
}
