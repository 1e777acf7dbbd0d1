//! The plan of a cut: its place, and the records to restate after it.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};
use toolpost_model::{InvocationId, SessionId};

use super::{PruneRequest, RetentionExemptions, RetentionHold};
use crate::record::{
    body::{CallRecordBody, CatalogRestatement, RestatableHead, VerdictBody, append_member},
    journal::{Journal, JournalError, Record, RecordKind, StoredRecord},
    query::Query,
    rendering::written,
};

const PAGE: usize = 500;
/// The bytes of a row beside its body: other columns, index entries.
const ROW_BYTES: u64 = 300;
/// The limit of restated surfaces; the newest ones are kept.
const MOST_SURFACES: usize = 256;
/// The limit of moves of the cut before a call that it would divide. On a host that is never idle every place lies
/// within some call, and without a limit no record could ever be removed.
const MOST_STEPS: usize = 100;

/// The range to remove, and the records to restate.
pub(super) struct PrunePlan {
    pub(super) first: u64,
    /// The last record to remove; `None`: there is none.
    pub(super) up_to: Option<u64>,
    pub(super) held: Option<(u64, RetentionHold)>,
    pub(super) restated: Vec<Record>,
}

impl PrunePlan {
    pub(super) async fn make(
        journal: &dyn Journal,
        due: &PruneRequest,
        needed: &RetentionExemptions,
    ) -> Result<Self, JournalError> {
        let head = journal.head().await?;
        let too_much = due.size.map_or(0, |size| excess(head.bytes, size));
        let mut walk = PruneWalk {
            too_much,
            ..PruneWalk::default()
        };
        let mut after = head.first.saturating_sub(1);
        'pages: loop {
            let rows = journal.read(after, PAGE).await?;
            let Some(last) = rows.last() else { break };
            after = last.seq;
            for row in &rows {
                if !walk.takes(row, due, needed) {
                    break 'pages;
                }
            }
        }
        let mut held = walk.held.take();
        for hold in walk.holds(journal, needed).await? {
            if held.as_ref().is_none_or(|(seq, _)| hold.0 < *seq) {
                held = Some(hold);
            }
        }
        let mut up_to = held
            .as_ref()
            .map_or(walk.up_to, |(seq, _)| walk.up_to.min(seq - 1));
        for _ in 0..MOST_STEPS {
            let Some((first, call)) = walk.divided(up_to) else {
                break;
            };
            up_to = first - 1;
            held = Some((first, RetentionHold::DividedCall(call)));
        }
        // If the range held only records of earlier removals, the removal would write as many new ones, for ever.
        let up_to = Some(up_to).filter(|up_to| walk.first_told.is_some_and(|told| told <= *up_to));
        let restated = match up_to {
            Some(up_to) => walk.restated(journal, up_to, needed.now).await?,
            None => Vec::new(),
        };
        Ok(Self {
            first: head.first,
            up_to,
            held,
            restated,
        })
    }
}

/// A tenth of the limit more than needed, so that not every hourly run has a few records to remove.
fn excess(bytes: u64, size: u64) -> u64 {
    if bytes > size {
        bytes - size + size / 10
    } else {
        0
    }
}

/// The state of the walk from the oldest record to the first that is not due.
#[derive(Default)]
struct PruneWalk {
    /// Excess bytes that the walk has not passed yet.
    too_much: u64,
    up_to: u64,
    held: Option<(u64, RetentionHold)>,
    /// The first record of anything besides a removal.
    first_told: Option<u64>,
    /// By the number of their first record.
    open_calls: HashMap<InvocationId, u64>,
    /// Calls of several records that ended during the walk.
    ended_calls: Vec<CallRecordSpan>,
    open_sessions: HashMap<SessionId, u64>,
    questions: Vec<(u64, InvocationId)>,
    /// By their original number.
    catalogs: BTreeMap<u64, CatalogRow>,
    surfaces: HashMap<String, (u64, u64)>,
}

/// The first and the last record of a call.
struct CallRecordSpan {
    first: u64,
    end: u64,
    call: InvocationId,
}

struct CatalogRow {
    seq: u64,
    digest: String,
    whole: bool,
}

impl PruneWalk {
    /// Whether the record is due and the walk goes on.
    fn takes(
        &mut self,
        row: &StoredRecord,
        due: &PruneRequest,
        needed: &RetentionExemptions,
    ) -> bool {
        let is_old = due.before.is_some_and(|before| row.record.at < before);
        if !is_old && self.too_much == 0 {
            return false;
        }
        if row.record.at > idle_since(needed) {
            self.held = Some((row.seq, RetentionHold::Recent));
            return false;
        }
        self.too_much = self
            .too_much
            .saturating_sub(row.record.body.len() as u64 + ROW_BYTES);
        self.up_to = row.seq;
        self.note(row);
        true
    }

    fn note(&mut self, row: &StoredRecord) {
        let seq = row.seq;
        let record = &row.record;
        let call = record.invocation_id;
        let session = record.session_id.as_ref();
        match record.kind {
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started => {
                if let Some(call) = call {
                    self.open_calls.entry(call).or_insert(seq);
                    if record.kind == RecordKind::Asked {
                        self.questions.push((seq, call));
                    }
                }
            }
            RecordKind::Ended => {
                if let Some(call) = call
                    && let Some(first) = self.open_calls.remove(&call)
                {
                    self.ended_calls.push(CallRecordSpan {
                        first,
                        end: seq,
                        call,
                    });
                }
            }
            RecordKind::SessionOpened => {
                if let Some(session) = session {
                    self.open_sessions.entry(session.clone()).or_insert(seq);
                }
            }
            RecordKind::SessionClosed => {
                if let Some(session) = session {
                    self.open_sessions.remove(session);
                }
            }
            RecordKind::Catalog | RecordKind::Surface => self.note_context(row),
            RecordKind::HostStarted
            | RecordKind::Decided
            | RecordKind::Discovered
            | RecordKind::Pruned => {}
        }
        let by_pruning = match record.kind {
            RecordKind::Pruned => true,
            RecordKind::Catalog | RecordKind::Surface => {
                head(record).is_some_and(|head| head.restated.is_some())
            }
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::SessionClosed
            | RecordKind::Accepted
            | RecordKind::Asked
            | RecordKind::Decided
            | RecordKind::Started
            | RecordKind::Ended
            | RecordKind::Discovered => false,
        };
        if !by_pruning {
            self.first_told.get_or_insert(seq);
        }
    }

    fn note_context(&mut self, row: &StoredRecord) {
        let Some(RestatableHead {
            digest,
            whole,
            surface_id,
            restated,
            ..
        }) = head(&row.record)
        else {
            return;
        };
        let original = restated.map_or(row.seq, |restated| restated.seq);
        if row.record.kind == RecordKind::Catalog {
            self.catalogs.insert(
                original,
                CatalogRow {
                    seq: row.seq,
                    digest,
                    whole,
                },
            );
        } else {
            let newest = self
                .surfaces
                .entry(surface_id)
                .or_insert((original, row.seq));
            if newest.0 <= original {
                *newest = (original, row.seq);
            }
        }
    }

    async fn holds(
        &self,
        journal: &dyn Journal,
        needed: &RetentionExemptions,
    ) -> Result<Vec<(u64, RetentionHold)>, JournalError> {
        let mut holds = Vec::new();
        for (&call, &seq) in &self.open_calls {
            let rows = journal.records_of(call).await?;
            let has_ended = rows.iter().any(|row| row.record.kind == RecordKind::Ended);
            // The call's end is after the walk's last record. Readers of that end need the call's first record, and a
            // repeat of its request is recognised by it.
            holds.push((
                seq,
                if has_ended {
                    RetentionHold::DividedCall(call)
                } else {
                    RetentionHold::OpenCall(call)
                },
            ));
        }
        for &(_, call) in &self.questions {
            let rows = journal.records_of(call).await?;
            if let Some(first) = rows.first().filter(|_| is_unsettled(&rows, needed.now)) {
                holds.push((first.seq, RetentionHold::Question(call)));
            }
        }
        for (session, &seq) in &self.open_sessions {
            if may_come_back(journal, session, needed).await? {
                holds.push((seq, RetentionHold::Session(session.clone())));
            }
        }
        Ok(holds)
    }

    /// The oldest call whose beginning a cut at this record would remove without its end.
    fn divided(&self, up_to: u64) -> Option<(u64, InvocationId)> {
        let divided = self
            .ended_calls
            .iter()
            .filter(|span| span.first <= up_to && up_to < span.end);
        divided.map(|span| (span.first, span.call)).min()
    }

    /// The newest whole catalog up to the cut with its later changes, and the newest record of each surface.
    async fn restated(
        &self,
        journal: &dyn Journal,
        up_to: u64,
        now: Timestamp,
    ) -> Result<Vec<Record>, JournalError> {
        let catalogs: Vec<&CatalogRow> = self
            .catalogs
            .values()
            .filter(|row| row.seq <= up_to)
            .collect();
        let mut first = catalogs.iter().rposition(|row| row.whole).unwrap_or(0);
        // A large catalog is in several parts.
        while first > 0
            && catalogs[first - 1].whole
            && catalogs[first - 1].digest == catalogs[first].digest
        {
            first -= 1;
        }
        let mut surfaces: Vec<u64> = self
            .surfaces
            .values()
            .map(|(_, seq)| *seq)
            .filter(|seq| *seq <= up_to)
            .collect();
        surfaces.sort_unstable();
        let newest = surfaces.len().saturating_sub(MOST_SURFACES);
        let needed = catalogs[first..]
            .iter()
            .map(|row| row.seq)
            .chain(surfaces[newest..].iter().copied());
        let mut restated = Vec::new();
        for seq in needed {
            let rows = journal.read(seq - 1, 1).await?;
            restated.extend(rows.into_iter().map(|row| told_again(row, now)));
        }
        Ok(restated)
    }
}

fn idle_since(needed: &RetentionExemptions) -> Timestamp {
    let idle = SignedDuration::try_from(needed.session_idle).unwrap_or(SignedDuration::MAX);
    needed.now.checked_sub(idle).unwrap_or(Timestamp::MIN)
}

fn head(record: &Record) -> Option<RestatableHead> {
    record.read_body().ok()
}

/// Whether the question may still be answered, or its answer still be used.
fn is_unsettled(rows: &[StoredRecord], now: Timestamp) -> bool {
    rows.iter().any(|row| match row.record.kind {
        RecordKind::Asked => {
            let body: Option<CallRecordBody<'_>> = row.record.read_body().ok();
            body.and_then(|body| body.ask)
                .is_some_and(|asked| now < asked.expires_at)
        }
        RecordKind::Decided => {
            let body: Option<VerdictBody> = row.record.read_body().ok();
            body.and_then(|body| body.kept_until)
                .is_some_and(|until| now < until)
        }
        RecordKind::HostStarted
        | RecordKind::SessionOpened
        | RecordKind::SessionClosed
        | RecordKind::Accepted
        | RecordKind::Started
        | RecordKind::Ended
        | RecordKind::Catalog
        | RecordKind::Surface
        | RecordKind::Discovered
        | RecordKind::Pruned => false,
    })
}

async fn may_come_back(
    journal: &dyn Journal,
    session: &SessionId,
    needed: &RetentionExemptions,
) -> Result<bool, JournalError> {
    if needed.sessions.contains(session) {
        return Ok(true);
    }
    let newest = journal.find_session(session).await?;
    if newest.is_none_or(|row| row.record.kind == RecordKind::SessionClosed) {
        return Ok(false);
    }
    let calls = Query {
        session: Some(session.clone()),
        ..Query::newest(1)
    };
    let last_call = journal.find(calls).await?;
    Ok(last_call
        .first()
        .is_some_and(|call| call.record.at > idle_since(needed)))
}

/// A copy of the record for the end of the journal, with its original number.
fn told_again(row: StoredRecord, now: Timestamp) -> Record {
    let StoredRecord {
        seq, mut record, ..
    } = row;
    if head(&record).is_some_and(|head| head.restated.is_none()) {
        let restated = CatalogRestatement { seq, at: record.at };
        append_member(&mut record.body, "restated", &written(&restated, 64));
    }
    Record { at: now, ..record }
}
