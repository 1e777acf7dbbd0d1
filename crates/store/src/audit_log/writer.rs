//! The thread that writes the audit log for faces, which must not wait for a disk.
//!
//! A blocked disk would otherwise block every answer. So the queue is bounded, and lines beyond it are lost; the log
//! states their number at the place where they would have been.

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
    /// The number of lines lost between the previous line and the next one.
    Lost(u64),
}

/// Writes to an audit log from a thread of its own. Dropping it writes the queued lines and waits for that.
pub struct AuditWriter {
    /// Taken by `drop`, which ends the thread once the queue is empty.
    queue: Option<SyncSender<AuditQueueEntry>>,
    /// Lost lines that are not yet counted in the queue.
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl AuditWriter {
    /// Starts the thread. `loss_line` makes the line that states the number of lost lines.
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

    /// Queues a line, given without its end. Never waits: if the queue is full, the line is lost and counted.
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

struct AuditWriterThread<F> {
    log: AuditLog,
    loss_line: F,
    lost: Arc<AtomicU64>,
    /// Lost lines, to the full queue or to the disk, that the log does not state yet.
    untold: u64,
}

impl<F: Fn(u64) -> String> AuditWriterThread<F> {
    /// Ends when the sender is dropped and the queue is empty.
    fn run(mut self, inbox: &Receiver<AuditQueueEntry>) {
        loop {
            let entry = match inbox.try_recv() {
                Ok(entry) => Ok(entry),
                Err(TryRecvError::Empty) => {
                    // The next line may be hours away, so the losses are written now.
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

    /// Called with an empty queue: all losses so far come after all lines written so far.
    fn tell_losses(&mut self) {
        self.untold += self.lost.swap(0, Ordering::Relaxed);
        self.tell_untold();
    }

    /// True if no loss is left to write.
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
            // Warns once, and not for every line while the disk stays full.
            if !failing {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a line of the audit log is lost"
                );
            }
        }
    }
}
