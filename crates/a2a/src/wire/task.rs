//! Tasks and their states.

use serde_json::{Map, Value};

use super::members::{JsonObjectWriter, ObjectMembers, PeerMessageError, values};
use super::{A2aDialect, Artifact, Message};

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $older:literal, $newer:literal;)*) => {
        /// The state of a task.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TaskState {
            $($(#[$doc])* $name,)*
        }

        impl TaskState {
            /// Every state.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word for the state in the given dialect.
            pub fn as_str(self, dialect: A2aDialect) -> &'static str {
                match (self, dialect) {
                    $((Self::$name, A2aDialect::V0_3) => $older,
                    (Self::$name, A2aDialect::V1_0) => $newer,)*
                }
            }

            fn named(word: &str) -> Option<Self> {
                match word {
                    $($older | $newer => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

states! {
    /// Accepted and not begun.
    Submitted = "submitted", "TASK_STATE_SUBMITTED";
    /// Running.
    Working = "working", "TASK_STATE_WORKING";
    /// Waiting for an answer.
    InputRequired = "input-required", "TASK_STATE_INPUT_REQUIRED";
    /// Waiting for credentials.
    AuthRequired = "auth-required", "TASK_STATE_AUTH_REQUIRED";
    /// Ended with success.
    Completed = "completed", "TASK_STATE_COMPLETED";
    /// Canceled on request.
    Canceled = "canceled", "TASK_STATE_CANCELED";
    /// Ended with a failure.
    Failed = "failed", "TASK_STATE_FAILED";
    /// Not accepted.
    Rejected = "rejected", "TASK_STATE_REJECTED";
    /// The state is unknown.
    Unknown = "unknown", "TASK_STATE_UNSPECIFIED";
}

impl TaskState {
    /// Whether the task has ended.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Canceled | Self::Failed | Self::Rejected => true,
            Self::Submitted
            | Self::Working
            | Self::InputRequired
            | Self::AuthRequired
            | Self::Unknown => false,
        }
    }

    pub(super) fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        value.as_str().and_then(Self::named).ok_or_else(|| {
            PeerMessageError::new(
                place,
                "must be a state such as `working` or `TASK_STATE_WORKING`",
            )
        })
    }
}

/// The state of a task and the time of its last change.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    /// The state.
    pub state: TaskState,
    /// A message about the state.
    pub message: Option<Message>,
    /// The time of the change, as ISO 8601.
    pub timestamp: Option<String>,
}

impl TaskStatus {
    pub(super) fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let status = ObjectMembers::of(value, place)?;
        let state = match status.get("state") {
            Some(state) => TaskState::read_at(state, &status.path("state"))?,
            None => TaskState::Unknown,
        };
        let message = status.get("message");
        Ok(Self {
            state,
            message: message
                .map(|value| Message::read_at(value, &status.path("message")))
                .transpose()?,
            timestamp: status.said("timestamp")?,
        })
    }

    /// The status in the given dialect.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        JsonObjectWriter::default()
            .with("state", self.state.as_str(dialect))
            .maybe(
                "message",
                self.message
                    .as_ref()
                    .map(|message| message.to_value(dialect)),
            )
            .maybe("timestamp", self.timestamp.as_deref())
            .done()
    }
}

/// A task, running or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The id, made by the host.
    pub id: String,
    /// The conversation it belongs to.
    pub context_id: String,
    /// The status.
    pub status: TaskStatus,
    /// The artifacts so far.
    pub artifacts: Vec<Artifact>,
    /// The messages so far, oldest first.
    pub history: Vec<Message>,
    /// Further data.
    pub metadata: Option<Map<String, Value>>,
}

impl Task {
    /// Keeps the newest messages of the history, at most `most`; `None` keeps all.
    #[must_use]
    pub fn with_history(mut self, most: Option<u64>) -> Self {
        let most = most.map_or(usize::MAX, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
        let older = self.history.len().saturating_sub(most);
        self.history.drain(..older);
        self
    }

    /// Reads a task of either dialect.
    pub fn read(value: &Value) -> Result<Self, PeerMessageError> {
        Self::read_at(value, "task")
    }

    pub(super) fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let task = ObjectMembers::of(value, place)?;
        let status = task
            .get("status")
            .ok_or_else(|| task.misread("status", "must be given"))?;
        Ok(Self {
            id: task.required_text("id")?,
            context_id: task.said("contextId")?.unwrap_or_default(),
            status: TaskStatus::read_at(status, &task.path("status"))?,
            artifacts: task.each("artifacts", Artifact::read_at)?,
            history: task.each("history", Message::read_at)?,
            metadata: task.metadata()?,
        })
    }

    /// The task in the given dialect.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        JsonObjectWriter::of_kind(dialect, "task")
            .with("id", self.id.as_str())
            .with("contextId", self.context_id.as_str())
            .with("status", self.status.to_value(dialect))
            .list(
                "artifacts",
                values(&self.artifacts, |artifact| artifact.to_value(dialect)),
            )
            .list(
                "history",
                values(&self.history, |message| message.to_value(dialect)),
            )
            .maybe("metadata", self.metadata.clone())
            .done()
    }
}

/// A page of the caller's tasks. Only 1.0 has it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<Task>,
    /// The token that requests the next page; empty on the last page.
    pub next_page_token: String,
    /// The most tasks of a page.
    pub page_size: u64,
    /// The number of tasks on all pages.
    pub total_size: u64,
}

impl TaskPage {
    /// The page in the form of 1.0.
    pub fn to_value(&self) -> Value {
        // The protocol requires all four members, even if they are empty.
        JsonObjectWriter::default()
            .with(
                "tasks",
                values(&self.tasks, |task| task.to_value(A2aDialect::V1_0)),
            )
            .with("nextPageToken", self.next_page_token.as_str())
            .with("pageSize", self.page_size)
            .with("totalSize", self.total_size)
            .done()
    }
}
