//! The state of one call, and its changes by events.

use serde_json::{Number, value::RawValue};

use super::{
    event::{ReceivedEvent, ReceivedEventKind},
    failure,
    growing::ArgumentTextBuffer,
    sameness::fingerprint,
};
use crate::{
    JsonText,
    part::{PartError, ToolCallPart, UNKNOWN_TOOL},
};

#[derive(Debug)]
pub(super) struct PartialToolCall {
    /// The number of the call's response stream.
    pub(super) stream: u64,
    pub(super) id: Box<str>,
    name: Option<Box<str>>,
    arguments: ReceivedArguments,
    /// Whether an event gave the call as a whole, with or without arguments.
    told: bool,
    outcome: ReceivedOutcome,
    duration: Option<Number>,
    started_at: Option<Box<str>>,
    /// The reason of a denial, used if the end gives none.
    refusal: Option<Box<str>>,
    /// The id of the latest approval question about the call.
    pub(super) approval: Option<Box<str>>,
}

#[derive(Debug)]
enum ReceivedArguments {
    Unsaid,
    Growing(Box<ArgumentTextBuffer>),
    /// A preliminary value; more may follow.
    Snapshot(JsonText),
    Whole(JsonText),
}

#[derive(Debug, PartialEq)]
enum ReceivedOutcome {
    Open,
    Preliminary(JsonText),
    Success(JsonText),
    Failure(Box<str>),
}

/// The memory that is left for new values.
pub(super) struct ReceiverByteBudget {
    /// Bytes of all calls together.
    pub(super) left: usize,
    /// Bytes of one call's joined pieces.
    pub(super) pieces: usize,
}

impl ReceiverByteBudget {
    /// Keeps the value, or a record of its size if it does not fit.
    fn keep(&mut self, raw: &RawValue) -> JsonText {
        let bytes = raw.get().len();
        if bytes <= self.left {
            self.left -= bytes;
            return JsonText::of(raw);
        }
        JsonText::from(&serde_json::json!({ "truncated": true, "bytes": bytes }))
    }

    fn keep_text(&mut self, text: &str) -> Box<str> {
        let kept = &text[..text.floor_char_boundary(self.left)];
        self.left -= kept.len();
        kept.into()
    }
}

impl PartialToolCall {
    pub(super) fn new(stream: u64, id: &str) -> Self {
        Self {
            stream,
            id: id.into(),
            name: None,
            arguments: ReceivedArguments::Unsaid,
            told: false,
            outcome: ReceivedOutcome::Open,
            duration: None,
            started_at: None,
            refusal: None,
            approval: None,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match self.outcome {
            ReceivedOutcome::Open | ReceivedOutcome::Preliminary(_) => false,
            ReceivedOutcome::Success(_) | ReceivedOutcome::Failure(_) => true,
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self.arguments, ReceivedArguments::Whole(_))
    }

    /// Whether an event gave the call as a whole. Before that its arguments are unknown or incomplete.
    pub(super) fn is_told(&self) -> bool {
        self.told || self.is_whole()
    }

    /// Whether the call can be compared with a later one.
    pub(super) fn is_described(&self) -> bool {
        self.told || !matches!(self.arguments, ReceivedArguments::Unsaid)
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The memory that the call holds, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let arguments = match &self.arguments {
            ReceivedArguments::Unsaid => 0,
            ReceivedArguments::Growing(growing) => growing.len(),
            ReceivedArguments::Snapshot(json) | ReceivedArguments::Whole(json) => {
                json.as_str().len()
            }
        };
        let outcome = match &self.outcome {
            ReceivedOutcome::Open => 0,
            ReceivedOutcome::Preliminary(json) | ReceivedOutcome::Success(json) => {
                json.as_str().len()
            }
            ReceivedOutcome::Failure(message) => message.len(),
        };
        self.id.len()
            + text(&self.name)
            + text(&self.refusal)
            + text(&self.approval)
            + arguments
            + outcome
    }

    /// A fingerprint of name and arguments: equal for repetitions of a call, different for other calls.
    pub(super) fn fingerprint(&self) -> u64 {
        match &self.arguments {
            ReceivedArguments::Snapshot(json) | ReceivedArguments::Whole(json) => {
                fingerprint(self.name(), json.as_str())
            }
            ReceivedArguments::Unsaid | ReceivedArguments::Growing(_) => {
                fingerprint(self.name(), self.shown_arguments().as_str())
            }
        }
    }

    /// Whether a `tool-call` event describes another call than this one.
    pub(super) fn differs_from(&self, event: &ReceivedEvent<'_, '_>) -> bool {
        let other_name = match (event.name(), self.name()) {
            (Some(theirs), Some(ours)) => theirs != ours,
            (Some(_), None) | (None, _) => false,
        };
        let known = match &self.arguments {
            ReceivedArguments::Whole(json) | ReceivedArguments::Snapshot(json) => {
                Some(json.as_str())
            }
            // Text that never became a value cannot be compared: the event may carry the complete arguments of this
            // call.
            ReceivedArguments::Growing(growing) => growing.whole().map(JsonText::as_str),
            ReceivedArguments::Unsaid => self.told.then_some("{}"),
        };
        let other_input = match (event.input(), known) {
            (Some(theirs), Some(ours)) => {
                theirs.get() != ours && fingerprint(None, theirs.get()) != fingerprint(None, ours)
            }
            (Some(_), None) | (None, _) => false,
        };
        other_name || other_input
    }

    fn shown_arguments(&self) -> JsonText {
        match &self.arguments {
            ReceivedArguments::Unsaid => JsonText::empty_object(),
            ReceivedArguments::Growing(growing) if growing.is_empty() => JsonText::empty_object(),
            ReceivedArguments::Growing(growing) => growing.shown(),
            ReceivedArguments::Snapshot(json) | ReceivedArguments::Whole(json) => json.clone(),
        }
    }

    pub(super) fn part(&self) -> ToolCallPart {
        let (result, error) = match &self.outcome {
            ReceivedOutcome::Open => (None, None),
            ReceivedOutcome::Preliminary(json) | ReceivedOutcome::Success(json) => {
                (Some(json.clone()), None)
            }
            ReceivedOutcome::Failure(message) => (
                None,
                Some(PartError {
                    message: message.to_string(),
                }),
            ),
        };
        ToolCallPart {
            id: self.id.to_string(),
            name: self.name().unwrap_or(UNKNOWN_TOOL).to_owned(),
            args: self.shown_arguments(),
            result,
            error,
            duration_ms: self.duration.clone(),
            started_at: self.started_at.as_deref().map(str::to_owned),
        }
    }

    /// Like [`part`](Self::part), without copying the values.
    pub(super) fn into_part(self) -> ToolCallPart {
        let args = match self.arguments {
            ReceivedArguments::Snapshot(json) | ReceivedArguments::Whole(json) => json,
            ReceivedArguments::Unsaid | ReceivedArguments::Growing(_) => self.shown_arguments(),
        };
        let (result, error) = match self.outcome {
            ReceivedOutcome::Open => (None, None),
            ReceivedOutcome::Preliminary(json) | ReceivedOutcome::Success(json) => {
                (Some(json), None)
            }
            ReceivedOutcome::Failure(message) => (
                None,
                Some(PartError {
                    message: message.into(),
                }),
            ),
        };
        ToolCallPart {
            id: self.id.into(),
            name: self
                .name
                .map_or_else(|| UNKNOWN_TOOL.to_owned(), String::from),
            args,
            result,
            error,
            duration_ms: self.duration,
            started_at: self.started_at.map(String::from),
        }
    }

    /// Applies an event and returns whether the part changed.
    pub(super) fn apply(
        &mut self,
        event: &ReceivedEvent<'_, '_>,
        room: &mut ReceiverByteBudget,
    ) -> bool {
        match event.said {
            ReceivedEventKind::Start => !self.has_ended() && self.start(event, room),
            ReceivedEventKind::Delta => !self.has_ended() && self.grow(event, room),
            ReceivedEventKind::ApprovalRequest if !self.has_ended() => {
                self.approval = event.approval_id().map(|id| room.keep_text(&id));
                self.describe(event, room)
            }
            ReceivedEventKind::ApprovalResponse if !self.has_ended() => {
                if let Some(reason) = event.refusal() {
                    self.refusal = Some(room.keep_text(&reason));
                }
                self.describe(event, room)
            }
            ReceivedEventKind::InputEnd
            | ReceivedEventKind::ApprovalRequest
            | ReceivedEventKind::ApprovalResponse => false,
            ReceivedEventKind::Call => self.describe(event, room),
            ReceivedEventKind::Result if event.is_preliminary() && self.has_ended() => false,
            ReceivedEventKind::Result | ReceivedEventKind::Error | ReceivedEventKind::Denied => {
                let described = self.describe(event, room);
                self.end(event, room) || described
            }
        }
    }

    fn start(&mut self, event: &ReceivedEvent<'_, '_>, room: &mut ReceiverByteBudget) -> bool {
        let named = self.take_name(event, room);
        let timed = self.take_times(event);
        let cleared = match &self.arguments {
            ReceivedArguments::Whole(_) => return named || timed,
            ReceivedArguments::Unsaid => false,
            ReceivedArguments::Growing(growing) => !growing.is_empty(),
            ReceivedArguments::Snapshot(_) => true,
        };
        let growing = if event.is_plain_text() {
            ArgumentTextBuffer::plain()
        } else {
            ArgumentTextBuffer::default()
        };
        self.arguments = ReceivedArguments::Growing(Box::new(growing));
        named || timed || cleared
    }

    fn grow(&mut self, event: &ReceivedEvent<'_, '_>, room: &mut ReceiverByteBudget) -> bool {
        let named = self.take_name(event, room);
        let timed = self.take_times(event);
        if self.is_whole() {
            return named || timed;
        }
        let Some(piece) = event.piece() else {
            let Some(snapshot) = event.input() else {
                return named || timed;
            };
            self.arguments = ReceivedArguments::Snapshot(room.keep(snapshot));
            return true;
        };
        if !matches!(self.arguments, ReceivedArguments::Growing(_)) {
            self.arguments = ReceivedArguments::Growing(Box::default());
        }
        let ReceivedArguments::Growing(growing) = &mut self.arguments else {
            return named || timed;
        };
        if event.is_plain_text() {
            growing.make_plain();
        }
        let most = room.pieces.min(growing.len().saturating_add(room.left));
        growing.push(piece, most) || named || timed
    }

    /// Takes name, arguments and times from an event that gives them as a whole. An ended call keeps its values.
    fn describe(&mut self, event: &ReceivedEvent<'_, '_>, room: &mut ReceiverByteBudget) -> bool {
        self.told |= event.said == ReceivedEventKind::Call;
        let named = self.take_name(event, room);
        let timed = self.take_times(event);
        let open_to_input = match &self.arguments {
            ReceivedArguments::Unsaid => true,
            ReceivedArguments::Growing(growing) => !self.has_ended() || growing.whole().is_none(),
            ReceivedArguments::Snapshot(_) | ReceivedArguments::Whole(_) => !self.has_ended(),
        };
        let Some(input) = event.input().filter(|_| open_to_input) else {
            return named || timed;
        };
        let same = matches!(&self.arguments, ReceivedArguments::Whole(known) if known.as_str() == input.get());
        if !same {
            self.arguments = ReceivedArguments::Whole(room.keep(input));
        }
        !same || named || timed
    }

    fn end(&mut self, event: &ReceivedEvent<'_, '_>, room: &mut ReceiverByteBudget) -> bool {
        let outcome = match event.said {
            ReceivedEventKind::Result if event.is_failed_result() => {
                let [error, text] = event.errors();
                ReceivedOutcome::Failure(room.keep_text(&failure::message([
                    error,
                    text,
                    event.output(),
                ])))
            }
            ReceivedEventKind::Result => {
                let output = event
                    .output()
                    .map_or_else(JsonText::null, |output| room.keep(output));
                if event.is_preliminary() {
                    ReceivedOutcome::Preliminary(output)
                } else {
                    ReceivedOutcome::Success(output)
                }
            }
            ReceivedEventKind::Denied => ReceivedOutcome::Failure(self.denial(event, room)),
            ReceivedEventKind::Error
            | ReceivedEventKind::Start
            | ReceivedEventKind::Delta
            | ReceivedEventKind::InputEnd
            | ReceivedEventKind::Call
            | ReceivedEventKind::ApprovalRequest
            | ReceivedEventKind::ApprovalResponse => {
                ReceivedOutcome::Failure(room.keep_text(&failure::message(event.errors())))
            }
        };
        let changed = outcome != self.outcome;
        self.outcome = outcome;
        changed
    }

    fn denial(&self, event: &ReceivedEvent<'_, '_>, room: &mut ReceiverByteBudget) -> Box<str> {
        let reason = event.refusal();
        match reason.as_deref().or(self.refusal.as_deref()) {
            Some(reason) => room.keep_text(&format!("{}: {reason}", failure::DENIED)),
            None => failure::DENIED.into(),
        }
    }

    /// Ends the call for a reason that none of its own events gives. Returns whether it was open.
    pub(super) fn fail(&mut self, message: &str) -> bool {
        let open = !self.has_ended();
        if open {
            self.outcome = ReceivedOutcome::Failure(message.into());
        }
        open
    }

    fn take_name(&mut self, event: &ReceivedEvent<'_, '_>, room: &mut ReceiverByteBudget) -> bool {
        if self.name.is_some() && self.has_ended() {
            return false;
        }
        let Some(name) = event.name().filter(|name| self.name() != Some(name)) else {
            return false;
        };
        self.name = Some(room.keep_text(&name)).filter(|name| !name.is_empty());
        true
    }

    /// The duration belongs to the outcome, so the last one counts; the start belongs to the call, so an ended call
    /// keeps it.
    fn take_times(&mut self, event: &ReceivedEvent<'_, '_>) -> bool {
        let mut changed = false;
        let ends = matches!(
            event.said,
            ReceivedEventKind::Result | ReceivedEventKind::Error | ReceivedEventKind::Denied
        );
        if (ends || !self.has_ended())
            && let Some(duration) = event.duration()
            && self.duration.as_ref() != Some(&duration)
        {
            self.duration = Some(duration);
            changed = true;
        }
        if (self.started_at.is_none() || !self.has_ended())
            && let Some(started_at) = event.started_at()
            && self.started_at.as_deref() != Some(&started_at)
        {
            self.started_at = Some(started_at.into());
            changed = true;
        }
        changed
    }
}
