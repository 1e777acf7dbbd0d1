//! The draft's names for Toolpost's values.

use toolpost_model::{
    AccessKind, AuthorityKind, Decision, Disposition, ErrorClass, ExecutionKind, HookEvent,
    Lifecycle, Outcome, ReasonType, RiskLevel, Rule, Stage, SurfaceScope, ToolResult,
};

/// The status of a result, from outcome and disposition.
pub(super) fn result_status(result: &ToolResult) -> &'static str {
    match (result.outcome, result.disposition, result.error_class()) {
        (_, _, Some(ErrorClass::OutcomeUnknown | ErrorClass::SiblingCanceled)) => "synthetic_error",
        (_, _, Some(ErrorClass::ResultTooLarge)) => "too_large",
        (_, _, Some(ErrorClass::ApprovalRejected)) => "rejected",
        (Outcome::Succeeded | Outcome::Partial, Disposition::Redacted, _) => "redacted",
        (Outcome::Succeeded | Outcome::Partial, Disposition::Dropped, _) => "too_large",
        (Outcome::Succeeded, _, _) => "succeeded",
        (Outcome::Partial, _, _) => "partial_succeeded",
        (Outcome::Failed, _, _) => "failed",
        (Outcome::Denied, _, _) => "denied",
        (Outcome::Rejected, _, _) => "rejected",
        (Outcome::Canceled, _, _) => "canceled",
        (Outcome::TimedOut, _, _) => "timed_out",
        (Outcome::Unknown, _, _) => "synthetic_error",
    }
}

/// The final state of an invocation in the draft's terms; a field beside it has the outcome itself.
pub(super) fn final_state(result: &ToolResult) -> &'static str {
    match result.outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Partial => "partial_result",
        Outcome::Failed => match result.error_class() {
            Some(ErrorClass::SchemaValidationFailed) => "schema_parse_failed",
            Some(ErrorClass::InvalidArguments) => "validation_failed",
            Some(
                ErrorClass::UnknownTool
                | ErrorClass::PolicyBlocked
                | ErrorClass::SchemaNotLoaded
                | ErrorClass::SetupRequired
                | ErrorClass::HookBlocked
                | ErrorClass::HookFailed,
            ) => "blocked",
            Some(_) | None => "failed",
        },
        Outcome::Denied => "denied",
        Outcome::Rejected => match result.error_class() {
            Some(ErrorClass::ApprovalPending) => "awaiting_approval",
            Some(ErrorClass::Queued) => "queued",
            Some(_) | None => "blocked",
        },
        Outcome::Canceled => "canceled",
        Outcome::TimedOut => "timed_out",
        Outcome::Unknown => "failed",
    }
}

pub(super) fn state(stage: Stage) -> &'static str {
    match stage {
        Stage::Resolve => "planned",
        Stage::Parse => "selected",
        // The draft has no state for a decision in progress: the arguments are still ready.
        Stage::Validate | Stage::Observe | Stage::Decide => "arguments_ready",
        Stage::PreHooks => "pre_hooks_running",
        Stage::AwaitApproval => "awaiting_approval",
        Stage::Admit => "queued",
        Stage::Execute | Stage::Map => "running",
        Stage::PostHooks => "post_hooks_running",
        Stage::Persist | Stage::Emit => "yielded",
    }
}

/// The event for a stage, if the draft has one.
pub(super) fn stage_event(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::Resolve => Some("tool.invocation.planned"),
        Stage::Parse => Some("tool.invocation.selected"),
        Stage::Observe => Some("tool.invocation.arguments_ready"),
        Stage::AwaitApproval => Some("tool.permission.requested"),
        Stage::Admit => Some("tool.invocation.queued"),
        Stage::Execute => Some("tool.invocation.started"),
        Stage::Validate
        | Stage::PreHooks
        | Stage::Decide
        | Stage::Map
        | Stage::PostHooks
        | Stage::Persist
        | Stage::Emit => None,
    }
}

pub(super) fn end_event(result: &ToolResult) -> &'static str {
    match (result.outcome, result.error_class()) {
        (_, Some(ErrorClass::SchemaValidationFailed | ErrorClass::InvalidArguments)) => {
            "tool.invocation.validation_failed"
        }
        (Outcome::Succeeded, _) => "tool.invocation.succeeded",
        (Outcome::Partial, _) => "tool.invocation.partial_result",
        (Outcome::Canceled, _) => "tool.invocation.canceled",
        (Outcome::TimedOut, _) => "tool.invocation.timed_out",
        (Outcome::Failed | Outcome::Denied | Outcome::Rejected | Outcome::Unknown, _) => {
            "tool.invocation.failed"
        }
    }
}

/// The draft has a name for each kind of authority.
pub(super) fn authority(kind: Option<AuthorityKind>) -> &'static str {
    match kind {
        Some(AuthorityKind::Program) => "hook",
        Some(AuthorityKind::Endpoint) => "policy",
        Some(AuthorityKind::Embedded) | None => "other",
    }
}

pub(super) fn reason(decision: &Decision) -> &'static str {
    match decision.reason.kind {
        ReasonType::Delegate => {
            // Of votes with the same behaviour, the authority in the reason's rule decided. A vote names the first rule
            // that delegates to its authority, which may be another rule.
            let rule = decision.reason.rule.as_ref();
            let rule =
                rule.and_then(|one| Rule::parse(&one.rule, one.origin, one.place.as_str()).ok());
            let name = rule.and_then(|rule| rule.delegate);
            let mut votes = decision.delegated.iter();
            authority(
                votes
                    .find(|vote| Some(&vote.authority) == name.as_ref())
                    .and_then(|vote| vote.kind),
            )
        }
        ReasonType::Classifier => "classifier",
        ReasonType::Rule => "rule",
        ReasonType::Mode => "mode",
        ReasonType::SafetyCheck | ReasonType::Caution => "safety_check",
        ReasonType::Hook => "hook",
        ReasonType::Opaque => "subcommand_results",
        ReasonType::Approval => "permission_prompt_tool",
    }
}

pub(super) fn hook_event(event: HookEvent) -> &'static str {
    match event {
        HookEvent::Before => "pre_tool_use",
        HookEvent::After => "post_tool_use",
        HookEvent::Failure => "post_tool_use_failure",
    }
}

pub(super) fn lifecycle(lifecycle: &Lifecycle, is_deferred: bool) -> &'static str {
    match lifecycle {
        Lifecycle::Available if is_deferred => "deferred",
        Lifecycle::Available => "available",
        Lifecycle::RequiresSetup(_) => "requires_setup",
        Lifecycle::Deprecated => "deprecated",
        Lifecycle::Disabled => "disabled",
    }
}

pub(super) fn execution_kind(kind: ExecutionKind) -> &'static str {
    match kind {
        ExecutionKind::EmbeddedRuntime => "embedded_runtime",
        ExecutionKind::LocalProcess => "local_process",
        ExecutionKind::Shell => "shell",
        ExecutionKind::HttpApi => "http_api",
        ExecutionKind::McpServer => "mcp_server",
    }
}

pub(super) fn risk(risk: RiskLevel) -> &'static str {
    match risk {
        RiskLevel::Low => "low",
        RiskLevel::Medium => "medium",
        RiskLevel::High => "high",
        RiskLevel::Critical => "critical",
    }
}

pub(super) fn access(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::FileRead => "file_read",
        AccessKind::FileWrite => "file_write",
        AccessKind::Network => "network",
        AccessKind::Credential => "credential",
        AccessKind::ExternalSend => "external_send",
        AccessKind::CodeExecution => "code_execution",
    }
}

pub(super) fn scope(scope: SurfaceScope) -> &'static str {
    match scope {
        SurfaceScope::Turn => "turn",
        SurfaceScope::Task => "task",
        SurfaceScope::Session => "session",
        SurfaceScope::Tenant => "tenant",
        SurfaceScope::Skill => "skill",
        SurfaceScope::ModelRequest => "model_request",
    }
}
