//! The way of a call: one loop that steps from stage to stage.
//!
//! The same loop drives a live call, a call recovered after a restart and a dry run for `explain`. Each step is
//! a short function; what it decides with lives in its layer's room. This file, and nothing else in the host,
//! runs a tool.

mod answer;
pub(crate) mod explain;
mod nested;
pub(crate) mod recovery;
mod waiting;

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt as _;

use toolpost_model::{
    Arguments, Behavior, CallContext, CallInput, EffectClass, Effects, ErrorClass, HiddenReason, Lifecycle,
    ModelInput, ObservableInput, PermissionInput, Stage, ToolCall, ToolResult, Visibility,
};

pub use answer::{Answer, CallHandle, Standing};
use waiting::{out_of_patience, patiently, time_left};

use crate::{
    flow::{
        execution::{self, Finished},
        hooks::{HookCall, HookVerdict, InputMutation, changed_fields},
        invocation::{Acknowledged, Call, CancelReason, OnRecord, Resolved},
        permission::Facts,
        result::{self, Ending},
    },
    host::Inner,
    record::{
        journal::{RecordKind, Strength},
        redaction, rendering,
    },
};

/// How the loop is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// For a caller who waits.
    Live(Acknowledged),
    /// For a call the last host left open. Only what may run twice is run.
    Recovered,
    /// For `explain`.
    Dry,
}

/// What a step leads to.
enum Step {
    Next(Stage),
    End(Ending),
}

/// A call that ends within this time is acknowledged by its end.
const QUICK: Duration = Duration::from_millis(2);

/// A decision is made again when the facts changed while the call waited, but not for ever.
const MAX_DECISIONS: usize = 3;

/// Drives a call from the stage it is at to its end.
pub(crate) async fn drive(host: &Arc<Inner>, call: &mut Call, way: Way) -> Arc<Answer> {
    let travelled = AssertUnwindSafe(travel(host, call, way)).catch_unwind().await;
    if let Err(panic) = travelled {
        let safe = call.on_record != OnRecord::Started;
        call.permit = None;
        call.ending = Some(result::panicked(&execution::panic_text(&*panic), safe));
        call.stage = Stage::Map;
    }
    call.enter();
    let result = result::map(call, host.limits.inline_chars);
    call.stage = Stage::PostHooks;
    call.enter();
    if AssertUnwindSafe(post_hooks(host, call, &result)).catch_unwind().await.is_err() {
        tracing::error!("a hook panicked after a call; the call's result stands");
    }
    call.stage = Stage::Persist;
    call.enter();
    let answer = persist(host, call, result).await;
    call.stage = Stage::Emit;
    call.enter();
    answer
}

/// The same way for `explain`: stops before anything happens, records nothing.
pub(crate) async fn rehearse(host: &Arc<Inner>, call: &mut Call) {
    travel(host, call, Way::Dry).await;
}

/// Steps from stage to stage until the call has an ending, or, dry, until it would be admitted.
async fn travel(host: &Arc<Inner>, call: &mut Call, way: Way) {
    while call.stage < Stage::Map {
        call.enter();
        let step = match call.stage {
            Stage::Resolve => resolve(host, call, way).await,
            Stage::Parse => parse(host, call),
            Stage::Validate => validate(call),
            Stage::Observe => observe(host, call, way).await,
            Stage::PreHooks => pre_hooks(host, call).await,
            Stage::Decide => decide(host, call),
            Stage::AwaitApproval => await_approval(call),
            Stage::Admit if way == Way::Dry => return,
            Stage::Admit => admit(host, call, way).await,
            Stage::Execute => execute(host, call, way).await,
            Stage::Map | Stage::PostHooks | Stage::Persist | Stage::Emit => return,
        };
        call.stage = match step {
            Step::Next(stage) => stage,
            Step::End(ending) => {
                call.permit = None;
                call.ending = Some(ending);
                Stage::Map
            }
        };
    }
}

/// Which tool, and may it be called here?
async fn resolve(host: &Inner, call: &mut Call, way: Way) -> Step {
    let surface = host.surface(&call.session);
    let Some((entry, visibility)) = surface.find(&call.live.tool) else {
        let similar = surface.catalog().similar(&call.live.tool);
        return Step::End(result::unknown_tool(&call.live.tool, &similar));
    };
    let opening = call.session.open(entry.source, &*host.sources[entry.source.0]);
    let source = match patiently(host, call, opening).await {
        Ok(Ok(source)) => source,
        Ok(Err(error)) => return Step::End(result::source_unavailable(&error)),
        Err(ending) => return Step::End(ending),
    };
    call.resolved = Some(Resolved { surface: surface.id().clone(), entry: Arc::clone(entry), source });
    match visibility {
        Visibility::Loaded => Step::Next(Stage::Parse),
        // A recovered call passed this check in its first life; what its session had seen died with the host.
        Visibility::Deferred if way == Way::Recovered || host.is_shown(&call.session, entry) => {
            Step::Next(Stage::Parse)
        }
        Visibility::Deferred => Step::End(result::schema_not_loaded(entry.name())),
        Visibility::Blocked(HiddenReason::Policy) => Step::End(denied_outright(host, call)),
        Visibility::Blocked(reason) => {
            let setup = match &entry.declaration().lifecycle {
                Lifecycle::RequiresSetup(what) if reason == HiddenReason::Setup => Some(what.as_str()),
                _ => None,
            };
            Step::End(result::blocked(entry.name(), reason, setup))
        }
    }
}

/// The policy hides the tool, so it also says why.
fn denied_outright(host: &Inner, call: &mut Call) -> Ending {
    let Some(resolved) = &call.resolved else { return result::internal("a hidden tool that was not found") };
    let effects = Effects::of(resolved.entry.fixed_class().unwrap_or(EffectClass::Unknown));
    let declaration = resolved.entry.declaration();
    let decision = host.policy.decide(&Facts {
        declaration,
        input: None,
        effects: &effects,
        principal: call.session.principal(),
    });
    let ending = result::policy_blocked(resolved.entry.name(), &decision);
    call.effects = Some(effects);
    call.decision = Some(decision);
    ending
}

/// Reads the arguments. The model's input stays as it came.
fn parse(host: &Inner, call: &mut Call) -> Step {
    if let ModelInput::Text(text) = &call.inputs.model
        && text.len() > host.limits.argument_bytes
    {
        return Step::End(result::arguments_too_large(text.len(), host.limits.argument_bytes));
    }
    match call.inputs.model.parse() {
        Ok(arguments) => {
            call.inputs.call = Some(CallInput::new(arguments));
            Step::Next(Stage::Validate)
        }
        Err(error) => Step::End(result::unreadable(error.to_string())),
    }
}

/// Checks the values before any I/O.
fn validate(call: &mut Call) -> Step {
    let (Some(resolved), Some(input)) = (&call.resolved, &call.inputs.call) else {
        return lost_its_way();
    };
    match resolved.entry.input().violations(input.arguments().value()) {
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            // The record may show what was wrong, but not what was secret.
            show(call);
            return Step::End(result::violations(&found));
        }
        Err(error) => return Step::End(result::broken_schema(&error)),
    }
    if let Err(refusal) = resolved.source.check(resolved.entry.id(), input) {
        show(call);
        return Step::End(result::refused(&refusal));
    }
    Step::Next(Stage::Observe)
}

/// Prepares what others may see, and puts the call on record where somebody is told of it before its end.
async fn observe(host: &Inner, call: &mut Call, way: Way) -> Step {
    show(call);
    let early = match way {
        Way::Live(Acknowledged::Early) => true,
        // A hook may take its time.
        Way::Live(Acknowledged::OnceOnRecord) => !host.hooks.is_empty() || host.journal_failing(),
        Way::Live(Acknowledged::AtTheEnd) => host.journal_failing(),
        Way::Recovered | Way::Dry => false,
    };
    if early && let Err(ending) = accept(host, call).await {
        return Step::End(ending);
    }
    Step::Next(Stage::PreHooks)
}

/// Puts the call on record, so that it may be acknowledged.
async fn accept(host: &Inner, call: &mut Call) -> Result<(), Ending> {
    if call.on_record == OnRecord::Nothing {
        let record = rendering::record(call, RecordKind::Accepted, None);
        host.append(record, Strength::Committed).await.map_err(|error| result::journal_refuses(&error))?;
        call.on_record = OnRecord::Accepted;
    }
    call.live.accepted();
    Ok(())
}

/// Whether somebody waits to hear that the call was taken, and nothing of it is on record yet.
fn owes_acknowledgement(call: &Call, way: Way) -> bool {
    way == Way::Live(Acknowledged::OnceOnRecord) && call.on_record == OnRecord::Nothing
}

/// Fills the observable input from the call input.
fn show(call: &mut Call) {
    let (Some(resolved), Some(input)) = (&call.resolved, &call.inputs.call) else {
        return;
    };
    let arguments = input.arguments();
    let sensitive = resolved.entry.input().sensitive_pointers(arguments.value());
    let (shown, secrets) = redaction::observable(arguments, &sensitive, call.live.host_redactor());
    call.inputs.redacted = !std::ptr::eq(shown.value(), arguments.value());
    call.inputs.observable = Some(ObservableInput::new(shown));
    call.live.add_secrets(secrets);
}

/// Lets hooks look, rewrite or stop. A rewrite is checked like the model's own arguments.
async fn pre_hooks(host: &Inner, call: &mut Call) -> Step {
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

/// What the call will do, as far as the host believes it.
fn effects(call: &Call) -> Option<Effects> {
    let (resolved, input) = (call.resolved.as_ref()?, call.inputs.call.as_ref()?);
    let interface = &resolved.entry.declaration().interface;
    let declared = Effects::of(interface.safety.class.worst());
    let mut effects = resolved.source.effects(resolved.entry.id(), input).unwrap_or_else(|| declared.clone());
    if resolved.entry.origin == toolpost_model::EffectOrigin::Operator {
        effects = Effects { uses: effects.uses, caution: effects.caution, ..declared };
    }
    effects.idempotent |= interface.execution.idempotent;
    Some(effects.as_stated_by(resolved.entry.origin))
}

/// Allowed, denied or asked?
fn decide(host: &Inner, call: &mut Call) -> Step {
    let (Some(effects), Some(resolved)) = (effects(call), &call.resolved) else {
        return lost_its_way();
    };
    let facts = Facts {
        declaration: resolved.entry.declaration(),
        input: call.inputs.permission.as_ref(),
        effects: &effects,
        principal: call.session.principal(),
    };
    let decision = host.policy.decide(&facts);
    let step = match decision.behavior {
        Behavior::Allow => Step::Next(Stage::Admit),
        Behavior::Ask => Step::Next(Stage::AwaitApproval),
        Behavior::Deny => Step::End(result::denied(resolved.entry.name(), &decision)),
    };
    call.effects = Some(effects);
    call.decision = Some(decision);
    step
}

/// Nobody can be asked yet, so an ask is a denial that says what would change it.
fn await_approval(call: &Call) -> Step {
    let (Some(resolved), Some(decision)) = (&call.resolved, &call.decision) else {
        return lost_its_way();
    };
    Step::End(result::nobody_to_ask(resolved.entry.name(), decision))
}

/// Waits for a slot and for the resources.
async fn admit(host: &Inner, call: &mut Call, way: Way) -> Step {
    let Some(effects) = call.effects.clone() else {
        return lost_its_way();
    };
    let (began, live, session) = (Instant::now(), Arc::clone(&call.live), Arc::clone(&call.session));
    let parent = call.parent.clone();
    let admission = host.scheduler.admit(session.id(), &effects, parent.as_ref(), || live.say_queued());
    let mut admission = std::pin::pin!(admission);
    let admitted = loop {
        let owes = owes_acknowledgement(call, way);
        tokio::select! {
            biased;
            admitted = &mut admission => break admitted,
            () = live.token().cancelled() => {
                let reason = live.cancel_reason().unwrap_or(CancelReason::Requested);
                return Step::End(result::canceled_before_start(reason));
            }
            () = out_of_patience(call) => return Step::End(result::still_queued()),
            () = tokio::time::sleep(QUICK), if owes => {
                if let Err(ending) = accept(host, call).await {
                    return Step::End(ending);
                }
            }
        }
    };
    call.queued += began.elapsed();
    match admitted {
        Ok(permit) => {
            call.permit = Some(permit);
            Step::Next(Stage::Execute)
        }
        Err(full) => Step::End(result::queue_full(&full)),
    }
}

/// Runs the tool. The only place that does.
async fn execute(host: &Arc<Inner>, call: &mut Call, way: Way) -> Step {
    let (Some(effects), Some(resolved), Some(input)) = (effects(call), &call.resolved, &call.inputs.call)
    else {
        return lost_its_way();
    };
    if call.effects.as_ref() != Some(&effects) {
        return decide_again(call);
    }
    if let Some(reason) = call.live.cancel_reason() {
        return Step::End(result::canceled_before_start(reason));
    }
    if way == Way::Recovered && !effects.is_harmless() {
        return Step::End(result::restarted("it had not started, and its caller is gone"));
    }
    let interface = &resolved.entry.declaration().interface;
    let limit = match time_left(host, call, &resolved.entry) {
        Ok(limit) => limit,
        Err(ending) => return Step::End(ending),
    };
    let (entry, source, input) = (Arc::clone(&resolved.entry), Arc::clone(&resolved.source), input.clone());
    let support = interface.execution.cancel;
    if !effects.is_harmless() && call.on_record != OnRecord::Started {
        let record = rendering::record(call, RecordKind::Started, None);
        if let Err(error) = host.append(record, Strength::Synced).await {
            return Step::End(result::journal_refuses(&error));
        }
        call.on_record = OnRecord::Started;
        call.live.accepted();
    }
    let (began, live) = (Instant::now(), Arc::clone(&call.live));
    let context = CallContext::new(Arc::new(nested::Port::of(host, call, &effects, began + limit)));
    let work = source.execute(entry.id(), ToolCall { input, context });
    let mut work = std::pin::pin!(execution::supervise(work, began + limit, live.token(), support));
    let finished = if owes_acknowledgement(call, way) {
        match tokio::time::timeout(QUICK, &mut work).await {
            Ok(finished) => finished,
            Err(_) => {
                // The work goes on whatever becomes of the record: it changes nothing.
                let accepted = accept(host, call);
                let (accepted, finished) = tokio::join!(accepted, &mut work);
                if let Err(ending) = accepted {
                    return Step::End(ending);
                }
                finished
            }
        }
    } else {
        work.await
    };
    call.executed = began.elapsed();
    call.permit = None;
    let safe = effects.may_run_again();
    let reason = call.live.cancel_reason().unwrap_or(CancelReason::Requested);
    Step::End(match finished {
        Finished::Returned(Ok(output)) => Ending::Output(output),
        Finished::Returned(Err(failure)) => result::tool_failed(failure, &effects),
        Finished::Panicked(message) => result::panicked(&message, safe),
        Finished::DeadlinePassed { said } => {
            result::stopped(result::timed_out(limit.as_millis(), safe), said)
        }
        Finished::Canceled { said } => result::stopped(result::canceled_while_running(reason, safe), said),
    })
}

/// The facts changed while the call waited: what was decided no longer stands.
fn decide_again(call: &mut Call) -> Step {
    call.permit = None;
    let decided = call.transitions.iter().filter(|transition| transition.stage == Stage::Decide).count();
    if decided < MAX_DECISIONS {
        return Step::Next(Stage::Decide);
    }
    Step::End(result::internal("what the call touches kept changing while it waited"))
}

async fn post_hooks(host: &Inner, call: &Call, result: &ToolResult) {
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

/// Commits the end, then makes the answer. A record never contradicts an answer: where the end cannot be
/// written, the answer says so instead of what the tool said.
async fn persist(host: &Inner, call: &mut Call, result: ToolResult) -> Arc<Answer> {
    let answer = Answer::of(result);
    let record = rendering::record(call, RecordKind::Ended, Some(answer.json()));
    match host.append(record, Strength::Committed).await {
        Ok(()) => answer,
        // Nothing had run, so the answer claims nothing that the missing record would have to back.
        Err(_) if answer.result().error_class() == Some(ErrorClass::JournalUnavailable) => answer,
        Err(error) => {
            let safe = call.effects.as_ref().is_none_or(Effects::may_run_again);
            call.ending = Some(result::end_not_recorded(&error, safe));
            Answer::of(result::map(call, host.limits.inline_chars))
        }
    }
}

/// A step found something missing that an earlier step must have left. Never seen; said aloud if it is.
fn lost_its_way() -> Step {
    Step::End(result::internal("a stage was reached without what the one before it leaves behind"))
}
