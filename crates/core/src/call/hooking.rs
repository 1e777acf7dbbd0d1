//! Hooks around a call: before the decision and after the result.

use toolpost_model::{Arguments, CallInput, PermissionInput, Stage, ToolResult};

use super::{
    Step, lost_its_way,
    prepare::{show, validate},
    waiting::patiently,
};
use crate::{
    flow::{
        hooks::{HookCall, HookVerdict, InputMutation, changed_fields},
        invocation::Call,
        result,
    },
    host::Inner,
};

/// Lets hooks look, rewrite or stop. A rewrite is checked like the model's own arguments.
pub(super) async fn pre_hooks(host: &Inner, call: &mut Call) -> Step {
    for hook in &host.hooks {
        let (Some(resolved), Some(observable), Some(input)) =
            (&call.resolved, &call.inputs.observable, &call.inputs.call)
        else {
            return lost_its_way();
        };
        let declaration = resolved.entry.declaration();
        let seen = HookCall { declaration, input: observable, principal: call.session.principal() };
        let verdict = match patiently(host, call, hook.before(&seen)).await {
            Ok(verdict) => verdict,
            Err(ending) => return Step::End(ending),
        };
        match verdict {
            Ok(HookVerdict::Proceed) => {}
            Ok(HookVerdict::Stop { reason }) => return Step::End(result::hook_stopped(hook.name(), &reason)),
            Err(error) => return Step::End(result::hook_failed(hook.name(), &error.0)),
            Ok(HookVerdict::Rewrite { arguments, reason }) => {
                call.inputs.mutations.push(InputMutation {
                    source_type: "hook",
                    source: hook.name().to_owned(),
                    changed_fields: changed_fields(input.arguments().value(), &arguments),
                    reason,
                });
                call.inputs.call = Some(CallInput::new(Arguments::from_value(arguments)));
                if let Step::End(ending) = validate(call) {
                    return Step::End(ending);
                }
                show(call);
            }
        }
    }
    let Some(input) = &call.inputs.call else {
        return lost_its_way();
    };
    call.inputs.permission = Some(PermissionInput::new(input.arguments().clone()));
    Step::Next(Stage::Decide)
}

pub(super) async fn post_hooks(host: &Inner, call: &Call, result: &ToolResult) {
    let (Some(resolved), Some(observable)) = (&call.resolved, &call.inputs.observable) else { return };
    let declaration = resolved.entry.declaration();
    let seen = HookCall { declaration, input: observable, principal: call.session.principal() };
    for hook in &host.hooks {
        if tokio::time::timeout(host.limits.deadline, hook.after(&seen, result)).await.is_err() {
            tracing::error!(
                hook = hook.name(),
                "a hook did not come back after a call; the call's result stands"
            );
        }
    }
}
