//! Hooks before the decision.

use std::{sync::Arc, time::Instant};

use serde_json::Value;
use toolpost_model::{
    Arguments, Behavior, CallInput, DecisionReason, HookDeed, HookEvent, HookRun, HookStanding,
    PermissionInput, ReasonType, Stage, Vote,
};

use super::{
    Hook, HookError, HookOutput, HookVote, InputMutation, changed_fields, restored,
    run::{HookCallView, TEXT_CHARS, ask, begun, limit, note_failure, take_words, told},
};
use crate::{
    call::{CallRunKind, StageExit, lost_its_way},
    host::HostInner,
    invocation::{
        PipelineCall, micros,
        patience::patiently,
        resolve::show,
        validate::{ArgumentLimit, validate},
    },
    result::{self, CallEnding},
};

/// Runs all hooks in order. The first hook that stops the call, or the first guard that fails, ends it.
pub(crate) async fn pre_hooks(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    for hook in &host.hooks {
        // A dry run changes nothing, so observers have nothing to observe. Hooks that can decide run in a dry run as
        // well.
        if way == CallRunKind::Dry && hook.standing() == HookStanding::Observer {
            continue;
        }
        if let Err(ending) = pass(host, call, &**hook, way).await {
            return StageExit::End(ending);
        }
    }
    let Some(input) = &call.inputs.call else {
        return lost_its_way();
    };
    call.inputs.permission = Some(PermissionInput::new(input.arguments().clone()));
    StageExit::Next(Stage::Decide)
}

/// Runs one hook and applies its output.
async fn pass(
    host: &HostInner,
    call: &mut PipelineCall,
    hook: &dyn Hook,
    way: CallRunKind,
) -> Result<(), CallEnding> {
    let Some(seen) = HookCallView::of(call, HookEvent::Before, way) else {
        return Err(result::internal(
            "a hook requires a call with a resolved tool and validated arguments",
        ));
    };
    let began = Instant::now();
    let asked = patiently(host, call, ask(hook, &seen.view(), None, limit(host, hook))).await;
    let mut run = begun(call, hook, HookEvent::Before, began);
    let passed = match asked {
        Ok(None) => return Ok(()),
        Ok(Some(answer)) => {
            let heeded = answer.and_then(|output| {
                output.check(HookEvent::Before, run.standing)?;
                heed(host, call, &mut run, output)
            });
            heeded.unwrap_or_else(|error| fail(call, &mut run, &error))
        }
        Err(ending) => {
            run.error = Some("the call ended before the hook answered".to_owned());
            Err(ending)
        }
    };
    call.hooks.runs.push(run);
    passed
}

/// Applies the failure of a hook before a call.
fn fail(call: &mut PipelineCall, run: &mut HookRun, error: &HookError) -> Result<(), CallEnding> {
    note_failure(call, run, error);
    let text = run.error.as_deref().unwrap_or_default();
    match run.standing {
        HookStanding::Guard => Err(result::hook_failed(&run.name, text)),
        HookStanding::Ordinary => {
            let text = format!(
                "the hook `{}`, which checks such calls, failed: {text}",
                run.name
            );
            call.hooks.opinions.push(vote(Behavior::Ask, text));
            Ok(())
        }
        HookStanding::Observer => Ok(()),
    }
}

/// Applies a hook's output. The outer error reports an invalid output; the inner one is the end of the call.
fn heed(
    host: &HostInner,
    call: &mut PipelineCall,
    run: &mut HookRun,
    output: HookOutput,
) -> Result<Result<(), CallEnding>, HookError> {
    // Checked before anything is applied, so that an invalid rewrite leaves no trace of the output.
    let rewritten = match &output.arguments {
        Some(arguments) if output.stop.is_none() => Some(rewritten(host, call, arguments)?),
        Some(_) | None => None,
    };
    take_words(call, run, &output);
    run.reason = output
        .reason
        .as_deref()
        .map(|reason| told(call, reason, TEXT_CHARS));
    if let Some(reason) = output.stop {
        let reason = told(call, &reason, TEXT_CHARS);
        run.did.push(HookDeed::Stopped);
        let ending = result::hook_stopped(&run.name, &reason);
        run.reason = Some(reason);
        return Ok(Err(ending));
    }
    if let Some(arguments) = rewritten
        && let Err(ending) = rewrite(host, call, run, arguments)
    {
        return Ok(Err(ending));
    }
    if let Some(HookVote { behavior, reason }) = output.opinion {
        let reason = told(call, &reason, TEXT_CHARS);
        run.did.push(behavior.into());
        call.hooks
            .opinions
            .push(vote(behavior, format!("the hook `{}`: {reason}", run.name)));
        run.reason = Some(reason);
    }
    Ok(Ok(()))
}

fn vote(behavior: Behavior, text: String) -> Vote {
    Vote {
        behavior,
        reason: DecisionReason {
            kind: ReasonType::Hook,
            text,
            rule: None,
        },
    }
}

/// The rewritten arguments with the hidden values restored, parsed like the arguments of the model.
fn rewritten(
    host: &HostInner,
    call: &PipelineCall,
    arguments: &Value,
) -> Result<Arguments, HookError> {
    let (Some(resolved), Some(input), Some(observable)) = (
        &call.findings.resolved,
        &call.inputs.call,
        &call.inputs.observable,
    ) else {
        return Err(HookError("there are no arguments to change".to_owned()));
    };
    let original = input.arguments().value();
    let whole = restored(original, observable.arguments().value(), arguments.clone())?;
    let text: Arc<str> = whole.to_string().into();
    let most = ArgumentLimit::of(host, &resolved.entry).bytes;
    if text.len() > most {
        let size = text.len();
        return Err(HookError(format!(
            "its new arguments have {size} bytes; the limit is {most}"
        )));
    }
    Arguments::parse(&text).map_err(|error| HookError(error.to_string()))
}

/// Replaces the arguments. They are validated like the arguments of the model. Votes to allow are dropped, because they
/// were about the old arguments.
fn rewrite(
    host: &HostInner,
    call: &mut PipelineCall,
    run: &mut HookRun,
    arguments: Arguments,
) -> Result<(), CallEnding> {
    let before = call
        .inputs
        .call
        .as_ref()
        .map_or(&Value::Null, |input| input.arguments().value());
    let changed_fields = changed_fields(before, arguments.value());
    run.did.push(HookDeed::ChangedArguments);
    if changed_fields.is_empty() {
        return Ok(());
    }
    call.hooks
        .opinions
        .retain(|vote| vote.behavior != Behavior::Allow);
    call.inputs.note_change(InputMutation {
        source_type: "hook".into(),
        source: run.name.clone(),
        changed_fields,
        reason: run.reason.clone().unwrap_or_default(),
        at_us: micros(call.live.began.elapsed()),
        arguments_before: None,
    });
    call.inputs.call = Some(CallInput::new(arguments));
    if let StageExit::End(ending) = validate(host, call) {
        return Err(result::after_rewrite(&run.name, ending));
    }
    show(call);
    Ok(())
}
