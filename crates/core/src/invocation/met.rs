//! What a call met on its way that nothing else in its record tells: kept with it as `explain`, and cheap, for every call
//! pays for it.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolpost_model::Visibility;

use super::PipelineCall;
use crate::{record::body::CircumstancesBody, scheduling::WaitReason};

/// What a call met on its way.
#[derive(Default)]
pub(crate) struct CallCircumstances {
    /// What it waited for, in the order it came upon it.
    pub(crate) waited_for: Vec<WaitReason>,
    /// It ran alone in its session.
    pub(crate) alone: bool,
    /// The tool was deferred, and had been shown.
    pub(crate) deferred: bool,
    pub(crate) deadline: Option<CallDeadline>,
    pub(crate) late: Option<LateAnswer>,
    /// When the work of a call that was told to stop had ended.
    pub(crate) work_ended_at: Option<Timestamp>,
}

/// By which of its names a tool was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// The name it has on the wire.
    Name,
    /// Its id.
    Id,
    /// Another name that it goes by.
    Alias,
}

/// How long a call may run, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDeadline {
    /// So many milliseconds from when the tool begins.
    pub ms: u64,
    /// Who says so.
    pub by: DeadlineBy,
}

/// Who says how long a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineBy {
    /// The caller's wish.
    Caller,
    /// The operator's setting for the tool.
    ToolSetting,
    /// The tool itself.
    Tool,
    /// The host's own limit, where nobody says otherwise.
    HostDefault,
    /// The most that the operator lets anybody wish for with this tool.
    ToolCeiling,
    /// The most that the host gives anybody.
    HostCeiling,
    /// The call that made it ends then.
    Parent,
    /// Its caller waits no longer.
    Patience,
}

impl DeadlineBy {
    /// In a few words, with the setting where there is one.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Caller => "as the caller wishes",
            Self::ToolSetting => "`tools.NAME.timeout`",
            Self::Tool => "as the tool says",
            Self::HostDefault => "`limits.deadline`",
            Self::ToolCeiling => "the ceiling that is set for the tool",
            Self::HostCeiling => "`limits.deadline_ceiling`",
            Self::Parent => "the call that made it ends then",
            Self::Patience => "its caller waits no longer",
        }
    }
}

/// An answer that came after the word to stop, or would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer {
    /// It was told to stop and finished all the same. What was done is what its caller was told.
    Told,
    /// It finished when its caller had gone: the record has its answer, and nobody else.
    Unheard,
    /// The host stopped listening before the work ended; whatever it still answers is discarded.
    Discarded,
}

impl PipelineCall {
    /// By which of its tool's names it asked.
    pub(crate) fn matched_by(&self) -> Option<MatchedBy> {
        let entry = &self.findings.resolved.as_ref()?.entry;
        Some(match self.live.tool.as_str() {
            asked if asked == entry.name() => MatchedBy::Name,
            asked if asked == entry.id().as_str() => MatchedBy::Id,
            _ => MatchedBy::Alias,
        })
    }

    /// What it met, where that is worth a word.
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
