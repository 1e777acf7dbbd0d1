//! Amplifier's events: their names, and the payloads that are made from the facts of a call.

mod lifecycle;
mod names;
mod payload;

pub use lifecycle::{
    ApprovalStep, approval, artifact, cancel_completed, cancel_requested, module_load_failed,
    policy_violation,
};
pub use names::{
    APPROVAL_DENIED, APPROVAL_GRANTED, APPROVAL_REQUIRED, ARTIFACT_READ, ARTIFACT_WRITE,
    CANCEL_COMPLETED, CANCEL_REQUESTED, MODULE_LOAD_FAILED, MODULE_ON_SESSION_READY_FAILED,
    POLICY_VIOLATION, TOOL_ERROR, TOOL_POST, TOOL_PRE, matches,
};
pub use payload::{CallFacts, tool_error, tool_post, tool_pre};
