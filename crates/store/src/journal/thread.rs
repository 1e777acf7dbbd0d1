//! A thread of the journal and its queue of jobs.

use std::{
    io,
    thread::{self, JoinHandle},
};

use tokio::sync::{mpsc, oneshot};
use toolpost_core::JournalError;

/// A thread that takes jobs from a queue. Dropping this ends the thread once the queue is empty.
pub(super) struct JournalThread<J> {
    name: &'static str,
    /// Taken by `drop`.
    queue: Option<mpsc::Sender<J>>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static> JournalThread<J> {
    /// Starts a thread that works until its queue is closed.
    pub(super) fn start(
        name: &'static str,
        most: usize,
        work: impl FnOnce(mpsc::Receiver<J>) + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, inbox) = mpsc::channel(most);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(inbox))?;
        Ok(Self {
            name,
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    pub(super) fn queue(&self) -> Result<&mpsc::Sender<J>, JournalError> {
        self.queue.as_ref().ok_or(JournalError::Closed)
    }

    /// Queues a job and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, JournalError>>) -> J,
    ) -> Result<T, JournalError> {
        let (done, answer) = oneshot::channel();
        let sent = self.queue()?.send(job(done)).await;
        sent.map_err(|_| JournalError::Closed)?;
        answer.await.unwrap_or(Err(JournalError::Closed))
    }
}

impl<J> Drop for JournalThread<J> {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(thread = self.name, "a thread of the journal panicked");
        }
    }
}
