//! A2A tool events: how an agent shows its tool calls to chat clients and other agents.
//!
//! Nothing here opens a socket. A receiver merges what arrives, in whatever vocabulary, into one part per call; a producer
//! turns the calls of a host into events; the rest is A2A's own messages in the two dialects that peers speak.
#![warn(missing_docs)]

mod event;
mod extension;
pub mod producer;
pub mod ui_stream;
pub mod wire;

pub use event::{ToolEvent, ToolEventError};
pub use extension::{CANONICAL_URI, DEPRECATED_URI, is_tool_events};
