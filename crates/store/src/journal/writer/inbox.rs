//! A queue that a thread waits for, and not for ever.

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

/// What waiting came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Some,
    /// Nothing within the time.
    NoneYet,
    /// Every sender is gone.
    NoneEver,
}

/// The queue of the thread that made it.
pub(super) struct Inbox<T> {
    queue: Receiver<T>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Wakes the thread, and tells a call from the end of its patience.
struct Bell {
    thread: Thread,
    rang: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl<T> Inbox<T> {
    pub(super) fn new(queue: Receiver<T>) -> Self {
        let bell = Arc::new(Bell {
            thread: thread::current(),
            rang: AtomicBool::new(false),
        });
        let waker = Waker::from(bell.clone());
        Self { queue, bell, waker }
    }

    /// Takes up to `limit` of what waits. Without `patience` it waits until there is something.
    pub(super) fn receive(
        &mut self,
        into: &mut Vec<T>,
        limit: usize,
        patience: Option<Duration>,
    ) -> Arrival {
        let mut context = Context::from_waker(&self.waker);
        loop {
            match self.queue.poll_recv_many(&mut context, into, limit) {
                Poll::Ready(0) => return Arrival::NoneEver,
                Poll::Ready(_) => return Arrival::Some,
                Poll::Pending => {}
            }
            match patience {
                Some(patience) => thread::park_timeout(patience),
                None => thread::park(),
            }
            if !self.bell.rang.swap(false, Ordering::Acquire) && patience.is_some() {
                return Arrival::NoneYet;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use tokio::sync::mpsc;

    use super::{Arrival, Inbox};

    #[test]
    fn what_comes_is_taken_and_what_does_not_come_is_not_waited_for() {
        let (queue, inbox) = mpsc::channel(8);
        let mut inbox = Inbox::new(inbox);
        let mut taken = Vec::new();
        let soon = Some(Duration::from_millis(1));
        assert_eq!(inbox.receive(&mut taken, 8, soon), Arrival::NoneYet);
        for item in 1..=3 {
            queue.blocking_send(item).unwrap();
        }
        assert_eq!(inbox.receive(&mut taken, 2, soon), Arrival::Some);
        assert_eq!(inbox.receive(&mut taken, 2, None), Arrival::Some);
        assert_eq!(taken, [1, 2, 3]);
        let sender = thread::spawn(move || queue.blocking_send(4).unwrap());
        assert_eq!(inbox.receive(&mut taken, 2, None), Arrival::Some);
        sender.join().unwrap();
        assert_eq!(inbox.receive(&mut taken, 2, None), Arrival::NoneEver);
        assert_eq!(taken, [1, 2, 3, 4]);
    }
}
