//! The parameters of the methods. JSON-RPC uses these types directly; REST routes build them from a path and a query
//! string.

use serde_json::{Map, Value};

use super::members::{ObjectMembers, PeerMessageError};
use super::{A2aDialect, Message, MessageRole, TaskState};

const PLACE: &str = "params";

/// The parameters of a message, streamed or not.
#[derive(Clone, Debug, PartialEq)]
pub struct SendParams {
    /// The message.
    pub message: Message,
    /// Whether the answer waits until the task ends or needs input.
    pub blocking: bool,
    /// The most messages of the history in the answer.
    pub history_length: Option<u64>,
    /// Whether the peer asks for push notifications.
    pub wants_push: bool,
    /// Further data of the peer.
    pub metadata: Option<Map<String, Value>>,
}

impl SendParams {
    /// Reads the parameters. The message must be the user's and must not be empty. `blocking: false` in 0.3 and
    /// `returnImmediately: true` in 1.0 ask for an answer at once.
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

/// The parameters for one task: to get it, cancel it or follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskParams {
    /// The task's id.
    pub id: String,
    /// The most messages of the history in the answer.
    pub history_length: Option<u64>,
}

impl TaskParams {
    /// Reads the parameters.
    pub fn read(params: &Value) -> Result<Self, PeerMessageError> {
        let params = ObjectMembers::of(params, PLACE)?;
        // The older proto spelling, which some peers of 1.0 still send.
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

/// The parameters of a list of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListParams {
    /// Limits the list to a conversation.
    pub context_id: Option<String>,
    /// Limits the list to a state.
    pub status: Option<TaskState>,
    /// The most tasks of a page, 1 to 100.
    pub page_size: u64,
    /// The end of the page before.
    pub page_token: Option<String>,
    /// The most messages of each history; none by default.
    pub history_length: Option<u64>,
    /// Limits the list to tasks whose status changed at or after this time, as ISO 8601.
    pub status_timestamp_after: Option<String>,
    /// Whether the tasks include their artifacts.
    pub include_artifacts: bool,
}

impl ListParams {
    /// The protocol's own bounds of a page.
    const MOST: u64 = 100;
    const USUAL: u64 = 50;

    /// Reads the parameters; without any, the list has no conditions.
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
            // The unspecified state stands for every state.
            status: status.filter(|&status| status != TaskState::Unknown),
            page_size,
            page_token: params.said("pageToken")?,
            history_length: params.count("historyLength")?,
            status_timestamp_after: params.said("statusTimestampAfter")?,
            include_artifacts: params.flag("includeArtifacts")?.unwrap_or(false),
        })
    }
}
