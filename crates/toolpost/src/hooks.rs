//! One line per hook of the configuration: for the banner and for `doctor`.

use toolpost_config::HookConfig;
use toolpost_model::HookEvent;

/// `no-live-hosts (guard, before): http_request, github.*; python3 /etc/…; toolpost.yaml:12`
pub(crate) fn described(hook: &HookConfig) -> String {
    let events: Vec<&str> = hook.events.iter().copied().map(HookEvent::as_str).collect();
    let tools: Vec<&str> = hook.tools.iter().map(|tool| tool.as_str()).collect();
    let tools = if tools.is_empty() {
        "every tool".to_owned()
    } else {
        tools.join(", ")
    };
    let when = hook
        .when
        .as_ref()
        .map(|when| format!(" when `{when}`"))
        .unwrap_or_default();
    let name = &hook.name;
    let standing = hook.standing.as_str();
    let events = events.join(", ");
    let command = hook.command.join(" ").escape_debug().to_string();
    format!(
        "{name} ({standing}, {events}): {tools}{when}; `{command}`; {}",
        hook.place
    )
}
