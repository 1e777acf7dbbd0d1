//! Hooks after the end of a call, before it is recorded.

use std::time::Instant;

use toolpost_model::{
    Effects, ErrorClass, HookDeed, HookEvent, HookRun, HookStanding, ResultContent, ToolResult,
};

use super::{
    HookError, HookOutput, OutputMutation,
    run::{HookCallView, TEXT_CHARS, ask, begun, limit, note_failure, take_words, told},
};
use crate::{
    call::CallRunKind,
    host::HostInner,
    invocation::PipelineCall,
    record::persist,
    result::{self, OutputReplacement},
};

/// Runs all hooks in order. Each sees the result as the previous hooks left it. After a hook withheld the result, only
/// observers run. Unlike the hooks before a call, these do not stop when the caller stops waiting: a caller could
/// otherwise get content that a guard withholds by canceling at the right moment.
pub(crate) async fn post_hooks(
    host: &HostInner,
    call: &mut PipelineCall,
    result: &mut ToolResult,
    way: CallRunKind,
) {
    let event = if result.outcome.is_success() {
        HookEvent::After
    } else {
        HookEvent::Failure
    };
    let words_before = call.hooks.context.len();
    let mut is_withheld = false;
    for hook in &host.hooks {
        if is_withheld && hook.standing() != HookStanding::Observer {
            continue;
        }
        let Some(seen) = HookCallView::of(call, event, way) else {
            break;
        };
        let began = Instant::now();
        let Some(answer) = ask(&**hook, &seen.view(), Some(result), limit(host, &**hook)).await
        else {
            continue;
        };
        let mut run = begun(call, &**hook, event, began);
        let heeded = answer.and_then(|output| {
            output.check(event, run.standing)?;
            heed(host, call, &mut run, result, output);
            Ok(())
        });
        if let Err(error) = heeded {
            fail(call, &mut run, result, &error);
        }
        if run.did.contains(&HookDeed::Withheld) {
            is_withheld = true;
            // Text that hooks added after the call may quote the withheld result.
            call.hooks.context.truncate(words_before);
        }
        call.hooks.runs.push(run);
    }
    add_words(call, result);
}

fn heed(
    host: &HostInner,
    call: &mut PipelineCall,
    run: &mut HookRun,
    result: &mut ToolResult,
    output: HookOutput,
) {
    take_words(call, run, &output);
    run.reason = output
        .reason
        .as_deref()
        .map(|reason| told(call, reason, TEXT_CHARS));
    if let Some(reason) = output.stop {
        let reason = told(call, &reason, TEXT_CHARS);
        withhold(call, run, result, ErrorClass::HookBlocked, &reason);
        run.reason = Some(reason);
        return;
    }
    let mut changed_fields = Vec::new();
    let bytes_before = size(result);
    let fresh = match (output.output, output.structured) {
        (None, None) => return,
        (Some(content), structured) => {
            changed_fields.push("content".into());
            if structured.is_some() || result.structured_content.is_some() {
                changed_fields.push("structured_content".into());
            }
            OutputReplacement::Output {
                content,
                structured,
            }
        }
        (None, Some(structured)) => {
            changed_fields.push("structured_content".into());
            OutputReplacement::Structured(structured)
        }
    };
    let room = persist::room(host, call);
    result::replace_output(call, result, fresh, room);
    run.did.push(HookDeed::ChangedOutput);
    call.hooks.output_mutations.push(OutputMutation {
        source_type: "hook".into(),
        source: run.name.clone(),
        changed_fields,
        bytes_before,
        bytes_after: size(result),
        reason: run.reason.clone().unwrap_or_default(),
    });
}

/// Applies the failure of a hook after a call.
fn fail(call: &mut PipelineCall, run: &mut HookRun, result: &mut ToolResult, error: &HookError) {
    note_failure(call, run, error);
    match run.standing {
        HookStanding::Guard => {
            let why = format!(
                "the hook failed: {}",
                run.error.as_deref().unwrap_or_default()
            );
            withhold(call, run, result, ErrorClass::HookFailed, &why);
        }
        HookStanding::Ordinary | HookStanding::Observer => {}
    }
}

/// Withholds the result from the caller. If the tool never ran, the result is text of the host and stays.
fn withhold(
    call: &mut PipelineCall,
    run: &mut HookRun,
    result: &mut ToolResult,
    class: ErrorClass,
    why: &str,
) {
    if call.progress.executed.is_zero() {
        return;
    }
    let safe = call
        .findings
        .effects
        .as_ref()
        .is_none_or(Effects::may_run_again);
    result::withhold(result, class, &run.name, why, safe);
    call.live.artifacts.withhold();
    call.conclusion.unkept.clear();
    run.did.push(HookDeed::Withheld);
}

/// Adds the text of hooks to the result, each as its own content piece.
fn add_words(call: &mut PipelineCall, result: &mut ToolResult) {
    if call.hooks.context.is_empty() {
        return;
    }
    // Readers of text get the structured content only if there is no text, so it is added as text before the hooks'
    // text.
    let has_text = result
        .content
        .iter()
        .any(|piece| matches!(piece, ResultContent::Text { .. }));
    if let (false, Some(value)) = (has_text, &result.structured_content) {
        result.content.push(ResultContent::text(value.to_string()));
    }
    result
        .content
        .extend(call.hooks.context.drain(..).map(ResultContent::text));
}

fn size(result: &ToolResult) -> u64 {
    let content: usize = result.content.iter().map(ResultContent::size).sum();
    let structured = result
        .structured_content
        .as_ref()
        .map_or(0, |value| value.to_string().len());
    (content + structured) as u64
}
