//! What is known of one call, and how an event changes it.

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

/// A call as far as it is known.
#[derive(Debug)]
pub(super) struct PartialToolCall {
    /// Which response stream it belongs to.
    pub(super) stream: u64,
    pub(super) id: Box<str>,
    name: Option<Box<str>>,
    arguments: ReceivedArguments,
    /// An event told the call as a whole, with or without arguments.
    told: bool,
    outcome: ReceivedOutcome,
    duration: Option<Number>,
    started_at: Option<Box<str>>,
    /// Why somebody did not let it run, in case the end does not say so.
    refusal: Option<Box<str>>,
    /// The question about it that was asked last.
    pub(super) approval: Option<Box<str>>,
}

#[derive(Debug)]
enum ReceivedArguments {
    Unsaid,
    Growing(Box<ArgumentTextBuffer>),
    /// A value so far; more may follow.
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

/// What may still be kept.
pub(super) struct ReceiverByteBudget {
    /// Bytes of all calls together.
    pub(super) left: usize,
    /// Bytes of a call's joined pieces.
    pub(super) pieces: usize,
}

impl ReceiverByteBudget {
    /// The value, or a record of its size where there is no room for it.
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

    /// Whether the arguments are known as a whole.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.arguments, ReceivedArguments::Whole(_))
    }

    /// Whether the call was told as a whole; before that its arguments are unknown or not all there.
    pub(super) fn is_told(&self) -> bool {
        self.told || self.is_whole()
    }

    /// Whether a call that comes later can be compared with it.
    pub(super) fn is_described(&self) -> bool {
        self.told || !matches!(self.arguments, ReceivedArguments::Unsaid)
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Bytes that it holds.
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

    /// Name and arguments, in a form that tells repetitions from other calls.
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

    /// Whether an event that tells the whole call tells another one than this, which has ended.
    pub(super) fn differs_from(&self, event: &ReceivedEvent<'_, '_>) -> bool {
        let other_name = match (event.name(), self.name()) {
            (Some(theirs), Some(ours)) => theirs != ours,
            (Some(_), None) | (None, _) => false,
        };
        let known = match &self.arguments {
            ReceivedArguments::Whole(json) | ReceivedArguments::Snapshot(json) => {
                Some(json.as_str())
            }
            // Text that never became a value is filled by the call that it was to become.
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

    /// The part, without copying what it holds.
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

    /// Takes an event in. Says whether the part is another one now.
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

    /// Takes name, arguments and times from an event that tells them as a whole. What an ended call was told stays.
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

    /// Ends it for a reason that no event of its own gives. Says whether it was open.
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

    /// The duration belongs to the outcome, so the last one counts; the start to the call.
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
