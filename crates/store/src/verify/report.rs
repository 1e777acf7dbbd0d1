//! What a check can find.

use jiff::Timestamp;
use toolpost_model::{ContentDigest, InvocationId};

use super::{ArtifactCounts, SealedHead};

/// One thing that is wrong.
#[derive(Debug)]
pub struct VerifyProblem {
    /// The record it was found at, 0 where it concerns the file.
    pub seq: u64,
    /// What it is.
    pub what: JournalFlaw,
}

/// What can be wrong with a journal.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum JournalFlaw {
    /// Rows are gone.
    #[error("records {first} to {last} are missing")]
    Missing {
        /// The first that is not there.
        first: u64,
        /// The last that is not there.
        last: u64,
    },
    /// A row that cannot stand where it stands.
    #[error("a record has the number {number}, and numbers begin at 1")]
    Number {
        /// The number.
        number: i64,
    },
    /// A row that should have gone.
    #[error("a record stands before the place up to which records were removed")]
    BeforeAnchor,
    /// Records went, and no record says so.
    #[error("records up to {up_to} were removed, and no `pruned` record vouches for it")]
    Unvouched {
        /// The last that is gone.
        up_to: u64,
    },
    /// Records went, and where the rest begins is no longer noted.
    #[error("it tells that records up to {up_to} were removed, and the file no longer notes it")]
    AnchorLost {
        /// The last that is gone.
        up_to: u64,
    },
    /// A value no journal writes.
    #[error("column `{column}` {why}")]
    Column {
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// This record or the one before it was changed after it was written.
    #[error("the hash does not follow from this record and the hash before it")]
    Chain,
    /// The body does not parse.
    #[error("the body is not a JSON object")]
    Body,
    /// The table for searching says something else than the record.
    #[error("what the call is looked for by is not what its records say")]
    Facets,
    /// The call had ended before.
    #[error("call `{0}` ends a second time")]
    SecondEnd(InvocationId),
    /// The call had ended before.
    #[error("call `{0}` goes on after its end")]
    AfterEnd(InvocationId),
    /// The chain is not the one that was sealed.
    #[error("the sealed head `{0}` is not in the record: records were cut off or replaced")]
    Head(SealedHead),
    /// A kept result is not there, and should be.
    #[error("the kept result `{0}` is missing")]
    ArtifactMissing(ContentDigest),
    /// A kept result is not what was recorded.
    #[error("the kept result `{0}` was changed")]
    ArtifactChanged(ContentDigest),
    /// A kept result cannot be read.
    #[error("the kept result `{digest}` cannot be read: {why}")]
    ArtifactUnreadable {
        /// Which.
        digest: ContentDigest,
        /// What the system said.
        why: String,
    },
    /// A table, index or trigger differs from what this version makes.
    #[error("`{name}` is missing from the database, changed or foreign to it")]
    Schema {
        /// Its name.
        name: String,
    },
    /// The file's own structure is broken, or an index disagrees with its table.
    #[error("the database is damaged: {0}")]
    Storage(String),
}

impl JournalFlaw {
    /// Whether it may have to do with how the oldest records went.
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

/// What a check comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyConclusion {
    /// Nothing is wrong.
    Clean,
    /// Nothing is wrong with what is there, and the sealed head cannot be looked for.
    CannotTell,
    /// Something is wrong.
    Broken,
}

/// What a check found.
#[derive(Debug)]
pub struct VerifyReport {
    /// How many records there are.
    pub records: u64,
    /// How many calls they tell of.
    pub invocations: u64,
    /// When the first was written.
    pub first: Option<Timestamp>,
    /// When the last was written.
    pub last: Option<Timestamp>,
    /// The last record by number and hash: worth keeping elsewhere, as it vouches for all before it.
    pub head: SealedHead,
    /// The number of the last record that was removed, 0 where none was.
    pub removed_up_to: u64,
    /// Nothing speaks against their having been removed by a host: the anchor is vouched for, and nothing was changed.
    pub removal_is_sound: bool,
    /// The sealed head that was asked for is gone with the oldest records, or may be, where its number was not noted.
    /// It can vouch for nothing any more.
    pub removed_head: Option<SealedHead>,
    /// Calls that have not ended, oldest first. Beside a running host, calls in flight are among them.
    pub open_invocations: Vec<InvocationId>,
    /// The kept results that were looked for.
    pub artifacts: ArtifactCounts,
    /// What is wrong, the first bad record first, and then what concerns the file; the first thousand.
    pub problems: Vec<VerifyProblem>,
    /// How many more there are.
    pub problems_left_out: u64,
}

impl VerifyReport {
    /// What it comes to.
    pub fn verdict(&self) -> VerifyConclusion {
        if !self.problems.is_empty() {
            VerifyConclusion::Broken
        } else if self.removed_head.is_some() {
            VerifyConclusion::CannotTell
        } else {
            VerifyConclusion::Clean
        }
    }

    /// True where nothing is wrong and everything that was asked could be checked.
    pub fn is_clean(&self) -> bool {
        self.verdict() == VerifyConclusion::Clean
    }

    /// The first record that is not as it was written.
    pub fn first_bad(&self) -> Option<u64> {
        self.problems
            .iter()
            .map(|problem| problem.seq)
            .find(|seq| *seq > 0)
    }
}
