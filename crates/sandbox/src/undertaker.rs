//! Clearing up after jobs: a thread that waits for launchers to end, so that nobody else has to, and then removes
//! what the host made for them.

use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::machine::{JobCgroup, ScratchFolder};

/// A launcher kills what it keeps, and ends, when the host lets go of it. It also collects the dead, so nobody helps
/// it before it has had this long.
pub(crate) const HEAD_START: Duration = Duration::from_millis(200);
/// One that has not ended by then is killed itself.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// Something that cannot be removed, such as a group with a process in an endless system call, is left to the next
/// start.
const GIVE_UP: Duration = Duration::from_secs(60);

/// What is left of a job when nobody wants it any more.
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

/// The end of a host waits this long for the thread. A process that exits earlier leaves control groups behind until
/// the next start sweeps them; a process in an endless system call must not keep the host from ending.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Hands remains to the thread. The last clone that is dropped waits for the thread to clear up.
#[derive(Clone, Debug)]
pub(crate) struct JobUndertaker {
    thread: Arc<ClearingThread>,
}

#[derive(Debug)]
struct ClearingThread {
    /// `None` only while it is dropped.
    inbox: Option<Sender<JobRemains>>,
    /// Disconnected when the thread has ended. A `JoinHandle` can be waited for only without a limit.
    ended: Mutex<Receiver<()>>,
}

impl JobUndertaker {
    pub(crate) fn new() -> Self {
        let (inbox, remains) = mpsc::channel();
        let (running, ended) = mpsc::channel();
        // Without the thread the channels are closed, and `take` does the work where it is called.
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
        // The thread ends once the channel is closed and its last case is.
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
