//! Merges what arrives about tool calls into one part per call.
//!
//! A receiver is given JSON texts as they come: payloads, data parts, messages, status and artifact updates, tasks, items
//! of streams or whole JSON-RPC answers, in either dialect of A2A. What is no tool event is let pass. Within a response
//! stream (the task if there is one, else the message or the request) events with one id tell of one call; the same id
//! elsewhere is another call. An event costs what its own bytes cost, however long the stream has become.
//!
//! Those who read for long take ended parts out now and then, and then memory follows the calls that are open. A few
//! thousand of those that were taken are remembered by fingerprint, so that a replay does not bring them back; an end that
//! is told anew and differently comes too late for them.

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
/// # Ok::<(), toolpost_a2a::Unreadable>(())
/// ```
#[derive(Debug, Default)]
pub struct Receiver {
    options: ReceiverOptions,
    table: ReceivedCallTable,
}

/// What is taken beside the events of the extension, and how much is kept.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// Events in the metadata of text parts, as older agents send them.
    pub sidecars: bool,
    /// Calls and responses in the form of Google's ADK.
    pub adk_parts: bool,
    /// How much is kept.
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

/// How much a receiver keeps. Beyond a bound it stops growing and counts what it leaves out; it never fails.
#[derive(Clone, Debug)]
pub struct ReceiverBounds {
    /// Calls of one response stream.
    pub calls_per_stream: usize,
    /// Calls of all streams together.
    pub calls: usize,
    /// Bytes of arguments that arrive as pieces of text, for each call. The rest of the text is left out.
    pub joined_pieces: usize,
    /// Bytes of everything that is held. A value for which there is no room is replaced by a record of its size.
    pub bytes: usize,
    /// Calls that are remembered after they were taken.
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

/// One call of a receiver: the same for as long as the call is held, and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

/// A part that is another one than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPartChange {
    /// Whose.
    pub call: CallKey,
    /// How far the call has come.
    pub step: CallPhase,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPhase {
    /// It is announced; its arguments are not all there.
    Started,
    /// Its arguments are known.
    Called,
    /// There is a result so far, and more to come.
    Progressed,
    /// It has a result or an error.
    Ended,
}

/// What became of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverCounts {
    /// Tool events of any kind.
    pub events: u64,
    /// Ignored, since they do not say which call they tell of.
    pub without_id: u64,
    /// Ignored, since their call is not open or was taken already.
    pub late: u64,
    /// Events of calls for which there was no room, and texts that hold more objects than are looked at.
    pub beyond_bounds: u64,
}

/// A text that cannot be an event.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableEventText {
    /// It is no JSON.
    #[error("this is no JSON: {}", of_one_line(.0))]
    Json(#[from] serde_json::Error),
    /// A line of AI SDK 4 without what every line begins with.
    #[error("a line of AI SDK 4 begins with a code and a colon")]
    NoCode,
    /// A line of AI SDK 4 with a code that it does not have.
    #[error("`{0}` is no code of AI SDK 4")]
    UnknownCode(String),
}

/// Most texts are one line, and those who read many have another number for it.
fn of_one_line(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

impl Receiver {
    /// One with options of the caller's.
    pub fn new(options: ReceiverOptions) -> Self {
        let table = ReceivedCallTable::new(options.bounds.clone());
        Self { options, table }
    }

    /// Takes one JSON text in and tells which parts it changed, in the order of their events. A part that several events
    /// changed comes several times.
    ///
    /// # Errors
    /// Where the text is no JSON. Nothing is changed then. JSON that holds no tool event is no error.
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

    /// Takes a value in that was read already.
    pub fn receive_value(&mut self, value: &Value) -> Vec<CallPartChange> {
        self.receive(&value.to_string()).unwrap_or_default()
    }

    /// Takes a line of AI SDK 4's data stream in, such as `9:{"toolCallId":…}`. An error (`3:`) names no call: it ends
    /// one only if a single call is open and the text names it or its tool.
    ///
    /// # Errors
    /// Where the line is not of that protocol. Nothing is changed then.
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

    /// Takes in one JSON text or one line of AI SDK 4's data stream, for streams that may be either. No text is both.
    ///
    /// # Errors
    /// Those of [`Self::receive`] or [`Self::receive_v4`].
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

    /// Everything that is held, in order of first appearance.
    pub fn parts(&self) -> impl Iterator<Item = (CallKey, ToolCallPart)> {
        self.table.calls().map(|(key, call)| (key, call.part()))
    }

    /// One call as it is now; `None` once it was taken.
    pub fn part(&self, call: CallKey) -> Option<ToolCallPart> {
        self.table.call(call).map(call::PartialToolCall::part)
    }

    /// Whether a call is held and has not ended. A preliminary result does not end it.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.table.call(call).is_some_and(|call| !call.has_ended())
    }

    /// Whether the call was told as a whole, and not only announced or told in pieces.
    pub fn is_told(&self, call: CallKey) -> bool {
        self.table
            .call(call)
            .is_some_and(call::PartialToolCall::is_told)
    }

    /// Whether anything is known of the arguments, or that there are none.
    pub(crate) fn is_described(&self, call: CallKey) -> bool {
        self.table
            .call(call)
            .is_some_and(call::PartialToolCall::is_described)
    }

    /// Takes the calls out that have ended, in order of first appearance.
    pub fn take_ended(&mut self) -> Vec<(CallKey, ToolCallPart)> {
        self.table.take_ended()
    }

    /// Takes one call out; `None` where it is not held or has not ended.
    pub fn take(&mut self, call: CallKey) -> Option<ToolCallPart> {
        self.table.take_one(call)
    }

    /// Everything that is held, at the end.
    pub fn into_parts(self) -> Vec<ToolCallPart> {
        self.table.into_parts()
    }

    /// How many calls are held.
    pub fn held(&self) -> usize {
        self.table.len()
    }

    /// How many bytes of names, arguments and results are held.
    pub fn held_bytes(&self) -> usize {
        self.table.bytes()
    }

    /// What became of events so far.
    pub fn tally(&self) -> ReceiverCounts {
        self.table.tally
    }
}
