//! The operator's interface to approvals: listing questions, answering them, and dropping remembered rules.

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

/// The confirmation of an answer that counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictReceipt {
    /// The question.
    pub ask_id: InvocationId,
    /// Whether the answer allows the call.
    pub allowed: bool,
    /// The operator.
    pub by: PrincipalName,
    /// The time of the answer.
    pub at: Timestamp,
    /// The number of calls that were waiting for the answer.
    pub waiting: usize,
    /// Set if no call was waiting. Until this time one equal call of the same caller gets the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Timestamp>,
    /// The arguments that the operator changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_arguments: Vec<ArgumentChange>,
    /// The rule that allows calls like this one from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The rule as it is kept beyond the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<RememberedRule>,
    /// The rules about tools of the call's source that the answer saved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_rules: Vec<RememberedRule>,
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error("no question `{0}` is open")]
    Unknown(InvocationId),
    /// Another operator answered first.
    #[error("`{by}` already {} the call at {at}", if *.allowed { "allowed" } else { "denied" })]
    AlreadyDecided {
        /// The operator that answered.
        by: PrincipalName,
        /// The time of that answer.
        at: Timestamp,
        /// Whether that answer allowed the call.
        allowed: bool,
    },
    /// The time for an answer has passed.
    #[error("the question expired without an answer, which denies the call")]
    Expired,
    /// All callers of the question gave up.
    #[error("the caller gave up the call")]
    Withdrawn,
    /// Only operators may answer.
    #[error("only an operator may answer")]
    NotOperator,
    /// An operator may not answer for an agent of the same name, so that agents cannot approve their own calls.
    #[error("`{0}` may not answer for a call that an agent of the same name made")]
    OwnCall(PrincipalName),
    /// The operator's arguments are invalid.
    #[error("the arguments do not fit: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    BadArguments(Vec<SchemaViolation>),
    /// The named rule is not one of the suggested rules.
    #[error("{}", nothing_to_remember(.asked.as_deref(), .offered))]
    NothingToRemember {
        /// The named rule.
        asked: Option<String>,
        /// The suggested rules.
        offered: Vec<String>,
    },
    /// The question offers no tools of its source.
    #[error("this question offers no tools that only read; the call can be allowed once")]
    NothingOffered,
    /// The offered rules are saved together.
    #[error("`{0}` cannot be chosen with the scope `source_reads`, which saves all offered rules")]
    RuleBesideOffer(String),
    /// Arguments that are not shown cannot be edited.
    #[error(
        "the call has sensitive arguments that are not shown, so its arguments cannot be edited"
    )]
    Redacted,
    /// The answer could not be recorded, so it does not count.
    #[error("the answer does not count, because {0}")]
    Journal(#[from] JournalError),
    /// The rule could not be stored, so the answer does not count.
    #[error("the answer does not count, because {0}")]
    Rules(#[from] RuleStoreError),
}

impl ApprovalError {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::NotOperator => "not_operator",
            Self::OwnCall(_) => "own_call",
            Self::BadArguments(_) => "bad_arguments",
            Self::NothingToRemember { .. } | Self::NothingOffered | Self::RuleBesideOffer(_) => {
                "nothing_to_remember"
            }
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

fn nothing_to_remember(asked: Option<&str>, offered: &[String]) -> String {
    match (asked, offered) {
        (_, []) => {
            "no rule can be remembered for this call; it can be allowed this once".to_owned()
        }
        (Some(asked), some) => format!(
            "`{asked}` is not a suggested rule; the suggested rules are `{}`",
            some.join("`, `")
        ),
        (None, some) => format!("the suggested rules are `{}`", some.join("`, `")),
    }
}

impl Host {
    /// The open questions, oldest first.
    pub fn approvals(&self) -> Vec<PermissionRequest> {
        self.inner.approval.questions.list()
    }

    /// One open question.
    pub fn approval(&self, id: InvocationId) -> Option<PermissionRequest> {
        self.inner.approval.questions.get(id)
    }

    /// How a question was closed. The host keeps the last closures in memory.
    pub fn closed_approval(&self, id: InvocationId) -> Option<QuestionClosure> {
        self.inner.approval.questions.closed(id)
    }

    /// Changes whenever a question is opened or closed, or its number of waiting calls changes.
    pub fn approval_changes(&self) -> watch::Receiver<u64> {
        self.inner.approval.questions.changes()
    }

    /// Answers a question. The answer is recorded before any call continues with it.
    ///
    /// The work runs in a task of the host, so dropping this future does not stop it. Otherwise an answer could be on
    /// record and never take effect.
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
        // The task fails if the runtime shuts down or the policy engine panics.
        answering.await.unwrap_or_else(|broken| {
            Err(ApprovalError::Journal(JournalError::Broken(format!(
                "the task of the answer failed: {broken}"
            ))))
        })
    }

    /// The rules that operators' answers wrote.
    pub fn remembered(&self) -> Vec<RememberedRule> {
        self.inner.policy.remembered(crate::port::now())
    }

    /// Drops a remembered rule. Returns `false` if there is none with this id.
    pub async fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        let store = Arc::clone(&self.inner.approval.rules);
        let name = id.to_owned();
        let found = blocking(move || store.forget(&name)).await?;
        self.inner.forget(id);
        Ok(found)
    }
}

/// Runs disk work on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuleStoreError> + Send + 'static,
) -> Result<T, RuleStoreError> {
    let broke = |_| RuleStoreError {
        reason: "the task of the store failed".to_owned(),
        source: None,
    };
    tokio::task::spawn_blocking(work).await.map_err(broke)?
}

/// Expires questions in time. Holds the host weakly, so that this task does not keep a dropped host alive.
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
