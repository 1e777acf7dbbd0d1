//! Reads one JSON text into the few members that can matter, in one pass and without building what is not kept:
//! values stay slices of the text, and only the containers that A2A puts around events are entered.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::is_tool_events;

/// Deep enough for a list of tasks with a sidecar in a message of its history, and no deeper.
const DEPTH: u8 = 12;
/// How many objects of one text are kept: many times a task with every call that a stream may have, and still little
/// memory when a peer sends nothing but braces.
const OBJECTS: u32 = 65_536;

/// Members whose value is kept as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    AdkType,
    ApprovalId,
    Approved,
    Args,
    ArgsTextDelta,
    Delta,
    DurationMs,
    Error,
    ErrorText,
    Id,
    Input,
    InputEncoding,
    InputTextDelta,
    IsError,
    Jsonrpc,
    MessageId,
    Name,
    Output,
    Preliminary,
    Reason,
    Response,
    Result,
    Role,
    StartedAt,
    TaskId,
    Text,
    ToolCall,
    ToolCallId,
    ToolName,
    Type,
}

const MEMBERS: usize = Member::Type as usize + 1;

/// Members whose objects are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Artifact,
    ArtifactUpdate,
    Artifacts,
    Data,
    History,
    /// An element of a list that stands alone.
    Item,
    Message,
    Metadata,
    Parts,
    /// Under one of the extension's names, in the metadata of a part.
    Sidecar,
    Status,
    StatusUpdate,
    Task,
    Tasks,
}

impl Child {
    fn may_be_list(self) -> bool {
        match self {
            Self::Artifacts
            | Self::History
            | Self::Item
            | Self::Parts
            | Self::Sidecar
            | Self::Tasks => true,
            Self::Artifact
            | Self::ArtifactUpdate
            | Self::Data
            | Self::Message
            | Self::Metadata
            | Self::Status
            | Self::StatusUpdate
            | Self::Task => false,
        }
    }

    fn may_be_single(self) -> bool {
        !self.may_be_list() || self == Self::Sidecar
    }
}

enum Key {
    Member(Member),
    Child(Child),
    Other,
}

impl Key {
    fn of(name: &str) -> Self {
        let member = match name {
            "adk_type" => Member::AdkType,
            "approvalId" => Member::ApprovalId,
            "approved" => Member::Approved,
            "args" => Member::Args,
            "argsTextDelta" => Member::ArgsTextDelta,
            "delta" => Member::Delta,
            "durationMs" => Member::DurationMs,
            "error" => Member::Error,
            "errorText" => Member::ErrorText,
            "id" => Member::Id,
            "input" => Member::Input,
            "inputEncoding" => Member::InputEncoding,
            "inputTextDelta" => Member::InputTextDelta,
            "isError" => Member::IsError,
            "jsonrpc" => Member::Jsonrpc,
            "messageId" => Member::MessageId,
            "name" => Member::Name,
            "output" => Member::Output,
            "preliminary" => Member::Preliminary,
            "reason" => Member::Reason,
            "response" => Member::Response,
            "result" => Member::Result,
            "role" => Member::Role,
            "startedAt" => Member::StartedAt,
            "taskId" => Member::TaskId,
            "text" => Member::Text,
            "toolCall" => Member::ToolCall,
            "toolCallId" => Member::ToolCallId,
            "toolName" => Member::ToolName,
            "type" => Member::Type,
            other => return Self::child(other),
        };
        Self::Member(member)
    }

    fn child(name: &str) -> Self {
        Self::Child(match name {
            "artifact" => Child::Artifact,
            "artifactUpdate" => Child::ArtifactUpdate,
            "artifacts" => Child::Artifacts,
            "data" => Child::Data,
            "history" => Child::History,
            "message" => Child::Message,
            "metadata" => Child::Metadata,
            "parts" => Child::Parts,
            "status" => Child::Status,
            "statusUpdate" => Child::StatusUpdate,
            "task" => Child::Task,
            "tasks" => Child::Tasks,
            other if is_tool_events(other) => Child::Sidecar,
            _ => return Self::Other,
        })
    }
}

/// An object, whatever it turns out to be: a payload, a part, a message, an update, a task or a JSON-RPC answer.
#[derive(Default)]
pub(super) struct Object<'a> {
    members: [Option<&'a RawValue>; MEMBERS],
    children: Vec<(Child, Object<'a>)>,
    /// There were more objects than are kept.
    pub(super) is_cut: bool,
}

impl<'a> Object<'a> {
    /// A whole JSON text. A list becomes an object with items; any other value one that holds nothing.
    pub(super) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let (mut whole, mut budget) = (Object::default(), OBJECTS);
        let into = &mut whole;
        let entered = Entered {
            place: Place::Whole,
            child: Child::Item,
            into,
            depth: DEPTH,
            budget: &mut budget,
        };
        entered.deserialize(&mut reader)?;
        reader.end()?;
        whole.is_cut = budget == 0;
        Ok(whole)
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.members.iter().all(Option::is_none)
    }

    /// The member as it is written, `null` included.
    pub(super) fn raw(&self, member: Member) -> Option<&'a RawValue> {
        self.members[member as usize]
    }

    pub(super) fn has(&self, member: Member) -> bool {
        self.raw(member).is_some()
    }

    /// The member, where it says something other than `null`.
    pub(super) fn said(&self, member: Member) -> Option<&'a RawValue> {
        self.raw(member).filter(|raw| !is_null(raw))
    }

    /// The member, where it is a string that is not empty.
    pub(super) fn text(&self, member: Member) -> Option<Cow<'a, str>> {
        self.raw(member)
            .and_then(string)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn is_true(&self, member: Member) -> bool {
        self.raw(member).is_some_and(|raw| raw.get() == "true")
    }

    pub(super) fn children(&self, wanted: Child) -> impl Iterator<Item = &Object<'a>> {
        self.children
            .iter()
            .filter(move |(child, _)| *child == wanted)
            .map(|(_, object)| object)
    }

    pub(super) fn child(&self, wanted: Child) -> Option<&Object<'a>> {
        self.children(wanted).next()
    }
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// What a JSON string says; `None` for other values and for text that is no Unicode.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is the whole text.
    Whole,
    /// It is a member's value.
    Value,
    /// It is an element of a list that is a member's value.
    Element,
}

/// Enters a value, if it is an object or a list that may hold some; lets everything else pass.
struct Entered<'o, 'a> {
    place: Place,
    child: Child,
    into: &'o mut Object<'a>,
    depth: u8,
    /// How many more objects may be kept.
    budget: &'o mut u32,
}

impl<'a> DeserializeSeed<'a> for Entered<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth == 0 || *self.budget == 0 {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Entered<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        *self.budget -= 1;
        let mut object = Object::default();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            match key {
                Key::Member(member) => object.members[member as usize] = Some(map.next_value()?),
                Key::Child(child) => map.next_value_seed(Entered {
                    place: Place::Value,
                    child,
                    into: &mut object,
                    depth: self.depth - 1,
                    budget: &mut *self.budget,
                })?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match self.place {
            Place::Whole => *self.into = object,
            Place::Value if !self.child.may_be_single() => {}
            // Nothing that is looked for is in it, so the next one may be kept instead.
            Place::Value | Place::Element if object.is_empty() => *self.budget += 1,
            Place::Value | Place::Element => self.into.children.push((self.child, object)),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let entered = self.place != Place::Element && self.child.may_be_list();
        loop {
            let more = if entered {
                let element = Entered {
                    place: Place::Element,
                    child: self.child,
                    into: &mut *self.into,
                    depth: self.depth - 1,
                    budget: &mut *self.budget,
                };
                list.next_element_seed(element)?.is_some()
            } else {
                list.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(());
            }
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

struct KeySeed;

impl<'a> DeserializeSeed<'a> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        Ok(Key::of(name))
    }
}
