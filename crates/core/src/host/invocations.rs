//! Looking at calls, waiting for their end and canceling them, by invocation id.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::value::RawValue;
use toolpost_model::{InvocationId, Principal, PrincipalRole, SessionId, Stage};

use super::{Host, HostInner};
use crate::{
    invocation::{CancelReason, LiveCall},
    record::{
        body::{CallRecordBody, RecordBodyMember},
        journal::{JournalError, JournalHead, RecordKind, SessionPage},
    },
    session::Session,
};

/// The state of a call.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationView {
    /// The call.
    pub invocation_id: InvocationId,
    /// The state in one word.
    pub status: StatusWord,
    /// The tool name of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The stage of a running call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The result of an ended call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
}

/// The state of a call in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// The call has no end yet.
    Running,
    /// The call has ended.
    Ended,
    /// The call has started, and its end could not be recorded.
    Unknown,
}

/// The calls that a viewer may see.
#[derive(Clone, Copy)]
pub(crate) enum CallVisibility<'a> {
    /// Operators see all calls, agents their own.
    ByRole(&'a Principal),
    /// Only the principal's own calls, regardless of its role. For tools, which act on behalf of one principal.
    OwnOnly(&'a Principal),
}

impl CallVisibility<'_> {
    pub(super) fn shows(self, owner: &Principal) -> bool {
        match self {
            Self::ByRole(viewer) => viewer.role == PrincipalRole::Operator || owner == viewer,
            Self::OwnOnly(viewer) => owner == viewer,
        }
    }
}

impl HostInner {
    pub(super) fn live(
        &self,
        id: InvocationId,
        sight: CallVisibility<'_>,
    ) -> Option<Arc<LiveCall>> {
        let live = self.state.calls.running.lock().get(&id).cloned();
        live.filter(|live| sight.shows(live.principal()))
    }

    pub(crate) fn cancel(&self, id: InvocationId, sight: CallVisibility<'_>) -> bool {
        let (CallVisibility::ByRole(by) | CallVisibility::OwnOnly(by)) = sight;
        self.live(id, sight)
            .inspect(|live| live.cancel(CancelReason::Requested, Some(by)))
            .is_some()
    }

    pub(crate) async fn invocation(
        &self,
        id: InvocationId,
        sight: CallVisibility<'_>,
    ) -> Result<Option<InvocationView>, JournalError> {
        if let Some(live) = self.live(id, sight) {
            return Ok(Some(InvocationView {
                invocation_id: id,
                status: StatusWord::Running,
                tool: Some(live.tool.clone()),
                stage: Some(live.stage()),
                result: None,
            }));
        }
        let rows = self.record.journal.records_of(id).await?;
        // A record about an answer can follow the end of a call, and is not the end.
        let of_call = rows
            .iter()
            .filter(|row| row.record.kind != RecordKind::Decided);
        let mut ways =
            of_call.filter_map(|row| row.record.read_body::<CallRecordBody<'static>>().ok());
        let Some(mut first) = ways.next() else {
            return Ok(None);
        };
        let Some(call) = first
            .call
            .take()
            .filter(|call| sight.shows(&call.principal()))
        else {
            return Ok(None);
        };
        let CallRecordBody { result, ask, .. } = ways.next_back().unwrap_or(first);
        let (status, stage) = match (&result, ask) {
            (Some(_), _) => (StatusWord::Ended, None),
            // The host stopped while the call waited for approval. The next host resumes it.
            (None, Some(_)) => (StatusWord::Running, Some(Stage::AwaitApproval)),
            (None, None) => (StatusWord::Unknown, None),
        };
        Ok(Some(InvocationView {
            invocation_id: id,
            status,
            tool: Some(call.tool.into_owned()),
            stage,
            result: result.and_then(RecordBodyMember::into_text),
        }))
    }

    pub(crate) async fn wait(
        &self,
        id: InvocationId,
        sight: CallVisibility<'_>,
        most: Duration,
    ) -> Result<Option<InvocationView>, JournalError> {
        if let Some(live) = self.live(id, sight) {
            let _ = tokio::time::timeout(most, live.wait_over()).await;
        }
        self.invocation(id, sight).await
    }
}

impl Host {
    /// Cancels a running call. Returns `false` if it does not run or belongs to another caller.
    pub fn cancel(&self, id: InvocationId, principal: &Principal) -> bool {
        self.inner.cancel(id, CallVisibility::ByRole(principal))
    }

    /// The state of a call. Agents see their own calls only.
    pub async fn invocation(
        &self,
        id: InvocationId,
        principal: &Principal,
    ) -> Result<Option<InvocationView>, JournalError> {
        self.inner
            .invocation(id, CallVisibility::ByRole(principal))
            .await
    }

    /// Up to `limit` records of a session after number `after`: see [`of_session`](crate::Journal::of_session). A
    /// caller that has the session may read them.
    pub async fn session_records(
        &self,
        session: &Session,
        after: u64,
        limit: usize,
    ) -> Result<SessionPage, JournalError> {
        self.inner
            .record
            .journal
            .of_session(session.id(), after, limit)
            .await
    }

    /// Like [`session_records`](Self::session_records) for all sessions. The caller must check that the viewer is an
    /// operator.
    pub async fn records(&self, after: u64, limit: usize) -> Result<SessionPage, JournalError> {
        let rows = self.inner.record.journal.read(after, limit).await?;
        let up_to = rows.last().map_or(after, |row| row.seq);
        Ok(SessionPage { rows, up_to })
    }

    /// The first and the last record of the journal.
    pub async fn journal_head(&self) -> Result<JournalHead, JournalError> {
        self.inner.record.journal.head().await
    }

    /// Waits for the end of a call, at most for `most`, and returns its state. Agents see their own calls only.
    /// Dropping the future does not affect the call.
    pub async fn wait(
        &self,
        id: InvocationId,
        principal: &Principal,
        most: Duration,
    ) -> Result<Option<InvocationView>, JournalError> {
        self.inner
            .wait(id, CallVisibility::ByRole(principal), most)
            .await
    }
}

impl LiveCall {
    pub(super) fn is_of(&self, session: &SessionId) -> bool {
        self.session_id() == session
    }
}
