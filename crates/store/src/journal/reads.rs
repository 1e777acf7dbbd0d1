//! The host's reads: lookups on the caller's thread, long reads on a thread of their own.

use std::io;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::mpsc;
use toolpost_core::JournalError;
use toolpost_model::BoxFuture;

use super::{row::JournalReadError, thread::JournalThread};

/// The limit of queued reads. Further readers wait for a place in the queue.
const QUEUE: usize = 64;

/// Point lookups. One connection serves all: a lookup holds it for microseconds, and more connections
/// would each read the same pages into a cache of its own.
pub(super) struct PointLookups(Mutex<Connection>);

impl PointLookups {
    pub(super) fn new(connection: Connection) -> Self {
        Self(Mutex::new(connection))
    }

    /// Runs the lookup at once and returns the answer as a ready future.
    pub(super) fn answer<'a, T: Send + 'a>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T, JournalReadError>,
    ) -> BoxFuture<'a, Result<T, JournalError>> {
        // A panic in between leaves the connection intact: a read changes nothing.
        let connection = self.0.lock();
        let answer = ask(&connection).map_err(JournalError::from);
        Box::pin(std::future::ready(answer))
    }
}

/// A read, which sends its own answer.
type LongJournalRead = Box<dyn FnOnce(&Connection) + Send>;

/// Long reads, one after the other.
pub(super) struct LongScans(JournalThread<LongJournalRead>);

impl LongScans {
    pub(super) fn start(connection: Connection) -> io::Result<Self> {
        let work = move |mut waiting: mpsc::Receiver<LongJournalRead>| {
            while let Some(scan) = waiting.blocking_recv() {
                scan(&connection);
            }
        };
        JournalThread::start("journal-read", QUEUE, work).map(Self)
    }

    pub(super) fn run<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T, JournalReadError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, JournalError>> {
        Box::pin(self.0.ask(move |done| {
            Box::new(move |connection: &Connection| {
                // The caller may be gone; the read is then skipped.
                if !done.is_closed() {
                    let _ = done.send(ask(connection).map_err(JournalError::from));
                }
            })
        }))
    }
}
