//! The names of events, and how a subscription names several.

/// Before a call is decided.
pub const TOOL_PRE: &str = "tool:pre";
/// After a success.
pub const TOOL_POST: &str = "tool:post";
/// After any other end.
pub const TOOL_ERROR: &str = "tool:error";
/// A call read a file or something like it.
pub const ARTIFACT_READ: &str = "artifact:read";
/// A call wrote one, or a piece of its result was kept.
pub const ARTIFACT_WRITE: &str = "artifact:write";
/// A person is asked.
pub const APPROVAL_REQUIRED: &str = "approval:required";
/// A person said yes.
pub const APPROVAL_GRANTED: &str = "approval:granted";
/// A person said no, or nobody answered.
pub const APPROVAL_DENIED: &str = "approval:denied";
/// A rule, a mode or a hook did not allow a call.
pub const POLICY_VIOLATION: &str = "policy:violation";
/// A call is told to stop.
pub const CANCEL_REQUESTED: &str = "cancel:requested";
/// A call that was told to stop has ended.
pub const CANCEL_COMPLETED: &str = "cancel:completed";
/// A module of the plan is not there.
pub const MODULE_LOAD_FAILED: &str = "module:load_failed";
/// A module broke when it was told that the session is ready.
pub const MODULE_ON_SESSION_READY_FAILED: &str = "module:on_session_ready_failed";

/// Whether a subscription means an event: by its name, by `*` for all of them, or by a family such as `tool:*`.
pub fn matches(subscription: &str, event: &str) -> bool {
    match subscription.strip_suffix('*') {
        Some("") => true,
        Some(family) if family.ends_with(':') => event.starts_with(family),
        Some(_) | None => subscription == event,
    }
}
