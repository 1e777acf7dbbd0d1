//! Layer 5, a person's part: the questions that calls raise, and what an answer does.
//!
//! A call that must be asked about is parked: it holds no slot, its deadline does not run, and its question is on
//! record before anybody sees it. The answer is on record before the call goes on. Calls raise and wait for
//! questions in `approval/wait.rs`; operators read and answer them through `Host` (`operator.rs`);
//! `call/recover.rs` brings back what the last host left open.

mod answer;
pub(crate) mod coverage;
mod hash;
pub(crate) mod operator;
mod question;
mod registry;
pub(crate) mod remembered;
mod rules;
pub(crate) mod wait;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use toolpost_model::{CallHash, Decision, InvocationId, PrincipalName, ProgramFile};

pub(crate) use hash::{CallHashSalt, call_hash};
pub use operator::{ApprovalError, VerdictReceipt};
pub(crate) use question::{ApprovalQuestion, QuestionContext, QuestionTerms, draft};
pub(crate) use registry::{
    QuestionAdmission, QuestionClaim, QuestionKey, QuestionLeaveReason, QuestionLeaveReply,
    QuestionRegistry, QuestionWaiter, TableFull, VerdictAdmission,
};
pub(crate) use rules::place;
pub use rules::{MemoryRules, RememberedRule, RuleStore, RuleStoreError};

use crate::record::body::RecordedQuestion;

/// Whether there is anybody to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    /// Nobody: a call that must be asked about is denied, and says what would change that.
    #[default]
    Nobody,
    /// An operator, through [`Host::decide`](crate::Host::decide).
    Ask {
        /// How long a question waits for its answer.
        timeout: Duration,
        /// How long an answer that comes after its caller stopped waiting is kept for the same call.
        grant_for: Duration,
    },
}

impl Approvals {
    /// An operator is asked: ten minutes for an answer, because people are slow and agents see where they stand;
    /// an hour for a caller to come back for it.
    pub const ASK: Self = Self::Ask {
        timeout: Duration::from_secs(600),
        grant_for: Duration::from_secs(3_600),
    };

    /// Times that clocks can reckon with.
    pub(crate) fn bounded(self) -> Self {
        match self {
            Self::Nobody => Self::Nobody,
            Self::Ask { timeout, grant_for } => Self::Ask {
                timeout: timeout.min(LONGEST),
                grant_for: grant_for.min(LONGEST),
            },
        }
    }
}

/// The longest time that a question, an answer or a remembered rule is good for: ten years.
pub(crate) const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// What a call hears of its question.
#[derive(Clone, Debug)]
pub(crate) enum ApprovalAnswer {
    Yes(ApprovalConsent),
    No(ApprovalRejection),
    Expired,
}

/// A person said yes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalConsent {
    pub(crate) ask_id: InvocationId,
    pub(crate) by: PrincipalName,
    /// The call as it is approved: after the edit, where there is one.
    pub(crate) approves: CallHash,
    /// The arguments to run it with instead of its own.
    pub(crate) arguments: Option<Value>,
    /// The files it would run then, as they were.
    pub(crate) programs: Vec<ProgramFile>,
}

/// A person said no.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalRejection {
    pub(crate) ask_id: InvocationId,
    pub(crate) by: PrincipalName,
    pub(crate) feedback: Option<String>,
}

/// An answer that came when nobody waited for it any more. Good for one call, for a while.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalGrant {
    pub(crate) key: QuestionKey,
    /// The hash of the call without its files, where it would run some.
    pub(crate) without_files: Option<CallHash>,
    pub(crate) word: ApprovalAnswer,
    pub(crate) until: tokio::time::Instant,
}

/// A yes that a call goes on with.
pub(crate) struct CallApproval {
    pub(crate) yes: ApprovalConsent,
    pub(crate) one_use: OneUse,
    /// The kept answer it comes from. Given back where the call ends before it starts.
    pub(crate) grant: Option<ApprovalGrant>,
    /// The call has begun to run on it.
    pub(crate) spent: bool,
}

/// What a call has to do with questions.
#[derive(Default)]
pub(crate) struct CallApprovalState {
    /// The question it had raised when its host went.
    pub(crate) earlier: Option<RecoveredQuestion>,
    /// The last question it raised or joined.
    pub(crate) asked: Option<RecordedQuestion>,
    /// The files it would run, as they were looked at last.
    pub(crate) programs: Vec<ProgramFile>,
    /// The yes it goes on with.
    pub(crate) approval: Option<CallApproval>,
    /// The no it ends with, and whether it was kept from before.
    pub(crate) refusal: Option<(ApprovalRejection, KeptVerdictFlag)>,
    /// The host went while nobody waited for it: it has no end, and the next host goes on with it.
    pub(crate) left_open: bool,
}

/// Whether an answer was given before the call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptVerdictFlag {
    No,
    Yes,
}

/// What is on record of a question that outlived its host.
#[derive(Clone, Debug)]
pub(crate) struct RecoveredQuestion {
    pub(crate) asked: RecordedQuestion,
    pub(crate) decision: Decision,
    /// The files it would have run, as they were then.
    pub(crate) programs: Vec<ProgramFile>,
    /// The yes, where it was given and the call had not started.
    pub(crate) answer: Option<(ApprovalConsent, OneUse)>,
}

/// Whether a yes was kept for one call, so that the record must tell which one used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OneUse(pub(crate) bool);

/// How a question came off the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionClosure {
    /// Somebody answered.
    Decided {
        /// Who.
        by: PrincipalName,
        /// When.
        at: Timestamp,
        /// Whether it was a yes.
        allowed: bool,
    },
    /// Nobody answered in time.
    Expired,
    /// Its callers gave it up.
    Withdrawn,
}

/// The last eight digits of an id: enough to tell questions apart by eye.
pub(crate) fn short(id: InvocationId) -> String {
    let hex = id.to_hex();
    hex[hex.len() - 8..].to_owned()
}
