//! Layer 5, approval: the questions that calls raise, and the effect of an answer.
//!
//! A call that needs approval is parked: it holds no slot, its deadline does not run, and its question is on record
//! before an operator can see it. The answer is on record before the call continues. Calls raise and await questions in
//! `approval/wait.rs`; operators list and answer them through `Host` (`operator.rs`); `call/recover.rs` restores the
//! questions that the last host left open.

mod answer;
pub(crate) mod coverage;
mod first_contact;
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

pub(crate) use first_contact::hash_offer;
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

/// Whether the host can ask an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    /// There is no operator. A call that needs approval is denied, and its error names the setting that would change
    /// that.
    #[default]
    Nobody,
    /// An operator answers through [`Host::decide`](crate::Host::decide).
    Ask {
        /// How long a question waits for its answer.
        timeout: Duration,
        /// How long an answer is kept for a repeat of the call after its caller stopped waiting.
        grant_for: Duration,
    },
}

impl Approvals {
    /// The default times: ten minutes for an answer, and one hour for a caller to repeat the call and use a kept
    /// answer.
    pub const ASK: Self = Self::Ask {
        timeout: Duration::from_secs(600),
        grant_for: Duration::from_secs(3_600),
    };

    /// Limits both times to ten years, which the clocks can represent.
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

/// The longest life of a question, an answer or a remembered rule: ten years.
pub(crate) const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// The answer that a waiting call receives.
#[derive(Clone, Debug)]
pub(crate) enum ApprovalAnswer {
    Yes(ApprovalConsent),
    No(ApprovalRejection),
    Expired,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalConsent {
    pub(crate) ask_id: InvocationId,
    pub(crate) by: PrincipalName,
    /// The hash of the approved call, including the operator's edit of its arguments.
    pub(crate) approves: CallHash,
    /// The operator's arguments, which replace those of the call.
    pub(crate) arguments: Option<Value>,
    /// The files that the approved call runs, as they were at the approval.
    pub(crate) programs: Vec<ProgramFile>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalRejection {
    pub(crate) ask_id: InvocationId,
    pub(crate) by: PrincipalName,
    pub(crate) feedback: Option<String>,
}

/// An answer to a question without waiting calls. One later call may use it until it expires.
#[derive(Clone, Debug)]
pub(crate) struct ApprovalGrant {
    pub(crate) key: QuestionKey,
    /// The hash of the call without its files, if it runs files.
    pub(crate) without_files: Option<CallHash>,
    pub(crate) word: ApprovalAnswer,
    pub(crate) until: tokio::time::Instant,
}

/// The approval that a call continues with.
pub(crate) struct CallApproval {
    pub(crate) yes: ApprovalConsent,
    pub(crate) one_use: OneUse,
    /// The kept answer that the approval came from. It is given back if the call ends before it starts.
    pub(crate) grant: Option<ApprovalGrant>,
    /// Whether the call began to run on this approval.
    pub(crate) spent: bool,
}

/// The questions and answers of one call.
#[derive(Default)]
pub(crate) struct CallApprovalState {
    /// The question that the call had raised when its host stopped.
    pub(crate) earlier: Option<RecoveredQuestion>,
    /// The last question that the call raised or joined.
    pub(crate) asked: Option<RecordedQuestion>,
    /// The files that the call would run, as last read.
    pub(crate) programs: Vec<ProgramFile>,
    /// The approval that the call continues with.
    pub(crate) approval: Option<CallApproval>,
    /// The refusal that the call ends with, and whether it was a kept answer.
    pub(crate) refusal: Option<(ApprovalRejection, KeptVerdictFlag)>,
    /// The host stopped while the call had no waiting caller. The call gets no end, and the next host resumes it.
    pub(crate) left_open: bool,
}

/// Whether a verdict was given before the call arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptVerdictFlag {
    No,
    Yes,
}

/// The record of a question that outlived its host.
#[derive(Clone, Debug)]
pub(crate) struct RecoveredQuestion {
    pub(crate) asked: RecordedQuestion,
    pub(crate) decision: Decision,
    /// The files that the call would have run, as they were at the question.
    pub(crate) programs: Vec<ProgramFile>,
    /// The approval, if it was given before the call started.
    pub(crate) answer: Option<(ApprovalConsent, OneUse)>,
}

/// Whether an approval was kept for one call. The record must then name the call that used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OneUse(pub(crate) bool);

/// How a question was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionClosure {
    /// An operator answered.
    Decided {
        /// The operator.
        by: PrincipalName,
        /// The time of the answer.
        at: Timestamp,
        /// Whether the answer allows the call.
        allowed: bool,
    },
    /// The time for an answer passed.
    Expired,
    /// All its callers gave up.
    Withdrawn,
}

/// The last eight digits of an id, for texts in which an operator compares questions by eye.
pub(crate) fn short(id: InvocationId) -> String {
    let hex = id.to_hex();
    hex[hex.len() - 8..].to_owned()
}
