//! Notices the exit of a child, or brings it about step by step.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{process::Child, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::within;
use crate::client::{
    error::{CallError, HostDeparture},
    router::AnswerRouter,
};

/// The time after stdin is closed before the child gets SIGTERM.
pub(super) const TERM_AFTER: Duration = Duration::from_secs(3);
/// The time after SIGTERM before the child is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// The time for reading the output that a dead child left in its pipes. A grandchild may hold them open for ever.
const LEFT_OVER: Duration = Duration::from_secs(1);
/// A child that closes its stdout usually exits within this time.
const EXIT_AFTER_EOF: Duration = Duration::from_millis(250);

/// The tasks that read the output of the child.
#[derive(Default)]
pub(super) struct ChildReaderTasks {
    pub(super) stdout: Option<JoinHandle<()>>,
    pub(super) stderr: Option<JoinHandle<()>>,
}

/// Waits until the child exits or `stop` is cancelled, then ends the child and the reading tasks.
pub(super) async fn mind(
    mut child: Child,
    mut readers: ChildReaderTasks,
    stop: CancellationToken,
    router: Arc<AnswerRouter>,
) {
    let mut exit = tokio::select! {
        status = child.wait() => status.ok(),
        () = finished(&mut readers.stdout) => within(EXIT_AFTER_EOF, child.wait()).await.and_then(Result::ok),
        () = stop.cancelled() => None,
    };
    if exit.is_none() {
        if !stop.is_cancelled() {
            // The child closed its stdout but did not exit.
            router.end(&CallError::HostGone(HostDeparture::Ended));
        }
        // Makes the writing task close stdin.
        stop.cancel();
        exit = end(&mut child).await;
    }
    for reader in [readers.stdout, readers.stderr].into_iter().flatten() {
        let unfinished = reader.abort_handle();
        if within(LEFT_OVER, reader).await.is_none() {
            unfinished.abort();
        }
    }
    // This is the last step: the remaining output of the child may answer requests, and they should get that answer
    // rather than `HostGone`.
    router.end(&CallError::HostGone(
        exit.map_or(HostDeparture::Ended, HostDeparture::Exited),
    ));
    stop.cancel();
}

/// Waits until a reader ends. Pending for ever without a reader.
async fn finished(reader: &mut Option<JoinHandle<()>>) {
    if let Some(handle) = reader {
        let _ = handle.await;
        *reader = None;
    } else {
        std::future::pending::<()>().await;
    }
}

async fn end(child: &mut Child) -> Option<ExitStatus> {
    if let Some(status) = within(TERM_AFTER, child.wait()).await {
        return status.ok();
    }
    // The child has not been waited for, so the system cannot have reused its process id.
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok())
        && let Some(status) = within(KILL_AFTER, child.wait()).await
    {
        return status.ok();
    }
    child.start_kill().ok()?;
    child.wait().await.ok()
}
