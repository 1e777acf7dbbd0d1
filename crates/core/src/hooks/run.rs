//! Hooks around a call: they are asked one after another, and what they say is heeded, recorded and, where they fail,
//! met by what their standing demands.

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

/// Reasons and messages are for one look; a longer one is cut.
pub(super) const TEXT_CHARS: usize = 4_000;
/// A word for the model may be a page, and no more.
const CONTEXT_CHARS: usize = 32_000;

/// What a hook is shown of a call. Holds what it shows, so that the call can be written while hooks are asked.
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

/// The hooks that would be asked about a call, and when.
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

/// Whether a hook will see the end of a call that runs now and can keep its result from the caller.
pub(crate) fn may_withhold(host: &HostInner, call: &PipelineCall) -> bool {
    let sees_the_end = |hook: &dyn Hook| {
        [HookEvent::After, HookEvent::Failure]
            .into_iter()
            // Of the ways only a dry run looks different to a hook, and none of those runs.
            .any(|event| concerns(hook, call, event, CallRunKind::Resumed))
    };
    host.hooks.iter().any(|hook| match hook.standing() {
        HookStanding::Observer => false,
        HookStanding::Guard | HookStanding::Ordinary => sees_the_end(&**hook),
    })
}

/// Whether a hook would be asked. One that panics over that would be.
fn concerns(hook: &dyn Hook, call: &PipelineCall, event: HookEvent, way: CallRunKind) -> bool {
    HookCallView::of(call, event, way).is_some_and(|seen| {
        std::panic::catch_unwind(AssertUnwindSafe(|| hook.concerns(&seen.view()))).unwrap_or(true)
    })
}

/// How long a hook may take. A call's source and its hooks wait under the same ceiling.
pub(super) fn limit(host: &HostInner, hook: &dyn Hook) -> Duration {
    hook.time_limit()
        .unwrap_or(host.limits.hook)
        .min(host.limits.deadline)
}

/// Asks one hook, within its time. `None`: the call does not concern it. A hook that panics or does not come back has
/// failed like one that says so.
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

/// The record of a hook that was asked just now.
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

/// A hook's words as others may see them: no secret of the call or the host, and not without end.
pub(super) fn told(call: &PipelineCall, text: &str, most: usize) -> String {
    cut(call.live.redactor().text(text).into_owned(), most)
}

/// A text of at most so many characters, which says where it was cut.
pub(crate) fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{} [… cut at {most} characters]", &text[..end]),
    }
}

/// Notes how a hook failed: for the record, for the operator's log, and for whoever watches the call.
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

/// What may come with any output: a line for whoever watches, and words for the model.
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
