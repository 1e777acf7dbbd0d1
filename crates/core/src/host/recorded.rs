//! Calls as their records describe them, for faces that report on a call after its caller left or its host stopped.

use toolpost_model::{InvocationId, Principal, SessionId};

use super::{CallVisibility, Host};
use crate::record::{
    journal::{JournalError, StoredRecord},
    query::Query,
    story::CallOnRecord,
};

/// A call that a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// Its session.
    pub session_id: SessionId,
    /// The record that matched. The next page ends before it.
    pub seq: u64,
}

impl Host {
    /// A call as its records describe it. Agents get their own calls only. `None` also if the call is not on record
    /// yet.
    pub async fn recorded_call(
        &self,
        id: InvocationId,
        viewer: &Principal,
    ) -> Result<Option<CallOnRecord>, JournalError> {
        let rows = self.inner.record.journal.records_of(id).await?;
        Ok(CallOnRecord::of(&rows)
            .filter(|call| CallVisibility::ByRole(viewer).shows(&call.principal)))
    }

    /// The recorded calls that match a query, newest first. The result is not limited to the viewer's calls;
    /// [`recorded_call`](Self::recorded_call) checks that.
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

    /// Resolves when a call does not run in this host, or no longer. It does not count as a waiting caller, so a call
    /// that waits for approval stays open for the next host.
    pub async fn no_longer_runs(&self, id: InvocationId) {
        let live = self.inner.state.calls.running.lock().get(&id).cloned();
        if let Some(live) = live {
            live.wait_over().await;
        }
    }
}
