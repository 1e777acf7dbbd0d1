//! What would lead to another outcome where it is not the rules that stand in the way.

use toolpost_model::{ErrorClass, HiddenReason, ToolError, Visibility};

use crate::{
    flow::{
        approval::Approvals,
        invocation::Call,
        permission::{Change, ChangeKind},
    },
    host::Inner,
};

pub(super) fn changes(
    host: &Inner,
    call: &Call,
    visibility: Option<Visibility>,
    error: Option<&ToolError>,
) -> Vec<Change> {
    let Some(error) = error else {
        return Vec::new();
    };
    if let Some(Visibility::Blocked(reason)) = visibility {
        return shown(call, reason).into_iter().collect();
    }
    let hint = || error.hint.clone().unwrap_or_else(|| error.message.clone());
    match error.class {
        ErrorClass::UnknownTool => vec![Change::other(ChangeKind::Call, hint())],
        ErrorClass::SchemaNotLoaded => vec![Change::other(ChangeKind::Discover, hint())],
        ErrorClass::SchemaValidationFailed
        | ErrorClass::InvalidArguments
        | ErrorClass::SandboxViolation
        | ErrorClass::ResultTooLarge
        | ErrorClass::RequestConflict => {
            vec![Change::other(
                ChangeKind::Call,
                format!("send other arguments: {}", error.message),
            )]
        }
        ErrorClass::HookBlocked | ErrorClass::HookFailed => {
            vec![Change::other(
                ChangeKind::Hook,
                "the hook that stopped it lets it pass",
            )]
        }
        ErrorClass::PermissionDenied if error.retry.needs_approval => match host.approvals {
            Approvals::Nobody => {
                let text = "somebody is there to be asked: `toolpost serve` asks operators";
                vec![Change::other(ChangeKind::Answer, text)]
            }
            Approvals::Ask { .. } => Vec::new(),
        },
        ErrorClass::SetupRequired
        | ErrorClass::DependencyUnavailable
        | ErrorClass::RateLimited
        | ErrorClass::JournalUnavailable => vec![Change::other(ChangeKind::Setting, hint())],
        // The rules have had their say, or it is no end that a dry run comes to.
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

/// What would show a tool that is hidden.
fn shown(call: &Call, reason: HiddenReason) -> Option<Change> {
    let entry = &call.resolved.as_ref()?.entry;
    let requires = &entry.declaration().requires;
    let setting = |key: &str, value: bool| format!("{}: {value}", entry.id().setting_key(key));
    match reason {
        // The rules tell it themselves.
        HiddenReason::Policy => None,
        HiddenReason::Disabled => Some(Change::setting(
            setting("enabled", true),
            "switch the tool on",
        )),
        HiddenReason::Role if entry.settings.hidden => Some(Change::setting(
            setting("hidden", false),
            "show the tool to agents",
        )),
        HiddenReason::Role => Some(Change::other(ChangeKind::Call, "call it as an operator")),
        HiddenReason::Setup => Some(Change::other(
            ChangeKind::Setting,
            "set up what the tool needs",
        )),
        HiddenReason::ModelCapability => {
            let needed = requires.model_capabilities.join(", ");
            let text = format!("open a session that says the model can: {needed}");
            Some(Change::other(ChangeKind::Call, text))
        }
        HiddenReason::TaskScope => {
            let tasks = requires.tasks.join(", ");
            Some(Change::other(
                ChangeKind::Call,
                format!("open a session for one of: {tasks}"),
            ))
        }
        HiddenReason::Internal | HiddenReason::Companion => None,
        HiddenReason::Deferred => Some(Change::other(
            ChangeKind::Discover,
            "search for it with deferred tools included",
        )),
    }
}
