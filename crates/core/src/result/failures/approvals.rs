//! Endings of calls that required an approval.

use serde_json::json;
use toolpost_model::{ErrorClass, InvocationId, Outcome, Recoverability};

use super::HostFailure;
use crate::{
    approval::{ApprovalRejection, TableFull},
    result::CallEnding,
};

pub(crate) fn approval_pending(name: &str, ask_id: InvocationId) -> CallEnding {
    let message =
        format!("`{name}` has not run yet: the approval question `{ask_id}` has no answer yet");
    HostFailure::new(ErrorClass::ApprovalPending, message)
        .outcome(Outcome::Rejected)
        .recoverable(Recoverability::Operator)
        .hint("send the same call again once it is approved, or do something else meanwhile")
        .once_approved()
        .details(json!({ "ask_id": ask_id }))
        .ends()
}

pub(crate) fn approval_refused(name: &str, no: &ApprovalRejection) -> CallEnding {
    let (message, hint) = match &no.feedback {
        Some(feedback) => (
            format!("`{name}` was not approved by {}: {feedback}", no.by),
            "an operator rejected this call; do not repeat it, follow the message",
        ),
        None => (
            format!("`{name}` was not approved by {}", no.by),
            "an operator rejected this call; do not repeat it",
        ),
    };
    HostFailure::new(ErrorClass::ApprovalRejected, message)
        .denied()
        .hint(hint)
        .once_approved()
        .details(json!({ "ask_id": no.ask_id }))
        .ends()
}

pub(crate) fn approval_expired(name: &str, ask_id: InvocationId) -> CallEnding {
    HostFailure::new(
        ErrorClass::ApprovalRejected,
        format!("`{name}` needs approval, and no operator answered in time"),
    )
    .denied()
    .code("approval_expired")
    .hint("send it again when an operator can answer")
    .once_approved()
    .details(json!({ "ask_id": ask_id }))
    .ends()
}

pub(crate) fn too_many_questions(full: &TableFull) -> CallEnding {
    let message =
        format!("the call needs approval, and {full} already (setting `approvals.waiting`)");
    HostFailure::new(ErrorClass::RateLimited, message)
        .outcome(Outcome::Rejected)
        .code("too_many_approvals")
        .recoverable(Recoverability::Operator)
        .once_approved()
        .retry_after(5_000)
        .ends()
}
