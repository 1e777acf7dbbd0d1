//! The host's calls as tool events: a call, then exactly one end. Everything that shows calls in this vocabulary makes
//! its events here, so that a task, a session's stream and a page tell the same of one call.

mod bounded;
mod output;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use toolpost_model::{ErrorClass, Outcome, ToolResult};

use crate::{ToolEvent, ToolEventError};
use bounded::{JsonMeasurement, SMALL};

pub use bounded::LARGEST_EVENT;

/// A call was dispatched.
///
/// ```
/// use jiff::Timestamp;
/// use serde_json::json;
/// use toolpost_a2a::{ToolEvent, producer::ToolCallStart};
///
/// let start = ToolCallStart {
///     tool_call_id: "c1",
///     tool_name: "add",
///     input: Some(&json!({ "a": 2, "b": 3 })),
///     at: Timestamp::UNIX_EPOCH,
/// };
/// assert!(matches!(start.event(), ToolEvent::Call { tool_name, .. } if tool_name == "add"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ToolCallStart<'a> {
    /// Which call, within its response stream.
    pub tool_call_id: &'a str,
    /// The tool, as the caller knows it.
    pub tool_name: &'a str,
    /// What the model sent as recorded, without its secrets; `None` where it was not read.
    pub input: Option<&'a Value>,
    /// When.
    pub at: Timestamp,
}

impl ToolCallStart<'_> {
    /// The event that says so, with the arguments as they may be [`shown`].
    pub fn event(&self) -> ToolEvent {
        ToolEvent::Call {
            tool_call_id: self.tool_call_id.to_owned(),
            tool_name: self.tool_name.to_owned(),
            input: self.input.map(shown),
            started_at: Some(format!("{:.3}", self.at)),
        }
    }
}

/// Arguments as they may be shown: those that are too large for an event are replaced by how many bytes they have and a
/// preview of them.
pub fn shown(input: &Value) -> Value {
    JsonMeasurement::of(input).value(|| input.clone(), None)
}

/// A call ended.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallEnd<'a> {
    /// Which call.
    pub tool_call_id: &'a str,
    /// The tool, as the caller knows it.
    pub tool_name: &'a str,
    /// The arguments that it ended with, as recorded; small ones are in the event. The operator's settings, a hook or a
    /// person may have changed what the model sent.
    pub input: Option<&'a Value>,
    /// How it ended.
    pub result: &'a ToolResult,
    /// How long it took, where that is known: see [`took`].
    pub duration: Option<Duration>,
}

impl ToolCallEnd<'_> {
    /// The event that says so: a result if it succeeded, wholly or in part, otherwise an error that a person understands.
    pub fn event(&self) -> ToolEvent {
        let tool_call_id = self.tool_call_id.to_owned();
        let tool_name = self.tool_name.to_owned();
        let input = self
            .input
            .filter(|input| JsonMeasurement::of(input).bytes <= SMALL)
            .cloned();
        let duration_ms = self
            .duration
            .and_then(|took| u64::try_from(took.as_millis()).ok());
        if self.result.outcome.is_success() {
            let output = output::of(self.result);
            ToolEvent::Result {
                tool_call_id,
                tool_name,
                input,
                output,
                duration_ms,
            }
        } else {
            let error = ToolEventError {
                message: output::message(self.result),
            };
            ToolEvent::Error {
                tool_call_id,
                tool_name,
                input,
                error,
                duration_ms,
            }
        }
    }
}

/// How long a call took. Not known of one whose host went away: its end was written by the next host, and only that
/// writing was timed.
pub fn took(result: &ToolResult) -> Option<Duration> {
    let is_left_behind = result.error.as_ref().is_some_and(|error| {
        error.class == ErrorClass::OutcomeUnknown
            || (error.class == ErrorClass::Canceled && error.code == "restart")
    });
    (!is_left_behind).then(|| Duration::from_micros(result.timings.total_us))
}

/// What to say of an end that gives no reason itself.
fn plainly(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "the call succeeded",
        Outcome::Partial => "only part of the work was done",
        Outcome::Failed => "the tool failed and did not say why",
        Outcome::Denied => "the call was denied",
        Outcome::Rejected => "the host did not take the call",
        Outcome::Canceled => "the call was canceled",
        Outcome::TimedOut => "the call was stopped at its deadline",
        Outcome::Unknown => "nobody knows how the call ended; it may or may not have taken effect",
    }
}
