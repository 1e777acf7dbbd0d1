//! The circumstances of a call that nothing else in its record states. They are recorded as `explain`. Collecting them
//! must be cheap, because each call does it.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolpost_model::Visibility;

use super::PipelineCall;
use crate::{record::body::CircumstancesBody, scheduling::WaitReason};

/// The circumstances of a call.
#[derive(Default)]
pub(crate) struct CallCircumstances {
    /// The reasons for its waits, in order.
    pub(crate) waited_for: Vec<WaitReason>,
    /// The call ran alone in its session.
    pub(crate) alone: bool,
    /// The tool was deferred, and the session had discovered it.
    pub(crate) deferred: bool,
    pub(crate) deadline: Option<CallDeadline>,
    pub(crate) late: Option<LateAnswer>,
    /// The time at which the work of a canceled call ended.
    pub(crate) work_ended_at: Option<Timestamp>,
}

/// The kind of name that the request used for the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// The wire name.
    Name,
    /// The tool id.
    Id,
    /// An alias.
    Alias,
}

/// The deadline of a call and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDeadline {
    /// The limit in milliseconds from the start of the tool.
    pub ms: u64,
    /// The origin of the limit.
    pub by: DeadlineBy,
}

/// The origin of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineBy {
    /// The caller's request.
    Caller,
    /// The operator's setting for the tool.
    ToolSetting,
    /// The tool's declaration.
    Tool,
    /// The host's default.
    HostDefault,
    /// The operator's ceiling for the tool.
    ToolCeiling,
    /// The host's ceiling.
    HostCeiling,
    /// The deadline of the parent call.
    Parent,
    /// The time that the caller allows for the whole call.
    Patience,
}

impl DeadlineBy {
    /// The origin in a few words, with the setting if there is one.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Caller => "set by the caller",
            Self::ToolSetting => "`tools.NAME.timeout`",
            Self::Tool => "set by the tool",
            Self::HostDefault => "`limits.deadline`",
            Self::ToolCeiling => "the ceiling of the tool",
            Self::HostCeiling => "`limits.deadline_ceiling`",
            Self::Parent => "the deadline of its parent call",
            Self::Patience => "the caller's patience",
        }
    }
}

/// An answer that came after a cancellation, or could still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer {
    /// The work finished despite the cancellation, and its caller got the answer.
    Told,
    /// The work finished after its caller disconnected. Only the record has the answer.
    Unheard,
    /// The host stopped waiting before the work ended. A later answer is discarded.
    Discarded,
}

impl PipelineCall {
    /// The kind of name that the request used for the tool.
    pub(crate) fn matched_by(&self) -> Option<MatchedBy> {
        let entry = &self.findings.resolved.as_ref()?.entry;
        Some(match self.live.tool.as_str() {
            asked if asked == entry.name() => MatchedBy::Name,
            asked if asked == entry.id().as_str() => MatchedBy::Id,
            _ => MatchedBy::Alias,
        })
    }

    /// The circumstances for the record, or `None` if there is nothing unusual.
    pub(crate) fn circumstances_body(&self) -> Option<CircumstancesBody<'_>> {
        let CallCircumstances {
            waited_for,
            alone,
            deferred,
            deadline,
            late,
            work_ended_at: _,
        } = &self.progress.met;
        let cancellation = self.cancellation_body();
        let matched_by = self.matched_by().filter(|by| *by != MatchedBy::Name);
        let anything =
            matched_by.is_some() || !waited_for.is_empty() || deadline.is_some() || *deferred;
        let anything = anything || cancellation.is_some();
        anything.then_some(CircumstancesBody {
            matched_by,
            visibility: deferred.then_some(Visibility::Deferred),
            waited_for: Cow::Borrowed(waited_for),
            alone: *alone,
            deadline: *deadline,
            late: *late,
            cancellation,
        })
    }
}
