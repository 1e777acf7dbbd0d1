//! The end of a child: noticed when it comes by itself, brought about step by step when it does not.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{process::Child, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::within;
use crate::client::{
    error::{CallError, HostDeparture},
    router::AnswerRouter,
};

/// A child whose stdin was closed has so long before it is asked to end,
pub(super) const TERM_AFTER: Duration = Duration::from_secs(3);
/// and then so long before it is ended.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// Output that a dead child left in its pipes is read for so long. A grandchild may hold them open for ever.
const LEFT_OVER: Duration = Duration::from_secs(1);
/// A child that closes its stdout is about to exit, as a rule.
const EXIT_AFTER_EOF: Duration = Duration::from_millis(250);

/// The tasks that read what the child says.
#[derive(Default)]
pub(super) struct ChildReaderTasks {
    pub(super) stdout: Option<JoinHandle<()>>,
    pub(super) stderr: Option<JoinHandle<()>>,
}

/// Waits for the child's end, or for the wish to end it, and sees to the rest.
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
            // It said its last word but lives on.
            router.end(&CallError::HostGone(HostDeparture::Ended));
        }
        // Closes its stdin.
        stop.cancel();
        exit = end(&mut child).await;
    }
    for reader in [readers.stdout, readers.stderr].into_iter().flatten() {
        let unfinished = reader.abort_handle();
        if within(LEFT_OVER, reader).await.is_none() {
            unfinished.abort();
        }
    }
    // Last: what the child still said may have answered something.
    router.end(&CallError::HostGone(
        exit.map_or(HostDeparture::Ended, HostDeparture::Exited),
    ));
    stop.cancel();
}

/// Waits for a reader's end. One that is not there never ends.
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
    // The child has not been waited for, so its number is still its own.
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
