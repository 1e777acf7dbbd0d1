//! The question a call is parked on, for a caller that may stop waiting while the call stays.

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, futures::Notified},
    time::Instant,
};
use toolpost_model::InvocationId;

/// A question that a call waits for. It is on record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParkedQuestion {
    pub(crate) ask_id: InvocationId,
    pub(crate) expires_at: Timestamp,
    /// When the call began to wait for its answer.
    pub(crate) since: Instant,
}

/// Whether a call is parked. Costs an ordinary call nothing: nothing here is touched unless the call waits.
#[derive(Default)]
pub(crate) struct Parking {
    question: Mutex<Option<ParkedQuestion>>,
    changed: Notify,
}

impl Parking {
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

    /// Wakes the callers that watch the call: it began to wait, or stopped.
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
