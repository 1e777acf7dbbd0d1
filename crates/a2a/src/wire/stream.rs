//! Answers to a message: a single one, or the items of a stream.

use serde_json::{Map, Value};

use super::members::{JsonObjectWriter, ObjectMembers, PeerMessageError};
use super::{A2aDialect, Artifact, Message, Task, TaskStatus};

/// A new status of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    /// The task.
    pub task_id: String,
    /// The conversation it belongs to.
    pub context_id: String,
    /// The new status.
    pub status: TaskStatus,
    /// Whether this is the last item. Only 0.3 writes it; in 1.0 the stream just closes.
    pub last: bool,
    /// Further data.
    pub metadata: Option<Map<String, Value>>,
}

impl StatusUpdate {
    fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let update = ObjectMembers::of(value, place)?;
        let status = update
            .get("status")
            .ok_or_else(|| update.misread("status", "must be given"))?;
        Ok(Self {
            task_id: update.required_text("taskId")?,
            context_id: update.said("contextId")?.unwrap_or_default(),
            status: TaskStatus::read_at(status, &update.path("status"))?,
            last: update.flag("final")?.unwrap_or(false),
            metadata: update.metadata()?,
        })
    }

    fn to_value(&self, dialect: A2aDialect) -> Value {
        let last = match dialect {
            A2aDialect::V0_3 => Some(self.last),
            A2aDialect::V1_0 => None,
        };
        JsonObjectWriter::of_kind(dialect, "status-update")
            .with("taskId", self.task_id.as_str())
            .with("contextId", self.context_id.as_str())
            .with("status", self.status.to_value(dialect))
            .maybe("final", last)
            .maybe("metadata", self.metadata.clone())
            .done()
    }
}

/// An artifact, or a piece of one.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: String,
    /// The conversation it belongs to.
    pub context_id: String,
    /// The artifact or its next piece.
    pub artifact: Artifact,
    /// Whether the parts continue an earlier update of the same artifact.
    pub append: bool,
    /// Whether the artifact is complete.
    pub last_chunk: bool,
    /// Further data.
    pub metadata: Option<Map<String, Value>>,
}

impl ArtifactUpdate {
    fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let update = ObjectMembers::of(value, place)?;
        let artifact = update
            .get("artifact")
            .ok_or_else(|| update.misread("artifact", "must be given"))?;
        Ok(Self {
            task_id: update.required_text("taskId")?,
            context_id: update.said("contextId")?.unwrap_or_default(),
            artifact: Artifact::read_at(artifact, &update.path("artifact"))?,
            append: update.flag("append")?.unwrap_or(false),
            last_chunk: update.flag("lastChunk")?.unwrap_or(false),
            metadata: update.metadata()?,
        })
    }

    fn to_value(&self, dialect: A2aDialect) -> Value {
        JsonObjectWriter::of_kind(dialect, "artifact-update")
            .with("taskId", self.task_id.as_str())
            .with("contextId", self.context_id.as_str())
            .with("artifact", self.artifact.to_value(dialect))
            .flag("append", self.append)
            .flag("lastChunk", self.last_chunk)
            .maybe("metadata", self.metadata.clone())
            .done()
    }
}

/// One item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// The current task: the first item of a stream about a task.
    Task(Task),
    /// The whole answer, if there is no task.
    Message(Message),
    /// A new status.
    Status(StatusUpdate),
    /// An artifact.
    Artifact(ArtifactUpdate),
}

impl StreamItem {
    /// Reads an item of either dialect, without its JSON-RPC envelope.
    pub fn read(value: &Value) -> Result<Self, PeerMessageError> {
        let item = ObjectMembers::of(value, "result")?;
        if let Some(task) = item.get("task") {
            return Task::read_at(task, "result.task").map(Self::Task);
        }
        // In 0.3 no item has a member `message` of its own; the message of a status is nested one level deeper.
        if let Some(message) = item.get("message") {
            return Message::read_at(message, "result.message").map(Self::Message);
        }
        if let Some(update) = item.get("statusUpdate") {
            return StatusUpdate::read_at(update, "result.statusUpdate").map(Self::Status);
        }
        if let Some(update) = item.get("artifactUpdate") {
            return ArtifactUpdate::read_at(update, "result.artifactUpdate").map(Self::Artifact);
        }
        match item.said("kind")?.as_deref() {
            Some("task") => Task::read_at(value, "result").map(Self::Task),
            Some("message") => Message::read_at(value, "result").map(Self::Message),
            Some("status-update") => StatusUpdate::read_at(value, "result").map(Self::Status),
            Some("artifact-update") => ArtifactUpdate::read_at(value, "result").map(Self::Artifact),
            Some(_) | None => Err(PeerMessageError::new(
                "result",
                "must be a task, a message or an update of a task",
            )),
        }
    }

    /// The item in the given dialect, without its JSON-RPC envelope.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        let (member, value) = match self {
            Self::Task(task) => ("task", task.to_value(dialect)),
            Self::Message(message) => ("message", message.to_value(dialect)),
            Self::Status(update) => ("statusUpdate", update.to_value(dialect)),
            Self::Artifact(update) => ("artifactUpdate", update.to_value(dialect)),
        };
        wrapped(dialect, member, value)
    }
}

/// The answer to a message that is not streamed.
#[derive(Clone, Debug, PartialEq)]
pub enum SendAnswer {
    /// The message created a task.
    Task(Task),
    /// The message needed no task.
    Message(Message),
}

impl SendAnswer {
    /// The answer in the given dialect, without its JSON-RPC envelope.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        let (member, value) = match self {
            Self::Task(task) => ("task", task.to_value(dialect)),
            Self::Message(message) => ("message", message.to_value(dialect)),
        };
        wrapped(dialect, member, value)
    }
}

/// Wraps a value in the member that names its kind. Only 1.0 does so.
fn wrapped(dialect: A2aDialect, member: &str, value: Value) -> Value {
    match dialect {
        A2aDialect::V0_3 => value,
        A2aDialect::V1_0 => JsonObjectWriter::default().with(member, value).done(),
    }
}
