//! The endings that the host makes, one constructor each: the failure, the advice, and whether a retry is safe.

mod approvals;
mod begun;
mod credentials;

use std::collections::BTreeSet;

use serde_json::json;
use toolpost_model::{
    Decision, ErrorClass, HiddenReason, InputRefusal, Outcome, Recoverability, RetryGuidance,
    ShareRefusal, SourceError, SourceProblem, ToolError,
};

pub(crate) use approvals::*;
pub(crate) use begun::*;
pub(crate) use credentials::*;

use super::{CallEnding, EndedBy, FailureContent, retry};
use crate::{
    catalog::{SchemaError, SchemaViolation},
    invocation::CancelReason,
    record::journal::JournalError,
    scheduling::{QueueFull, batch::BatchRefusal},
};

struct HostFailure {
    outcome: Outcome,
    error: ToolError,
}

impl HostFailure {
    /// By default a retry is harmless, because nothing ran; the constructor decides whether it can help.
    fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Failed,
            error: ToolError {
                class,
                code: class.as_str().into(),
                message: message.into(),
                hint: None,
                recoverability: Recoverability::ChangeCall,
                retry: RetryGuidance::SAFE,
                details: None,
            },
        }
    }

    fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    fn code(mut self, code: &'static str) -> Self {
        self.error.code = code.into();
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error.hint = Some(hint.into());
        self
    }

    fn recoverable(mut self, recoverability: Recoverability) -> Self {
        self.error.recoverability = recoverability;
        self
    }

    /// Marks that only an operator can change the answer.
    fn denied(self) -> Self {
        self.outcome(Outcome::Denied)
            .recoverable(Recoverability::Operator)
    }

    fn operator_hint(self, decision: &Decision) -> Self {
        let hint = decision.operator_hint.as_deref();
        self.hint(hint.unwrap_or("ask the operator"))
    }

    fn with_other_arguments(mut self) -> Self {
        self.error.retry.change_arguments = true;
        self
    }

    fn once_discovered(mut self) -> Self {
        self.error.retry.discover_first = true;
        self
    }

    fn once_approved(mut self) -> Self {
        self.error.retry.needs_approval = true;
        self
    }

    fn retry_after(mut self, ms: u64) -> Self {
        self.error.retry.after_ms = Some(ms);
        self
    }

    fn safe_again(mut self, safe: bool) -> Self {
        self.error.retry.safe = safe;
        self
    }

    fn details(mut self, details: serde_json::Value) -> Self {
        self.error.details = Some(details);
        self
    }

    fn ends(self) -> CallEnding {
        CallEnding::Failure {
            outcome: self.outcome,
            error: Box::new(self.error),
            shown: FailureContent::default(),
            by: EndedBy::Host,
        }
    }
}

pub(crate) fn unknown_tool(
    name: &str,
    similar: &[&str],
    unavailable: &[SourceProblem],
) -> CallEnding {
    let mut hint = match similar {
        [] => "list or search the tools".to_owned(),
        near => format!("did you mean `{}`?", near.join("`, `")),
    };
    // The tool may belong to a source that is missing as a whole.
    let whole = unavailable.iter().filter(|problem| !problem.is_partial());
    let missing: BTreeSet<(&str, bool)> = whole
        .map(|problem| (&*problem.part, problem.is_declined()))
        .collect();
    for (part, is_declined) in missing.into_iter().take(3) {
        let state = if is_declined {
            "declined to bring tools"
        } else {
            "could not be loaded"
        };
        hint.push_str(&format!("; `{part}` {state}"));
    }
    let shown: String = name.chars().take(100).collect();
    HostFailure::new(
        ErrorClass::UnknownTool,
        format!("no tool is called `{}`", shown.escape_debug()),
    )
    .hint(hint)
    .once_discovered()
    .ends()
}

pub(crate) fn blocked(name: &str, reason: HiddenReason, setup: Option<&str>) -> CallEnding {
    let (class, outcome) = if reason == HiddenReason::Setup {
        (ErrorClass::SetupRequired, Outcome::Failed)
    } else {
        (ErrorClass::PolicyBlocked, Outcome::Denied)
    };
    let why = setup.map_or_else(
        || reason.explain().to_owned(),
        |setup| format!("{}: {setup}", reason.explain()),
    );
    HostFailure::new(class, format!("`{name}` cannot be called here: {why}"))
        .outcome(outcome)
        .code(reason.as_str())
        .recoverable(Recoverability::Operator)
        .ends()
}

pub(crate) fn policy_blocked(name: &str, decision: &Decision) -> CallEnding {
    HostFailure::new(
        ErrorClass::PolicyBlocked,
        format!("`{name}` is denied outright: {}", decision.reason.text),
    )
    .denied()
    .code(HiddenReason::Policy.as_str())
    .operator_hint(decision)
    .ends()
}

pub(crate) fn schema_not_loaded(name: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::SchemaNotLoaded,
        format!("`{name}` is deferred and was not shown in this session yet"),
    )
    .hint(format!(
        "search for `{name}` with deferred tools included, read its schema (`GET /tools/{name}` over HTTP, \
         `search_tools` over MCP), then call it again"
    ))
    .once_discovered()
    .ends()
}

pub(crate) fn source_unavailable(error: &SourceError) -> CallEnding {
    HostFailure::new(ErrorClass::DependencyUnavailable, error.to_string())
        .recoverable(Recoverability::Retry)
        .ends()
}

pub(crate) fn not_ready(limit_ms: u128) -> CallEnding {
    HostFailure::new(
        ErrorClass::DependencyUnavailable,
        format!("the call did not start: its source or a hook did not answer within {limit_ms} ms"),
    )
    .code("not_ready")
    .recoverable(Recoverability::Retry)
    .ends()
}

pub(crate) fn unreadable(message: String) -> CallEnding {
    HostFailure::new(ErrorClass::SchemaValidationFailed, message)
        .hint("send the arguments as one JSON object")
        .with_other_arguments()
        .ends()
}

pub(crate) fn arguments_too_large(size: usize, limit: usize, setting: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::InvalidArguments,
        format!("the arguments have {size} bytes; the limit is {limit} (setting `{setting}`)"),
    )
    .code("too_large")
    .with_other_arguments()
    .ends()
}

pub(crate) fn broken_schema(error: &SchemaError) -> CallEnding {
    HostFailure::new(
        ErrorClass::SetupRequired,
        format!("the tool cannot be called: {error}"),
    )
    .code("broken_schema")
    .recoverable(Recoverability::Operator)
    .ends()
}

pub(crate) fn violations(found: &[SchemaViolation]) -> CallEnding {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    HostFailure::new(ErrorClass::InvalidArguments, lines.join("; "))
        .details(json!({ "violations": found }))
        .with_other_arguments()
        .ends()
}

pub(crate) fn refused(refusal: &InputRefusal) -> CallEnding {
    let (recoverability, guidance) = retry::after_failure(refusal.class, true);
    let message = match refusal.at.as_str() {
        "" => refusal.message.clone(),
        at => format!("at {at}: {}", refusal.message),
    };
    let mut failure = HostFailure::new(refusal.class, message)
        .details(json!({ "at": refusal.at }))
        .recoverable(recoverability);
    failure.error.retry = guidance;
    failure.ends()
}

pub(crate) fn hook_stopped(hook: &str, reason: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::HookBlocked,
        format!("the hook `{hook}` stopped the call: {reason}"),
    )
    .denied()
    .ends()
}

/// Names the hook that wrote the refused arguments, because the model did not write them.
pub(crate) fn after_rewrite(hook: &str, mut ending: CallEnding) -> CallEnding {
    if let CallEnding::Failure { error, .. } = &mut ending {
        error.message = format!(
            "after the hook `{hook}` changed the arguments: {}",
            error.message
        );
    }
    ending
}

pub(crate) fn hook_failed(hook: &str, reason: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::HookFailed,
        format!("the hook `{hook}` failed, so the call was not run: {reason}"),
    )
    .denied()
    .ends()
}

pub(crate) fn denied(name: &str, decision: &Decision) -> CallEnding {
    HostFailure::new(
        ErrorClass::PermissionDenied,
        format!("`{name}` was denied: {}", decision.reason.text),
    )
    .denied()
    .operator_hint(decision)
    .ends()
}

pub(crate) fn nobody_to_ask(name: &str, decision: &Decision) -> CallEnding {
    let message = format!(
        "`{name}` needs approval, and this host has no operator: {}",
        decision.reason.text
    );
    HostFailure::new(ErrorClass::PermissionDenied, message)
        .denied()
        .code("no_approver")
        .operator_hint(decision)
        .once_approved()
        .ends()
}

pub(crate) fn queue_full(full: &QueueFull) -> CallEnding {
    let message = match full {
        QueueFull::Shared(_) => format!("the call cannot be queued: {full}"),
        QueueFull::Session { .. } => format!("the queue is full: {full} (setting `limits.queue`)"),
        // A retry from the same place cannot help.
        QueueFull::HeldAbove { .. } | QueueFull::Circle => {
            return HostFailure::new(
                ErrorClass::RateLimited,
                format!("the call cannot run here: {full}"),
            )
            .outcome(Outcome::Rejected)
            .ends();
        }
    };
    HostFailure::new(ErrorClass::RateLimited, message)
        .outcome(Outcome::Rejected)
        .recoverable(Recoverability::Retry)
        .retry_after(500)
        .ends()
}

/// The caller's records would exceed its part of the journal.
pub(crate) fn journal_share(refusal: &ShareRefusal) -> CallEnding {
    let message = format!(
        "the call cannot be recorded: {}",
        refusal.told("bytes of the journal", "limits.journal")
    );
    HostFailure::new(ErrorClass::RateLimited, message)
        .outcome(Outcome::Rejected)
        .code("journal_share")
        .recoverable(Recoverability::Operator)
        .hint(
            "an operator can raise `limits.journal`, or let `retention.journal` remove old records",
        )
        .retry_after(60_000)
        .ends()
}

pub(crate) fn still_queued() -> CallEnding {
    HostFailure::new(
        ErrorClass::Queued,
        "the call was still in the queue when its caller stopped waiting",
    )
    .outcome(Outcome::Rejected)
    .recoverable(Recoverability::Retry)
    .hint("it did not run; send it again, with a longer timeout if the host is busy")
    .retry_after(500)
    .ends()
}

pub(crate) fn shutting_down() -> CallEnding {
    HostFailure::new(
        ErrorClass::Canceled,
        "the host is shutting down and accepts no more calls",
    )
    .outcome(Outcome::Rejected)
    .code("shutdown")
    .recoverable(Recoverability::Retry)
    .retry_after(1_000)
    .ends()
}

pub(crate) fn canceled_before_start(reason: CancelReason) -> CallEnding {
    canceled(
        reason,
        format!("the call did not start: {}", reason.explain()),
    )
    .ends()
}

/// A call that a sibling's failure stopped has an error class of its own, because its caller did not cancel it.
fn canceled(reason: CancelReason, message: String) -> HostFailure {
    let failure = match reason {
        CancelReason::SiblingFailed { place } => {
            HostFailure::new(ErrorClass::SiblingCanceled, message)
                .details(json!({ "abort_reason": "sibling_failed", "place": place }))
                .hint("check the result of the other call, then send this one again in a new batch")
        }
        CancelReason::Requested
        | CancelReason::CallerGone
        | CancelReason::Shutdown
        | CancelReason::SessionClosed
        | CancelReason::ParentStopped => HostFailure::new(ErrorClass::Canceled, message),
    };
    failure
        .outcome(Outcome::Canceled)
        .recoverable(Recoverability::Retry)
}

pub(crate) fn dependency_missing(place: u32) -> CallEnding {
    let message = format!(
        "the call did not start: it depends on call {place} of its batch, which did not arrive"
    );
    HostFailure::new(ErrorClass::SiblingCanceled, message)
        .outcome(Outcome::Canceled)
        .code("dependency_missing")
        .details(json!({ "abort_reason": "dependency_missing", "place": place }))
        .recoverable(Recoverability::Retry)
        .hint("send the calls of a batch together, under one batch id")
        .ends()
}

/// A call that has no place in its batch.
pub(crate) fn no_place(refusal: &BatchRefusal) -> CallEnding {
    let code = match refusal {
        BatchRefusal::GivenUp(place) => {
            return canceled_before_start(CancelReason::SiblingFailed { place: *place });
        }
        BatchRefusal::TooMany => {
            return HostFailure::new(ErrorClass::RateLimited, refusal.to_string())
                .outcome(Outcome::Rejected)
                .code("too_many_batches")
                .recoverable(Recoverability::Retry)
                .retry_after(500)
                .ends();
        }
        BatchRefusal::Id(_) => "batch_id",
        BatchRefusal::Place(_) => "batch_place",
        BatchRefusal::Taken(_) => "batch_place_taken",
        BatchRefusal::Circle(_) => "batch_cycle",
    };
    HostFailure::new(ErrorClass::InvalidArguments, refusal.to_string())
        .code(code)
        .hint(
            "this is about the call's `batch`, not about its arguments; a new batch needs a new id",
        )
        .ends()
}

pub(crate) fn request_conflict(id: &str) -> CallEnding {
    HostFailure::new(
        ErrorClass::RequestConflict,
        format!(
            "the request id `{}` was already used for another call",
            id.escape_debug()
        ),
    )
    .outcome(Outcome::Rejected)
    .hint("use a new id for a new call")
    .ends()
}

/// Nothing ran.
pub(crate) fn journal_refuses(error: &JournalError) -> CallEnding {
    HostFailure::new(
        ErrorClass::JournalUnavailable,
        format!("the call did not run because it cannot be recorded: {error}"),
    )
    .outcome(Outcome::Rejected)
    .recoverable(Recoverability::Operator)
    .hint("the operator must free space or repair the journal; run `toolpost doctor`")
    .ends()
}

pub(crate) fn internal(message: &str) -> CallEnding {
    HostFailure::new(ErrorClass::ExecutionFailed, message)
        .code("internal")
        .recoverable(Recoverability::Never)
        .ends()
}
