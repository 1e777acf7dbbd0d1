//! Every ending that a call can have, and the advice to its caller.

use serde_json::json;
use toolpost_model::{
    Behavior, Decision, DecisionReason, EffectClass, Effects, ErrorClass, HiddenReason,
    InputRefusal, InvocationId, Outcome, PermissionMode, PrincipalName, ReasonType, Recoverability,
    RetryGuidance, ShareRefusal, SourceError, ToolError, ToolFailure,
};

use super::super::{CallEnding, failures as end, tool_failed};
use crate::{
    approval::{ApprovalRejection, TableFull},
    catalog::SchemaError,
    invocation::CancelReason,
    record::journal::JournalError,
    scheduling::{QueueFull, batch::BatchRefusal},
};

fn parts(ending: CallEnding) -> (Outcome, ToolError) {
    match ending {
        CallEnding::Failure { outcome, error, .. } => (outcome, *error),
        CallEnding::Output(_) => panic!("a failure is expected"),
    }
}

/// Outcome, recoverability and retry conditions as one line: `rejected retry safe after 500`.
fn told(ending: CallEnding) -> String {
    let (outcome, error) = parts(ending);
    let way = match error.recoverability {
        Recoverability::Retry => "retry",
        Recoverability::ChangeCall => "change",
        Recoverability::Operator => "operator",
        Recoverability::Never => "never",
    };
    let RetryGuidance {
        safe,
        change_arguments,
        discover_first,
        needs_approval,
        after_ms,
    } = error.retry;
    let mut line = format!(
        "{} {way} {}",
        outcome.as_str(),
        if safe { "safe" } else { "unsafe" }
    );
    for (is_said, word) in [
        (change_arguments, "arguments"),
        (discover_first, "discover"),
        (needs_approval, "approval"),
    ] {
        if is_said {
            line.push(' ');
            line.push_str(word);
        }
    }
    after_ms.map_or(line.clone(), |wait| format!("{line} after {wait}"))
}

fn decision() -> Decision {
    Decision {
        behavior: Behavior::Deny,
        class: EffectClass::Write,
        mode: PermissionMode::Default,
        reason: DecisionReason {
            kind: ReasonType::Mode,
            text: "so".to_owned(),
            rule: None,
        },
        also_matched: Vec::new(),
        classified: None,
        delegated: Vec::new(),
        subject: None,
        opaque: Vec::new(),
        notes: Vec::new(),
        approval_waived: None,
        operator_hint: None,
    }
}

fn refusal(class: ErrorClass) -> InputRefusal {
    InputRefusal {
        class,
        at: String::new(),
        message: "no".to_owned(),
    }
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn the_hosts_own_ends_tell_what_can_be_done() {
    use ErrorClass as C;
    let id = InvocationId::new();
    let decided = decision();
    let no = ApprovalRejection {
        ask_id: id,
        by: PrincipalName::new("ann"),
        feedback: None,
    };
    let full = JournalError::Full("disk".to_owned());
    let away = SourceError {
        origin: "s".to_owned(),
        reason: "gone".to_owned(),
    };
    let sibling = CancelReason::SiblingFailed { place: 1 };
    let schema = SchemaError::NotAnObject;
    let table = [
        (
            C::UnknownTool,
            end::unknown_tool("x", &[], &[]),
            "failed change safe discover",
        ),
        (
            C::PolicyBlocked,
            end::blocked("x", HiddenReason::Disabled, None),
            "denied operator safe",
        ),
        (
            C::PolicyBlocked,
            end::policy_blocked("x", &decided),
            "denied operator safe",
        ),
        (
            C::SetupRequired,
            end::blocked("x", HiddenReason::Setup, None),
            "failed operator safe",
        ),
        (
            C::SetupRequired,
            end::broken_schema(&schema),
            "failed operator safe",
        ),
        (
            C::SetupRequired,
            end::refused(&refusal(C::SetupRequired)),
            "failed operator safe",
        ),
        (
            C::SchemaNotLoaded,
            end::schema_not_loaded("x"),
            "failed change safe discover",
        ),
        (
            C::DependencyUnavailable,
            end::source_unavailable(&away),
            "failed retry safe",
        ),
        (
            C::DependencyUnavailable,
            end::not_ready(9),
            "failed retry safe",
        ),
        (
            C::SchemaValidationFailed,
            end::unreadable("x".to_owned()),
            "failed change safe arguments",
        ),
        (
            C::InvalidArguments,
            end::arguments_too_large(9, 8, "s"),
            "failed change safe arguments",
        ),
        (
            C::InvalidArguments,
            end::violations(&[]),
            "failed change safe arguments",
        ),
        (
            C::InvalidArguments,
            end::no_place(&BatchRefusal::Taken(1)),
            "failed change safe",
        ),
        (
            C::SandboxViolation,
            end::refused(&refusal(C::SandboxViolation)),
            "failed change safe arguments",
        ),
        (
            C::HookBlocked,
            end::hook_stopped("h", "so"),
            "denied operator safe",
        ),
        (
            C::HookFailed,
            end::hook_failed("h", "so"),
            "denied operator safe",
        ),
        (
            C::PermissionDenied,
            end::denied("x", &decided),
            "denied operator safe",
        ),
        (
            C::PermissionDenied,
            end::nobody_to_ask("x", &decided),
            "denied operator safe approval",
        ),
        (
            C::ApprovalPending,
            end::approval_pending("x", id),
            "rejected operator safe approval",
        ),
        (
            C::ApprovalRejected,
            end::approval_refused("x", &no),
            "denied operator safe approval",
        ),
        (
            C::ApprovalRejected,
            end::approval_expired("x", id),
            "denied operator safe approval",
        ),
        (
            C::RateLimited,
            end::too_many_questions(&TableFull::Host(2)),
            "rejected operator safe approval after 5000",
        ),
        (
            C::RateLimited,
            end::queue_full(&QueueFull::Shared(ShareRefusal::Total { limit: 1 })),
            "rejected retry safe after 500",
        ),
        (
            C::RateLimited,
            end::queue_full(&QueueFull::Circle),
            "rejected change safe",
        ),
        (
            C::RateLimited,
            end::no_place(&BatchRefusal::TooMany),
            "rejected retry safe after 500",
        ),
        (
            C::Queued,
            end::still_queued(),
            "rejected retry safe after 500",
        ),
        (
            C::Canceled,
            end::shutting_down(),
            "rejected retry safe after 1000",
        ),
        (
            C::Canceled,
            end::canceled_before_start(CancelReason::Requested),
            "canceled retry safe",
        ),
        (
            C::Canceled,
            end::canceled_while_running(CancelReason::Requested, true),
            "canceled retry safe",
        ),
        (
            C::Canceled,
            end::canceled_while_running(CancelReason::Requested, false),
            "canceled never unsafe",
        ),
        (C::Canceled, end::restarted("so"), "canceled retry safe"),
        (
            C::SiblingCanceled,
            end::canceled_before_start(sibling),
            "canceled retry safe",
        ),
        (
            C::SiblingCanceled,
            end::dependency_missing(1),
            "canceled retry safe",
        ),
        (
            C::Timeout,
            end::timed_out(9, true, None),
            "timed_out retry safe",
        ),
        (
            C::Timeout,
            end::timed_out(9, false, None),
            "timed_out never unsafe",
        ),
        (
            C::ExecutionFailed,
            end::panicked("so", true),
            "failed never safe",
        ),
        (
            C::ExecutionFailed,
            end::panicked("so", false),
            "failed never unsafe",
        ),
        (
            C::OutcomeUnknown,
            end::outcome_unknown(),
            "unknown never unsafe",
        ),
        (
            C::RequestConflict,
            end::request_conflict("k"),
            "rejected change safe",
        ),
        (
            C::JournalUnavailable,
            end::journal_refuses(&full),
            "rejected operator safe",
        ),
        (
            C::JournalUnavailable,
            end::end_not_recorded(&full, true),
            "unknown operator safe",
        ),
        (
            C::JournalUnavailable,
            end::end_not_recorded(&full, false),
            "unknown operator unsafe",
        ),
    ];
    // Only a tool reports that its own result is too large.
    let by_tools_alone = |class: &ErrorClass| *class == C::ResultTooLarge;
    for class in ErrorClass::ALL
        .iter()
        .filter(|class| !by_tools_alone(class))
    {
        assert!(
            table.iter().any(|(covered, ..)| covered == class),
            "{class} has no row"
        );
    }
    for (class, ending, expected) in table {
        let CallEnding::Failure { error, .. } = &ending else {
            panic!("a failure is expected")
        };
        assert_eq!(error.class, class, "{}", error.message);
        let message = error.message.clone();
        assert_eq!(told(ending), expected, "{class}: {message}");
    }
}

#[test]
fn a_tools_failure_of_any_kind_is_safe_only_where_nothing_was_changed() {
    let reads = Effects::of(EffectClass::Read);
    let writes = Effects::of(EffectClass::Write);
    for &class in ErrorClass::ALL {
        let failure = || ToolFailure::of(class, "no");
        let safe = |ending| parts(ending).1.retry.safe;
        let knows = class != ErrorClass::OutcomeUnknown;
        assert_eq!(
            safe(tool_failed(failure(), &reads)),
            knows,
            "{class} of a read"
        );
        assert!(!safe(tool_failed(failure(), &writes)), "{class} of a write");
        assert_eq!(
            safe(tool_failed(failure().untouched(), &writes)),
            knows,
            "{class}, nothing changed"
        );
        let (_, touched) = parts(tool_failed(failure(), &writes));
        assert_ne!(
            touched.recoverability,
            Recoverability::Retry,
            "{class}: the same call is never advised"
        );
    }
}

#[test]
fn what_a_tool_knows_of_the_next_try_is_passed_on() {
    let reads = Effects::of(EffectClass::Read);
    for (failure, expected) in [
        (
            ToolFailure::of(ErrorClass::RateLimited, "busy").after_ms(7_000),
            "failed retry safe after 7000",
        ),
        (
            ToolFailure::of(ErrorClass::DependencyUnavailable, "down"),
            "failed retry safe",
        ),
        (
            ToolFailure::of(ErrorClass::ResultTooLarge, "much"),
            "failed change safe arguments",
        ),
        (
            ToolFailure::of(ErrorClass::SetupRequired, "install it"),
            "failed operator safe",
        ),
        (
            ToolFailure::of(ErrorClass::PermissionDenied, "kept"),
            "failed operator safe",
        ),
        (
            ToolFailure::of(ErrorClass::UnknownTool, "no such"),
            "failed change safe discover",
        ),
        (
            ToolFailure::of(ErrorClass::ApprovalRejected, "no"),
            "failed operator safe approval",
        ),
        (
            ToolFailure::of(ErrorClass::Timeout, "late"),
            "timed_out retry safe",
        ),
        (
            ToolFailure::of(ErrorClass::Canceled, "stopped"),
            "canceled retry safe",
        ),
        (ToolFailure::new("broke"), "failed change safe"),
        (ToolFailure::invalid("bad"), "failed change safe arguments"),
    ] {
        let class = failure.class;
        assert_eq!(told(tool_failed(failure, &reads)), expected, "{class}");
    }
}

#[test]
fn an_answer_that_nobody_hears_is_said_to_be_discarded() {
    let (outcome, error) = parts(end::discarding(end::timed_out(5, false, None)));
    assert_eq!(outcome, Outcome::TimedOut);
    assert!(
        error
            .message
            .ends_with("it may have taken effect; a later answer is discarded")
    );
    assert_eq!(error.details, Some(json!({ "late_answer": "discarded" })));
}
