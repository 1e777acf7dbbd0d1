//! Work under way, or done.

use serde_json::{Map, Value};

use super::members::{JsonObjectWriter, ObjectMembers, PeerMessageError, values};
use super::{A2aDialect, Artifact, Message};

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $older:literal, $newer:literal;)*) => {
        /// How far a task is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TaskState {
            $($(#[$doc])* $name,)*
        }

        impl TaskState {
            /// Every state.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word of the dialect.
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
    /// Taken, not begun.
    Submitted = "submitted", "TASK_STATE_SUBMITTED";
    /// Under way.
    Working = "working", "TASK_STATE_WORKING";
    /// Waiting for an answer.
    InputRequired = "input-required", "TASK_STATE_INPUT_REQUIRED";
    /// Waiting for credentials.
    AuthRequired = "auth-required", "TASK_STATE_AUTH_REQUIRED";
    /// Done.
    Completed = "completed", "TASK_STATE_COMPLETED";
    /// Stopped on request.
    Canceled = "canceled", "TASK_STATE_CANCELED";
    /// Not done.
    Failed = "failed", "TASK_STATE_FAILED";
    /// Not taken.
    Rejected = "rejected", "TASK_STATE_REJECTED";
    /// Nobody can say.
    Unknown = "unknown", "TASK_STATE_UNSPECIFIED";
}

impl TaskState {
    /// Whether nothing can follow.
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

/// How far a task is, and since when.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskStatus {
    /// How far it is.
    pub state: TaskState,
    /// What there is to say about that.
    pub message: Option<Message>,
    /// Since when, as ISO 8601.
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

    /// As the dialect writes it.
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

/// Work under way, or done.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Made by the host.
    pub id: String,
    /// The conversation it belongs to.
    pub context_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What it has made.
    pub artifacts: Vec<Artifact>,
    /// What was said, oldest first.
    pub history: Vec<Message>,
    /// What else there is to say.
    pub metadata: Option<Map<String, Value>>,
}

impl Task {
    /// With at most so many messages of its history, the newest; `None` keeps all.
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

    /// As the dialect writes it.
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

/// Some of the caller's tasks. Only 1.0 asks for them.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPage {
    /// The tasks, newest first.
    pub tasks: Vec<Task>,
    /// What to ask for the next page with; empty: this is the last.
    pub next_page_token: String,
    /// How many were asked for at most.
    pub page_size: u64,
    /// How many there are on all pages.
    pub total_size: u64,
}

impl TaskPage {
    /// As 1.0 writes it.
    pub fn to_value(&self) -> Value {
        // All four members are required, even when empty.
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
