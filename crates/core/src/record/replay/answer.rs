//! Calls of a host that serves a recording: resolved, read and checked like any other, then answered as recorded.

use std::time::Duration;

use toolpost_model::{
    ErrorClass, Outcome, Recoverability, RetryGuidance, Stage, Timings, ToolError, ToolResult,
};

use super::{GivenCall, ReplayMiss, ReplayPace};
use crate::{
    call::{CallRunKind, StageExit, lost_its_way},
    host::HostInner,
    invocation::{
        PipelineCall, micros,
        resolve::{accept, owes_acknowledgement},
    },
    result::{CallEnding, EndedBy, FailureContent},
    scheduling::admit::QUICK,
};

pub(crate) async fn answer(
    host: &HostInner,
    call: &mut PipelineCall,
    way: CallRunKind,
) -> StageExit {
    let Some(player) = &host.record.replay else {
        return lost_its_way();
    };
    let played = player.answer(&GivenCall {
        id: call.live.id,
        name: &call.live.tool,
        tool: call
            .findings
            .resolved
            .as_ref()
            .map(|resolved| resolved.entry.id()),
        shown: call
            .inputs
            .observable
            .as_ref()
            .map(|input| input.arguments().value()),
        sent: &call.inputs.model,
    });
    let played = match played {
        Ok(played) => played,
        Err(unrecorded) => return StageExit::End(not_recorded(unrecorded)),
    };
    let paced = match played.pace {
        ReplayPace::AtOnce => false,
        ReplayPace::AsRecorded => true,
    };
    if paced
        && played.took > QUICK
        && owes_acknowledgement(call, way)
        && let Err(ending) = accept(host, call).await
    {
        return StageExit::End(ending);
    }
    for event in played.progress {
        if paced {
            pass(call, Duration::from_millis(event.after_ms)).await;
        }
        call.live.emit(event.body);
    }
    if paced {
        pass(call, played.took).await;
    }
    call.conclusion.replayed = Some(Box::new(played.result));
    StageExit::Next(Stage::Map)
}

/// Waits until `after` has passed since the request. A call that is stopped early still gets its recorded answer, only
/// sooner.
async fn pass(call: &PipelineCall, after: Duration) {
    let until = call.live.began + after;
    tokio::select! {
        () = call.live.token().cancelled() => {}
        () = tokio::time::sleep_until(until.into()) => {}
    }
}

/// The result of a replayed call. Its times are its own.
pub(crate) fn result(call: &mut PipelineCall) -> Option<ToolResult> {
    let mut result = *call.conclusion.replayed.take()?;
    result.timings = Timings {
        total_us: micros(call.live.began.elapsed()),
        ..Timings::default()
    };
    Some(result)
}

fn not_recorded(
    ReplayMiss {
        message,
        hint,
        details,
    }: ReplayMiss,
) -> CallEnding {
    let error = ToolError {
        class: ErrorClass::DependencyUnavailable,
        code: "not_recorded".into(),
        message,
        hint: Some(hint.to_owned()),
        recoverability: Recoverability::ChangeCall,
        retry: RetryGuidance {
            change_arguments: true,
            ..RetryGuidance::SAFE
        },
        details: Some(details),
    };
    let error = Box::new(error);
    let shown = FailureContent::default();
    CallEnding::Failure {
        outcome: Outcome::Failed,
        error,
        shown,
        by: EndedBy::Host,
    }
}
