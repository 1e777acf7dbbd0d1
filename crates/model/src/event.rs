//! Events: the numbered lifecycle of one call. Every face's events are projections of these.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ApprovalStatus, ArtifactRef, InvocationId, ResultContent, SessionId, Stage};

/// One event of one call.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// The call.
    pub invocation_id: InvocationId,
    /// Counts up by one per call, from 1. A gap means that events were dropped for a slow reader.
    pub seq: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The content of the event.
    #[serde(flatten)]
    pub body: EventBody,
}

/// The content of an event.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventBody {
    /// The call reached a stage.
    Stage {
        /// The stage.
        stage: Stage,
    },
    /// The tool reports progress.
    Progress(ToolProgress),
    /// The tool describes its current work.
    Status {
        /// The description, in a few words.
        message: String,
    },
    /// A line for the log.
    Log {
        /// How serious.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// A named part of the result, before the end.
    Artifact {
        /// Its name within the call.
        name: String,
        /// The content.
        content: ResultContent,
    },
    /// An artifact was stored and can be read from now on.
    Kept(ArtifactRef),
    /// A running process wrote output.
    Output(OutputChunk),
    /// A person is being asked, or has answered.
    Approval(ApprovalStatus),
    /// An event of the tool's own protocol, for callers that speak the same protocol.
    Custom {
        /// The protocol's name for this kind of event.
        name: String,
        /// The event's data.
        data: Value,
    },
    /// A message of the tool's own protocol, for callers that speak the same protocol.
    Message {
        /// The message as it is sent.
        message: Value,
    },
}

impl EventBody {
    /// The name of a custom event that an Amplifier module emitted. The module's own name for its event is in the data,
    /// so a module can never use a kind of the host's.
    pub const MODULE_EVENT: &str = "module_event";

    /// An event of a module: its name, the session, the time where it is known, and the module's data.
    pub fn module_event(
        event: &str,
        session: &SessionId,
        at: Option<Timestamp>,
        data: Value,
    ) -> Self {
        let told = [
            ("event", Value::from(event)),
            ("session_id", Value::from(session.as_str())),
            ("timestamp", at.map(|at| at.to_string()).into()),
            ("data", data),
        ];
        let data = told
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        Self::Custom {
            name: Self::MODULE_EVENT.to_owned(),
            data,
        }
    }

    /// The name that a module gave its event, and the module's data.
    pub fn as_module_event(&self) -> Option<(&str, &Value)> {
        let Self::Custom { name, data } = self else {
            return None;
        };
        (name == Self::MODULE_EVENT).then_some(())?;
        Some((data.get("event")?.as_str()?, data.get("data")?))
    }
}

/// Output of a process since the last chunk, for the call's listeners; the model reads the result instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputChunk {
    /// The stream that it was written to.
    pub stream: OutputStream,
    /// The text, made valid and without terminal sequences.
    pub text: String,
    /// Bytes written so far, this chunk included.
    pub bytes: u64,
    /// Lines written so far, this chunk included.
    pub lines: u64,
    /// Bytes before this chunk that no event shows, because the output exceeded the limit for events.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub skipped: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Where a process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, in the order they were written.
    Combined,
}

impl OutputStream {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Combined => "combined",
        }
    }
}

/// Progress of the work. Every member is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Progress")]
pub struct ToolProgress {
    /// The current work.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
    /// 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub percent: Option<f64>,
    /// Units done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub done: Option<u64>,
    /// Units in all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub total: Option<u64>,
}

/// How serious a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For the tool's author.
    Debug,
    /// For the record.
    Info,
    /// Odd, but the work goes on.
    Warn,
    /// Something failed.
    Error,
}
