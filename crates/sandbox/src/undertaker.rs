//! Removes the remains of jobs: a thread waits for launchers to end and then deletes the host's objects for them.
//! Callers that drop a process do not have to wait.

use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::machine::{JobCgroup, ScratchFolder};

/// When the host closes its socket, a launcher kills its processes and ends. It also reaps the dead, so the thread does
/// not interfere before this time is over.
pub(crate) const HEAD_START: Duration = Duration::from_millis(200);
/// A launcher that has not ended after this time is killed.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// Remains that cannot be removed, such as a group with a process in an endless system call, are left to the next
/// start.
const GIVE_UP: Duration = Duration::from_secs(60);

/// The remains of a job that the host no longer uses.
#[derive(Debug)]
pub(crate) struct JobRemains {
    pub(crate) launcher: Child,
    pub(crate) leaf: JobCgroup,
    #[expect(
        dead_code,
        reason = "it removes its directory when dropped, and that is all it is kept for"
    )]
    pub(crate) scratch: Option<ScratchFolder>,
}

/// A host that ends waits this long for the thread. If the process exits earlier, control groups stay until the next
/// start sweeps them; but a process in an endless system call must not keep the host from ending.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Sends remains to the thread. Dropping the last clone waits for the thread to finish.
#[derive(Clone, Debug)]
pub(crate) struct JobUndertaker {
    thread: Arc<ClearingThread>,
}

#[derive(Debug)]
struct ClearingThread {
    /// `None` only during the drop.
    inbox: Option<Sender<JobRemains>>,
    /// Disconnected when the thread has ended. A `JoinHandle` has no wait with a limit.
    ended: Mutex<Receiver<()>>,
}

impl JobUndertaker {
    pub(crate) fn new() -> Self {
        let (inbox, remains) = mpsc::channel();
        let (running, ended) = mpsc::channel();
        // If the thread cannot start, the channels are closed, and `take` removes the remains in the caller's thread.
        let _ = std::thread::Builder::new()
            .name("sandbox-clearing".to_owned())
            .spawn(move || {
                clear_up(&remains);
                drop::<Sender<()>>(running);
            });
        Self {
            thread: Arc::new(ClearingThread {
                inbox: Some(inbox),
                ended: Mutex::new(ended),
            }),
        }
    }

    pub(crate) fn take(&self, remains: JobRemains) {
        let Some(inbox) = &self.thread.inbox else {
            return;
        };
        if let Err(mpsc::SendError(remains)) = inbox.send(remains) {
            let mut case = UndertakerCase::new(remains);
            while !case.is_closed() {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
    }
}

impl Drop for ClearingThread {
    fn drop(&mut self) {
        // The thread ends after the channel is closed and its last case is done.
        self.inbox = None;
        if let Ok(ended) = self.ended.get_mut() {
            let _ = ended.recv_timeout(LAST_WAIT);
        }
    }
}

struct UndertakerCase {
    remains: JobRemains,
    opened: Instant,
    has_ended: bool,
}

impl UndertakerCase {
    fn new(remains: JobRemains) -> Self {
        Self {
            remains,
            opened: Instant::now(),
            has_ended: false,
        }
    }

    fn is_closed(&mut self) -> bool {
        let age = self.opened.elapsed();
        if !self.has_ended {
            self.has_ended = !matches!(self.remains.launcher.try_wait(), Ok(None));
        }
        if age > HEAD_START {
            self.remains.leaf.kill();
        }
        if age > PATIENCE {
            let _ = self.remains.launcher.kill();
            self.remains.leaf.kill_each();
        }
        (self.has_ended && self.remains.leaf.remove()) || age > GIVE_UP
    }
}

fn clear_up(inbox: &Receiver<JobRemains>) {
    let mut open: Vec<UndertakerCase> = Vec::new();
    loop {
        let next = match open.is_empty() {
            true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => inbox.recv_timeout(BETWEEN_LOOKS),
        };
        match next {
            Ok(remains) => open.push(UndertakerCase::new(remains)),
            Err(RecvTimeoutError::Disconnected) if open.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(BETWEEN_LOOKS),
            Err(RecvTimeoutError::Timeout) => {}
        }
        open.retain_mut(|case| !case.is_closed());
    }
}
