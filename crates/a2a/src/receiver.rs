//! Merges tool events into one part per call.
//!
//! A receiver takes JSON texts as they arrive: payloads, data parts, messages, status and artifact updates, tasks,
//! items of streams or whole JSON-RPC answers, in either dialect of A2A. Objects that are not tool events are ignored.
//! Within a response stream (the task if there is one, else the message or the request), events with the same id belong
//! to the same call; the same id in another stream is another call. The cost of an event depends on its own size, not
//! on the length of the stream.
//!
//! Long-running readers call [`Receiver::take_ended`] now and then, so that memory follows the open calls. The receiver
//! keeps fingerprints of a few thousand calls that were taken out, so that a replay does not bring them back. A
//! different second end of such a call is ignored as late.

mod call;
mod carrier;
mod event;
mod failure;
mod growing;
mod object;
mod sameness;
mod scope;
mod table;
mod taken;

use serde_json::Value;

use crate::{
    part::ToolCallPart,
    v4::{V4Code, V4Line},
};
use carrier::EventCarrierWalk;
use event::{ReceivedEvent, ReceivedEventKind};
use object::ReceivedObject;
use scope::ResponseStreamScope;
use table::ReceivedCallTable;

/// Merges events by response stream and call.
///
/// ```
/// use toolpost_a2a::{CallPhase, Receiver};
///
/// let mut receiver = Receiver::default();
/// receiver.receive(r#"{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2,"b":3}}"#)?;
/// let changes = receiver.receive(r#"{"kind":"data","data":{"type":"tool-result","toolCallId":"c1","output":5}}"#)?;
/// assert_eq!(changes[0].step, CallPhase::Ended);
/// let (_, part) = receiver.take_ended().remove(0);
/// assert_eq!((part.name.as_str(), part.args.as_str()), ("add", r#"{"a":2,"b":3}"#));
/// assert_eq!(receiver.held(), 0);
/// # Ok::<(), toolpost_a2a::UnreadableEventText>(())
/// ```
#[derive(Debug, Default)]
pub struct Receiver {
    options: ReceiverOptions,
    table: ReceivedCallTable,
}

/// Which events are accepted besides those of the extension, and the bounds of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// Whether to accept events in the metadata of text parts, as older agents send them.
    pub sidecars: bool,
    /// Whether to accept calls and responses in the form of Google's ADK.
    pub adk_parts: bool,
    /// The bounds of the receiver.
    pub bounds: ReceiverBounds,
}

impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            sidecars: true,
            adk_parts: true,
            bounds: ReceiverBounds::default(),
        }
    }
}

/// The bounds of a receiver. Beyond a bound it stops growing and counts the events that it leaves out; it never fails.
#[derive(Clone, Debug)]
pub struct ReceiverBounds {
    /// The most calls of one response stream.
    pub calls_per_stream: usize,
    /// The most calls of all streams together.
    pub calls: usize,
    /// The most bytes of arguments that one call can collect from pieces of text. The rest of the text is left out.
    pub joined_pieces: usize,
    /// The most bytes of all calls together. A value that does not fit is replaced by a record of its size.
    pub bytes: usize,
    /// The most calls that are remembered after they were taken out.
    pub remembered: usize,
}

impl Default for ReceiverBounds {
    fn default() -> Self {
        Self {
            calls_per_stream: 10_000,
            calls: 100_000,
            joined_pieces: 1 << 20,
            bytes: 256 << 20,
            remembered: 4_096,
        }
    }
}

/// Identifies one call of a receiver. The key is valid while the call is held and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

/// A call whose part changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPartChange {
    /// The call.
    pub call: CallKey,
    /// The phase of the call after the change.
    pub step: CallPhase,
}

/// The phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPhase {
    /// The call is announced; its arguments are incomplete.
    Started,
    /// The arguments are known.
    Called,
    /// The call has a preliminary result.
    Progressed,
    /// The call has a result or an error.
    Ended,
}

/// The numbers of events by how the receiver treated them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverCounts {
    /// All tool events.
    pub events: u64,
    /// Events that were ignored because they name no call.
    pub without_id: u64,
    /// Events that were ignored because their call is not open or was taken out.
    pub late: u64,
    /// Events of calls that exceeded a bound, and texts with more objects than the receiver reads.
    pub beyond_bounds: u64,
}

/// A text that cannot be an event.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableEventText {
    /// The text is not JSON.
    #[error("this is not JSON: {}", of_one_line(.0))]
    Json(#[from] serde_json::Error),
    /// A line of AI SDK 4 without its code and colon.
    #[error("a line of AI SDK 4 must begin with a code and a colon")]
    NoCode,
    /// A line of AI SDK 4 with an unknown code.
    #[error("`{0}` is not a code of AI SDK 4")]
    UnknownCode(String),
}

/// Shortens the position for texts of one line: streams number their lines themselves, and `line 1` would contradict
/// that number.
fn of_one_line(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

impl Receiver {
    /// A receiver with the given options.
    pub fn new(options: ReceiverOptions) -> Self {
        let table = ReceivedCallTable::new(options.bounds.clone());
        Self { options, table }
    }

    /// Takes in one JSON text and returns the changed parts in the order of their events. A part that several events
    /// changed appears several times.
    ///
    /// # Errors
    /// If the text is not JSON; the receiver is unchanged then. JSON without a tool event is no error.
    pub fn receive(&mut self, json: &str) -> Result<Vec<CallPartChange>, UnreadableEventText> {
        let object = ReceivedObject::read(json)?;
        let mut changes = Vec::new();
        self.table.tally.beyond_bounds += u64::from(object.is_cut);
        EventCarrierWalk {
            table: &mut self.table,
            options: &self.options,
            changes: &mut changes,
        }
        .text(&object);
        Ok(changes)
    }

    /// Takes in a parsed value.
    pub fn receive_value(&mut self, value: &Value) -> Vec<CallPartChange> {
        self.receive(&value.to_string()).unwrap_or_default()
    }

    /// Takes in a line of AI SDK 4's data stream, such as `9:{"toolCallId":…}`. An error line (`3:`) names no call: it
    /// ends a call only if exactly one call is open and the text contains its id or its tool.
    ///
    /// # Errors
    /// If the line is not of that protocol; the receiver is unchanged then.
    pub fn receive_v4(&mut self, line: &str) -> Result<Vec<CallPartChange>, UnreadableEventText> {
        let V4Line { code, json } = V4Line::read(line)?;
        let mut changes = Vec::new();
        let said = match code {
            V4Code::Call => ReceivedEventKind::Call,
            V4Code::Result => ReceivedEventKind::Result,
            V4Code::Start => ReceivedEventKind::Start,
            V4Code::Delta => ReceivedEventKind::Delta,
            V4Code::Error => {
                let message: String = serde_json::from_str(json)?;
                self.fail_lone(&message, &mut changes);
                return Ok(changes);
            }
            V4Code::Other => return Ok(changes),
        };
        let object = ReceivedObject::read(json)?;
        self.table.apply(
            ResponseStreamScope::Bare,
            &ReceivedEvent::new(said, &object),
            &mut changes,
        );
        Ok(changes)
    }

    /// Takes in one JSON text or one line of AI SDK 4's data stream, for streams that mix both. No text is valid as
    /// both.
    ///
    /// # Errors
    /// The errors of [`Self::receive`] or [`Self::receive_v4`].
    pub fn receive_line(&mut self, line: &str) -> Result<Vec<CallPartChange>, UnreadableEventText> {
        if V4Line::is_line(line) {
            self.receive_v4(line)
        } else {
            self.receive(line)
        }
    }

    fn fail_lone(&mut self, message: &str, changes: &mut Vec<CallPartChange>) {
        let named = self
            .table
            .lone_open(ResponseStreamScope::Bare)
            .filter(|(_, call)| {
                message.contains(call.id.as_ref())
                    || call.name().is_some_and(|name| message.contains(name))
            });
        if let Some((serial, _)) = named {
            self.table.fail(serial, message, changes);
        }
    }

    /// All held calls, in order of first appearance.
    pub fn parts(&self) -> impl Iterator<Item = (CallKey, ToolCallPart)> {
        self.table.calls().map(|(key, call)| (key, call.part()))
    }

    /// The current part of a call; `None` after it was taken out.
    pub fn part(&self, call: CallKey) -> Option<ToolCallPart> {
        self.table.call(call).map(call::PartialToolCall::part)
    }

    /// Whether a call is held and has not ended. A preliminary result does not end a call.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.table.call(call).is_some_and(|call| !call.has_ended())
    }

    /// Whether an event gave the call as a whole, rather than an announcement or pieces.
    pub fn is_told(&self, call: CallKey) -> bool {
        self.table
            .call(call)
            .is_some_and(call::PartialToolCall::is_told)
    }

    /// Whether any arguments are known, or that there are none.
    pub(crate) fn is_described(&self, call: CallKey) -> bool {
        self.table
            .call(call)
            .is_some_and(call::PartialToolCall::is_described)
    }

    /// Takes out the calls that have ended, in order of first appearance.
    pub fn take_ended(&mut self) -> Vec<(CallKey, ToolCallPart)> {
        self.table.take_ended()
    }

    /// Takes out one call; `None` if it is not held or has not ended.
    pub fn take(&mut self, call: CallKey) -> Option<ToolCallPart> {
        self.table.take_one(call)
    }

    /// The parts of all held calls.
    pub fn into_parts(self) -> Vec<ToolCallPart> {
        self.table.into_parts()
    }

    /// The number of held calls.
    pub fn held(&self) -> usize {
        self.table.len()
    }

    /// The size of all held names, arguments and results in bytes.
    pub fn held_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The counts of events so far.
    pub fn tally(&self) -> ReceiverCounts {
        self.table.tally
    }
}
