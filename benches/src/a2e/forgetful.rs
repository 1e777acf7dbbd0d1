//! A journal that stores nothing: the cost of calls without any record.

use std::sync::atomic::{AtomicU64, Ordering};

use toolpost_core::{
    AppendStrength, GENESIS, Journal, JournalError, JournalHead, PrunedRange, Query, Record,
    RetentionCut, StoredRecord,
};
use toolpost_model::{BoxFuture, InvocationId, RequestId, SessionId};

#[derive(Default)]
pub(super) struct Forgetful {
    last: AtomicU64,
}

fn at_once<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, JournalError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Journal for Forgetful {
    fn append(&self, _: Record, _: AppendStrength) -> BoxFuture<'_, Result<u64, JournalError>> {
        at_once(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn records_of(
        &self,
        _: InvocationId,
    ) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        at_once(Vec::new())
    }

    fn find_request<'a>(
        &'a self,
        _: &'a SessionId,
        _: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        at_once(None)
    }

    fn find_session<'a>(
        &'a self,
        _: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<StoredRecord>, JournalError>> {
        at_once(None)
    }

    fn last_start(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        at_once(0)
    }

    fn read(&self, _: u64, _: usize) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        at_once(Vec::new())
    }

    fn find(&self, _: Query) -> BoxFuture<'_, Result<Vec<StoredRecord>, JournalError>> {
        at_once(Vec::new())
    }

    fn head(&self) -> BoxFuture<'_, Result<JournalHead, JournalError>> {
        let seq = self.last.load(Ordering::Relaxed);
        at_once(JournalHead {
            seq,
            hash: GENESIS,
            first: seq + 1,
            bytes: 0,
        })
    }

    fn prune(&self, _: RetentionCut) -> BoxFuture<'_, Result<Option<PrunedRange>, JournalError>> {
        at_once(None)
    }
}
