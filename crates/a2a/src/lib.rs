//! A2A tool events: how an agent shows its tool calls to chat clients and other agents.
//!
//! This crate opens no sockets. A receiver merges incoming events of any vocabulary into one part per call; a producer
//! turns the calls of a host into events; the rest is A2A's own messages in the two dialects that peers use.
//!
//! - [`Receiver`] takes payloads, parts, messages, updates and tasks and gives [`ToolCallPart`]s.
//! - [`producer`] makes [`ToolEvent`]s from calls as a host records them.
//! - [`ui_stream`] writes the same events for pages that use the AI SDK.
//! - [`wire`] reads and writes A2A: messages, tasks, cards, requests, refusals.
#![warn(missing_docs)]

mod bridge;
mod data_part;
mod event;
mod extension;
mod part;
pub mod producer;
mod receiver;
pub mod ui_stream;
mod v4;
pub mod wire;

pub use bridge::VocabularyBridge;
pub use data_part::{ArgumentRepetition, DataPart};
pub use event::{ToolEvent, ToolEventError};
pub use extension::{CANONICAL_URI, DEPRECATED_URI, is_tool_events};
pub use part::{JsonText, PartError, ToolCallPart, UNKNOWN_TOOL};
pub use receiver::{
    CallKey, CallPartChange, CallPhase, Receiver, ReceiverBounds, ReceiverCounts, ReceiverOptions,
    UnreadableEventText,
};
pub use v4::{V4Code, V4Line};
