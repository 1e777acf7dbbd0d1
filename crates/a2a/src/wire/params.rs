//! What the methods take. The same types serve JSON-RPC and, made of a path and a query string, the REST routes.

use serde_json::{Map, Value};

use super::members::{ObjectMembers, PeerMessageError};
use super::{A2aDialect, Message, MessageRole, TaskState};

/// Where the readers say that a mistake is.
const PLACE: &str = "params";

/// Of a message that is sent, streamed or not.
#[derive(Clone, Debug, PartialEq)]
pub struct SendParams {
    /// The message.
    pub message: Message,
    /// Whether the answer waits until the task has ended or needs something.
    pub blocking: bool,
    /// How much of the history the answer shall hold at most.
    pub history_length: Option<u64>,
    /// Whether the peer wants to be told by push notifications.
    pub wants_push: bool,
    /// What else the peer says.
    pub metadata: Option<Map<String, Value>>,
}

impl SendParams {
    /// Reads them. Only the user sends messages, and says something. In 0.3 `blocking: false`, in 1.0 `returnImmediately: true` asks for an answer at once.
    pub fn read(params: &Value, dialect: A2aDialect) -> Result<Self, PeerMessageError> {
        let params = ObjectMembers::of(params, PLACE)?;
        let message = params
            .get("message")
            .ok_or_else(|| params.misread("message", "must be given"))?;
        let written = ObjectMembers::of(message, "params.message")?;
        let message = Message::read_at(message, "params.message")?;
        match message.role {
            MessageRole::User if written.said("role")?.is_some() => {}
            MessageRole::User => {
                return Err(
                    written.misread("role", "must be given: `user` in 0.3, `ROLE_USER` in 1.0")
                );
            }
            MessageRole::Agent => {
                return Err(written.misread("role", "must be the user's: this host is the agent"));
            }
        }
        if message.parts.is_empty() {
            return Err(written.misread("parts", "must hold at least one part"));
        }
        let nothing = Value::Object(Map::new());
        let configuration = params.get("configuration").unwrap_or(&nothing);
        let configuration = ObjectMembers::of(configuration, "params.configuration")?;
        let blocking = match dialect {
            A2aDialect::V0_3 => configuration.flag("blocking")?.unwrap_or(true),
            A2aDialect::V1_0 => !configuration.flag("returnImmediately")?.unwrap_or(false),
        };
        let push = ["pushNotificationConfig", "taskPushNotificationConfig"];
        Ok(Self {
            message,
            blocking,
            history_length: configuration.count("historyLength")?,
            wants_push: push.iter().any(|name| configuration.get(name).is_some()),
            metadata: params.object("metadata")?,
        })
    }
}

/// Of one task: to get it, cancel it or follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskParams {
    /// Which task.
    pub id: String,
    /// How much of its history the answer shall hold at most.
    pub history_length: Option<u64>,
}

impl TaskParams {
    /// Reads them.
    pub fn read(params: &Value) -> Result<Self, PeerMessageError> {
        let params = ObjectMembers::of(params, PLACE)?;
        // The older proto spelling; some peers of 1.0 still send it.
        let resource = params.said("name")?;
        let named = resource
            .as_deref()
            .and_then(|name| name.strip_prefix("tasks/"));
        let id = match (params.said("id")?, named) {
            (Some(id), _) => id,
            (None, Some(id)) if !id.is_empty() => id.to_owned(),
            (None, _) => return Err(params.misread("id", "must be the id of a task")),
        };
        Ok(Self {
            id,
            history_length: params.count("historyLength")?,
        })
    }
}

/// Of a list of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListParams {
    /// Only of that conversation.
    pub context_id: Option<String>,
    /// Only in that state.
    pub status: Option<TaskState>,
    /// How many at most, 1 to 100.
    pub page_size: u64,
    /// Where the page before ended.
    pub page_token: Option<String>,
    /// How much of each history; by default none.
    pub history_length: Option<u64>,
    /// Only those whose status changed at or after that time, as ISO 8601.
    pub status_timestamp_after: Option<String>,
    /// Whether artifacts come with them.
    pub include_artifacts: bool,
}

impl ListParams {
    /// The protocol's own bounds of a page.
    const MOST: u64 = 100;
    const USUAL: u64 = 50;

    /// Reads them; nothing at all is a list without conditions.
    pub fn read(params: &Value) -> Result<Self, PeerMessageError> {
        let nothing = Value::Object(Map::new());
        let params = if params.is_null() { &nothing } else { params };
        let params = ObjectMembers::of(params, PLACE)?;
        let status = match params.get("status") {
            None => None,
            Some(value) => Some(TaskState::read_at(value, "params.status")?),
        };
        let page_size = match params.count("pageSize")? {
            None => Self::USUAL,
            Some(size @ 1..=Self::MOST) => size,
            Some(_) => return Err(params.misread("pageSize", "must be 1 to 100")),
        };
        Ok(Self {
            context_id: params.said("contextId")?,
            // The unspecified state asks for every state.
            status: status.filter(|&status| status != TaskState::Unknown),
            page_size,
            page_token: params.said("pageToken")?,
            history_length: params.count("historyLength")?,
            status_timestamp_after: params.said("statusTimestampAfter")?,
            include_artifacts: params.flag("includeArtifacts")?.unwrap_or(false),
        })
    }
}
