//! Looking at calls, waiting for their end and stopping them, by their ids.

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

/// Where a call stands.
#[derive(Clone, Debug, Serialize)]
pub struct InvocationView {
    /// The call.
    pub invocation_id: InvocationId,
    /// In one word.
    pub status: StatusWord,
    /// The tool as asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Where it is, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The result, once it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
}

/// Where a call stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// On its way.
    Running,
    /// Over.
    Ended,
    /// Begun, and its end could not be written.
    Unknown,
}

/// Whose calls somebody may look at.
#[derive(Clone, Copy)]
pub(crate) enum CallVisibility<'a> {
    /// An operator sees every call, anybody else their own.
    ByRole(&'a Principal),
    /// Their own only, whatever their role: a tool that acts for somebody acts on their calls alone.
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
        // The answer to its question may stand behind a call's end, and is not its end.
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
            // The host went while it waited for a person's answer, and the next one goes on with it.
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
    /// Tells a running call to stop. `false`: it is not running, or not this caller's.
    pub fn cancel(&self, id: InvocationId, principal: &Principal) -> bool {
        self.inner.cancel(id, CallVisibility::ByRole(principal))
    }

    /// Where a call stands. Agents see their own only.
    pub async fn invocation(
        &self,
        id: InvocationId,
        principal: &Principal,
    ) -> Result<Option<InvocationView>, JournalError> {
        self.inner
            .invocation(id, CallVisibility::ByRole(principal))
            .await
    }

    /// Up to `limit` records of a session with numbers over `after`: see [`of_session`](crate::Journal::of_session). Whoever has the
    /// session may read them.
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

    /// The same of all sessions. For operators: who asks is for the caller to check.
    pub async fn records(&self, after: u64, limit: usize) -> Result<SessionPage, JournalError> {
        let rows = self.inner.record.journal.read(after, limit).await?;
        let up_to = rows.last().map_or(after, |row| row.seq);
        Ok(SessionPage { rows, up_to })
    }

    /// Where the record ends and where it begins.
    pub async fn journal_head(&self) -> Result<JournalHead, JournalError> {
        self.inner.record.journal.head().await
    }

    /// Waits for the end of a call, but not longer than `most`, and tells where it stands then. Agents see their own
    /// only. Whoever stops waiting leaves the call as it is.
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
