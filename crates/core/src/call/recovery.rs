//! After a restart: every call the last host left open gets its end, as the durability table says.

use std::{collections::HashMap, sync::Arc};

use jiff::SignedDuration;
use toolpost_model::{InvocationId, ModelInput, RequestId, SessionId, Stage};

use super::{Way, drive};
use crate::{
    flow::{
        invocation::{Acknowledged, Call, CallRequest, LiveCall, OnRecord},
        result::{self, Ending},
    },
    host::Inner,
    record::{
        journal::{JournalError, Record, RecordKind, RequestKey, StoredRecord, Strength},
        rendering::{RecordedCall, RecordedWay, StartBody},
    },
};

/// How many records are read at a time.
const PAGE: usize = 1_000;

/// A call without an end on record.
pub(crate) struct OpenCall {
    id: InvocationId,
    session: SessionId,
    call: RecordedCall,
    request: Option<RequestKey>,
    /// It had begun something that may have a side effect.
    started: bool,
}

/// Answers of so long ago may not have been heard.
const UNHEARD_FOR: SignedDuration = SignedDuration::from_mins(10);
/// So many records are looked at for answers that may not have been heard, and so many kept for a session.
const UNHEARD_RECORDS: u64 = 20_000;
const UNHEARD_KEPT: usize = 1_024;
const UNHEARD_PAGE: usize = 256;

/// What is to be done with an open call.
enum Plan {
    RunAgain,
    End(Ending),
}

impl OpenCall {
    fn plan(&self) -> Plan {
        // Not even an idempotent write is run again: what it would write over may have changed since.
        if self.started {
            Plan::End(result::outcome_unknown())
        } else if self.call.parent.is_some() {
            Plan::End(result::restarted("the call that made it is gone"))
        } else if self.call.redacted {
            Plan::End(result::restarted(
                "a sensitive argument was kept out of the record, so it cannot be run",
            ))
        } else if self.call.arguments.is_none() {
            Plan::End(result::restarted("its arguments are not on record"))
        } else {
            Plan::RunAgain
        }
    }
}

/// Finds the calls that are open since the last start, and the number of the last record.
async fn open_calls(host: &Inner) -> Result<(Vec<OpenCall>, u64), JournalError> {
    let journal = &*host.journal;
    let start = journal.last_start().await?;
    let mut open: HashMap<InvocationId, OpenCall> = HashMap::new();
    if start > 0 {
        let rows = journal.read(start - 1, 1).await?;
        let body = rows.first().and_then(|row| serde_json::from_str::<StartBody>(&row.record.body).ok());
        for id in body.unwrap_or_default().carried {
            for row in journal.records_of(id).await? {
                follow(&mut open, &row);
            }
        }
    }
    let mut after = start;
    loop {
        let rows = journal.read(after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        rows.iter().for_each(|row| follow(&mut open, row));
    }
    let mut open: Vec<OpenCall> = open.into_values().collect();
    open.sort_by_key(|call| call.id);
    Ok((open, after))
}

fn follow(open: &mut HashMap<InvocationId, OpenCall>, row: &StoredRecord) {
    let (Some(id), Some(session)) = (row.record.invocation_id, &row.record.session_id) else {
        return;
    };
    match row.record.kind {
        RecordKind::Ended => {
            open.remove(&id);
        }
        RecordKind::Accepted | RecordKind::Started => {
            let Ok(way) = serde_json::from_str::<RecordedWay>(&row.record.body) else {
                return;
            };
            let started = row.record.kind == RecordKind::Started;
            if let Some(call) = way.call {
                let request = row.record.request.clone();
                open.insert(id, OpenCall { id, session: session.clone(), call, request, started });
            } else if let Some(known) = open.get_mut(&id) {
                known.started |= started;
            }
        }
        RecordKind::HostStarted | RecordKind::SessionOpened | RecordKind::SessionClosed => {}
    }
}

/// Requests that were answered shortly before the last host went, or not at all, by session, oldest first. Looks
/// back over starts: a host may have died again before anybody came back for an answer.
async fn unheard(
    host: &Inner,
    open: &[OpenCall],
    end: u64,
) -> Result<HashMap<SessionId, Vec<RequestId>>, JournalError> {
    let journal = &*host.journal;
    let oldest = crate::port::now() - UNHEARD_FOR;
    let mut kept: Vec<(SessionId, RequestId)> = Vec::new();
    let mut before = end;
    while before > end.saturating_sub(UNHEARD_RECORDS) {
        let after = before.saturating_sub(UNHEARD_PAGE as u64);
        let rows = journal.read(after, usize::try_from(before - after).unwrap_or(UNHEARD_PAGE)).await?;
        before = after;
        let recent = rows.iter().rev().take_while(|row| row.record.at >= oldest);
        let mut seen = 0;
        for row in recent {
            seen += 1;
            if let (Some(session), Some(request)) = (&row.record.session_id, &row.record.request) {
                kept.push((session.clone(), request.id.clone()));
            }
        }
        if seen < rows.len() {
            break;
        }
    }
    let mut unheard: HashMap<SessionId, Vec<RequestId>> = HashMap::new();
    for call in open {
        if let Some(request) = &call.request {
            unheard.entry(call.session.clone()).or_default().push(request.id.clone());
        }
    }
    for (session, request) in kept {
        let of_session = unheard.entry(session).or_default();
        if of_session.len() < UNHEARD_KEPT && !of_session.contains(&request) {
            of_session.push(request);
        }
    }
    unheard.values_mut().for_each(|requests| requests.reverse());
    Ok(unheard)
}

/// Ends what cannot go on, marks the start, and lets the rest run. Called once, before the host takes calls.
pub(crate) async fn recover(host: &Arc<Inner>) -> Result<usize, JournalError> {
    let (open, end) = open_calls(host).await?;
    let found = open.len();
    if let Some(last) = host.journal.read(end.saturating_sub(1), 1).await?.first() {
        host.note_last_record(last.record.at);
    }
    host.keep_unheard(unheard(host, &open, end).await?);
    let mut again = Vec::new();
    for mut call in open {
        match call.plan() {
            Plan::End(ending) => {
                let mut ended = rebuild(host, &mut call).await;
                ended.ending = Some(ending);
                ended.stage = Stage::Map;
                drive(host, &mut ended, Way::Recovered).await;
                if host.journal_failing() {
                    // Going on would put the start behind a call that has no end, and nobody would look again.
                    return Err(JournalError::Broken(
                        "the end of a call left open could not be written".into(),
                    ));
                }
            }
            Plan::RunAgain => again.push(call),
        }
    }
    let body = StartBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        carried: again.iter().map(|call| call.id).collect(),
    };
    let record = Record {
        kind: RecordKind::HostStarted,
        at: crate::port::now(),
        invocation_id: None,
        session_id: None,
        request: None,
        body: serde_json::to_string(&body).unwrap_or_default(),
    };
    host.append(record, Strength::Synced).await?;
    for mut call in again {
        let rebuilt = rebuild(host, &mut call).await;
        host.spawn(rebuilt, Way::Recovered);
    }
    Ok(found)
}

async fn rebuild(host: &Arc<Inner>, open: &mut OpenCall) -> Call {
    let session = host.session_or_new(&open.session, &open.call.principal()).await;
    let arguments = open.call.arguments.take().map_or_else(|| "{}".into(), |raw| Arc::from(raw.get()));
    let request = CallRequest {
        session,
        tool: std::mem::take(&mut open.call.tool),
        input: ModelInput::Text(arguments),
        face: "recovery",
        request_id: None,
        correlation_id: open.call.correlation_id.take(),
        timeout: open.call.timeout_ms.map(std::time::Duration::from_millis),
        patience: None,
        listener: None,
        acknowledged: Acknowledged::Early,
        batch: None,
        background: true,
    };
    let live = Arc::new(LiveCall::new(open.id, &request, host.redactor.clone()));
    let mut call = Call::new(live, request, open.request.take());
    call.face = std::mem::take(&mut open.call.face);
    call.on_record = if open.started { OnRecord::Started } else { OnRecord::Accepted };
    call
}
