//! The names of events, and the patterns of subscriptions.

/// Before a call is decided.
pub const TOOL_PRE: &str = "tool:pre";
/// After a success.
pub const TOOL_POST: &str = "tool:post";
/// After any other end.
pub const TOOL_ERROR: &str = "tool:error";
/// A call read a file or something like it.
pub const ARTIFACT_READ: &str = "artifact:read";
/// A call wrote a file, or a part of its result was kept.
pub const ARTIFACT_WRITE: &str = "artifact:write";
/// An operator is asked.
pub const APPROVAL_REQUIRED: &str = "approval:required";
/// An operator approved.
pub const APPROVAL_GRANTED: &str = "approval:granted";
/// An operator denied, or the question ran out of time.
pub const APPROVAL_DENIED: &str = "approval:denied";
/// A rule, a mode or a hook did not allow a call.
pub const POLICY_VIOLATION: &str = "policy:violation";
/// The cancellation of a call was requested.
pub const CANCEL_REQUESTED: &str = "cancel:requested";
/// A canceled call has ended.
pub const CANCEL_COMPLETED: &str = "cancel:completed";
/// A module of the plan failed to load.
pub const MODULE_LOAD_FAILED: &str = "module:load_failed";
/// A module failed in its notice that the session is ready.
pub const MODULE_ON_SESSION_READY_FAILED: &str = "module:on_session_ready_failed";

/// Whether a subscription matches an event: by its name, by `*` for all events, or by a family such as `tool:*`.
pub fn matches(subscription: &str, event: &str) -> bool {
    match subscription.strip_suffix('*') {
        Some("") => true,
        Some(family) if family.ends_with(':') => event.starts_with(family),
        Some(_) | None => subscription == event,
    }
}
