//! Messages of A2A.

use serde_json::{Map, Value};

use super::members::{JsonObjectWriter, ObjectMembers, PeerMessageError, values};
use super::{A2aDialect, Part};
use crate::{CANONICAL_URI, is_tool_events};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageRole {
    /// The client.
    User,
    /// The agent: here, the host.
    Agent,
}

impl MessageRole {
    /// The word for the role in the given dialect.
    pub fn as_str(self, dialect: A2aDialect) -> &'static str {
        match (self, dialect) {
            (Self::User, A2aDialect::V0_3) => "user",
            (Self::User, A2aDialect::V1_0) => "ROLE_USER",
            (Self::Agent, A2aDialect::V0_3) => "agent",
            (Self::Agent, A2aDialect::V1_0) => "ROLE_AGENT",
        }
    }

    fn named(word: &str) -> Option<Self> {
        match word {
            "user" | "ROLE_USER" => Some(Self::User),
            "agent" | "ROLE_AGENT" => Some(Self::Agent),
            _ => None,
        }
    }
}

/// A message of a client or of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The message's id, made by its author.
    pub message_id: String,
    /// The author.
    pub role: MessageRole,
    /// The content.
    pub parts: Vec<Part>,
    /// The task that the message belongs to.
    pub task_id: Option<String>,
    /// The conversation that the message belongs to.
    pub context_id: Option<String>,
    /// The extensions that the message uses.
    pub extensions: Vec<String>,
    /// Other tasks that the message refers to.
    pub reference_task_ids: Vec<String>,
    /// Further data of the author.
    pub metadata: Option<Map<String, Value>>,
}

impl Message {
    /// A message of the host.
    pub fn agent(message_id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            role: MessageRole::Agent,
            parts,
            task_id: None,
            context_id: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
            metadata: None,
        }
    }

    /// Makes the message part of a task.
    #[must_use]
    pub fn within(mut self, task_id: impl Into<String>, context_id: impl Into<String>) -> Self {
        self.task_id = Some(task_id.into());
        self.context_id = Some(context_id.into());
        self
    }

    /// Marks the parts of the message as tool events.
    #[must_use]
    pub fn with_tool_events(mut self) -> Self {
        self.extensions.push(CANONICAL_URI.to_owned());
        self
    }

    /// Adds metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Whether the message names the tool events extension.
    pub fn activates_tool_events(&self) -> bool {
        self.extensions.iter().any(|uri| is_tool_events(uri))
    }

    /// Reads a message of either dialect. A missing role counts as the user's, because only clients write to hosts.
    pub fn read(value: &Value) -> Result<Self, PeerMessageError> {
        Self::read_at(value, "message")
    }

    pub(super) fn read_at(value: &Value, place: &str) -> Result<Self, PeerMessageError> {
        let message = ObjectMembers::of(value, place)?;
        let role = match message.said("role")? {
            None => MessageRole::User,
            Some(word) => MessageRole::named(&word).ok_or_else(|| {
                message.misread(
                    "role",
                    "must be `user` or `agent`, `ROLE_USER` or `ROLE_AGENT`",
                )
            })?,
        };
        Ok(Self {
            message_id: message.required_text("messageId")?,
            role,
            parts: message.each("parts", Part::read_at)?,
            task_id: message.said("taskId")?,
            context_id: message.said("contextId")?,
            extensions: message.texts("extensions")?,
            reference_task_ids: message.texts("referenceTaskIds")?,
            metadata: message.metadata()?,
        })
    }

    /// The message in the given dialect.
    pub fn to_value(&self, dialect: A2aDialect) -> Value {
        JsonObjectWriter::of_kind(dialect, "message")
            .with("messageId", self.message_id.as_str())
            .with("role", self.role.as_str(dialect))
            .with("parts", values(&self.parts, |part| part.to_value(dialect)))
            .maybe("taskId", self.task_id.as_deref())
            .maybe("contextId", self.context_id.as_deref())
            .texts("extensions", &self.extensions)
            .texts("referenceTaskIds", &self.reference_task_ids)
            .maybe("metadata", self.metadata.clone())
            .done()
    }
}
