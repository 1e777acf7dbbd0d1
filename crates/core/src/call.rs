//! The pipeline of a call: one loop that runs stage after stage.
//!
//! The same loop drives a live call, a call recovered after a restart and a dry run for `explain`. Each step is a short
//! function in the folder of its layer. Only `execution/run.rs` runs a tool.

pub(crate) mod explain;
mod plan;
pub(crate) mod recover;

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;

use toolpost_model::Stage;

pub(crate) use plan::CallRunKind;
use plan::{StagePlan, StageStep};

use crate::{
    approval::wait,
    execution::{deadline, run},
    hooks::{after, before},
    host::HostInner,
    invocation::{OnRecord, PipelineCall, RecordedResult, resolve, validate},
    permission::decide,
    record::{persist, replay::answer as replay},
    result::{self, CallEnding},
    scheduling::admit,
};

/// The result of a step.
pub(crate) enum StageExit {
    Next(Stage),
    End(CallEnding),
}

/// Drives a call from its current stage to its end.
pub(crate) async fn drive(
    host: &Arc<HostInner>,
    call: &mut PipelineCall,
    mode: CallRunKind,
) -> Arc<RecordedResult> {
    let travelled = AssertUnwindSafe(travel(host, call, mode))
        .catch_unwind()
        .await;
    if let Err(panic) = travelled {
        let safe = call.progress.on_record != OnRecord::Started;
        call.turn.permit = None;
        call.live.parking().unpark();
        call.conclusion.ending = Some(result::panicked(&deadline::panic_text(&*panic), safe));
        call.progress.stage = Stage::Map;
    }
    wait::give_back(host, call);
    call.live.flush_output();
    call.enter();
    let replayed = replay::result(call);
    let mut result = replayed.unwrap_or_else(|| result::map(call, persist::room(host, call)));
    if call.asking.left_open {
        // The caller is gone. The record already marks the call as waiting, so the next host resumes it.
        return RecordedResult::of(result);
    }
    call.progress.stage = Stage::PostHooks;
    call.enter();
    after::post_hooks(host, call, &mut result, mode).await;
    call.progress.stage = Stage::Persist;
    call.enter();
    let answer = persist::persist(host, call, result).await;
    call.progress.stage = Stage::Emit;
    call.enter();
    call.live
        .tell_end(answer.result(), call.findings.effects.as_ref());
    answer
}

/// Runs the stages of `explain`. It stops before anything is executed, and records nothing.
pub(crate) async fn rehearse(host: &Arc<HostInner>, call: &mut PipelineCall) {
    travel(host, call, CallRunKind::Dry).await;
}

/// Runs the stages until the call has an ending. A dry run also stops where the call would ask or be admitted.
async fn travel(host: &Arc<HostInner>, call: &mut PipelineCall, mode: CallRunKind) {
    let plan = StagePlan::of(host, call, mode);
    while call.progress.stage < Stage::Map {
        call.enter();
        let step = match plan.step(call.progress.stage) {
            StageStep::Resolve => resolve::resolve(host, call, mode).await,
            StageStep::Parse => resolve::parse(host, call),
            StageStep::Validate => validate::validate(host, call),
            StageStep::Observe => resolve::observe(host, call, mode).await,
            StageStep::PreHooks => before::pre_hooks(host, call, mode).await,
            StageStep::Replay => replay::answer(host, call, mode).await,
            StageStep::TakeUp => wait::take_up(host, call),
            StageStep::Decide => decide::decide(host, call, mode).await,
            StageStep::DecideResumed => wait::decide_resumed(host, call, mode).await,
            StageStep::AwaitApproval => wait::await_approval(host, call, mode).await,
            StageStep::Admit => admit::admit(host, call, mode).await,
            StageStep::Execute => run::execute(host, call, mode).await,
            StageStep::Stop => return,
        };
        call.progress.stage = match step {
            StageExit::Next(stage) => stage,
            StageExit::End(_) if plan.is_overruled_by_replay(call.progress.stage) => {
                Stage::PreHooks
            }
            StageExit::End(ending) => {
                call.turn.permit = None;
                call.conclusion.ending = Some(ending);
                Stage::Map
            }
        };
    }
}

/// Ends a call that is refused because the journal has no room for its record. It runs no hooks and is not recorded.
pub(crate) fn refuse(
    host: &HostInner,
    mut call: PipelineCall,
    ending: CallEnding,
) -> Arc<RecordedResult> {
    call.conclusion.ending = Some(ending);
    call.progress.stage = Stage::Map;
    let room = persist::room(host, &call);
    let answer = RecordedResult::of(result::map(&mut call, room));
    call.live.tell_end(answer.result(), None);
    drop(call.live.take_listener());
    answer
}

/// Ends a call whose stage misses the output of an earlier stage. This is a defect of the host, so it is reported as an
/// internal error.
pub(crate) fn lost_its_way() -> StageExit {
    StageExit::End(result::internal(
        "a stage ran without the output of the stage before it",
    ))
}
