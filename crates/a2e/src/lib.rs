//! A2E, the agent-to-environment protocol: its messages, how they are written, and a client for agents.
//!
//! [`Message`] and its bodies are the vocabulary, [`codec`] the only place that knows how they look on a wire,
//! [`projection`] how Toolpost's own results, events and declarations read in it. The real clients of this
//! protocol drop a message with one wrong field without a word, so every shape here is as they accept it.
//!
//! An agent connects a [`Client`] over HTTP, to a child process or to a host in the same process, and calls tools
//! through a [`ToolApi`].
#![warn(missing_docs)]

mod client;
pub mod codec;
mod definition;
mod lax;
mod link;
mod message;
pub mod projection;
pub mod sse;
mod tool_api;

pub use client::{
    AuthToken, CallError, Client, ClientCounters, ConnectError, ConnectOptions, HostDeparture,
    HostNotice, HostNotices, HostTransport, HttpHost, ProtocolError, StderrSink, StdioCommand,
};
pub use definition::{ToolDefinition, ToolParameter};
pub use link::InProcessLink;
pub use message::{
    Body, CapabilityEntry, CapabilityName, ErrorCode, ErrorMessage, HandshakeRequest,
    HandshakeResponse, InvokeEvent, Message, OtherBody, Pong, RefusalReason, Shutdown,
    ToolCallRequest, ToolCallResponse, ToolCancelRequest, ToolCancelResponse, ToolEventMessage,
    ToolListRequest, ToolListResponse, ToolResult,
};
pub use tool_api::{CallEvent, CallOptions, ClientCall, ListOptions, ToolApi};
