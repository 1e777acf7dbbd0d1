//! One event of a call in any vocabulary: canonical, AI SDK 4 to 7, or Google ADK.

use std::borrow::Cow;

use jiff::fmt::temporal::Pieces;
use serde_json::{Number, value::RawValue};

use super::object::{ReceivedObject, ValueMember, is_null, string};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceivedEventKind {
    /// The call is announced; its arguments follow.
    Start,
    Delta,
    /// The pieces are complete; the whole arguments follow.
    InputEnd,
    Call,
    /// The call succeeded, unless the members of the event mark a failure.
    Result,
    Error,
    /// The call was denied and did not run.
    Denied,
    /// A person is asked about the call.
    ApprovalRequest,
    /// A person answered the question.
    ApprovalResponse,
}

impl ReceivedEventKind {
    /// The kind for the payload's `type`. The comparison is exact: `tool_call`, `tool-weather` and `Tool-Call` belong
    /// to other protocols.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "tool-call" | "tool-input-available" => Self::Call,
            "tool-result" | "tool-output-available" => Self::Result,
            "tool-error" | "tool-output-error" | "tool-input-error" => Self::Error,
            "tool-input-start" | "tool-call-streaming-start" => Self::Start,
            "tool-input-delta" | "tool-call-delta" => Self::Delta,
            "tool-input-end" => Self::InputEnd,
            "tool-output-denied" => Self::Denied,
            "tool-approval-request" => Self::ApprovalRequest,
            "tool-approval-response" => Self::ApprovalResponse,
            _ => return None,
        })
    }
}

/// An event with access to its members by meaning.
pub(super) struct ReceivedEvent<'o, 'a> {
    pub(super) said: ReceivedEventKind,
    members: &'o ReceivedObject<'a>,
    /// AI SDK 5 and later put the call into approval events as a nested object.
    call: Option<ReceivedObject<'a>>,
    /// ADK uses `name` for the tool and `response` for the output.
    adk: bool,
}

impl<'o, 'a> ReceivedEvent<'o, 'a> {
    pub(super) fn new(said: ReceivedEventKind, members: &'o ReceivedObject<'a>) -> Self {
        let call = match said {
            ReceivedEventKind::ApprovalRequest | ReceivedEventKind::ApprovalResponse => {
                members.raw(ValueMember::ToolCall)
            }
            ReceivedEventKind::Start
            | ReceivedEventKind::Delta
            | ReceivedEventKind::InputEnd
            | ReceivedEventKind::Call
            | ReceivedEventKind::Result
            | ReceivedEventKind::Error
            | ReceivedEventKind::Denied => None,
        };
        let call = call.and_then(|raw| ReceivedObject::read(raw.get()).ok());
        Self {
            said,
            members,
            call,
            adk: false,
        }
    }

    /// An event from a part of Google's ADK. `adk_type` is the type in the metadata of the part.
    pub(super) fn of_adk(adk_type: &str, members: &'o ReceivedObject<'a>) -> Option<Self> {
        let said = match adk_type {
            "function_call" => ReceivedEventKind::Call,
            "function_response" => ReceivedEventKind::Result,
            _ => return None,
        };
        Some(Self {
            said,
            members,
            call: None,
            adk: true,
        })
    }

    pub(super) fn id(&self) -> Option<Cow<'a, str>> {
        let own = |object: &ReceivedObject<'a>| match object.said(ValueMember::ToolCallId) {
            Some(raw) => string(raw).filter(|id| !id.is_empty()),
            None => object.text(ValueMember::Id),
        };
        own(self.members).or_else(|| self.call.as_ref().and_then(own))
    }

    pub(super) fn name(&self) -> Option<Cow<'a, str>> {
        if self.adk {
            return self.members.text(ValueMember::Name);
        }
        let inner = || {
            self.call
                .as_ref()
                .and_then(|call| call.text(ValueMember::ToolName))
        };
        self.members.text(ValueMember::ToolName).or_else(inner)
    }

    /// The whole arguments. `null` counts as a value.
    pub(super) fn input(&self) -> Option<&'a RawValue> {
        let own = |object: &ReceivedObject<'a>| {
            object
                .raw(ValueMember::Input)
                .or_else(|| object.raw(ValueMember::Args))
        };
        own(self.members).or_else(|| self.call.as_ref().and_then(own))
    }

    /// A piece of the arguments, a JSON string.
    pub(super) fn piece(&self) -> Option<&'a RawValue> {
        let named = [
            ValueMember::InputTextDelta,
            ValueMember::ArgsTextDelta,
            ValueMember::Delta,
        ];
        let named = named
            .into_iter()
            .find_map(|member| self.members.raw(member).filter(|raw| is_string(raw)));
        named.or_else(|| self.input().filter(|raw| is_string(raw)))
    }

    /// Whether the arguments are text and stay text.
    pub(super) fn is_plain_text(&self) -> bool {
        self.members
            .text(ValueMember::InputEncoding)
            .is_some_and(|encoding| encoding == "text")
    }

    pub(super) fn output(&self) -> Option<&'a RawValue> {
        if self.adk {
            return self.members.raw(ValueMember::Response);
        }
        self.members
            .raw(ValueMember::Output)
            .or_else(|| self.members.raw(ValueMember::Result))
    }

    /// The members that can describe a failure, the best first.
    pub(super) fn errors(&self) -> [Option<&'a RawValue>; 2] {
        [
            self.members.raw(ValueMember::Error),
            self.members.raw(ValueMember::ErrorText),
        ]
    }

    pub(super) fn is_failed_result(&self) -> bool {
        self.members.is_true(ValueMember::IsError)
            || self.output().is_none()
                && self.errors().into_iter().flatten().any(|raw| !is_null(raw))
    }

    pub(super) fn is_preliminary(&self) -> bool {
        self.members.is_true(ValueMember::Preliminary)
    }

    pub(super) fn approval_id(&self) -> Option<Cow<'a, str>> {
        self.members.text(ValueMember::ApprovalId)
    }

    /// The reason of a denial, if the event is one.
    pub(super) fn refusal(&self) -> Option<Cow<'a, str>> {
        let refused = match self.said {
            ReceivedEventKind::ApprovalResponse => self
                .members
                .raw(ValueMember::Approved)
                .is_some_and(|raw| raw.get() == "false"),
            ReceivedEventKind::Denied => true,
            ReceivedEventKind::Start
            | ReceivedEventKind::Delta
            | ReceivedEventKind::InputEnd
            | ReceivedEventKind::Call
            | ReceivedEventKind::Result
            | ReceivedEventKind::Error
            | ReceivedEventKind::ApprovalRequest => false,
        };
        self.members.text(ValueMember::Reason).filter(|_| refused)
    }

    /// The duration, if it is finite and not negative. Whole numbers become integers, since some peers write every
    /// number as a float.
    pub(super) fn duration(&self) -> Option<Number> {
        /// Up to this number every whole float stands for one integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let text = self.members.raw(ValueMember::DurationMs)?.get();
        if let Ok(integer) = text.parse::<u64>() {
            return Some(integer.into());
        }
        let float = serde_json::from_str::<f64>(text)
            .ok()
            .filter(|float| *float >= 0.0)?;
        if float.fract() == 0.0 && float <= EXACT {
            return Some((float as u64).into());
        }
        Number::from_f64(float)
    }

    /// The start: a date, optionally with a time and an offset, as in ISO 8601.
    pub(super) fn started_at(&self) -> Option<Cow<'a, str>> {
        const LONGEST: usize = 64;
        let text = self.members.text(ValueMember::StartedAt)?;
        (text.len() <= LONGEST && Pieces::parse(text.as_bytes()).is_ok()).then_some(text)
    }
}

fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}
