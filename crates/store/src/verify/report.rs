//! The findings of a check.

use jiff::Timestamp;
use toolpost_model::{ContentDigest, InvocationId};

use super::{ArtifactCounts, SealedHead};

/// One fault.
#[derive(Debug)]
pub struct VerifyProblem {
    /// The record with the fault; 0 for the file itself.
    pub seq: u64,
    /// The kind of the fault.
    pub what: JournalFlaw,
}

/// A kind of fault in a journal.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum JournalFlaw {
    /// Rows are missing.
    #[error("records {first} to {last} are missing")]
    Missing {
        /// The first missing number.
        first: u64,
        /// The last missing number.
        last: u64,
    },
    /// A row with an impossible number.
    #[error("a record has the number {number}, but numbers begin at 1")]
    Number {
        /// The number.
        number: i64,
    },
    /// A row that should have been removed.
    #[error("a record is older than the last removed record")]
    BeforeAnchor,
    /// Records were removed, and no record states it.
    #[error("records up to {up_to} were removed, but no `pruned` record confirms it")]
    Unvouched {
        /// The last removed number.
        up_to: u64,
    },
    /// Records were removed, and the anchor is gone.
    #[error("it reports that records up to {up_to} were removed, but the file has no note of it")]
    AnchorLost {
        /// The last removed number.
        up_to: u64,
    },
    /// A value that no journal writes.
    #[error("column `{column}` {why}")]
    Column {
        /// The column.
        column: &'static str,
        /// The fault.
        why: &'static str,
    },
    /// This record or the one before it was changed after it was written.
    #[error("the hash does not follow from this record and the hash before it")]
    Chain,
    /// The body does not parse.
    #[error("the body is not a JSON object")]
    Body,
    /// The facet table differs from the record.
    #[error("the search facets of the call do not match its records")]
    Facets,
    /// The call ended twice.
    #[error("call `{0}` ends a second time")]
    SecondEnd(InvocationId),
    /// The call has a record after its end.
    #[error("call `{0}` continues after its end")]
    AfterEnd(InvocationId),
    /// The sealed head is not in the chain.
    #[error("the sealed head `{0}` is not in the record: records were cut off or replaced")]
    Head(SealedHead),
    /// An artifact is missing before the end of its lifetime.
    #[error("the kept result `{0}` is missing")]
    ArtifactMissing(ContentDigest),
    /// An artifact differs from its digest.
    #[error("the kept result `{0}` was changed")]
    ArtifactChanged(ContentDigest),
    /// An artifact cannot be read.
    #[error("the kept result `{digest}` cannot be read: {why}")]
    ArtifactUnreadable {
        /// Its digest.
        digest: ContentDigest,
        /// The error of the system.
        why: String,
    },
    /// A table, index or trigger differs from the schema of this version.
    #[error("`{name}` is missing from the database, changed or foreign to it")]
    Schema {
        /// Its name.
        name: String,
    },
    /// The file's own structure is damaged, or an index disagrees with its table.
    #[error("the database is damaged: {0}")]
    Storage(String),
}

impl JournalFlaw {
    /// Whether it may concern the removal of the oldest records.
    pub(super) fn concerns_removal(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::Number { .. }
            | Self::BeforeAnchor
            | Self::Unvouched { .. }
            | Self::AnchorLost { .. }
            | Self::Column { .. }
            | Self::Chain
            | Self::Body
            | Self::Head(_)
            | Self::Schema { .. }
            | Self::Storage(_) => true,
            Self::Facets
            | Self::SecondEnd(_)
            | Self::AfterEnd(_)
            | Self::ArtifactMissing(_)
            | Self::ArtifactChanged(_)
            | Self::ArtifactUnreadable { .. } => false,
        }
    }
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyConclusion {
    /// No fault.
    Clean,
    /// No fault in the present records, but the sealed head cannot be checked.
    CannotTell,
    /// At least one fault.
    Broken,
}

/// The report of a check.
#[derive(Debug)]
pub struct VerifyReport {
    /// The number of records.
    pub records: u64,
    /// The number of calls in them.
    pub invocations: u64,
    /// The time of the first record.
    pub first: Option<Timestamp>,
    /// The time of the last record.
    pub last: Option<Timestamp>,
    /// The last record by number and hash. A copy elsewhere proves all records up to it.
    pub head: SealedHead,
    /// The number of the last record that was removed, 0 where none was.
    pub removed_up_to: u64,
    /// No sign that the removal was not by a host: a record vouches for the anchor, and nothing was changed.
    pub removal_is_sound: bool,
    /// The requested sealed head was removed with the oldest records, or may have been, if it has no number. It cannot
    /// prove anything any more.
    pub removed_head: Option<SealedHead>,
    /// Calls that have not ended, oldest first. Beside a running host, they include running calls.
    pub open_invocations: Vec<InvocationId>,
    /// The outcome of the check of artifacts.
    pub artifacts: ArtifactCounts,
    /// The faults, first by record, then those of the file; at most a thousand.
    pub problems: Vec<VerifyProblem>,
    /// The number of further faults.
    pub problems_left_out: u64,
}

impl VerifyReport {
    /// The verdict.
    pub fn verdict(&self) -> VerifyConclusion {
        if !self.problems.is_empty() {
            VerifyConclusion::Broken
        } else if self.removed_head.is_some() {
            VerifyConclusion::CannotTell
        } else {
            VerifyConclusion::Clean
        }
    }

    /// Whether there is no fault and every requested check was possible.
    pub fn is_clean(&self) -> bool {
        self.verdict() == VerifyConclusion::Clean
    }

    /// The first record with a fault.
    pub fn first_bad(&self) -> Option<u64> {
        self.problems
            .iter()
            .map(|problem| problem.seq)
            .find(|seq| *seq > 0)
    }
}
