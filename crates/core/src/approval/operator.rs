//! What operators are asked, and their answers.

use std::sync::{Arc, Weak};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolpost_model::{
    ArgumentChange, InvocationId, PermissionRequest, Principal, PrincipalName, PrincipalRole,
    Verdict,
};

use super::{QuestionClosure, RememberedRule, RuleStoreError};
use crate::{
    catalog::SchemaViolation,
    host::{Host, HostInner},
    record::journal::JournalError,
};

/// An answer that counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictReceipt {
    /// The question.
    pub ask_id: InvocationId,
    /// Whether it was a yes.
    pub allowed: bool,
    /// Who answered.
    pub by: PrincipalName,
    /// When.
    pub at: Timestamp,
    /// How many calls were waiting for it.
    pub waiting: usize,
    /// Nobody was waiting any more: until then the same call by the same caller gets this answer, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Timestamp>,
    /// The arguments that it gave other values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_arguments: Vec<ArgumentChange>,
    /// The rule that lets calls like this one pass from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The same, where it outlives the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<RememberedRule>,
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error("no question `{0}` is open")]
    Unknown(InvocationId),
    /// Somebody was faster.
    #[error("`{by}` said {} at {at}", if *.allowed { "yes" } else { "no" })]
    AlreadyDecided {
        /// Who.
        by: PrincipalName,
        /// When.
        at: Timestamp,
        /// Whether it was a yes.
        allowed: bool,
    },
    /// Too late.
    #[error("nobody answered in time, and no answer is a no")]
    Expired,
    /// Nobody wants to know any more.
    #[error("the call was given up by its caller")]
    Withdrawn,
    /// Agents never answer.
    #[error("only an operator may answer")]
    NotOperator,
    /// An agent does not answer for itself under another hat.
    #[error("`{0}` may not answer for a call that an agent of the same name made")]
    OwnCall(PrincipalName),
    /// The other arguments do not fit the tool.
    #[error("the arguments do not fit: {}", .0.iter().map(told).collect::<Vec<_>>().join("; "))]
    BadArguments(Vec<SchemaViolation>),
    /// No rule was suggested, or not this one.
    #[error("{}", nothing_to_remember(.asked.as_deref(), .offered))]
    NothingToRemember {
        /// The rule that was named.
        asked: Option<String>,
        /// The ones that would work.
        offered: Vec<String>,
    },
    /// What would be changed was not shown.
    #[error(
        "the call has sensitive arguments that are not shown, so it can only be taken as it is"
    )]
    Redacted,
    /// The answer could not be put on record, so it does not count.
    #[error("the answer does not count, because {0}")]
    Journal(#[from] JournalError),
    /// The rule could not be kept, so the answer does not count.
    #[error("the answer does not count, because {0}")]
    Rules(#[from] RuleStoreError),
}

impl ApprovalError {
    /// A word that does not change, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::NotOperator => "not_operator",
            Self::OwnCall(_) => "own_call",
            Self::BadArguments(_) => "bad_arguments",
            Self::NothingToRemember { .. } => "nothing_to_remember",
            Self::Redacted => "redacted",
            Self::Journal(_) => "journal",
            Self::Rules(_) => "rules",
        }
    }
}

impl From<QuestionClosure> for ApprovalError {
    fn from(closed: QuestionClosure) -> Self {
        match closed {
            QuestionClosure::Decided { by, at, allowed } => {
                Self::AlreadyDecided { by, at, allowed }
            }
            QuestionClosure::Expired => Self::Expired,
            QuestionClosure::Withdrawn => Self::Withdrawn,
        }
    }
}

fn told(fault: &SchemaViolation) -> String {
    let at = if fault.at.is_empty() {
        "the arguments"
    } else {
        fault.at.as_str()
    };
    format!("at {at}: expected {}, got {}", fault.expected, fault.given)
}

fn nothing_to_remember(asked: Option<&str>, offered: &[String]) -> String {
    match (asked, offered) {
        (_, []) => {
            "no rule can be remembered for this call; it can be allowed this once".to_owned()
        }
        (Some(asked), some) => format!(
            "`{asked}` is not suggested; suggested is `{}`",
            some.join("`, `")
        ),
        (None, some) => format!("suggested is `{}`", some.join("`, `")),
    }
}

impl Host {
    /// What waits for an answer, oldest first.
    pub fn approvals(&self) -> Vec<PermissionRequest> {
        self.inner.approval.questions.list()
    }

    /// One question that waits for an answer.
    pub fn approval(&self, id: InvocationId) -> Option<PermissionRequest> {
        self.inner.approval.questions.get(id)
    }

    /// What became of a question that does not wait any more, as far as this host remembers.
    pub fn closed_approval(&self, id: InvocationId) -> Option<QuestionClosure> {
        self.inner.approval.questions.closed(id)
    }

    /// Resolves whenever a question came, went, or has other callers waiting.
    pub fn approval_changes(&self) -> watch::Receiver<u64> {
        self.inner.approval.questions.changes()
    }

    /// Answers a question. The answer is on record before any call goes on with it; once begun it is carried
    /// through, also where nobody waits for this to return.
    pub async fn decide(
        &self,
        id: InvocationId,
        verdict: Verdict,
        by: &Principal,
    ) -> Result<VerdictReceipt, ApprovalError> {
        if by.role != PrincipalRole::Operator {
            return Err(ApprovalError::NotOperator);
        }
        let inner = Arc::clone(&self.inner);
        let by = by.clone();
        let answering = self
            .inner
            .state
            .tasks
            .spawn(async move { inner.answer(id, verdict, by).await });
        // A runtime that is torn down takes the answer with it, and so would an engine that panics.
        answering.await.unwrap_or_else(|broken| {
            Err(ApprovalError::Journal(JournalError::Broken(format!(
                "the answer broke off: {broken}"
            ))))
        })
    }

    /// The rules that approvals left behind.
    pub fn remembered(&self) -> Vec<RememberedRule> {
        self.inner.policy.remembered(crate::port::now())
    }

    /// Drops a remembered rule; `false` where there is none of that name.
    pub async fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        let store = Arc::clone(&self.inner.approval.rules);
        let name = id.to_owned();
        let found = blocking(move || store.forget(&name)).await?;
        self.inner.forget(id);
        Ok(found)
    }
}

/// Runs what may wait for a disk where nobody else has to wait for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuleStoreError> + Send + 'static,
) -> Result<T, RuleStoreError> {
    let broke = |_| RuleStoreError {
        reason: "the store broke off".to_owned(),
        source: None,
    };
    tokio::task::spawn_blocking(work).await.map_err(broke)?
}

/// Ends questions that nobody answers in time. Holds the host weakly: a dropped host is really gone.
pub(crate) async fn watch_the_clock(host: Weak<HostInner>, closing: CancellationToken) {
    let Some(mut changes) = host.upgrade().map(|host| host.approval.questions.changes()) else {
        return;
    };
    loop {
        let Some(next) = host.upgrade().map(|host| host.approval.questions.expire()) else {
            return;
        };
        let until_next = async {
            match next {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closing.cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
            () = until_next => {}
        }
    }
}
