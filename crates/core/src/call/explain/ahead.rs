//! The changes that would alter an outcome that the rules did not cause.

use toolpost_model::{ErrorClass, HiddenReason, ToolError, Visibility};

use crate::{
    approval::Approvals,
    host::HostInner,
    invocation::PipelineCall,
    permission::{DecisionAlternative, DecisionAlternativeKind},
};

pub(super) fn changes(
    host: &HostInner,
    call: &PipelineCall,
    visibility: Option<Visibility>,
    error: Option<&ToolError>,
) -> Vec<DecisionAlternative> {
    let Some(error) = error else {
        return Vec::new();
    };
    if let Some(Visibility::Blocked(reason)) = visibility {
        return shown(call, reason).into_iter().collect();
    }
    let hint = || error.hint.clone().unwrap_or_else(|| error.message.clone());
    match error.class {
        ErrorClass::UnknownTool => vec![DecisionAlternative::other(
            DecisionAlternativeKind::Call,
            hint(),
        )],
        ErrorClass::SchemaNotLoaded => {
            vec![DecisionAlternative::other(
                DecisionAlternativeKind::Discover,
                hint(),
            )]
        }
        ErrorClass::SchemaValidationFailed
        | ErrorClass::InvalidArguments
        | ErrorClass::SandboxViolation
        | ErrorClass::ResultTooLarge
        | ErrorClass::RequestConflict => {
            vec![DecisionAlternative::other(
                DecisionAlternativeKind::Call,
                format!("send other arguments: {}", error.message),
            )]
        }
        ErrorClass::HookBlocked | ErrorClass::HookFailed => {
            vec![DecisionAlternative::other(
                DecisionAlternativeKind::Hook,
                "change the hook that stopped the call",
            )]
        }
        ErrorClass::PermissionDenied if error.retry.needs_approval => match host.approval.mode {
            Approvals::Nobody => {
                let text = "make the call through `toolpost serve`, which asks operators";
                vec![DecisionAlternative::other(
                    DecisionAlternativeKind::Answer,
                    text,
                )]
            }
            Approvals::Ask { .. } => Vec::new(),
        },
        ErrorClass::SetupRequired
        | ErrorClass::DependencyUnavailable
        | ErrorClass::RateLimited
        | ErrorClass::JournalUnavailable => {
            vec![DecisionAlternative::other(
                DecisionAlternativeKind::Setting,
                hint(),
            )]
        }
        // The account of the rules covers these, or a dry run cannot end with them.
        ErrorClass::PermissionDenied
        | ErrorClass::PolicyBlocked
        | ErrorClass::ApprovalRejected
        | ErrorClass::ApprovalPending
        | ErrorClass::Queued
        | ErrorClass::Canceled
        | ErrorClass::SiblingCanceled
        | ErrorClass::Timeout
        | ErrorClass::ExecutionFailed
        | ErrorClass::OutcomeUnknown => Vec::new(),
    }
}

/// The change that would show a hidden tool.
fn shown(call: &PipelineCall, reason: HiddenReason) -> Option<DecisionAlternative> {
    let entry = &call.findings.resolved.as_ref()?.entry;
    let requires = &entry.declaration().requires;
    let setting = |key: &str, value: bool| format!("{}: {value}", entry.id().setting_key(key));
    match reason {
        // The account of the rules covers it.
        HiddenReason::Policy => None,
        HiddenReason::Disabled => Some(DecisionAlternative::setting(
            setting("enabled", true),
            "switch the tool on",
        )),
        HiddenReason::Role if entry.settings.surface.hidden == Some(true) => Some(
            DecisionAlternative::setting(setting("hidden", false), "show the tool to agents"),
        ),
        HiddenReason::Role => Some(DecisionAlternative::other(
            DecisionAlternativeKind::Call,
            "call it as an operator",
        )),
        HiddenReason::Setup => Some(DecisionAlternative::other(
            DecisionAlternativeKind::Setting,
            "complete the setup of the tool",
        )),
        HiddenReason::ModelCapability => {
            let needed = requires.model_capabilities.join(", ");
            let text = format!("open a session with the model capabilities: {needed}");
            Some(DecisionAlternative::other(
                DecisionAlternativeKind::Call,
                text,
            ))
        }
        HiddenReason::TaskScope => {
            let tasks = requires.tasks.join(", ");
            Some(DecisionAlternative::other(
                DecisionAlternativeKind::Call,
                format!("open a session for one of: {tasks}"),
            ))
        }
        HiddenReason::Internal | HiddenReason::Companion => None,
        HiddenReason::Deferred => Some(DecisionAlternative::other(
            DecisionAlternativeKind::Discover,
            "search for it with deferred tools included",
        )),
    }
}
