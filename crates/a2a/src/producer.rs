//! The host's calls as tool events: one call event, then exactly one end. Tasks, session streams and pages all make
//! their events here, so they show the same call in the same way.

mod bounded;
mod output;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use toolpost_model::{ErrorClass, Outcome, ToolResult};

use crate::{ToolEvent, ToolEventError};
use bounded::{JsonMeasurement, SMALL};

pub use bounded::LARGEST_EVENT;

/// The start of a call.
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
    /// The call's id within its response stream.
    pub tool_call_id: &'a str,
    /// The tool, under the name that the caller uses.
    pub tool_name: &'a str,
    /// The arguments as recorded, without secrets; `None` if the host did not read them.
    pub input: Option<&'a Value>,
    /// The time of the start.
    pub at: Timestamp,
}

impl ToolCallStart<'_> {
    /// The event, with arguments that are too large [`shown`] as a preview.
    pub fn event(&self) -> ToolEvent {
        ToolEvent::Call {
            tool_call_id: self.tool_call_id.to_owned(),
            tool_name: self.tool_name.to_owned(),
            input: self.input.map(shown),
            started_at: Some(format!("{:.3}", self.at)),
        }
    }
}

/// Arguments as an event shows them: arguments that are too large are replaced by their size in bytes and a preview.
pub fn shown(input: &Value) -> Value {
    JsonMeasurement::of(input).value(|| input.clone(), None)
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallEnd<'a> {
    /// The call's id.
    pub tool_call_id: &'a str,
    /// The tool, under the name that the caller uses.
    pub tool_name: &'a str,
    /// The arguments that the call ended with, as recorded; the event repeats them if they are small. They can differ
    /// from the model's arguments, because settings, a hook or an operator may have changed them.
    pub input: Option<&'a Value>,
    /// The result of the call.
    pub result: &'a ToolResult,
    /// The duration, if it is known: see [`took`].
    pub duration: Option<Duration>,
}

impl ToolCallEnd<'_> {
    /// The event: a result if the call succeeded wholly or in part, otherwise an error with a message for people.
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

/// The duration of a call. It is unknown for a call that outlived its host: the next host wrote its end, and the
/// recorded time is only the time of that writing.
pub fn took(result: &ToolResult) -> Option<Duration> {
    let is_left_behind = result.error.as_ref().is_some_and(|error| {
        error.class == ErrorClass::OutcomeUnknown
            || (error.class == ErrorClass::Canceled && error.code == "restart")
    });
    (!is_left_behind).then(|| Duration::from_micros(result.timings.total_us))
}

/// The message of an end that gives no reason itself.
fn plainly(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "the call succeeded",
        Outcome::Partial => "only part of the work was done",
        Outcome::Failed => "the tool failed without a reason",
        Outcome::Denied => "the call was denied",
        Outcome::Rejected => "the host did not accept the call",
        Outcome::Canceled => "the call was canceled",
        Outcome::TimedOut => "the call was stopped at its deadline",
        Outcome::Unknown => {
            "the end of the call is unknown; the call may or may not have taken effect"
        }
    }
}
