//! Retention: the removal of the oldest records, the records that must stay, and the record that keeps the chain whole.
//!
//! A cut removes the oldest records up to a number and nothing else. At the end of the chain a `pruned` record names
//! the last removed record by number and hash, and a check of the rest begins with that hash.

mod plan;
pub(crate) mod schedule;

use std::{collections::HashSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use toolpost_model::{InvocationId, SessionId};

use super::{
    body::PrunedBody,
    journal::{Journal, JournalError, Record, RecordKind},
};
use plan::PrunePlan;

/// The lifetime of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Older records are removed.
    pub age: Option<Duration>,
    /// The oldest records are removed while the journal is larger than this, in bytes.
    pub size: Option<u64>,
}

impl Retention {
    /// Whether there is any limit.
    pub fn is_any(&self) -> bool {
        self.age.is_some() || self.size.is_some()
    }

    /// The records that are due for removal now.
    pub fn due(&self, now: Timestamp) -> PruneRequest {
        let age = self
            .age
            .map(|age| SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX));
        let before = age.and_then(|age| now.checked_sub(age).ok());
        PruneRequest {
            before,
            size: self.size,
            why: "retention".to_owned(),
        }
    }
}

/// A request to remove records.
#[derive(Clone, Debug)]
pub struct PruneRequest {
    /// Records written before this moment.
    pub before: Option<Timestamp>,
    /// The oldest records, until the journal is no larger than this.
    pub size: Option<u64>,
    /// The reason, for the record.
    pub why: String,
}

/// Exemptions: records that must stay at any age, beside those that the journal itself shows.
#[derive(Clone, Debug)]
pub struct RetentionExemptions {
    /// The present time.
    pub now: Timestamp,
    /// A session without calls for so long does not come back, and its requests are not repeated.
    pub session_idle: Duration,
    /// Sessions in memory.
    pub sessions: HashSet<SessionId>,
}

/// The reason why a record and all newer ones stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetentionHold {
    /// A call that has not ended.
    #[error("call `{0}` has not ended")]
    OpenCall(InvocationId),
    /// A call that ended after the cut.
    #[error("call `{0}` ended among the records that stay")]
    DividedCall(InvocationId),
    /// A question that may still be answered, or a grant that may still be used.
    #[error("the question of call `{0}` is not settled")]
    Question(InvocationId),
    /// A session that may come back.
    #[error("session `{0}` may be used again")]
    Session(SessionId),
    /// A request of that time may still be repeated.
    #[error("it is younger than `limits.session_idle`")]
    Recent,
}

/// One step of a cut.
#[derive(Clone, Debug)]
pub struct RetentionCut {
    /// The last record to remove.
    pub up_to: u64,
    /// The present time.
    pub at: Timestamp,
    /// The reason, for the record.
    pub why: String,
    /// Appended first: removed records that are still needed, recorded again.
    pub restated: Vec<Record>,
}

/// The removed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunedRange {
    /// The number of the last removed record.
    pub up_to: u64,
    /// Its hash, which the next record builds on.
    pub hash: [u8; 32],
    /// The number of removed records.
    pub records: u64,
    /// The time of the first of them.
    pub first: Timestamp,
    /// The time of the last of them.
    pub last: Timestamp,
}

/// The record that vouches for a cut.
pub fn pruned_record(pruned: &PrunedRange, at: Timestamp, why: &str) -> Record {
    let body = PrunedBody {
        up_to: pruned.up_to,
        hash: pruned
            .hash
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        records: pruned.records,
        first: pruned.first,
        last: pruned.last,
        why: why.to_owned(),
    };
    Record {
        kind: RecordKind::Pruned,
        at,
        invocation_id: None,
        session_id: None,
        request: None,
        body: serde_json::to_string(&body).unwrap_or_default(),
        facets: None,
    }
}

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The number of removed records.
    pub records: u64,
    /// The number of the last one, 0 if none was removed.
    pub up_to: u64,
    /// The first record that is due and stays, and the reason.
    pub held: Option<(u64, RetentionHold)>,
}

/// The records of one step. Appends wait for a step, some tens of milliseconds.
const PIECE: u64 = 1_000;

/// Removes the due records that may go, step by step. `progress` gets the number of removed records and of all.
///
/// The plan is made once, and the restated records go with the first step. They must not go with the last: a host that
/// dies between two steps would have removed a catalog whose calls are still on record. Restated too early is harmless,
/// because a reader recognises the repetition by its original number.
pub async fn prune(
    journal: &dyn Journal,
    due: &PruneRequest,
    needed: &RetentionExemptions,
    mut progress: impl FnMut(u64, u64),
) -> Result<PruneReport, JournalError> {
    let plan = PrunePlan::make(journal, due, needed).await?;
    let mut report = PruneReport {
        held: plan.held,
        ..PruneReport::default()
    };
    let Some(up_to) = plan.up_to else {
        return Ok(report);
    };
    let mut restated = plan.restated;
    let total = up_to + 1 - plan.first;
    let mut last = plan.first - 1;
    while last < up_to {
        last = up_to.min(last + PIECE);
        let cut = RetentionCut {
            up_to: last,
            at: needed.now,
            why: due.why.clone(),
            restated: std::mem::take(&mut restated),
        };
        let Some(gone) = journal.prune(cut).await? else {
            break;
        };
        report.records += gone.records;
        report.up_to = gone.up_to;
        progress(report.records, total);
    }
    Ok(report)
}

/// The records that `prune` would remove now, and the reason why others stay.
pub async fn plan_prune(
    journal: &dyn Journal,
    due: &PruneRequest,
    needed: &RetentionExemptions,
) -> Result<PruneReport, JournalError> {
    let plan = PrunePlan::make(journal, due, needed).await?;
    let up_to = plan.up_to.unwrap_or(0);
    let records = plan.up_to.map_or(0, |up_to| up_to + 1 - plan.first);
    Ok(PruneReport {
        records,
        up_to,
        held: plan.held,
    })
}
