//! Running hooks: asking them in order, recording their output, and applying their standing to failures.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use toolpost_model::{
    EventBody, HookEvent, HookRun, HookStanding, InvocationId, LogLevel, ObservableInput,
    RequestId, ToolResult,
};

use super::{Hook, HookCall, HookError, HookOutput, ResolvedCall};
use crate::{
    call::{CallRunKind, explain::HookPlan},
    execution::deadline,
    host::HostInner,
    invocation::{PipelineCall, micros},
    session::Session,
};

/// The limit of reasons and messages, which are read at a glance.
pub(super) const TEXT_CHARS: usize = 4_000;
/// The limit of a text for the model.
const CONTEXT_CHARS: usize = 32_000;

/// The data of a hook's view of a call. It owns the data, so that the call can change while hooks run.
pub(super) struct HookCallView {
    event: HookEvent,
    id: InvocationId,
    request: Option<RequestId>,
    batch: Option<String>,
    parent: Option<InvocationId>,
    session: Arc<Session>,
    input: ObservableInput,
    known: ResolvedCall,
    is_dry_run: bool,
}

impl HookCallView {
    pub(super) fn of(call: &PipelineCall, event: HookEvent, way: CallRunKind) -> Option<Self> {
        Some(Self {
            event,
            id: call.live.id,
            request: call.origin.request.as_ref().map(|key| key.id.clone()),
            batch: call
                .origin
                .place
                .as_ref()
                .map(|place| call.live.redactor().text(&place.id).into_owned()),
            parent: call.lineage.parent.as_ref().map(|parent| parent.id),
            session: Arc::clone(&call.session),
            input: call.inputs.observable.clone()?,
            known: ResolvedCall {
                resolved: call.findings.resolved.clone()?,
                input: call.inputs.call.clone()?,
            },
            is_dry_run: way == CallRunKind::Dry,
        })
    }

    pub(super) fn view(&self) -> HookCall<'_> {
        HookCall {
            event: self.event,
            at: crate::port::now(),
            invocation_id: self.id,
            request_id: self.request.as_ref(),
            batch_id: self.batch.as_deref(),
            parent: self.parent,
            tool: self.known.resolved.entry.name(),
            session_id: self.session.id(),
            declaration: self.known.resolved.entry.declaration(),
            input: &self.input,
            known: &self.known,
            principal: self.session.principal(),
            is_dry_run: self.is_dry_run,
        }
    }
}

/// The hooks that would run for a call, with their events.
pub(crate) fn ahead(host: &HostInner, call: &PipelineCall) -> Vec<HookPlan> {
    let mut found: Vec<HookPlan> = Vec::new();
    for hook in &host.hooks {
        let concerned = |event: &HookEvent| concerns(&**hook, call, *event, CallRunKind::Dry);
        let events = [HookEvent::Before, HookEvent::After, HookEvent::Failure];
        let events: Vec<HookEvent> = events.into_iter().filter(concerned).collect();
        if !events.is_empty() {
            let name = hook.name().to_owned();
            let standing = hook.standing();
            found.push(HookPlan {
                name,
                standing,
                events,
            });
        }
    }
    found
}

/// Whether a hook may withhold the result of a running call.
pub(crate) fn may_withhold(host: &HostInner, call: &PipelineCall) -> bool {
    let sees_the_end = |hook: &dyn Hook| {
        [HookEvent::After, HookEvent::Failure]
            .into_iter()
            // Only dry runs differ for hooks, and a dry run executes nothing, so any other mode gives the same answer.
            .any(|event| concerns(hook, call, event, CallRunKind::Resumed))
    };
    host.hooks.iter().any(|hook| match hook.standing() {
        HookStanding::Observer => false,
        HookStanding::Guard | HookStanding::Ordinary => sees_the_end(&**hook),
    })
}

/// Whether a hook applies to the call. A hook that panics over this question applies.
fn concerns(hook: &dyn Hook, call: &PipelineCall, event: HookEvent, way: CallRunKind) -> bool {
    HookCallView::of(call, event, way).is_some_and(|seen| {
        std::panic::catch_unwind(AssertUnwindSafe(|| hook.concerns(&seen.view()))).unwrap_or(true)
    })
}

/// The time limit of a hook. The default deadline of calls is an upper bound.
pub(super) fn limit(host: &HostInner, hook: &dyn Hook) -> Duration {
    hook.time_limit()
        .unwrap_or(host.limits.hook)
        .min(host.limits.deadline)
}

/// Runs one hook within its time limit. `None` if the call is outside its scope. A panic or a timeout is an error.
pub(super) async fn ask(
    hook: &dyn Hook,
    call: &HookCall<'_>,
    result: Option<&ToolResult>,
    limit: Duration,
) -> Option<Result<HookOutput, HookError>> {
    let work = async {
        if !hook.concerns(call) {
            return None;
        }
        Some(match (call.event, result) {
            (HookEvent::After, Some(result)) => hook.after(call, result).await,
            (HookEvent::Failure, Some(result)) => hook.failed(call, result).await,
            (HookEvent::Before | HookEvent::After | HookEvent::Failure, _) => {
                hook.before(call).await
            }
        })
    };
    let answer = deadline::within(limit, work).await;
    answer.unwrap_or_else(|fault| Some(Err(HookError(fault))))
}

/// The record of a hook run that just ended.
pub(super) fn begun(
    call: &PipelineCall,
    hook: &dyn Hook,
    event: HookEvent,
    began: Instant,
) -> HookRun {
    HookRun {
        name: hook.name().to_owned(),
        event,
        standing: hook.standing(),
        at_us: micros(began.saturating_duration_since(call.live.began)),
        duration_us: micros(began.elapsed()),
        did: Vec::new(),
        reason: None,
        message: None,
        error: None,
    }
}

/// The text of a hook, redacted and limited in length.
pub(super) fn told(call: &PipelineCall, text: &str, most: usize) -> String {
    cut(call.live.redactor().text(text).into_owned(), most)
}

/// Limits a text to a number of characters and marks the cut.
pub(crate) fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{} [… cut at {most} characters]", &text[..end]),
    }
}

/// Reports a hook's failure to the record, the log and the call's listeners.
pub(super) fn note_failure(call: &PipelineCall, run: &mut HookRun, error: &HookError) {
    let text = told(call, &error.0, TEXT_CHARS);
    tracing::warn!(
        hook = run.name,
        event = run.event.as_str(),
        "a hook failed: {text}"
    );
    let message = format!("the hook `{}` failed: {text}", run.name);
    call.live.emit(EventBody::Log {
        level: LogLevel::Warn,
        message,
    });
    run.error = Some(text);
}

/// Applies the parts that any output can have: a message for listeners and text for the model.
pub(super) fn take_words(call: &mut PipelineCall, run: &mut HookRun, output: &HookOutput) {
    use toolpost_model::HookDeed::{AddedContext, LeftMessage};
    if let Some(message) = &output.message {
        let message = told(call, message, TEXT_CHARS);
        let line = format!("{}: {message}", run.name);
        call.live.emit(EventBody::Log {
            level: LogLevel::Info,
            message: line,
        });
        run.message = Some(message);
        run.did.push(LeftMessage);
    }
    for text in &output.context {
        let text = told(call, text, CONTEXT_CHARS);
        call.hooks
            .context
            .push(format!("[hook {}] {text}", run.name));
    }
    if !output.context.is_empty() {
        run.did.push(AddedContext);
    }
}
