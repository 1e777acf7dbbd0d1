//! A queue that a thread waits for with a time limit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use tokio::sync::mpsc::Receiver;

/// The outcome of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InboxArrival {
    Some,
    /// Nothing within the time limit.
    NoneYet,
    /// All senders are dropped.
    NoneEver,
}

/// The receiver, owned by the thread that made it.
pub(super) struct WriterInbox<T> {
    queue: Receiver<T>,
    bell: Arc<WriterBell>,
    waker: Waker,
}

/// Wakes the thread, and distinguishes a wake-up from the end of the time limit.
struct WriterBell {
    thread: Thread,
    rang: AtomicBool,
}

impl Wake for WriterBell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl<T> WriterInbox<T> {
    pub(super) fn new(queue: Receiver<T>) -> Self {
        let bell = Arc::new(WriterBell {
            thread: thread::current(),
            rang: AtomicBool::new(false),
        });
        let waker = Waker::from(bell.clone());
        Self { queue, bell, waker }
    }

    /// Takes up to `limit` queued items. Without `patience` it waits until there is one.
    pub(super) fn receive(
        &mut self,
        into: &mut Vec<T>,
        limit: usize,
        patience: Option<Duration>,
    ) -> InboxArrival {
        let mut context = Context::from_waker(&self.waker);
        loop {
            match self.queue.poll_recv_many(&mut context, into, limit) {
                Poll::Ready(0) => return InboxArrival::NoneEver,
                Poll::Ready(_) => return InboxArrival::Some,
                Poll::Pending => {}
            }
            match patience {
                Some(patience) => thread::park_timeout(patience),
                None => thread::park(),
            }
            if !self.bell.rang.swap(false, Ordering::Acquire) && patience.is_some() {
                return InboxArrival::NoneYet;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use tokio::sync::mpsc;

    use super::{InboxArrival, WriterInbox};

    #[test]
    fn what_comes_is_taken_and_what_does_not_come_is_not_waited_for() {
        let (queue, inbox) = mpsc::channel(8);
        let mut inbox = WriterInbox::new(inbox);
        let mut taken = Vec::new();
        let soon = Some(Duration::from_millis(1));
        assert_eq!(inbox.receive(&mut taken, 8, soon), InboxArrival::NoneYet);
        for item in 1..=3 {
            queue.blocking_send(item).unwrap();
        }
        assert_eq!(inbox.receive(&mut taken, 2, soon), InboxArrival::Some);
        assert_eq!(inbox.receive(&mut taken, 2, None), InboxArrival::Some);
        assert_eq!(taken, [1, 2, 3]);
        let sender = thread::spawn(move || queue.blocking_send(4).unwrap());
        assert_eq!(inbox.receive(&mut taken, 2, None), InboxArrival::Some);
        sender.join().unwrap();
        assert_eq!(inbox.receive(&mut taken, 2, None), InboxArrival::NoneEver);
        assert_eq!(taken, [1, 2, 3, 4]);
    }
}
