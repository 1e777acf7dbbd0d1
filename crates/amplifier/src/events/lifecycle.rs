//! The payloads of the other events in a call's lifecycle, and of modules that failed to load.

use serde_json::{Value, json};

use super::{CallFacts, names};
use crate::{LoadFailure, ModuleKind};

/// The state of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalStep {
    /// The approval was requested.
    Required,
    /// The approval was granted.
    Granted,
    /// The approval was denied, or ran out of time.
    Denied,
}

impl ApprovalStep {
    /// The event for this state.
    pub fn event(self) -> &'static str {
        match self {
            Self::Required => names::APPROVAL_REQUIRED,
            Self::Granted => names::APPROVAL_GRANTED,
            Self::Denied => names::APPROVAL_DENIED,
        }
    }
}

/// The payload of the three `approval:*` events.
pub fn approval(call: &CallFacts<'_>, question: &str) -> Value {
    with(call, [("prompt", json!(question))])
}

/// The payload of `artifact:read` and `artifact:write`. The number of bytes is not always known.
pub fn artifact(call: &CallFacts<'_>, path: &str, bytes: Option<u64>) -> Value {
    with(call, [("path", json!(path)), ("bytes", json!(bytes))])
}

/// The payload of `policy:violation`, with the kind of denial and its reason.
pub fn policy_violation(call: &CallFacts<'_>, class: &str, reason: &str) -> Value {
    with(
        call,
        [("violation", json!(class)), ("reason", json!(reason))],
    )
}

/// The payload of `cancel:requested`. Calls are always stopped at once, so the state is `immediate`.
pub fn cancel_requested(call: &CallFacts<'_>, reason: &str) -> Value {
    with(
        call,
        [("state", json!("immediate")), ("reason", json!(reason))],
    )
}

/// The payload of `cancel:completed`.
pub fn cancel_completed(call: &CallFacts<'_>, duration_ms: u64) -> Value {
    with(
        call,
        [
            ("was_immediate", json!(true)),
            ("duration_ms", json!(duration_ms)),
        ],
    )
}

/// The payload of `module:load_failed`.
pub fn module_load_failed(failure: &LoadFailure) -> Value {
    let kind = match failure.kind {
        ModuleKind::Tool => "tool",
        ModuleKind::Hook => "hook",
    };
    json!({
        "module_type": kind,
        "module_id": failure.module,
        "error": failure.message,
        "reason_code": failure.reason.as_str(),
        "source": failure.origin,
    })
}

fn with<const N: usize>(call: &CallFacts<'_>, fields: [(&str, Value); N]) -> Value {
    let mut payload = call.base();
    payload.extend(
        fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value)),
    );
    Value::Object(payload)
}
