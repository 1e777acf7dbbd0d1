//! The journal in memory.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use toolpost_model::{BoxFuture, InvocationId, RequestId, SessionId};

use super::{
    AppendStrength, Journal, JournalError, JournalHead, Record, RecordKind, StoredRecord, chain,
};
use crate::record::{
    facets::Facets,
    query::Query,
    retention::{PrunedRange, RetentionCut, pruned_record},
};

/// The journal in memory: for embedders that need no record, and for tests. It passes the same suite as the journal on
/// disk, except for durability.
#[derive(Default)]
pub struct MemoryJournal {
    rows: Mutex<MemoryJournalRows>,
}

struct MemoryJournalRow {
    stored: StoredRecord,
    facets: Option<Facets>,
}

#[derive(Default)]
struct MemoryJournalRows {
    all: Vec<MemoryJournalRow>,
    /// The number of removed records, and the hash of the last of them.
    removed: u64,
    anchor: [u8; 32],
    by_invocation: HashMap<InvocationId, Vec<u64>>,
    by_request: HashMap<(SessionId, RequestId), u64>,
}

impl MemoryJournalRows {
    fn last(&self) -> u64 {
        self.removed + self.all.len() as u64
    }

    fn get(&self, seq: u64) -> Option<&MemoryJournalRow> {
        let place = seq.checked_sub(self.removed + 1)?;
        self.all.get(usize::try_from(place).ok()?)
    }

    fn hash(&self) -> [u8; 32] {
        self.all.last().map_or(self.anchor, |row| row.stored.hash)
    }

    fn append(&mut self, mut record: Record) -> u64 {
        to_microseconds(&mut record);
        let facets = record.facets.take();
        let seq = self.last() + 1;
        if let Some(id) = record.invocation_id {
            self.by_invocation.entry(id).or_default().push(seq);
        }
        if let (Some(session), Some(request)) = (&record.session_id, &record.request) {
            self.by_request
                .insert((session.clone(), request.id.clone()), seq);
        }
        let hash = chain(&self.hash(), seq, &record);
        self.all.push(MemoryJournalRow {
            stored: StoredRecord { seq, record, hash },
            facets,
        });
        seq
    }

    fn of_call(&self, id: InvocationId) -> impl Iterator<Item = &StoredRecord> {
        let seqs = self.by_invocation.get(&id).map_or(&[][..], Vec::as_slice);
        seqs.iter()
            .filter_map(|&seq| self.get(seq))
            .map(|row| &row.stored)
    }

    /// Whether a search shows the call by this record: its end, or its beginning if it has no end.
    fn stands_for_its_call(&self, row: &MemoryJournalRow) -> bool {
        let has_ended = |id| {
            self.of_call(id)
                .any(|row| row.record.kind == RecordKind::Ended)
        };
        row.stored.record.kind == RecordKind::Ended
            || !row.stored.record.invocation_id.is_some_and(has_ended)
    }

    fn find(&self, query: &Query) -> Vec<StoredRecord> {
        let wanted = |row: &&MemoryJournalRow| {
            row.facets
                .as_ref()
                .is_some_and(|facets| query.takes(&row.stored, facets))
                && self.stands_for_its_call(row)
        };
        self.all
            .iter()
            .rev()
            .filter(wanted)
            .take(query.limit)
            .map(|row| row.stored.clone())
            .collect()
    }

    fn prune(&mut self, cut: RetentionCut) -> Option<PrunedRange> {
        let up_to = cut.up_to.min(self.last());
        let first = &self.all.first()?.stored;
        let last = &self.get(up_to)?.stored;
        let pruned = PrunedRange {
            up_to,
            hash: last.hash,
            records: up_to - self.removed,
            first: first.record.at,
            last: last.record.at,
        };
        for record in cut.restated {
            self.append(record);
        }
        self.append(pruned_record(&pruned, cut.at, &cut.why));
        let count = usize::try_from(pruned.records).unwrap_or(usize::MAX);
        self.all.drain(..count);
        (self.removed, self.anchor) = (up_to, pruned.hash);
        self.by_invocation.retain(|_, seqs| {
            seqs.retain(|seq| *seq > up_to);
            !seqs.is_empty()
        });
        self.by_request.retain(|_, seq| *seq > up_to);
        Some(pruned)
    }
}

/// Cuts the time to microseconds, as journals store it, so that a record equals itself after reading.
fn to_microseconds(record: &mut Record) {
    record.at = Timestamp::from_microsecond(record.at.as_microsecond()).unwrap_or(record.at);
}

fn ready<'a, T: Send + 'a>(answer: T) -> BoxFuture<'a, Result<T, JournalError>> {
    Box::pin(std::future::ready(Ok(answer)))
}

impl Journal for MemoryJournal {
    fn append(
        &self,
        record: Record,
        _: AppendStrength,
    ) -> BoxFuture<'_, Result<u64, JournalError>> {
        ready(self.rows.lock().append(record))
    }

    fn records_of(
        &self,
        invocation: InvocationId,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        ready(self.rows.lock().of_call(invocation).cloned().collect())
    }

    fn find_request<'a>(
        &'a self,
        session: &'a SessionId,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        let rows = self.rows.lock();
        let seq = rows.by_request.get(&(session.clone(), request.clone()));
        ready(
            seq.and_then(|&seq| rows.get(seq))
                .map(|row| row.stored.clone()),
        )
    }

    fn find_session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        let tells_of_it = |row: &&MemoryJournalRow| {
            let record = &row.stored.record;
            matches!(
                record.kind,
                RecordKind::SessionOpened | RecordKind::SessionClosed
            ) && record.session_id.as_ref() == Some(session)
        };
        ready(
            self.rows
                .lock()
                .all
                .iter()
                .rev()
                .find(tells_of_it)
                .map(|row| row.stored.clone()),
        )
    }

    fn last_start(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        let rows = self.rows.lock();
        let found = rows
            .all
            .iter()
            .rev()
            .find(|row| row.stored.record.kind == RecordKind::HostStarted);
        ready(found.map_or(0, |row| row.stored.seq))
    }

    fn read(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        let rows = self.rows.lock();
        let first = usize::try_from(after.saturating_sub(rows.removed)).unwrap_or(usize::MAX);
        ready(
            rows.all
                .iter()
                .skip(first)
                .take(limit)
                .map(|row| row.stored.clone())
                .collect(),
        )
    }

    fn find(&self, query: Query) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        ready(self.rows.lock().find(&query))
    }

    fn head(&self) -> BoxFuture<'_, Result<JournalHead, JournalError>> {
        let rows = self.rows.lock();
        let bytes = rows
            .all
            .iter()
            .map(|row| row.stored.record.body.len() as u64)
            .sum();
        ready(JournalHead {
            seq: rows.last(),
            hash: rows.hash(),
            first: rows.removed + 1,
            bytes,
        })
    }

    fn prune(&self, cut: RetentionCut) -> BoxFuture<'_, Result<Option<PrunedRange>, JournalError>> {
        ready(self.rows.lock().prune(cut))
    }
}
