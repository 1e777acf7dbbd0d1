//! The open questions of a host and its answers: a host in this process, or a running one.

use std::fmt;

use anyhow::Context;
use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolpost_core::{ApprovalError, Host};
use toolpost_model::{InvocationId, PermissionRequest, Principal, Verdict};

use crate::client::{HostClient, HostEventStream, HostStreamEvent};

/// The operator's side of a host.
pub(crate) enum ApprovalDesk {
    /// A host in this process.
    Own(OwnDesk),
    Running(RunningDesk),
}

/// The desk of a host in this process.
pub(crate) struct OwnDesk {
    host: Host,
    by: Principal,
    changes: watch::Receiver<u64>,
    /// Questions that this desk ignores.
    left_out: Vec<InvocationId>,
}

/// The desk of a running host: one connection for answers, a second one for changes.
pub(crate) struct RunningDesk {
    client: HostClient,
    feed: HostEventStream,
    /// The open questions, as the feed reported them.
    known: Vec<PermissionRequest>,
}

/// The refusal of an answer.
#[derive(Debug)]
pub(crate) struct VerdictRefusal {
    pub(crate) kind: VerdictRefusalKind,
    message: String,
}

/// The reaction to a refused answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerdictRefusalKind {
    /// The question is no longer there.
    Gone,
    /// The arguments do not fit the schema.
    BadArguments,
    /// Another answer may be accepted.
    Other,
}

impl fmt::Display for VerdictRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for VerdictRefusal {}

impl VerdictRefusal {
    /// Reads the error in a running host's answer.
    pub(crate) fn from_error_body(body: &Value) -> Self {
        let error = &body["error"];
        let kind = match error["code"].as_str().unwrap_or_default() {
            "unknown_approval" | "already_decided" | "expired" | "withdrawn" => {
                VerdictRefusalKind::Gone
            }
            "bad_arguments" => VerdictRefusalKind::BadArguments,
            _ => VerdictRefusalKind::Other,
        };
        let hint = error["hint"]
            .as_str()
            .map(|hint| format!("\nhint: {hint}"))
            .unwrap_or_default();
        let message = error["message"]
            .as_str()
            .unwrap_or("the running host refused the request");
        Self {
            kind,
            message: format!("{message}{hint}"),
        }
    }
}

impl From<ApprovalError> for VerdictRefusal {
    fn from(error: ApprovalError) -> Self {
        let kind = match &error {
            ApprovalError::Unknown(_)
            | ApprovalError::AlreadyDecided { .. }
            | ApprovalError::Expired
            | ApprovalError::Withdrawn => VerdictRefusalKind::Gone,
            ApprovalError::BadArguments(_) => VerdictRefusalKind::BadArguments,
            ApprovalError::NotOperator
            | ApprovalError::OwnCall(_)
            | ApprovalError::NothingToRemember { .. }
            | ApprovalError::NothingOffered
            | ApprovalError::RuleBesideOffer(_)
            | ApprovalError::Redacted
            | ApprovalError::Journal(_)
            | ApprovalError::Rules(_) => VerdictRefusalKind::Other,
        };
        Self {
            kind,
            message: error.to_string(),
        }
    }
}

impl ApprovalDesk {
    /// The desk of a host in this process, with answers in the name of `by`. Questions that are already open there are
    /// left out: a host that was started for one call must not prompt about the calls of others.
    pub(crate) fn for_new_questions(host: &Host, by: Principal) -> Self {
        let left_out = host
            .approvals()
            .iter()
            .map(|question| question.ask_id)
            .collect();
        let changes = host.approval_changes();
        Self::Own(OwnDesk {
            host: host.clone(),
            by,
            changes,
            left_out,
        })
    }

    /// The desk of a host in this process for all its questions.
    pub(crate) fn of(host: &Host, by: Principal) -> Self {
        let changes = host.approval_changes();
        Self::Own(OwnDesk {
            host: host.clone(),
            by,
            changes,
            left_out: Vec::new(),
        })
    }

    /// The desk of a running host: `client` for answers, a second connection for changes.
    pub(crate) async fn connect_running(
        client: HostClient,
        listening: HostClient,
    ) -> anyhow::Result<Self> {
        let feed = listening.feed("/approvals").await?;
        Ok(Self::Running(RunningDesk {
            client,
            feed,
            known: Vec::new(),
        }))
    }

    /// The open questions, oldest first.
    pub(crate) fn pending(&mut self) -> Vec<PermissionRequest> {
        let mut pending = match self {
            Self::Own(own) => {
                own.changes.mark_unchanged();
                let mut all = own.host.approvals();
                all.retain(|question| !own.left_out.contains(&question.ask_id));
                all
            }
            Self::Running(running) => running.known.clone(),
        };
        pending.sort_by_key(|question| (question.asked_at, question.ask_id));
        pending
    }

    /// Answers a question; returns the outcome as a running host reports it.
    pub(crate) async fn decide(
        &mut self,
        id: InvocationId,
        verdict: Verdict,
    ) -> anyhow::Result<Value> {
        match self {
            Self::Own(own) => {
                let decided = own
                    .host
                    .decide(id, verdict, &own.by)
                    .await
                    .map_err(VerdictRefusal::from)?;
                Ok(json!({ "decided": decided }))
            }
            Self::Running(running) => decide(&mut running.client, id, &verdict).await,
        }
    }

    /// Resolves when the questions changed since the last [`pending`](Self::pending). Dropping this future loses
    /// nothing.
    pub(crate) async fn wait_for_change(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Own(own) => own.changes.changed().await.context("the host has ended"),
            Self::Running(running) => running.apply_next_event().await,
        }
    }
}

impl RunningDesk {
    async fn apply_next_event(&mut self) -> anyhow::Result<()> {
        let HostStreamEvent { event, data } = self.feed.next().await?;
        let unreadable = "the running host's questions cannot be read";
        match event.as_str() {
            "asked" => {
                let question: PermissionRequest =
                    serde_json::from_str(&data).context(unreadable)?;
                self.known.retain(|known| known.ask_id != question.ask_id);
                self.known.push(question);
            }
            "decided" | "withdrawn" => {
                let QuestionClosedEvent { ask_id } =
                    serde_json::from_str(&data).context(unreadable)?;
                self.known.retain(|known| known.ask_id != ask_id);
            }
            // An event that this version does not know is ignored.
            _ => {}
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct QuestionClosedEvent {
    ask_id: InvocationId,
}

/// The open questions of a running host.
pub(crate) async fn list(client: &mut HostClient) -> anyhow::Result<Vec<PermissionRequest>> {
    let (status, mut body) = client
        .json(Method::GET, "/approvals", String::new())
        .await?;
    if !status.is_success() {
        return Err(VerdictRefusal::from_error_body(&body).into());
    }
    serde_json::from_value(body["approvals"].take())
        .context("the running host's questions cannot be read")
}

/// Answers a question of a running host; returns the outcome.
pub(crate) async fn decide(
    client: &mut HostClient,
    id: InvocationId,
    verdict: &Verdict,
) -> anyhow::Result<Value> {
    let body = serde_json::to_string(verdict)?;
    let (status, body) = client
        .json(Method::POST, &format!("/approvals/{id}"), body)
        .await?;
    if status.is_success() {
        Ok(body)
    } else {
        Err(VerdictRefusal::from_error_body(&body).into())
    }
}
