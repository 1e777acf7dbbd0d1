//! A recorded session, served again: same tools, same answers, and nothing runs.
//!
//! A [`Cassette`] is made of journal records by a [`Recorder`] and is a JSON file that can be committed with a test.
//! [`HostBuilder::replay`](crate::HostBuilder::replay) makes a host of it. There `replay/answer.rs` asks the [`CassettePlayer`]
//! for each answer, after a call was resolved, read and checked like any other.

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

/// The form of a cassette. Counts up when an older host could not read a newer cassette.
const FORMAT: u32 = 1;

/// What was recorded of one or more sessions: the tools there were, and every call with its answer.
///
/// Ids of calls and the times of their stages are left out, so that a session recorded twice gives equal files as far
/// as it went the same way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cassette {
    /// The form of the file.
    pub format: u32,
    /// The version of the host that recorded.
    pub toolpost: String,
    /// The sessions, in the order in which they began.
    pub sessions: Vec<CassetteSession>,
    /// The tools as they stood in the catalog at the end, in its order.
    pub tools: Vec<CassetteTool>,
    /// The calls that agents made, in the order in which they asked.
    pub calls: Vec<CassetteCall>,
}

/// Whose session was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CassetteSession {
    /// The caller.
    pub principal: PrincipalName,
    /// Its role.
    pub role: PrincipalRole,
    /// What it asked of its surface.
    pub surface: SurfaceRequest,
}

/// A tool that could be called.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CassetteTool {
    /// Its name on the wire.
    pub name: String,
    /// A rule or the mode kept it from every caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// Arguments that the operator kept out of every record, as JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitive: Vec<String>,
    /// What it is, the operator's settings applied.
    pub declaration: Declaration,
}

/// A call and its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CassetteCall {
    /// The tool as it was asked for.
    pub tool: String,
    /// What the caller sent, without what must not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The size of arguments that were not read: there was no such tool, or they were no JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_bytes: Option<usize>,
    /// How long it took, from the request to the answer.
    pub took_ms: u64,
    /// What was heard of its progress, as far as it is on record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<CassetteEvent>,
    /// The result, without the id of the call and without its timings.
    pub answer: Map<String, Value>,
}

/// A word on how far a call got.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CassetteEvent {
    /// When, from the request on.
    pub after_ms: u64,
    /// What.
    #[serde(flatten)]
    pub body: EventBody,
}

/// Why a text is no cassette.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// No JSON, or not of this shape.
    #[error("it cannot be read as a cassette: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Made by a newer host.
    #[error("its format is {0}, and this version of toolpost reads up to {FORMAT}")]
    Format(u64),
    /// An answer that is no result.
    #[error("the answer of call {call} (`{tool}`) is no result: {source}")]
    Answer {
        /// Its place among the calls, from 1.
        call: usize,
        /// The tool.
        tool: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
}

impl Cassette {
    /// Everything that records tell, whoever called.
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
        // A newer form may have any shape, so it is told apart before the shape is looked at.
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

    /// The text for a file: one value a line and keys in a fixed order, so that a change shows as what it is.
    pub fn to_text(&self) -> String {
        // Plain data cannot fail to be written.
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .unwrap_or_default()
    }
}

impl CassetteCall {
    /// The tool that was found, where one was.
    fn tool_id(&self) -> Option<ToolId> {
        self.answer.get("tool_id")?.as_str()?.parse().ok()
    }

    /// The answer as a result of nobody's call yet. `place` is that of the call in its cassette, from 1.
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
    /// Which recorded call answers one.
    pub matching: ReplayMatching,
    /// When it is answered.
    pub pace: ReplayPace,
}

/// Which recorded call answers one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayMatching {
    /// One of the same tool with the same input, whenever it was made. Each answers once, equal ones in their order.
    #[default]
    Strict,
    /// The next one of the recording, which must be of the same tool with the same input.
    Ordered,
}

/// When a replayed call is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayPace {
    /// At once.
    #[default]
    AtOnce,
    /// After the time that the recorded call took.
    AsRecorded,
}
