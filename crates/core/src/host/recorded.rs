//! Calls as their records tell them, for faces that speak of a call after its caller left or its host went.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use toolpost_model::{InvocationId, Principal, RequestId, SessionId};

use super::{Host, Sight};
use crate::{
    call::Answer,
    record::{
        journal::{JournalError, RecordKind, StoredRecord},
        query::Query,
        rendering::RecordedWay,
    },
};

/// A call as its records tell it. Everything in it has passed redaction.
#[derive(Clone, Debug)]
pub struct CallOnRecord {
    /// The call.
    pub invocation_id: InvocationId,
    /// The tool, as its caller named it.
    pub tool: String,
    /// What the caller sent, as others may see it; `None` where the host could not read it as this tool's arguments.
    pub arguments: Option<Value>,
    /// Its session.
    pub session_id: SessionId,
    /// Who calls.
    pub principal: Principal,
    /// Where it came in.
    pub face: String,
    /// The caller's own id for it.
    pub request_id: Option<RequestId>,
    /// The caller's word for what belongs together.
    pub correlation_id: Option<String>,
    /// The call that made it.
    pub parent: Option<InvocationId>,
    /// When it began.
    pub began_at: Timestamp,
    /// The last question that was asked about it, answered or not, where it has not ended.
    pub question: Option<InvocationId>,
    /// Its end, where there is one.
    pub end: Option<EndOnRecord>,
}

/// How a call ended, as its record tells it.
#[derive(Clone, Debug)]
pub struct EndOnRecord {
    /// When.
    pub at: Timestamp,
    /// Its answer, the same bytes as its caller got.
    pub answer: Arc<Answer>,
}

/// One of the calls that a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// Its session.
    pub session_id: SessionId,
}

impl CallOnRecord {
    /// From the records of one call, oldest first. `None` where they do not begin with its first one.
    pub fn of(rows: &[StoredRecord]) -> Option<Self> {
        // The answer to its question may stand behind a call's end, and is not its end.
        let of_call: Vec<_> = rows.iter().filter(|row| row.record.kind != RecordKind::Decided).collect();
        let first = of_call.first()?;
        let way: RecordedWay = serde_json::from_str(&first.record.body).ok()?;
        let call = way.call?;
        let last = of_call.last()?;
        let RecordedWay { result, .. } = serde_json::from_str(&last.record.body).ok()?;
        let answer = result.as_deref().and_then(Answer::recorded);
        let asks = of_call.iter().rev().find(|row| row.record.kind == RecordKind::Asked);
        let ask = asks.and_then(|row| serde_json::from_str::<RecordedWay>(&row.record.body).ok()?.ask);
        let sent = call.model_arguments.as_ref().or(call.arguments.as_ref());
        let until_then = way.transitions.last().map_or(0, |reached| reached.at_us);
        let until_then = SignedDuration::try_from(Duration::from_micros(until_then)).unwrap_or_default();
        Some(Self {
            invocation_id: first.record.invocation_id?,
            arguments: sent.and_then(|sent| serde_json::from_str(sent.get()).ok()),
            session_id: first.record.session_id.clone()?,
            principal: call.principal(),
            request_id: first.record.request.as_ref().map(|key| key.id.clone()),
            began_at: first.record.at.checked_sub(until_then).unwrap_or(first.record.at),
            question: ask.filter(|_| answer.is_none()).map(|ask| ask.ask_id),
            end: answer.map(|answer| EndOnRecord { at: last.record.at, answer }),
            tool: call.tool,
            face: call.face,
            correlation_id: call.correlation_id,
            parent: call.parent,
        })
    }
}

impl Host {
    /// A call as its records tell it. Agents get their own only; `None` also where nothing of it is on record yet.
    pub async fn recorded_call(
        &self,
        id: InvocationId,
        viewer: &Principal,
    ) -> Result<Option<CallOnRecord>, JournalError> {
        let rows = self.inner.journal.records_of(id).await?;
        Ok(CallOnRecord::of(&rows).filter(|call| Sight::ByRole(viewer).shows(&call.principal)))
    }

    /// The calls on record that a query wants, newest first: whose they are is for [`recorded_call`](Self::recorded_call)
    /// to check.
    pub async fn find_calls(&self, query: Query) -> Result<Vec<FoundCall>, JournalError> {
        let rows = self.inner.journal.find(query).await?;
        let found = |row: StoredRecord| {
            let (invocation_id, session_id) = (row.record.invocation_id?, row.record.session_id?);
            Some(FoundCall { invocation_id, session_id })
        };
        Ok(rows.into_iter().filter_map(found).collect())
    }

    /// Resolves when a call does not run here, or not any more. Whoever waits like this waits for no answer: a call that
    /// a person is being asked about stays open for the next host.
    pub async fn no_longer_runs(&self, id: InvocationId) {
        let live = super::lock(&self.inner.state.running).get(&id).cloned();
        if let Some(live) = live {
            live.wait_over().await;
        }
    }
}
