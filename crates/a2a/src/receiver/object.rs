//! Reads the members that matter from one JSON text, in one pass. Values stay slices of the text, and only the
//! containers that A2A puts around events are entered; nothing else is allocated.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::is_tool_events;

/// Enough for a list of tasks with a sidecar in a message of a task's history.
const DEPTH: u8 = 12;
/// The most objects that are kept of one text. It is many times a task with every call that a stream may have, and
/// bounds the memory when a peer sends only braces.
const OBJECTS: u32 = 65_536;

/// Members whose value is kept as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueMember {
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

const MEMBERS: usize = ValueMember::Type as usize + 1;

/// Members whose objects are entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerMember {
    Artifact,
    ArtifactUpdate,
    Artifacts,
    Data,
    History,
    /// An element of a list at the top of the text.
    Item,
    Message,
    Metadata,
    Parts,
    /// The value under one of the extension's names in the metadata of a part.
    Sidecar,
    Status,
    StatusUpdate,
    Task,
    Tasks,
}

impl ContainerMember {
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

enum MemberKey {
    Member(ValueMember),
    Child(ContainerMember),
    Other,
}

impl MemberKey {
    fn of(name: &str) -> Self {
        let member = match name {
            "adk_type" => ValueMember::AdkType,
            "approvalId" => ValueMember::ApprovalId,
            "approved" => ValueMember::Approved,
            "args" => ValueMember::Args,
            "argsTextDelta" => ValueMember::ArgsTextDelta,
            "delta" => ValueMember::Delta,
            "durationMs" => ValueMember::DurationMs,
            "error" => ValueMember::Error,
            "errorText" => ValueMember::ErrorText,
            "id" => ValueMember::Id,
            "input" => ValueMember::Input,
            "inputEncoding" => ValueMember::InputEncoding,
            "inputTextDelta" => ValueMember::InputTextDelta,
            "isError" => ValueMember::IsError,
            "jsonrpc" => ValueMember::Jsonrpc,
            "messageId" => ValueMember::MessageId,
            "name" => ValueMember::Name,
            "output" => ValueMember::Output,
            "preliminary" => ValueMember::Preliminary,
            "reason" => ValueMember::Reason,
            "response" => ValueMember::Response,
            "result" => ValueMember::Result,
            "role" => ValueMember::Role,
            "startedAt" => ValueMember::StartedAt,
            "taskId" => ValueMember::TaskId,
            "text" => ValueMember::Text,
            "toolCall" => ValueMember::ToolCall,
            "toolCallId" => ValueMember::ToolCallId,
            "toolName" => ValueMember::ToolName,
            "type" => ValueMember::Type,
            other => return Self::child(other),
        };
        Self::Member(member)
    }

    fn child(name: &str) -> Self {
        Self::Child(match name {
            "artifact" => ContainerMember::Artifact,
            "artifactUpdate" => ContainerMember::ArtifactUpdate,
            "artifacts" => ContainerMember::Artifacts,
            "data" => ContainerMember::Data,
            "history" => ContainerMember::History,
            "message" => ContainerMember::Message,
            "metadata" => ContainerMember::Metadata,
            "parts" => ContainerMember::Parts,
            "status" => ContainerMember::Status,
            "statusUpdate" => ContainerMember::StatusUpdate,
            "task" => ContainerMember::Task,
            "tasks" => ContainerMember::Tasks,
            other if is_tool_events(other) => ContainerMember::Sidecar,
            _ => return Self::Other,
        })
    }
}

/// Any object of a text: a payload, a part, a message, an update, a task or a JSON-RPC answer.
#[derive(Default)]
pub(super) struct ReceivedObject<'a> {
    members: [Option<&'a RawValue>; MEMBERS],
    children: Vec<(ContainerMember, ReceivedObject<'a>)>,
    /// Whether the text had more objects than are kept.
    pub(super) is_cut: bool,
}

impl<'a> ReceivedObject<'a> {
    /// Reads a whole JSON text. A list becomes an object with items; any other value that is no object becomes an empty
    /// object.
    pub(super) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let mut whole = ReceivedObject::default();
        let mut budget = OBJECTS;
        let into = &mut whole;
        let entered = ContainerVisitor {
            place: JsonValuePosition::Whole,
            child: ContainerMember::Item,
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

    /// The member as written, `null` included.
    pub(super) fn raw(&self, member: ValueMember) -> Option<&'a RawValue> {
        self.members[member as usize]
    }

    pub(super) fn has(&self, member: ValueMember) -> bool {
        self.raw(member).is_some()
    }

    /// The member, unless it is `null`.
    pub(super) fn said(&self, member: ValueMember) -> Option<&'a RawValue> {
        self.raw(member).filter(|raw| !is_null(raw))
    }

    /// The member, if it is a non-empty string.
    pub(super) fn text(&self, member: ValueMember) -> Option<Cow<'a, str>> {
        self.raw(member)
            .and_then(string)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn is_true(&self, member: ValueMember) -> bool {
        self.raw(member).is_some_and(|raw| raw.get() == "true")
    }

    pub(super) fn children(
        &self,
        wanted: ContainerMember,
    ) -> impl Iterator<Item = &ReceivedObject<'a>> {
        self.children
            .iter()
            .filter(move |(child, _)| *child == wanted)
            .map(|(_, object)| object)
    }

    pub(super) fn child(&self, wanted: ContainerMember) -> Option<&ReceivedObject<'a>> {
        self.children(wanted).next()
    }
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// The content of a JSON string; `None` for other values and for text that is not Unicode.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The position of a value in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonValuePosition {
    Whole,
    Value,
    /// It is an element of a list that is a member's value.
    Element,
}

/// Enters a value that is an object or a list of objects, and skips everything else.
struct ContainerVisitor<'o, 'a> {
    place: JsonValuePosition,
    child: ContainerMember,
    into: &'o mut ReceivedObject<'a>,
    depth: u8,
    /// The number of objects that may still be kept.
    budget: &'o mut u32,
}

impl<'a> DeserializeSeed<'a> for ContainerVisitor<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth == 0 || *self.budget == 0 {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for ContainerVisitor<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        *self.budget -= 1;
        let mut object = ReceivedObject::default();
        while let Some(key) = map.next_key_seed(MemberNameSeed)? {
            match key {
                MemberKey::Member(member) => {
                    object.members[member as usize] = Some(map.next_value()?);
                }
                MemberKey::Child(child) => map.next_value_seed(ContainerVisitor {
                    place: JsonValuePosition::Value,
                    child,
                    into: &mut object,
                    depth: self.depth - 1,
                    budget: &mut *self.budget,
                })?,
                MemberKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match self.place {
            JsonValuePosition::Whole => *self.into = object,
            JsonValuePosition::Value if !self.child.may_be_single() => {}
            // The object held no member of interest, so its place in the budget is free again.
            JsonValuePosition::Value | JsonValuePosition::Element if object.is_empty() => {
                *self.budget += 1;
            }
            JsonValuePosition::Value | JsonValuePosition::Element => {
                self.into.children.push((self.child, object));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        let entered = self.place != JsonValuePosition::Element && self.child.may_be_list();
        loop {
            let more = if entered {
                let element = ContainerVisitor {
                    place: JsonValuePosition::Element,
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

struct MemberNameSeed;

impl<'a> DeserializeSeed<'a> for MemberNameSeed {
    type Value = MemberKey;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<MemberKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberNameSeed {
    type Value = MemberKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<MemberKey, E> {
        Ok(MemberKey::of(name))
    }
}
