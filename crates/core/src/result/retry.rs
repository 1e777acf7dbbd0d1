//! The advice after a failure that a tool reported: from the error class and from whether anything was changed, never
//! from hope.

use toolpost_model::{ErrorClass, Recoverability, RetryGuidance};

/// Whether the caller can continue, and the conditions of a retry. `untouched`: nothing was changed, or running it
/// twice equals running it once.
pub(super) fn after_failure(class: ErrorClass, untouched: bool) -> (Recoverability, RetryGuidance) {
    let retry = RetryGuidance {
        safe: untouched,
        ..RetryGuidance::SAFE
    };
    // Other arguments do not undo a half-done effect.
    let unless_touched = |way| {
        if untouched {
            way
        } else {
            Recoverability::Never
        }
    };
    match class {
        ErrorClass::InvalidArguments
        | ErrorClass::SchemaValidationFailed
        | ErrorClass::SandboxViolation
        | ErrorClass::ResultTooLarge => (
            Recoverability::ChangeCall,
            RetryGuidance {
                change_arguments: true,
                ..retry
            },
        ),
        ErrorClass::UnknownTool | ErrorClass::SchemaNotLoaded => (
            Recoverability::ChangeCall,
            RetryGuidance {
                discover_first: true,
                ..retry
            },
        ),
        ErrorClass::ApprovalRejected | ErrorClass::ApprovalPending => (
            Recoverability::Operator,
            RetryGuidance {
                needs_approval: true,
                ..retry
            },
        ),
        ErrorClass::PolicyBlocked
        | ErrorClass::PermissionDenied
        | ErrorClass::SetupRequired
        | ErrorClass::HookBlocked
        | ErrorClass::HookFailed
        | ErrorClass::JournalUnavailable => (Recoverability::Operator, retry),
        ErrorClass::DependencyUnavailable
        | ErrorClass::RateLimited
        | ErrorClass::Queued
        | ErrorClass::Timeout
        | ErrorClass::Canceled
        | ErrorClass::SiblingCanceled => (unless_touched(Recoverability::Retry), retry),
        ErrorClass::ExecutionFailed | ErrorClass::RequestConflict => {
            (unless_touched(Recoverability::ChangeCall), retry)
        }
        // A tool that reports this does not know its effects, whatever its declaration states.
        ErrorClass::OutcomeUnknown => (Recoverability::Never, RetryGuidance::UNSAFE),
    }
}

#[cfg(test)]
mod tests;
