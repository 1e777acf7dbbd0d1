//! Endings of calls that began, or may have begun: their effects stay, so each ending states whether a retry is safe.

use serde_json::json;
use toolpost_model::{ErrorClass, Outcome, Recoverability};

use super::{super::CallEnding, HostFailure, canceled};
use crate::{invocation::CancelReason, record::journal::JournalError};

pub(crate) fn canceled_while_running(reason: CancelReason, safe: bool) -> CallEnding {
    let message = format!(
        "the call was stopped while it ran: {}{}",
        reason.explain(),
        maybe_done(safe)
    );
    canceled(reason, message)
        .recoverable(once_begun(safe))
        .safe_again(safe)
        .ends()
}

/// Whether the same call may be sent again after it began.
fn once_begun(safe: bool) -> Recoverability {
    if safe {
        Recoverability::Retry
    } else {
        Recoverability::Never
    }
}

/// The host stopped waiting for work that may continue; a later answer is dropped.
pub(crate) fn discarding(mut ending: CallEnding) -> CallEnding {
    if let CallEnding::Failure { error, .. } = &mut ending {
        error.message.push_str("; a later answer is discarded");
        error
            .details
            .get_or_insert_with(|| json!({ "late_answer": "discarded" }));
    }
    ending
}

/// A deadline that passed. `capped_by` is the setting if callers cannot get a longer one.
pub(crate) fn timed_out(limit_ms: u128, safe: bool, capped_by: Option<&str>) -> CallEnding {
    let hint = match capped_by {
        Some(setting) => {
            format!("ask for less at a time; the operator's `{setting}` allows no longer deadline")
        }
        None => "ask for less at a time, or for a longer deadline".to_owned(),
    };
    HostFailure::new(
        ErrorClass::Timeout,
        format!(
            "the call was stopped at its deadline of {limit_ms} ms{}",
            maybe_done(safe)
        ),
    )
    .outcome(Outcome::TimedOut)
    .recoverable(once_begun(safe))
    .hint(hint)
    .safe_again(safe)
    .ends()
}

fn maybe_done(safe: bool) -> &'static str {
    if safe {
        ""
    } else {
        "; it may have taken effect"
    }
}

pub(crate) fn panicked(message: &str, safe: bool) -> CallEnding {
    HostFailure::new(
        ErrorClass::ExecutionFailed,
        format!("the tool panicked: {message}"),
    )
    .code("panicked")
    .recoverable(Recoverability::Never)
    .safe_again(safe)
    .ends()
}

pub(crate) fn outcome_unknown() -> CallEnding {
    HostFailure::new(
        ErrorClass::OutcomeUnknown,
        "the host stopped while the call ran; the call may or may not have taken effect and is not run again",
    )
    .outcome(Outcome::Unknown)
    .code("restart")
    .hint("check whether the call took effect before you send it again")
    .recoverable(Recoverability::Never)
    .safe_again(false)
    .ends()
}

/// The call ran, but its end could not be recorded: the answer must not claim more than the record.
pub(crate) fn end_not_recorded(error: &JournalError, safe: bool) -> CallEnding {
    let message = format!(
        "the call ran, but its end could not be recorded: {error}{}",
        maybe_done(safe)
    );
    HostFailure::new(ErrorClass::JournalUnavailable, message)
        .outcome(Outcome::Unknown)
        .code("end_not_recorded")
        .recoverable(Recoverability::Operator)
        .safe_again(safe)
        .ends()
}

pub(crate) fn restarted(why: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::Canceled,
        format!("the host restarted before the call ran: {why}"),
    )
    .outcome(Outcome::Canceled)
    .code("restart")
    .recoverable(Recoverability::Retry)
    .ends()
}
