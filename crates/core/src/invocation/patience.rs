//! The limits of waiting: the time for a source, a hook or an approval, and the caller's patience.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Notify, futures::Notified};
use toolpost_model::InvocationId;

use super::{CallDeadline, CancelReason, DeadlineBy, Patience, PipelineCall};
use crate::{
    catalog::CatalogEntry,
    host::HostInner,
    result::{self, CallEnding},
};

/// Waits for a source or a hook. A cancellation and the default deadline end the wait, because this work has no
/// deadline of its own.
pub(crate) async fn patiently<T>(
    host: &HostInner,
    call: &PipelineCall,
    work: impl Future<Output = T>,
) -> Result<T, CallEnding> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = call.live.token().cancelled() => {
            Err(result::canceled_before_start(call.live.cancel_reason().unwrap_or(CancelReason::Requested)))
        }
        () = out_of_patience(call) => Err(result::still_queued()),
        () = tokio::time::sleep(host.limits.deadline) => {
            Err(result::not_ready(host.limits.deadline.as_millis()))
        }
    }
}

/// Resolves when the caller stops waiting for the call to start. Never resolves if the caller set no limit.
pub(crate) async fn out_of_patience(call: &PipelineCall) {
    let turn = match call.waits.patience {
        Some(Patience::Turn(patience)) => Some(call.live.began + patience),
        Some(Patience::Approval(_)) | None => None,
    };
    sleep_until(turn.into_iter().chain(call.waits.latest_end).min()).await;
}

/// Resolves when the caller stops waiting for an answer to the question that was asked at `asked`.
pub(crate) async fn out_of_patience_for_answer(call: &PipelineCall, asked: tokio::time::Instant) {
    let answer = match call.waits.patience {
        Some(Patience::Approval(patience)) => Some((asked + patience).into_std()),
        Some(Patience::Turn(_)) | None => None,
    };
    tokio::select! {
        () = sleep_until(answer) => {}
        () = out_of_patience(call) => {}
    }
}

async fn sleep_until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

/// The time that the call may run: the caller's request, or else the setting for the tool, the tool's declaration, or
/// the host's default. The ceilings of the tool and the host, the end of the caller's total time and the deadline of
/// the parent call are upper bounds. Patience is no bound, because it limits waiting only.
pub(crate) fn time_left(
    host: &HostInner,
    call: &PipelineCall,
    entry: &CatalogEntry,
) -> Result<(Duration, CallDeadline), CallEnding> {
    let (limit, by) = allotted(host, call, entry);
    match by {
        DeadlineBy::Parent if limit.is_zero() => {
            Err(result::canceled_before_start(CancelReason::ParentStopped))
        }
        DeadlineBy::Patience if limit.is_zero() => Err(result::still_queued()),
        DeadlineBy::Caller
        | DeadlineBy::ToolSetting
        | DeadlineBy::Tool
        | DeadlineBy::HostDefault
        | DeadlineBy::ToolCeiling
        | DeadlineBy::HostCeiling
        | DeadlineBy::Parent
        | DeadlineBy::Patience => {
            let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            Ok((limit, CallDeadline { ms, by }))
        }
    }
}

fn allotted(host: &HostInner, call: &PipelineCall, entry: &CatalogEntry) -> (Duration, DeadlineBy) {
    let own = entry
        .declaration()
        .interface
        .execution
        .timeout_ms
        .map(Duration::from_millis);
    let set = entry.settings.execution.timeout;
    let limits = &host.limits;
    let mut allotted = match (call.waits.timeout, set, own) {
        (Some(wish), _, _) => (wish, DeadlineBy::Caller),
        (None, Some(set), _) => (set, DeadlineBy::ToolSetting),
        (None, None, Some(own)) => (own, DeadlineBy::Tool),
        (None, None, None) => (limits.deadline, DeadlineBy::HostDefault),
    };
    let until = |end: Instant| end.saturating_duration_since(Instant::now());
    let bounds = [
        entry
            .settings
            .execution
            .ceiling
            .or(set)
            .map(|most| (most, DeadlineBy::ToolCeiling)),
        Some((limits.deadline_ceiling, DeadlineBy::HostCeiling)),
        call.lineage
            .parent
            .as_ref()
            .map(|parent| (until(parent.deadline), DeadlineBy::Parent)),
        call.waits
            .latest_end
            .map(|end| (until(end), DeadlineBy::Patience)),
    ];
    for (most, by) in bounds.into_iter().flatten() {
        if most < allotted.0 {
            allotted = (most, by);
        }
    }
    allotted
}

/// The operator's setting behind a deadline, if a caller cannot get a longer one.
pub(crate) fn capping_setting(entry: &CatalogEntry, by: DeadlineBy) -> Option<String> {
    let tool = entry.name();
    let has_ceiling = entry.settings.execution.ceiling.is_some();
    match by {
        DeadlineBy::ToolSetting if has_ceiling => None,
        DeadlineBy::ToolCeiling if has_ceiling => Some(format!("tools.{tool}.ceiling")),
        // Without a ceiling of its own, the timeout of the tool is one.
        DeadlineBy::ToolSetting | DeadlineBy::ToolCeiling => Some(format!("tools.{tool}.timeout")),
        DeadlineBy::HostCeiling => Some("limits.deadline_ceiling".to_owned()),
        DeadlineBy::Caller
        | DeadlineBy::Tool
        | DeadlineBy::HostDefault
        | DeadlineBy::Parent
        | DeadlineBy::Patience => None,
    }
}

/// A recorded question that a call waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkedQuestion {
    pub(crate) ask_id: InvocationId,
    pub(crate) expires_at: Timestamp,
    /// The time at which the call began to wait.
    pub(crate) since: tokio::time::Instant,
}

/// The question that a call is parked on. Nothing here is touched unless the call waits, so other calls pay nothing.
#[derive(Default)]
pub(crate) struct CallParking {
    question: Mutex<Option<ParkedQuestion>>,
    changed: Notify,
}

impl CallParking {
    pub(crate) fn park(&self, question: ParkedQuestion) {
        self.set(Some(question));
    }

    pub(crate) fn unpark(&self) {
        self.set(None);
    }

    fn set(&self, question: Option<ParkedQuestion>) {
        *self.question.lock() = question;
        self.notify();
    }

    /// Wakes the callers that watch whether the call waits.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    pub(crate) fn question(&self) -> Option<ParkedQuestion> {
        *self.question.lock()
    }

    /// Resolves at the next change. A change between this call and the first poll counts.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}
