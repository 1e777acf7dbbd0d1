//! The writer: one thread that takes all waiting records, commits them at once and answers every caller.
//!
//! Group commit makes durable records affordable: a sync takes milliseconds, whether one record or a thousand wait for
//! it. Order, numbers and chain come from this thread alone.

mod inbox;

use std::{path::Path, time::Duration};

use rusqlite::Connection;
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};
use toolpost_core::{AppendStrength, JournalError, PrunedRange, Record, RetentionCut};
use toolpost_model::{BoxFuture, SessionId};

use super::{JournalOpenError, committer::Committer, thread::JournalThread};
use inbox::{InboxArrival, WriterInbox};

/// The limit of queued appends, and of appends in one transaction.
const QUEUE: usize = 1024;
/// A transaction ends early at this many bytes. Otherwise a burst of large records would become a log of gigabytes,
/// which cannot be checkpointed before the commit.
const BATCH_BYTES: usize = 4 << 20;
/// SQLite's own limit for a row is 1 GB. A single record near it is a mistake of one caller and must not fail the batch
/// of the others, so it is refused before the queue.
const LONGEST_BODY: usize = 64 << 20;
/// After so long without a job the facets are written, so that a search beside a quiet host finds them in their table.
const IDLE: Duration = Duration::from_millis(200);

/// A record to append, and its caller.
pub(super) struct JournalAppend {
    pub(super) record: Record,
    pub(super) strength: AppendStrength,
    done: oneshot::Sender<Result<u64, JournalError>>,
}

/// A removal of the oldest records, and its caller.
struct JournalPrune {
    cut: RetentionCut,
    done: oneshot::Sender<Result<Option<PrunedRange>, JournalError>>,
}

enum JournalWriterJob {
    Append(JournalAppend),
    Prune(JournalPrune),
    /// Write the waiting facets to their table.
    WriteFacets(oneshot::Sender<Result<(), JournalError>>),
}

pub(super) struct JournalWriter(JournalThread<JournalWriterJob>);

impl JournalWriter {
    pub(super) fn start(
        connection: Connection,
        path: &Path,
        max_bytes: u64,
    ) -> Result<Self, JournalOpenError> {
        let committer = Committer::new(connection, path, max_bytes)?;
        let work = move |inbox| run(committer, inbox);
        JournalThread::start("journal-write", QUEUE, work)
            .map(Self)
            .map_err(|source| JournalOpenError::Io {
                path: path.to_path_buf(),
                source,
            })
    }

    /// Queues the record before it returns, unless the queue is full, and not when the future is first polled. So
    /// appends of one caller keep their order even if their futures are polled later or in another order, and a caller
    /// that drops the future does not take the record back: the call's end stays in the journal although the caller is
    /// gone.
    pub(super) fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        match self.0.queue() {
            Ok(queue) => enqueue(queue, record, strength),
            Err(closed) => refused(closed),
        }
    }

    /// Resolves when the facets of all earlier appends are in their table.
    pub(super) async fn write_facets(&self) -> Result<(), JournalError> {
        self.0.ask(JournalWriterJob::WriteFacets).await
    }

    /// Uses the same queue, so all earlier appends are committed before the removal.
    pub(super) fn prune(
        &self,
        cut: RetentionCut,
    ) -> BoxFuture<'_, Result<Option<PrunedRange>, JournalError>> {
        Box::pin(
            self.0
                .ask(move |done| JournalWriterJob::Prune(JournalPrune { cut, done })),
        )
    }
}

fn enqueue(
    queue: &mpsc::Sender<JournalWriterJob>,
    record: Record,
    strength: AppendStrength,
) -> BoxFuture<'_, Result<u64, JournalError>> {
    if let Some(why) = unfit(&record) {
        return refused(why);
    }
    let (done, answer) = oneshot::channel();
    let left_over = match queue.try_send(JournalWriterJob::Append(JournalAppend {
        record,
        strength,
        done,
    })) {
        Ok(()) => None,
        Err(TrySendError::Full(job)) => Some(job),
        Err(TrySendError::Closed(_)) => return refused(JournalError::Closed),
    };
    Box::pin(async move {
        if let Some(job) = left_over {
            queue.send(job).await.map_err(|_| JournalError::Closed)?;
        }
        let lost = |_| {
            Err(JournalError::Broken(
                "the writer ended before it answered".into(),
            ))
        };
        answer.await.unwrap_or_else(lost)
    })
}

/// Why a record cannot be stored, whatever the state of the journal.
fn unfit(record: &Record) -> Option<JournalError> {
    let length = record.body.len();
    // The chain hashes an empty session like a missing one, so the file must not hold one: else one could be replaced
    // by the other without a trace.
    let is_empty = |session: &SessionId| session.as_str().is_empty();
    if length > LONGEST_BODY {
        Some(JournalError::TooLong {
            size: length,
            limit: LONGEST_BODY,
        })
    } else if record.session_id.as_ref().is_some_and(is_empty) {
        Some(JournalError::Broken(
            "a record has an empty session id".into(),
        ))
    } else {
        None
    }
}

fn refused<'a>(error: JournalError) -> BoxFuture<'a, Result<u64, JournalError>> {
    Box::pin(std::future::ready(Err(error)))
}

/// Ends when all senders are dropped and the queue is empty.
fn run(mut committer: Committer, inbox: mpsc::Receiver<JournalWriterJob>) {
    let mut inbox = WriterInbox::new(inbox);
    let mut jobs = Vec::with_capacity(QUEUE);
    let mut waiting = Vec::with_capacity(QUEUE);
    loop {
        let patience = committer.has_facets_waiting().then_some(IDLE);
        match inbox.receive(&mut jobs, QUEUE, patience) {
            InboxArrival::Some => {}
            InboxArrival::NoneYet => committer.follow_with_facets(),
            InboxArrival::NoneEver => break,
        }
        for job in jobs.drain(..) {
            match job {
                JournalWriterJob::Append(append) => waiting.push(append),
                JournalWriterJob::Prune(prune) => {
                    write(&mut committer, &mut waiting);
                    let _ = prune.done.send(committer.prune(&prune.cut));
                    committer.checkpoint_if_due();
                }
                JournalWriterJob::WriteFacets(done) => {
                    write(&mut committer, &mut waiting);
                    let _ = done.send(committer.write_facets());
                }
            }
        }
        write(&mut committer, &mut waiting);
    }
    committer.close();
}

fn write(committer: &mut Committer, waiting: &mut Vec<JournalAppend>) {
    while !waiting.is_empty() {
        let count = batch_length(waiting);
        let outcome = committer.commit(&waiting[..count]);
        answer(waiting.drain(..count), &outcome, |seq, record| {
            committer.note_facets(seq, record);
        });
        // After the answers: facets and checkpoints take tens of milliseconds, and no caller needs to wait for them.
        committer.write_facets_if_due();
        committer.checkpoint_if_due();
    }
}

fn batch_length(waiting: &[JournalAppend]) -> usize {
    let mut bytes = 0;
    let fits = waiting.iter().take_while(|append| {
        let before = bytes;
        bytes += append.record.body.len();
        before == 0 || bytes <= BATCH_BYTES
    });
    fits.count()
}

/// A failed batch fails as a whole. The possible faults (the disk, its space) would fail each record too, so a try of
/// single records would only take longer.
fn answer(
    batch: impl Iterator<Item = JournalAppend>,
    outcome: &Result<u64, JournalError>,
    mut written: impl FnMut(u64, Record),
) {
    for (append, place) in batch.zip(0..) {
        // A caller that disconnected gets no answer; its record is in the journal all the same.
        let _ = append.done.send(outcome.clone().map(|first| first + place));
        if let Ok(first) = outcome {
            written(first + place, append.record);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tokio::sync::mpsc;
    use toolpost_core::{AppendStrength, JournalError, Record, RecordKind};

    use super::{BATCH_BYTES, JournalAppend, JournalWriterJob, batch_length, enqueue};

    fn record(body: &str) -> Record {
        Record {
            kind: RecordKind::HostStarted,
            at: Timestamp::UNIX_EPOCH,
            invocation_id: None,
            session_id: None,
            request: None,
            body: body.into(),
            facets: None,
        }
    }

    #[tokio::test]
    async fn a_writer_that_is_gone_refuses_and_one_that_dies_answers() {
        let (queue, inbox) = mpsc::channel::<JournalWriterJob>(4);
        let pending = enqueue(&queue, record("{}"), AppendStrength::Committed);
        drop(inbox);
        assert!(
            matches!(pending.await, Err(JournalError::Broken(_))),
            "its record was in the queue"
        );
        let late = enqueue(&queue, record("{}"), AppendStrength::Committed).await;
        assert!(
            matches!(late, Err(JournalError::Closed)),
            "the queue was closed"
        );
    }

    #[tokio::test]
    async fn a_full_queue_makes_appends_wait_and_then_fail_with_the_writer() {
        let (queue, inbox) = mpsc::channel::<JournalWriterJob>(1);
        let first = enqueue(&queue, record("{}"), AppendStrength::Committed);
        let second = enqueue(&queue, record("{}"), AppendStrength::Committed);
        drop(inbox);
        assert!(matches!(first.await, Err(JournalError::Broken(_))));
        assert!(matches!(second.await, Err(JournalError::Closed)));
    }

    #[test]
    fn a_batch_ends_before_it_grows_too_large_but_takes_one_record_of_any_size() {
        let check = |sizes: &[usize], expected: usize| {
            let append = |&size: &usize| {
                let (done, _) = tokio::sync::oneshot::channel();
                JournalAppend {
                    record: record(&" ".repeat(size)),
                    strength: AppendStrength::Committed,
                    done,
                }
            };
            let waiting: Vec<JournalAppend> = sizes.iter().map(append).collect();
            assert_eq!(batch_length(&waiting), expected, "{sizes:?}");
        };
        check(&[1], 1);
        check(&[BATCH_BYTES + 1, 1], 1);
        check(&[1, 1, 1], 3);
        check(&[1, BATCH_BYTES - 1, 1], 2);
        check(&[1, BATCH_BYTES], 1);
    }
}
