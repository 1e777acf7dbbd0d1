//! Replay: a recorded session, served again with the same tools and the same answers, without running anything.
//!
//! A [`Recorder`] makes a [`Cassette`] from journal records; it is a JSON file that can be committed with a test.
//! [`HostBuilder::replay`](crate::HostBuilder::replay) makes a host from it. In that host a call is resolved, parsed
//! and checked like any other, and then `replay/answer.rs` asks the [`CassettePlayer`] for the answer.

pub(crate) mod answer;
mod difference;
mod ids;
mod input;
mod player;
mod recorder;
mod scene;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolpost_model::{
    Declaration, EventBody, PrincipalName, PrincipalRole, SurfaceRequest, ToolId, ToolResult,
};

use difference::CallDifference;
pub(crate) use player::{CassettePlayer, GivenCall, ReplayMiss};
pub use player::{LeftOver, ReplayReport};
pub use recorder::Recorder;
pub(crate) use scene::ReplayScene;

use crate::record::journal::StoredRecord;

/// The format of a cassette. Counts up when an older host could not read a newer cassette.
const FORMAT: u32 = 1;

/// The record of one or more sessions: the tools, and every call with its answer.
///
/// Ids of calls and the times of their stages are left out, so that two recordings of one session give equal files up
/// to the point where the sessions differ.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cassette {
    /// The format of the file.
    pub format: u32,
    /// The version of the recording host.
    pub toolpost: String,
    /// The sessions, in the order in which they began.
    pub sessions: Vec<CassetteSession>,
    /// The tools of the catalog at the end, in its order.
    pub tools: Vec<CassetteTool>,
    /// The calls of agents, in the order of their requests.
    pub calls: Vec<CassetteCall>,
}

/// A recorded session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CassetteSession {
    /// The caller.
    pub principal: PrincipalName,
    /// Its role.
    pub role: PrincipalRole,
    /// The request for the session's surface.
    pub surface: SurfaceRequest,
}

/// A recorded tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CassetteTool {
    /// Its name on the wire.
    pub name: String,
    /// A rule or the mode denied it to every caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// Arguments that the operator marked as sensitive, as JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// The declaration, with the operator's settings applied.
    pub declaration: Declaration,
}

/// A call and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CassetteCall {
    /// The tool's name in the request.
    pub tool: String,
    /// The model input, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The size of arguments that were not read: there was no such tool, or they were no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_bytes: Option<usize>,
    /// The time from the request to the answer.
    pub took_ms: u64,
    /// The events of its progress that are on record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<CassetteEvent>,
    /// The result, without the id of the call and without its timings.
    pub answer: Map<String, Value>,
}

/// A progress event of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CassetteEvent {
    /// The time since the request.
    pub after_ms: u64,
    /// The content of the event.
    #[serde(flatten)]
    pub body: EventBody,
}

/// Why a text is no cassette.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The text is no JSON, or not of this shape.
    #[error("it cannot be read as a cassette: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A newer host made it.
    #[error("its format is {0}, and this version of toolpost reads up to {FORMAT}")]
    Format(u64),
    /// An answer that is no result.
    #[error("the answer of call {call} (`{tool}`) is not a result: {source}")]
    Answer {
        /// Its place among the calls, from 1.
        call: usize,
        /// The tool.
        tool: String,
        /// The fault of the answer.
        #[source]
        source: serde_json::Error,
    },
}

impl Cassette {
    /// The cassette of all sessions in these records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a StoredRecord>) -> Self {
        let mut recorder = Recorder::of_all();
        records.into_iter().for_each(|row| recorder.take(row));
        recorder.finish()
    }

    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Self, CassetteError> {
        #[derive(Deserialize)]
        struct Head {
            format: u64,
        }
        // A newer format may have any shape, so the format is checked first.
        let Head { format } = serde_json::from_str(text)?;
        if format > u64::from(FORMAT) {
            return Err(CassetteError::Format(format));
        }
        let cassette: Self = serde_json::from_str(text)?;
        for (place, call) in cassette.calls.iter().enumerate() {
            call.result(place + 1)?;
        }
        Ok(cassette)
    }

    /// The text for a file: one value a line and keys in a fixed order, so that a diff shows the real change.
    pub fn to_text(&self) -> String {
        // The serialisation of plain data cannot fail.
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .unwrap_or_default()
    }
}

impl CassetteCall {
    /// The tool's id, if the tool was found.
    fn tool_id(&self) -> Option<ToolId> {
        self.answer.get("tool_id")?.as_str()?.parse().ok()
    }

    /// The answer as a result, with a placeholder as its invocation id. `place` is that of the call in its cassette,
    /// from 1.
    fn result(&self, place: usize) -> Result<ToolResult, CassetteError> {
        let text = Value::Object(self.answer.clone()).to_string();
        let failed = |source| CassetteError::Answer {
            call: place,
            tool: self.tool.clone(),
            source,
        };
        player::result_of(&ids::unmarked(&text, ids::stand_in), ids::stand_in(place))
            .map_err(failed)
    }
}

/// How a host answers from a cassette.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// The rule that finds the recorded call for a request.
    pub matching: ReplayMatching,
    /// When the answer is given.
    pub pace: ReplayPace,
}

/// The rule that finds the recorded call for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayMatching {
    /// A call of the same tool with the same input, at any place. Each recorded call answers once, equal ones in their
    /// order.
    #[default]
    Strict,
    /// The next recorded call, which must be of the same tool with the same input.
    Ordered,
}

/// When a replayed call gets its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayPace {
    /// At once.
    #[default]
    AtOnce,
    /// After the time that the recorded call took.
    AsRecorded,
}
