//! The thread that writes for those who must not wait.
//!
//! A disk that stands still would otherwise stand in the way of every answer. So the queue is bounded, and
//! what finds no room is lost; but the log tells how many lines those were, where they would have been.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TryRecvError},
    },
    thread::{self, JoinHandle},
};

use super::AuditLog;

/// Lines that wait for the disk.
const QUEUE: usize = 1024;

enum AuditQueueEntry {
    Line(String),
    /// So many lines found no room between the one before and the one behind.
    Lost(u64),
}

/// Writes to an audit log from a thread of its own. Dropping it writes what is queued and waits for that.
pub struct AuditWriter {
    /// Taken by `drop`, which ends the thread once the queue is empty.
    queue: Option<SyncSender<AuditQueueEntry>>,
    /// Lines that found no room and of which the queue does not know yet.
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl AuditWriter {
    /// Starts the thread. `loss_line` makes the line that tells how many were lost.
    pub fn start(
        log: AuditLog,
        loss_line: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, inbox) = mpsc::sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let desk = AuditWriterThread {
            log,
            loss_line,
            lost: Arc::clone(&lost),
            untold: 0,
        };
        let thread = thread::Builder::new()
            .name("audit-write".into())
            .spawn(move || desk.run(&inbox))?;
        Ok(Self {
            queue: Some(queue),
            lost,
            thread: Some(thread),
        })
    }

    /// Hands over a line, given without its end. Never waits: where there is no room, the line is lost and
    /// counted.
    pub fn send(&self, line: String) {
        let Some(queue) = &self.queue else {
            return;
        };
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let told = lost == 0 || queue.try_send(AuditQueueEntry::Lost(lost)).is_ok();
        let missing = if told { 0 } else { lost };
        let sent = told && queue.try_send(AuditQueueEntry::Line(line)).is_ok();
        self.lost
            .fetch_add(missing + u64::from(!sent), Ordering::Relaxed);
    }
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the audit log's writing thread panicked");
        }
    }
}

/// The thread's side.
struct AuditWriterThread<F> {
    log: AuditLog,
    loss_line: F,
    lost: Arc<AtomicU64>,
    /// Lines lost, to the full queue or to the disk, that the log does not tell of yet.
    untold: u64,
}

impl<F: Fn(u64) -> String> AuditWriterThread<F> {
    /// Ends when the sender is gone and the queue is empty.
    fn run(mut self, inbox: &Receiver<AuditQueueEntry>) {
        loop {
            let entry = match inbox.try_recv() {
                Ok(entry) => Ok(entry),
                Err(TryRecvError::Empty) => {
                    // Perhaps nobody sends again for hours, so this is the time to tell.
                    self.tell_losses();
                    inbox.recv()
                }
                Err(TryRecvError::Disconnected) => Err(mpsc::RecvError),
            };
            match entry {
                Ok(AuditQueueEntry::Line(line)) => self.write(&line),
                Ok(AuditQueueEntry::Lost(lost)) => self.untold += lost,
                Err(mpsc::RecvError) => break,
            }
        }
        self.tell_losses();
    }

    /// With a queue that is empty: what was lost, was lost behind everything written so far.
    fn tell_losses(&mut self) {
        self.untold += self.lost.swap(0, Ordering::Relaxed);
        self.tell_untold();
    }

    /// True where nothing is left to tell.
    fn tell_untold(&mut self) -> bool {
        if self.untold > 0 && self.log.append(&(self.loss_line)(self.untold)).is_ok() {
            let lost = self.untold;
            let path = self.log.path().display();
            tracing::warn!(lost, %path, "lines of the audit log were lost");
            self.untold = 0;
        }
        self.untold == 0
    }

    fn write(&mut self, line: &str) {
        let failing = self.untold > 0;
        if !self.tell_untold() {
            self.untold += 1;
            return;
        }
        if let Err(error) = self.log.append(line) {
            self.untold += 1;
            // Once, and not for every line of a disk that stays full.
            if !failing {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a line of the audit log is lost"
                );
            }
        }
    }
}
