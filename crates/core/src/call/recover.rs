//! Recovery: gives an end to each call that the last host left open, or resumes it.

mod left;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use toolpost_model::{
    Arguments, BatchOrdering, BatchPlace, InvocationId, ModelInput, RequestId, SessionId, Stage,
};

use super::{CallRunKind, drive, rehearse};
use crate::{
    approval::{
        ApprovalAnswer, ApprovalGrant, Approvals, LONGEST, OneUse, QuestionKey, RecoveredQuestion,
        wait,
    },
    host::HostInner,
    invocation::{
        AcknowledgementTiming, CallRequest, CallTimeLimits, LiveCall, OnRecord, PipelineCall,
        RequestIdentity,
    },
    record::{
        body::{CatalogOnRecord, HostStartBody, RecordedLimits},
        declared::CatalogFollower,
        journal::{AppendStrength, JournalError, Record, RecordKind, StoredRecord},
    },
    result::{self, CallEnding},
};
use left::{LeftBehind, LeftQuestion, OpenCall, UnfinishedQuestion};

/// The number of records in one read.
const PAGE: usize = 1_000;

/// A caller may have missed an answer that is younger than this when the host stopped.
const UNHEARD_FOR: SignedDuration = SignedDuration::from_mins(10);
/// The limit of records that are searched for missed answers, and the limit of request ids that a session keeps.
const UNHEARD_RECORDS: u64 = 20_000;
const UNHEARD_KEPT: usize = 1_024;
const UNHEARD_PAGE: usize = 256;

/// The treatment of an open call.
enum RecoveryAction {
    RunAgain,
    /// The call waited for approval: it waits again, or continues with an approval that is on record.
    Resume(Box<RecoveredQuestion>),
    /// The call waited for approval, and this host has no operator. It stays open for a host that has one.
    Leave,
    End(CallEnding),
}

impl LeftBehind {
    fn plan(&mut self, call: &OpenCall, approvals: Approvals, now: Timestamp) -> RecoveryAction {
        // A started call is never run again, not even an idempotent write: between the crash and this start a person
        // may have changed the file that the write would replace.
        if call.started {
            RecoveryAction::End(result::outcome_unknown())
        } else if call.call.parent.is_some() {
            RecoveryAction::End(result::restarted("its parent call is gone"))
        } else if call.call.batch.as_deref().is_some_and(waits_for_siblings) {
            RecoveryAction::End(result::restarted(
                "the calls of its batch that it depends on are gone",
            ))
        } else if call.call.redacted {
            RecoveryAction::End(result::restarted(
                "a sensitive argument is not on record, so it cannot be run",
            ))
        } else if call.call.arguments.is_none() {
            RecoveryAction::End(result::restarted("its arguments are not on record"))
        } else if let Some(asks) = &call.asks {
            self.plan_asked(call, asks, approvals, now)
        } else {
            RecoveryAction::RunAgain
        }
    }

    fn plan_asked(
        &mut self,
        call: &OpenCall,
        asks: &UnfinishedQuestion,
        approvals: Approvals,
        now: Timestamp,
    ) -> RecoveryAction {
        let asked = asks.asked;
        let tool = &*call.call.tool;
        let earlier = |answer| {
            let decision = asks.decision.clone();
            let programs = asks.programs.clone();
            RecoveryAction::Resume(Box::new(RecoveredQuestion {
                asked,
                decision,
                programs,
                answer,
            }))
        };
        let question = self.questions.get_mut(&asked.ask_id);
        let Some(answer) = question.and_then(|question| question.answer.as_mut()) else {
            return match approvals {
                _ if asked.expires_at <= now => {
                    RecoveryAction::End(result::approval_expired(tool, asked.ask_id))
                }
                Approvals::Nobody => RecoveryAction::Leave,
                Approvals::Ask { .. } => earlier(None),
            };
        };
        // An answer without waiting calls is for one call.
        if answer.is_taken {
            return RecoveryAction::End(result::restarted(
                "another call used the answer to its question",
            ));
        }
        let one_use = answer.kept_until.is_some();
        answer.is_taken = one_use;
        match answer.word() {
            Some(ApprovalAnswer::Yes(yes)) => earlier(Some((yes, OneUse(one_use)))),
            Some(ApprovalAnswer::No(no)) => {
                RecoveryAction::End(result::approval_refused(tool, &no))
            }
            Some(ApprovalAnswer::Expired) | None => RecoveryAction::End(result::restarted(
                "its approved arguments contained a sensitive value that is not on record",
            )),
        }
    }
}

/// Whether a call was to run after other calls of its batch.
fn waits_for_siblings(place: &BatchPlace) -> bool {
    !place.depends_on.is_empty() || place.ordering == BatchOrdering::Serial
}

/// Finds the open calls and questions of the last host, the number of the last record, and the recorded catalog.
///
/// Only the records since the last start are read, plus the records of the calls that this start carried over. So each
/// start must name every call that is still open: see `mark_start`.
async fn left_behind(host: &HostInner) -> Result<(LeftBehind, u64, CatalogFollower), JournalError> {
    let journal = &*host.record.journal;
    let start = journal.last_start().await?;
    let mut left = LeftBehind::default();
    let mut told = CatalogFollower::default();
    if start > 0 {
        let rows = journal.read(start - 1, 1).await?;
        let body = rows
            .first()
            .and_then(|row| row.record.read_body::<HostStartBody>().ok());
        let body = body.unwrap_or_default();
        let mut carried = Vec::new();
        told = CatalogFollower::starting_with(still_there(host, body.catalog).await?);
        for id in body.carried {
            carried.extend(
                journal
                    .records_of(id)
                    .await?
                    .into_iter()
                    .filter(|row| row.seq < start),
            );
        }
        // In the order of writing, because an answer may be among the records of another call with the same question.
        carried.sort_unstable_by_key(|row| row.seq);
        carried.iter().for_each(|row| left.follow(row));
    }
    let mut after = start;
    loop {
        let rows = journal.read(after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in &rows {
            left.follow(row);
            if row.record.kind == RecordKind::Catalog
                && let Ok(head) = row.record.read_body()
            {
                told.follow(row.seq, &head);
            }
        }
    }
    Ok((left, after, told))
}

/// The position of the recorded catalog, unless these records were removed since.
async fn still_there(
    host: &HostInner,
    told: Option<CatalogOnRecord>,
) -> Result<Option<CatalogOnRecord>, JournalError> {
    let Some(at) = told else { return Ok(None) };
    let rows = host
        .record
        .journal
        .read(at.from.saturating_sub(1), 1)
        .await?;
    let is_it = |row: &StoredRecord| row.seq == at.from && row.record.kind == RecordKind::Catalog;
    Ok(told.filter(|_| rows.first().is_some_and(is_it)))
}

/// The request ids, by session and oldest first, whose answers the callers may have missed: requests without an answer,
/// and those answered shortly before the last host stopped. The search goes back over earlier starts, because a host
/// may have crashed again before any caller came back.
async fn unheard(
    host: &HostInner,
    open: &[OpenCall],
    end: u64,
) -> Result<HashMap<SessionId, Vec<RequestId>>, JournalError> {
    let journal = &*host.record.journal;
    let oldest = crate::port::now() - UNHEARD_FOR;
    let mut kept: Vec<(SessionId, RequestId)> = Vec::new();
    let mut before = end;
    while before > end.saturating_sub(UNHEARD_RECORDS) {
        let after = before.saturating_sub(UNHEARD_PAGE as u64);
        let mut rows = journal
            .read(
                after,
                usize::try_from(before - after).unwrap_or(UNHEARD_PAGE),
            )
            .await?;
        // If the oldest records were removed, the page begins with later records.
        rows.retain(|row| row.seq <= before);
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
            unheard
                .entry(call.session.clone())
                .or_default()
                .push(request.id.clone());
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

/// The calls and questions that continue after the start is recorded.
#[derive(Default)]
struct GoesOn {
    calls: Vec<(OpenCall, CallRunKind, Option<RecoveredQuestion>)>,
    carried: BTreeSet<InvocationId>,
}

/// Ends the calls that cannot continue, records the start, and resumes the rest. Called once, before the host accepts
/// calls.
///
/// The order protects against a second crash. The ends come first: recovery reads only from the last start, so a start
/// record before them would hide a call that still has no end. The start record comes before the resumed calls and
/// lists them as carried, so the next recovery finds them even if no record of theirs follows.
pub(crate) async fn recover(host: &Arc<HostInner>) -> Result<usize, JournalError> {
    let (mut left, end, told) = left_behind(host).await?;
    if let Some(last) = host
        .record
        .journal
        .read(end.saturating_sub(1), 1)
        .await?
        .first()
    {
        host.note_last_record(last.record.at);
    }
    let mut open: Vec<OpenCall> = std::mem::take(&mut left.calls).into_values().collect();
    open.sort_by_key(|call| call.id);
    let found = open.len();
    let now = crate::port::now();
    host.keep_unheard(unheard(host, &open, end).await?);
    let mut goes_on = GoesOn::default();
    for mut call in open {
        match left.plan(&call, host.approval.mode, now) {
            RecoveryAction::End(ending) => {
                let mut ended = rebuild(host, &mut call).await;
                ended.conclusion.ending = Some(ending);
                ended.progress.stage = Stage::Map;
                drive(host, &mut ended, CallRunKind::Recovered).await;
                if host.journal_failing() {
                    // Stops here, because a start record after a call without an end would hide that call from every
                    // later recovery.
                    return Err(JournalError::Broken(
                        "the end of an open call could not be written, usually because the disk is full; free \
                         disk space and start again"
                            .into(),
                    ));
                }
            }
            RecoveryAction::RunAgain => {
                goes_on.carried.insert(call.id);
                goes_on.calls.push((call, CallRunKind::Recovered, None));
            }
            RecoveryAction::Resume(earlier) => {
                goes_on.carry(&left, call.id, earlier.asked.ask_id);
                goes_on
                    .calls
                    .push((call, CallRunKind::Resumed, Some(*earlier)));
            }
            RecoveryAction::Leave => {
                let ask_id = call.asks.as_ref().map_or(call.id, |asks| asks.asked.ask_id);
                goes_on.carry(&left, call.id, ask_id);
            }
        }
    }
    for (ask_id, question) in &left.questions {
        if question.is_kept_open(now) || question.kept_answer(now).is_some() {
            goes_on.carry(&left, question.raised_by.id, *ask_id);
        }
    }
    mark_start(host, goes_on.carried, told.known).await?;
    for (mut call, way, earlier) in goes_on.calls {
        let mut rebuilt = rebuild(host, &mut call).await;
        rebuilt.asking.earlier = earlier;
        host.spawn(rebuilt, way);
    }
    for question in left
        .questions
        .into_values()
        .filter(|question| !question.is_awaited())
    {
        take_back(host, question, now).await;
    }
    Ok(found)
}

impl GoesOn {
    fn carry(&mut self, left: &LeftBehind, call: InvocationId, ask_id: InvocationId) {
        self.carried.insert(call);
        if let Some(question) = left.questions.get(&ask_id) {
            self.carried.extend(&question.told_by);
        }
    }
}

async fn mark_start(
    host: &HostInner,
    carried: BTreeSet<InvocationId>,
    told: Option<CatalogOnRecord>,
) -> Result<(), JournalError> {
    let body = HostStartBody {
        traces: true,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        carried: carried.into_iter().collect(),
        catalog: told.filter(|told| host.is_told_by(told)),
        limits: RecordedLimits::of(&host.limits),
    };
    let record = Record {
        kind: RecordKind::HostStarted,
        at: crate::port::now(),
        invocation_id: None,
        session_id: None,
        request: None,
        body: serde_json::to_string(&body).unwrap_or_default(),
        facets: None,
    };
    host.append(record, AppendStrength::Synced).await?;
    host.begin_telling(told).await
}

/// Restores a question without waiting calls, or keeps its answer again.
async fn take_back(host: &Arc<HostInner>, mut question: LeftQuestion, now: Timestamp) {
    if let Some((answer, until)) = question.kept_answer(now) {
        let Some(word) = answer.word() else { return };
        // The clock may have been set back while no host ran.
        let most = match host.approval.mode {
            Approvals::Ask { grant_for, .. } => grant_for,
            Approvals::Nobody => LONGEST,
        };
        let left = until.duration_since(now).unsigned_abs().min(most);
        let key = QuestionKey {
            principal: answer.principal(),
            hash: answer.hash,
        };
        let without_files = answer.without_files;
        let until = tokio::time::Instant::now() + left;
        host.approval.questions.keep(ApprovalGrant {
            key,
            without_files,
            word,
            until,
        });
        return;
    }
    let recorded = &question.raised_by.call;
    let can_be_asked =
        host.approval.mode != Approvals::Nobody && recorded.parent.is_none() && !recorded.redacted;
    let Some(asks) = question.raised_by.asks.take() else {
        return;
    };
    if !question.is_kept_open(now) || !can_be_asked {
        return;
    }
    let mut call = rebuild(host, &mut question.raised_by).await;
    let UnfinishedQuestion {
        asked,
        decision,
        programs,
    } = asks;
    call.asking.earlier = Some(RecoveredQuestion {
        asked,
        decision,
        programs,
        answer: None,
    });
    let host = Arc::clone(host);
    host.clone().track(async move {
        tokio::select! {
            biased;
            () = host.closing().cancelled() => {}
            () = ask_once_more(&host, &mut call) => {}
        }
    });
}

async fn ask_once_more(host: &Arc<HostInner>, call: &mut PipelineCall) {
    rehearse(host, call).await;
    wait::ask_again(host, call).await;
}

async fn rebuild(host: &Arc<HostInner>, open: &mut OpenCall) -> PipelineCall {
    let session = host
        .session_or_new(&open.session, &open.call.principal())
        .await;
    let arguments = open
        .call
        .arguments
        .take()
        .map_or_else(|| "{}".into(), |part| Arc::from(part.text()));
    let tool = std::mem::take(&mut open.call.tool).into_owned();
    let trace = open.call.trace.take();
    let request = CallRequest::new(session, tool, ModelInput::Text(arguments))
        .record_face("recovery")
        .identify(RequestIdentity {
            request_id: None,
            native_call_id: open.call.native_call_id.take(),
            correlation_id: open.call.correlation_id.take().map(Cow::into_owned),
            trace: trace.map(|span| Box::new(span.into_owned())),
        })
        .limit_times(CallTimeLimits {
            timeout: open.call.timeout_ms.map(Duration::from_millis),
            ..CallTimeLimits::default()
        })
        .acknowledge(AcknowledgementTiming::Early)
        .run_in_background();
    let live = LiveCall::new(open.id, &request, host.record.redactor.clone()).resumed();
    let live = Arc::new(live.witnessed(&host.witnesses, &request, None));
    let mut call = PipelineCall::new(live, request, open.request.take());
    call.origin.face = std::mem::take(&mut open.call.face).into_owned();
    let sent = open.call.model_arguments.take();
    call.inputs.sent = sent.and_then(|part| Arguments::parse(&Arc::from(part.text())).ok());
    call.progress.on_record = if open.started {
        OnRecord::Started
    } else {
        OnRecord::Accepted
    };
    call
}
