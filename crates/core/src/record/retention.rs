//! How the oldest records go: what may, what must stay, and the record that keeps the chain whole.
//!
//! A cut takes the oldest records up to a number and nothing else. In their place stands a `pruned` record at the
//! end of the chain, which names the last of them by number and hash: whoever checks the rest begins with that hash.

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

/// How long records stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Older ones go.
    pub age: Option<Duration>,
    /// The oldest go while the journal takes more bytes.
    pub size: Option<u64>,
}

impl Retention {
    /// Whether anything goes at all.
    pub fn is_any(&self) -> bool {
        self.age.is_some() || self.size.is_some()
    }

    /// What is to go by now.
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

/// What is to go.
#[derive(Clone, Debug)]
pub struct PruneRequest {
    /// Records written before this moment.
    pub before: Option<Timestamp>,
    /// The oldest, until the journal takes no more bytes than this.
    pub size: Option<u64>,
    /// Why, for the record.
    pub why: String,
}

/// What must stay however old it is, beside what the record itself shows.
#[derive(Clone, Debug)]
pub struct RetentionExemptions {
    /// The time it is now.
    pub now: Timestamp,
    /// A session without calls for so long does not come back, and nobody repeats a request of so long ago.
    pub session_idle: Duration,
    /// Sessions in memory.
    pub sessions: HashSet<SessionId>,
}

/// What keeps a record, and with it all newer ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RetentionHold {
    /// A call that has not ended.
    #[error("call `{0}` has not ended")]
    OpenCall(InvocationId),
    /// A call that ended behind the cut.
    #[error("call `{0}` ended among the records that stay")]
    DividedCall(InvocationId),
    /// A question that may still be answered, or an answer that may still be used.
    #[error("the question of call `{0}` is not settled")]
    Question(InvocationId),
    /// A session that may come back.
    #[error("session `{0}` may come back")]
    Session(SessionId),
    /// Somebody may still repeat a request of that time.
    #[error("it is younger than `limits.session_idle`")]
    Recent,
}

/// One piece of a cut.
#[derive(Clone, Debug)]
pub struct RetentionCut {
    /// The last record that goes.
    pub up_to: u64,
    /// The time it is now.
    pub at: Timestamp,
    /// Why, for the record.
    pub why: String,
    /// Appended before it: what went and is still needed, told again.
    pub restated: Vec<Record>,
}

/// What went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunedRange {
    /// The number of the last one.
    pub up_to: u64,
    /// Its hash, which the record behind it builds on.
    pub hash: [u8; 32],
    /// How many.
    pub records: u64,
    /// When the first of them was written.
    pub first: Timestamp,
    /// When the last of them was written.
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

/// What pruning came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// How many records went.
    pub records: u64,
    /// The number of the last one, 0 where none went.
    pub up_to: u64,
    /// The first record that is older or beyond the size and stays all the same, and why.
    pub held: Option<(u64, RetentionHold)>,
}

/// Records that go in one piece. Appends wait for a piece, some tens of milliseconds.
const PIECE: u64 = 1_000;

/// Removes what is due and may go, in pieces. `progress` hears how many of how many are gone.
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

/// What `prune` would remove now, and what holds it up.
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
