//! Calls as their records tell them, for faces that speak of a call after its caller left or its host went.

use toolpost_model::{InvocationId, Principal, SessionId};

use super::{CallVisibility, Host};
use crate::record::{
    journal::{JournalError, StoredRecord},
    query::Query,
    story::CallOnRecord,
};

/// One of the calls that a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// Its session.
    pub session_id: SessionId,
    /// The record it was found by: the next page is before that.
    pub seq: u64,
}

impl Host {
    /// A call as its records tell it. Agents get their own only; `None` also where nothing of it is on record yet.
    pub async fn recorded_call(
        &self,
        id: InvocationId,
        viewer: &Principal,
    ) -> Result<Option<CallOnRecord>, JournalError> {
        let rows = self.inner.record.journal.records_of(id).await?;
        Ok(CallOnRecord::of(&rows)
            .filter(|call| CallVisibility::ByRole(viewer).shows(&call.principal)))
    }

    /// The calls on record that a query wants, newest first: whose they are is for [`recorded_call`](Self::recorded_call)
    /// to check.
    pub async fn find_calls(&self, query: Query) -> Result<Vec<FoundCall>, JournalError> {
        let rows = self.inner.record.journal.find(query).await?;
        let found = |row: StoredRecord| {
            let invocation_id = row.record.invocation_id?;
            let session_id = row.record.session_id?;
            Some(FoundCall {
                invocation_id,
                session_id,
                seq: row.seq,
            })
        };
        Ok(rows.into_iter().filter_map(found).collect())
    }

    /// Resolves when a call does not run here, or not any more. Whoever waits like this waits for no answer: a call that
    /// a person is being asked about stays open for the next host.
    pub async fn no_longer_runs(&self, id: InvocationId) {
        let live = self.inner.state.calls.running.lock().get(&id).cloned();
        if let Some(live) = live {
            live.wait_over().await;
        }
    }
}
